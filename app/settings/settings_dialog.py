"""The Settings dialog, whose forms are generated from the schema of the preferences. Changes apply immediately."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, Final

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QLayout,
    QLineEdit,
    QListWidget,
    QMessageBox,
    QScrollArea,
    QSlider,
    QStackedWidget,
    QWidget,
)

from app.dialogs import ask_question
from app.engine_thread import EngineThread
from app.history.store_client import StoreClient
from app.inspector.field_spec import FieldKind, FieldSpec, field_specs
from app.inspector.model_list import ModelComboBox, ModelSource
from app.settings.extensions_controller import ExtensionsController
from app.settings.extensions_section import McpServersSection, PluginsSection
from app.settings.preferences import FIXED_NOTE, Preferences, PreferenceValues
from app.settings.providers_section import EMBEDDED_MODEL_NOTE, ProvidersSection
from app.settings.servers_section import ServersSection
from app.settings.settings_widgets import SettingsSection
from app.theme.style import icon, set_style_properties, style
from app.theme.widgets import (
    STRETCH,
    CollapsibleSection,
    MessageBar,
    PlainLabel,
    StatusLabel,
    Switch,
    hbox,
    plain_tool_tip,
    push_button,
    resize_on_screen,
    scroll_area,
    set_tab_order,
    vbox,
)
from app.timers import call_between_frames
from app.worker import Worker
from engine.errors import EngineError
from engine.formatting import format_bytes, format_count
from engine.models.protocol import EMBEDDED_MODEL, with_absolute_path
from engine.settings import SETTINGS, setting_error
from engine.store.store_protocol import EVERY_RUN, Store

FIELD_WIDTH = 220
_PERCENT_STEP = 10


class PreferencesForm(QWidget):
    """The preferences of one page."""

    def __init__(self, preferences: Preferences, page: str) -> None:
        super().__init__()
        self._preferences = preferences
        layout = vbox(spacing=6, parent=self)
        self.rows = {name: PreferenceRow(field, extra) for name, field, extra in _declared(page)}
        for name, row in self.rows.items():
            row.edited.connect(lambda value, name=name: self._set(name, value))
            if preferences.is_fixed(name):
                row.fix()
            layout.addWidget(row)
        self._show(frozenset(self.rows))
        preferences.changed.connect(self._show)

    def _set(self, name: str, value: object) -> None:
        error = setting_error(name, value)
        self.rows[name].show_error(error)
        if not error:
            self._preferences.set(**{name: value})

    def _show(self, names: frozenset[str]) -> None:
        for name in names & self.rows.keys():
            self.rows[name].editor.show_value(getattr(self._preferences.values, name))


class PreferenceRow(QWidget):
    """One preference: title, editor, help text and error.

    Signals:
        edited: The user changed the value; the new value, which may be invalid.
    """

    edited = Signal(object)

    def __init__(self, field: FieldSpec, extra: dict[str, Any]) -> None:
        super().__init__()
        self.field = field
        layout = vbox(spacing=1, parent=self)
        make: Callable[[FieldSpec, dict[str, Any], Any], _Editor] = _EDITORS[extra.get("widget", field.kind)]
        self.editor = make(field, extra, self.edited)
        self.editor.widget.setAccessibleName(field.title)
        self.editor.widget.setAccessibleDescription(field.help)
        if field.kind is not FieldKind.SWITCH:
            layout.addWidget(PlainLabel(field.title, buddy=self.editor.widget))
        layout.addWidget(self.editor.container, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(PlainLabel(field.help, look="dim small", wrap=True))
        self.error = StatusLabel()
        layout.addWidget(self.error)

    def fix(self) -> None:
        """Say that the value comes from the environment, and refuse changes."""
        self.editor.widget.setEnabled(False)
        self.error.say(FIXED_NOTE)

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


def _combo(field: FieldSpec, _extra: dict[str, Any], edited: Any) -> _Editor:
    combo = QComboBox()
    combo.setMinimumWidth(FIELD_WIDTH)
    for choice in field.choices:
        combo.addItem(choice.label, choice.value)
    combo.activated.connect(lambda _index: edited.emit(combo.currentData()))
    return _Editor(combo, lambda value: combo.setCurrentIndex(combo.findData(value)))


def _number(field: FieldSpec, extra: dict[str, Any], edited: Any) -> _Editor:
    line = QLineEdit()
    line.setMinimumWidth(FIELD_WIDTH)
    line.setMaxLength(18)
    line.setPlaceholderText(extra.get("placeholder", "No limit") if field.nullable else "")
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

    def __init__(self, field: FieldSpec) -> None:
        super().__init__()
        assert field.minimum is not None
        assert field.maximum is not None
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(round(field.minimum * 100), round(field.maximum * 100))
        self.slider.setSingleStep(_PERCENT_STEP)
        self.slider.setPageStep(_PERCENT_STEP)
        self.slider.setMinimumWidth(FIELD_WIDTH)
        self.slider.valueChanged.connect(self._snap)
        self.number = PlainLabel()
        hbox(self.slider, self.number, spacing=3, parent=self)
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


class DefaultModelChooser(QWidget):
    """Combo box for the default model, with a note about the model."""

    def __init__(self, preferences: Preferences, models: ModelSource) -> None:
        super().__init__()
        self._preferences = preferences
        self.box = ModelComboBox(models, f"{EMBEDDED_MODEL} (default)", with_setup=False)
        self.box.setAccessibleName("Default model")
        self.box.line.setAccessibleName("Default model")
        self.box.line.textEdited.connect(self._set)
        self.box.line.editingFinished.connect(self._remember)
        self.box.model_chosen.connect(self._choose)
        self.note = StatusLabel()
        vbox(self.box, self.note, spacing=2, parent=self)
        preferences.changed.connect(self._follow)
        self.box.setEnabled(not preferences.is_fixed("default_model"))
        self._show()

    def _set(self, text: str) -> None:
        name = text.strip() or None
        error = setting_error("default_model", name)
        set_style_properties(self.box, invalid=bool(error))
        if error:
            self.note.say(error, "bad")
        else:
            # A relative path would mean another file wherever the program is started from another folder.
            self._preferences.set(default_model=with_absolute_path(name) if name else None)
            self._update_note()

    def _choose(self, text: str) -> None:
        self._set(text)
        self._remember()

    def _remember(self) -> None:
        """Show the chosen model by the name that is stored, and add it to the recent models."""
        name = self._preferences.values.default_model
        if name is not None and name == self._typed:
            self.box.setEditText(name)
            self._preferences.remember_model(name)

    @property
    def _typed(self) -> str:
        """The name in the box, as it would be stored."""
        return with_absolute_path(self.box.currentText().strip())

    def _follow(self, names: frozenset[str]) -> None:
        if "default_model" in names:
            self._show()

    def _show(self) -> None:
        name = self._preferences.values.default_model or ""
        if self._typed != name:
            self.box.setEditText(name)
        set_style_properties(self.box, invalid=False)
        self._update_note()

    def _update_note(self) -> None:
        name = self._preferences.values.model
        notes = (FIXED_NOTE, not self.box.isEnabled()), (f"{EMBEDDED_MODEL_NOTE}.", name == EMBEDDED_MODEL)
        self.note.say(" ".join(note for note, applies in notes if applies))


class HistoryStorage(QWidget):
    """Size of the history, with a button to free disk space.

    Args:
        access: Access to the history.
        preferences: Contain the limits of the history.
    """

    def __init__(self, access: StoreClient, preferences: Preferences) -> None:
        super().__init__()
        self._access = access
        self._preferences = preferences
        self._worker = Worker(self)
        self._is_freeing = False
        self.line = PlainLabel("", wrap=True)
        self.free = push_button("Free up space", self._free)
        vbox(self.line, (self.free, Qt.AlignmentFlag.AlignLeft), spacing=2, parent=self)
        access.opened.connect(self.refresh)
        access.changed.connect(self.refresh)

    def showEvent(self, event: QShowEvent) -> None:
        """Update the size."""
        super().showEvent(event)
        self.refresh()

    def refresh(self) -> None:
        """Update the size, if it is visible."""
        if not self.isVisible() or self._is_freeing:
            return
        asked = self._access.ask(
            lambda store: (store.size(), store.totals(EVERY_RUN).count),
            self._show_size,
            self._show_error,
            worker=self._worker,
        )
        self.free.setEnabled(self._access.writable is not None)
        self.free.setToolTip(plain_tool_tip(self._access.failure))
        if not asked:
            self.line.setText(self._access.failure or "The history is not available.")

    def _free(self) -> None:
        max_runs, megabytes = self._preferences.keep_runs, self._preferences.keep_megabytes
        max_bytes = None if megabytes is None else megabytes * 1_000_000
        self._is_freeing = True
        self.free.setEnabled(False)
        self.line.setText("Freeing space…")

        def work(store: Store) -> tuple[int, int]:
            before = store.size()
            deleted = store.retain(most_runs=max_runs, most_bytes=max_bytes)
            store.vacuum()
            return deleted, before - store.size()

        def done(outcome: tuple[int, int]) -> None:
            deleted, freed = outcome
            if deleted:
                self._access.changed.emit()
            self._is_freeing = False
            self.free.setEnabled(True)
            runs = f" {format_count(deleted, 'run')} deleted." if deleted else ""
            self.line.setText(f"{format_bytes(max(freed, 0))} freed.{runs}")

        self._access.ask(work, done, self._show_error, worker=self._worker)

    def _show_size(self, found: tuple[int, int]) -> None:
        size, count = found
        self.line.setText(f"{format_count(count, 'run')}, {format_bytes(size)}")

    def _show_error(self, error: EngineError) -> None:
        self._is_freeing = False
        self.free.setEnabled(self._access.writable is not None)
        self.line.setText(str(error))


SIZE: Final = QSize(840, 720)
NAVIGATION_WIDTH: Final = 136
NAVIGATION_ROW: Final = 32
NAVIGATION_SHEET: Final = """
QListWidget { border-radius: 6px; }
QListWidget::item { border-radius: 4px; margin: 2px; padding: 2px 6px; }
"""
"""Rounded corners, as for fields and menus."""

PAGES: Final = {
    "models": ("Models", "mdi6.creation"),
    "runs": ("Runs", "mdi6.play"),
    "history": ("History", "mdi6.history"),
    "tools": ("Tools", "mdi6.toolbox-outline"),
    "plugins": ("Plugins", "mdi6.puzzle-outline"),
    "appearance": ("Appearance", "mdi6.palette"),
}


class SettingsDialog(QDialog):
    """The dialog. It is not modal, so that runs continue and changes of the appearance are visible.

    Args:
        preferences: The preferences to edit.
        models: The models to choose from.
        history: Access to the history, or None.
        additions: MCP servers and plugins; None to create an own controller.
    """

    def __init__(
        self,
        preferences: Preferences,
        engine: EngineThread,
        models: ModelSource,
        parent: QWidget | None = None,
        *,
        history: StoreClient | None = None,
        additions: ExtensionsController | None = None,
    ) -> None:
        super().__init__(parent)
        self._preferences = preferences
        self._engine = engine
        self._history = history
        self._additions = additions or ExtensionsController(engine, self)
        self.space: HistoryStorage | None = None
        self.mcp: McpServersSection | None = None
        self.plugins: PluginsSection | None = None
        self.setWindowTitle("Settings")
        resize_on_screen(self, SIZE)
        self.default_model = DefaultModelChooser(preferences, models)
        self.get_model = push_button("Get a local model…", lambda: models.download_requested.emit(None))
        self.forms: dict[str, PreferencesForm] = {}
        self.navigation = QListWidget()
        self.navigation.setAccessibleName("Settings pages")
        self.navigation.setProperty("bare", True)
        self.pages = QStackedWidget()
        self._created_pages = {"models": self._models_page()}  # the others when they are first opened
        self.pages.addWidget(self._created_pages["models"])
        self.navigation.addItems([title for title, _ in PAGES.values()])
        self.navigation.currentRowChanged.connect(self._show_page)
        self.notice = MessageBar(preferences.notice, "warning")
        self.notice.setVisible(bool(preferences.notice))
        self.reset = self.notice.add_button("Reset settings…", self._ask_to_reset)
        self.reset.setVisible(preferences.is_unreadable)
        preferences.save_failed.connect(self._show_warning)
        preferences.notice_changed.connect(self._show_warning)
        self.close_button = push_button("Close", self.close)
        self._lay_out()
        style().changed.connect(self._draw)
        self._draw()
        self.navigation.setCurrentRow(0)

    def show_page(self, name: str) -> None:
        """Open the dialog at a page of `PAGES` and bring it to the front."""
        self.navigation.setCurrentRow(list(PAGES).index(name))
        self.show()
        self.raise_()
        self.activateWindow()

    def show_setting(self, name: str) -> None:
        """Open the dialog at a setting that has a row in one of the forms."""
        extra = SETTINGS[name].json_schema_extra
        form = str(extra["page"]) if isinstance(extra, dict) else ""
        if form == "local models":
            self.local_options.button.setChecked(True)
        self.show_page(form if form in PAGES else "models")
        row = self.forms[form].rows[name]
        row.editor.widget.setFocus()
        page = self.pages.currentWidget()
        if isinstance(page, QScrollArea):  # the layout of a section that has just become visible takes two turns
            call_between_frames(self, *[partial(page.ensureWidgetVisible, row)] * 3)

    @cached_property
    def providers(self) -> ProvidersSection:
        """The list of providers."""
        providers = ProvidersSection(self._preferences, self._engine, self._providers_frame)
        self._providers_frame.add(providers)
        return providers

    @cached_property
    def servers(self) -> ServersSection:
        """The list of servers."""
        servers = ServersSection(self._preferences, self._engine, self._servers_frame)
        self._servers_frame.add(servers)
        return servers

    def showEvent(self, event: QShowEvent) -> None:
        """Complete the page of models once the dialog is visible."""
        super().showEvent(event)
        if not event.spontaneous():
            call_between_frames(self, lambda: self.providers, lambda: self.servers, self._check_keys)

    def _check_keys(self) -> None:
        """Check API keys again: another program may have changed the keyring."""
        self.providers.refresh()

    def focusNextPrevChild(self, next: bool) -> bool:  # noqa: A002 - Qt's own
        """Move the focus in the order in which the widgets are laid out: pages are created late."""
        set_tab_order((self.navigation, self.notice, self.pages, self.close_button))
        return super().focusNextPrevChild(next)

    def hideEvent(self, event: QHideEvent) -> None:
        """Save the preferences."""
        super().hideEvent(event)
        if not event.spontaneous():
            self._preferences.save()

    def _show_page(self, index: int) -> None:
        name = list(PAGES)[index]
        if name not in self._created_pages:
            self._created_pages[name] = _page(PAGES[name][0], *self._sections(name))
            self.pages.addWidget(self._created_pages[name])
        self.pages.setCurrentWidget(self._created_pages[name])

    def _sections(self, name: str) -> list[QWidget]:
        if name == "tools":
            self.mcp = McpServersSection(self._additions)
            text = "Programs and services that provide tools. A server starts only when a run or you use it."
            return [SettingsSection("MCP servers", text, self.mcp)]
        if name == "plugins":
            self.plugins = PluginsSection(self._additions)
            text = "Packages that add nodes, tools, models and more. They run code: enable only plugins that you trust."
            return [SettingsSection("Installed plugins", text, self.plugins)]
        self.forms[name] = PreferencesForm(self._preferences, name)
        if name != "history" or self._history is None:
            return [self.forms[name]]
        self.space = HistoryStorage(self._history, self._preferences)
        return [
            self.forms[name],
            SettingsSection("Disk space", "Deletes runs above the limits and compacts the history.", self.space),
        ]

    def _models_page(self) -> QScrollArea:
        local_models = QWidget()
        form = self.forms["local models"] = PreferencesForm(self._preferences, "local models")
        self.local_options = CollapsibleSection("Options", form)
        vbox(hbox(self.get_model, STRETCH), self.local_options, spacing=3, parent=local_models)
        keys = "API keys are stored in the system keyring, never in a file."
        self._providers_frame = SettingsSection("Providers", keys)
        own = "Ollama, LM Studio and llama.cpp on this computer, or any OpenAI-compatible server."
        self._servers_frame = SettingsSection("Custom servers", own)
        return _page(
            "Models",
            SettingsSection(
                "Default model",
                "Used by model nodes if neither the node nor its workflow specifies a model.",
                self.default_model,
            ),
            SettingsSection(
                "Local models",
                "Models that run on this computer, without a key and for free.",
                local_models,
            ),
            self._providers_frame,
            self._servers_frame,
        )

    def _lay_out(self) -> None:
        side = QWidget()
        side.setAutoFillBackground(True)  # the window color sets it off from the page
        vbox(self.navigation, STRETCH, margins=(2, 5, 2, 4), parent=side)
        note = PlainLabel("Changes apply immediately.", look="dim")
        bottom = hbox(note, STRETCH, self.close_button, spacing=2, margins=(6, 3, 6, 4))
        content = vbox(self.notice, (self.pages, 1), bottom, spacing=0)
        hbox(side, (content, 1), spacing=0, parent=self)

    def _draw(self) -> None:
        side = round(16 * style().scale)
        self.navigation.setIconSize(QSize(side, side))
        self.navigation.setFixedWidth(round(NAVIGATION_WIDTH * style().scale))
        height = round(NAVIGATION_ROW * style().scale)
        for index, (_, picture) in enumerate(PAGES.values()):
            self.navigation.item(index).setIcon(icon(picture, style().theme.dim))
            self.navigation.item(index).setSizeHint(QSize(0, height))
        self.navigation.setFixedHeight(height * len(PAGES) + 2)
        self.navigation.setStyleSheet(NAVIGATION_SHEET)

    def _show_warning(self, text: str) -> None:
        self.notice.say(text, "warning")
        self.reset.setVisible(self._preferences.is_unreadable)
        self.notice.setVisible(bool(text))

    def _ask_to_reset(self) -> None:
        ask_question(
            self,
            "Reset all settings to their defaults?",
            "The file that cannot be read is renamed, so that you can restore it. API keys stay.",
            [("Reset settings", QMessageBox.ButtonRole.DestructiveRole, self._reset)],
        )

    def _reset(self) -> None:
        self.notice.hide()
        self._preferences.reset_file()


def _page(title: str, *sections: QWidget) -> QScrollArea:
    inner = QWidget()
    column = vbox(PlainLabel(title, look="heading"), *sections, STRETCH, spacing=8, margins=(6, 5, 6, 6), parent=inner)
    # At once: the area resizes the page a frame later, and its layout would squeeze the sections meanwhile.
    column.setSizeConstraint(QLayout.SizeConstraint.SetMinimumSize)
    return scroll_area(inner)
