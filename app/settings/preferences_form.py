"""Form for one page of preferences, generated from their schema. Changes apply immediately."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLineEdit, QSlider, QVBoxLayout, QWidget

from app.inspector.field_spec import FieldKind, FieldSpec, field_specs
from app.settings.preferences import Preferences
from app.settings.preferences_schema import PreferenceValues, validation_error
from app.settings.settings_widgets import StatusLabel
from app.theme.style import set_style_properties, style
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel, Switch

FIELD_WIDTH = 220
_PERCENT_STEP = 10


class PreferencesForm(QWidget):
    """The preferences of one page."""

    def __init__(self, preferences: Preferences, page: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._preferences = preferences
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6 * UNIT)
        self.rows = {name: PreferenceRow(field, extra) for name, field, extra in _declared(page)}
        for name, row in self.rows.items():
            row.edited.connect(lambda value, name=name: self._set(name, value))
            layout.addWidget(row)
        self._show(frozenset(self.rows))
        preferences.changed.connect(self._show)

    def _set(self, name: str, value: object) -> None:
        error = validation_error(name, value)
        self.rows[name].show_error(error)
        if not error:
            self._preferences.set(**{name: value})

    def _show(self, names: frozenset[str]) -> None:
        for name in names & self.rows.keys():
            self.rows[name].show_value(getattr(self._preferences.values, name))


class PreferenceRow(QWidget):
    """One preference: title, editor, help text and error.

    Signals:
        edited: The user changed the value; the new value, which may be invalid.
    """

    edited = Signal(object)

    def __init__(self, field: FieldSpec, extra: dict[str, Any], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.field = field
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(UNIT)
        make: Callable[[FieldSpec, dict[str, Any], Any], _Editor] = _EDITORS[extra.get("widget", field.kind)]
        self.editor = make(field, extra, self.edited)
        self.editor.widget.setAccessibleName(field.title)
        self.editor.widget.setAccessibleDescription(field.help)
        if field.kind is not FieldKind.SWITCH:
            title = PlainLabel(field.title)
            title.setBuddy(self.editor.widget)
            layout.addWidget(title)
        layout.addWidget(self.editor.container, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(PlainLabel(field.help, look="dim small", wrap=True))
        self.error = StatusLabel()
        layout.addWidget(self.error)

    def show_value(self, value: object) -> None:
        """Show the current value."""
        self.editor.show_value(value)

    def show_error(self, text: str) -> None:
        """Show an error; an empty text clears it."""
        self.error.say(text, "bad")
        set_style_properties(self.editor.widget, invalid=bool(text))


class _Editor:
    """An editor: the focus widget, the container to lay out, and a function that shows a value."""

    def __init__(self, widget: QWidget, show_value: Callable[[Any], None], container: QWidget | None = None) -> None:
        self.widget = widget
        self.container = container or widget
        self.show_value = show_value


def _switch(field: FieldSpec, _extra: dict[str, Any], edited: Any) -> _Editor:
    switch = Switch(field.title)
    switch.toggled.connect(edited.emit)
    return _Editor(switch, switch.setChecked)


def _combo(field: FieldSpec, extra: dict[str, Any], edited: Any) -> _Editor:
    combo = QComboBox()
    combo.setMinimumWidth(FIELD_WIDTH)
    for choice in field.choices:
        combo.addItem(extra.get("labels", {}).get(choice, choice), choice)
    combo.activated.connect(lambda _index: edited.emit(combo.currentData()))
    return _Editor(combo, lambda value: combo.setCurrentIndex(combo.findData(value)))


def _number(field: FieldSpec, extra: dict[str, Any], edited: Any) -> _Editor:
    line = QLineEdit()
    line.setMinimumWidth(FIELD_WIDTH)
    line.setMaxLength(18)
    line.setPlaceholderText("No limit" if field.nullable else "")
    if extra.get("widget") == "deferred":  # applying the first digit would delete most of the history
        line.editingFinished.connect(lambda: edited.emit(_read(line.text(), field)))
    else:
        line.textEdited.connect(lambda text: edited.emit(_read(text, field)))

    def show_value(value: float | None) -> None:
        if _read(line.text(), field) != value:  # do not turn `0.` into `0` while typing
            line.setText("" if value is None else f"{value:.12g}" if isinstance(value, float) else str(value))

    return _Editor(line, show_value)


def _read(text: str, field: FieldSpec) -> object:
    text = text.strip()
    if not text and field.nullable:
        return None
    try:
        return int(text) if field.kind is FieldKind.INTEGER else float(text)
    except ValueError:
        return text


def _percent(field: FieldSpec, _extra: dict[str, Any], edited: Any) -> _Editor:
    percent = Percent(field)
    percent.chosen.connect(edited.emit)
    return _Editor(percent.slider, percent.show_value, percent)


class Percent(QWidget):
    """Slider for a percentage in steps of ten, with a label.

    Signals:
        chosen: The user moved the slider; the value as a fraction.
    """

    chosen = Signal(float)

    def __init__(self, field: FieldSpec, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        assert field.minimum is not None
        assert field.maximum is not None
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(3 * UNIT)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(round(field.minimum * 100), round(field.maximum * 100))
        self.slider.setSingleStep(_PERCENT_STEP)
        self.slider.setPageStep(_PERCENT_STEP)
        self.slider.setMinimumWidth(FIELD_WIDTH)
        self.slider.valueChanged.connect(self._snap)
        self.number = PlainLabel()
        layout.addWidget(self.slider)
        layout.addWidget(self.number)
        style().changed.connect(self._update_label)

    def show_value(self, value: float) -> None:
        """Show the current value."""
        with QSignalBlocker(self.slider):
            self.slider.setValue(round(value * 100))
        self._update_label()

    def _snap(self, value: int) -> None:
        share = round(value / _PERCENT_STEP) * _PERCENT_STEP / 100
        self.show_value(share)
        self.chosen.emit(share)

    def _update_label(self) -> None:
        self.number.setMinimumWidth(self.number.fontMetrics().horizontalAdvance("200%"))
        self.number.setText(f"{self.slider.value()}%")


_EDITORS: dict[str, Callable[[FieldSpec, dict[str, Any], Any], _Editor]] = {
    FieldKind.SWITCH: _switch,
    FieldKind.CHOICE: _combo,
    FieldKind.INTEGER: _number,
    FieldKind.NUMBER: _number,
    "percent": _percent,
    "deferred": _number,
}


def _declared(page: str) -> list[tuple[str, FieldSpec, dict[str, Any]]]:
    fields = field_specs(PreferenceValues)
    extras = {name: info.json_schema_extra or {} for name, info in PreferenceValues.model_fields.items()}
    return [
        (name, fields[name], extra)
        for name, extra in extras.items()
        if isinstance(extra, dict) and extra.get("page") == page
    ]
