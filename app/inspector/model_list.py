"""The list of models to choose from: its source, the field with the name of a model, and the list that it opens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QObject, QPoint, QRect, QStringListModel, Qt, Signal
from PySide6.QtGui import QFont, QKeyEvent
from PySide6.QtWidgets import (
    QComboBox,
    QCompleter,
    QDialog,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QWidget,
)
from shiboken6 import isValid

from app.search import ListKeys
from app.theme.style import ThemedIcon, style
from app.theme.tokens import FONT_SIZE_SMALL
from app.theme.widgets import (
    HintDelegate,
    PlainLabel,
    disabled_item,
    hbox,
    plain_tool_tip,
    push_button,
    search_field,
    vbox,
)
from engine.models.known_models import matches_model

WIDTH: Final = 400
HEIGHT: Final = 440


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model to choose.

    Attributes:
        name: Its name in workflows.
        label: Its name for people; empty for `name`.
        hint: Its price, in short; may be empty.
        help: What else to know about it; may be empty.
        keywords: What else the filter finds it by; may be empty.
    """

    name: str
    label: str = ""
    hint: str = ""
    help: str = ""
    keywords: str = ""


@dataclass(frozen=True, slots=True)
class ModelGroup:
    """Models under one heading.

    Attributes:
        title: The heading.
        models: The models.
        note: What to know about the group, or why it is empty; may be empty.
    """

    title: str
    models: tuple[ModelChoice, ...] = ()
    note: str = ""


class ModelSource(QObject):
    """Where lists of models get their entries.

    This class has a fixed list; the window's own source, `app.settings.available_models`, follows keys and servers.

    Signals:
        changed: `groups` returns other models.
        setup_requested: The user wants to set up models.
        download_requested: The user wants to download a model that runs on this computer; the function that uses it
            once it is there, or None to make it the default model.

    Attributes:
        can_search: Whether the user has yet to allow a search for servers on this computer.
        is_searching: Whether a search is in progress.
        default_label: The model of workflows that name none, for people; empty if unknown.
    """

    changed = Signal()
    setup_requested = Signal()
    download_requested = Signal(object)

    def __init__(self, names: Sequence[str] = (), parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._names = tuple(names)

    can_search = False
    is_searching = False
    default_label = ""

    def groups(self) -> list[ModelGroup]:
        """Return the models by group, the most likely group first."""
        return [ModelGroup("", tuple(map(ModelChoice, self._names)))]

    def names(self) -> list[str]:
        """Return the names of all models, each once."""
        return list(dict.fromkeys(model.name for group in self.groups() for model in group.models))

    def refresh(self) -> None:
        """Look for models again, in the background."""

    def allow_search(self) -> None:
        """Allow searches for servers on this computer, and search."""


class ModelList(QDialog):
    """The list that a model field opens: a filter, the models by group, and buttons to find and set up more.

    Args:
        source: Where the models come from.
        chosen: Called with the name of the chosen model.
        with_setup: Whether it offers to set up models.
    """

    def __init__(
        self, source: ModelSource, chosen: Callable[[str], object], parent: QWidget, *, with_setup: bool = True
    ) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setProperty("finder", True)
        self.setAccessibleName("Models")
        self._source = source
        self._chosen = chosen
        self.filter = search_field("Filter models", parent=self)
        self.filter.textChanged.connect(lambda _text: self._show())
        self.list = QListWidget(self)
        self.list.setAccessibleName("Models")
        self.list.setProperty("bare", True)
        self.list.setProperty("grouped", True)
        self.list.setItemDelegate(HintDelegate(self.list))
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.itemClicked.connect(self._choose)
        self.list.currentRowChanged.connect(self._show_heading)
        ListKeys(self.filter, self.list, self._choose)
        self.search = self._button("Look for models on this computer", "mdi6.magnify", source.allow_search)
        self.search.setToolTip(plain_tool_tip("You can turn this off under Settings › Models."))
        text = "Asks Ollama, LM Studio and llama.cpp on this computer for their models. Nothing else is sent."
        self.note = PlainLabel(text, self, look="dim small", wrap=True)
        self.get = self._button("Get a local model…", "mdi6.download-outline", self._get_model)
        self.setup = self._button("Set up models…", "mdi6.cog-outline", self._set_up)
        self.setup.setVisible(with_setup)
        footer = vbox(self.search, hbox(self.note, margins=(1, 0, 1, 1)), self.get, self.setup, spacing=1)
        vbox(self.filter, (self.list, 1), footer, spacing=2, margins=2, parent=self)
        source.changed.connect(self._update)
        style().changed.connect(self._update)

    def open_below(self, field: QWidget) -> None:
        """Open the list below a field, or above it where there is more room."""
        scale, screen = style().scale, field.screen().availableGeometry()
        width = min(max(field.width(), round(WIDTH * scale)), screen.width())
        height = min(round(HEIGHT * scale), screen.height())
        self.setGeometry(_beside(QRect(field.mapToGlobal(QPoint(0, 0)), field.size()), width, height, screen))
        self.filter.clear()
        self._show()
        self.list.scrollToTop()
        self.show()
        self.filter.updateGeometry()  # the style sheet, which makes it higher, applies from now on
        self.filter.setFocus(Qt.FocusReason.PopupFocusReason)

    def _button(self, text: str, picture: str, pressed: Callable[[], object]) -> QPushButton:
        button = push_button(text, pressed, self, look="row")
        ThemedIcon(button, picture, "dim")
        return button

    def _update(self) -> None:
        if self.isVisible():
            self._show()

    def _show(self) -> None:
        current, typed = self.list.currentItem(), self.filter.text()
        chosen = current.data(Qt.ItemDataRole.UserRole) if current is not None else None
        self.list.clear()
        for group in self._source.groups():
            models = [
                one for one in group.models if matches_model(typed, one.name, one.label, one.keywords, group.title)
            ]
            if group.title and (models or (group.note and not typed)):
                self._add_heading(group.title)
            for model in models:
                self._add_model(model)
            if group.note and not typed:
                self._add_note(group.note)
        if not self.list.count():
            self._add_note("No model matches. Type its name into the field to use it anyway.")
        rows = self._selectable()
        self.list.setCurrentRow(next((row for row in rows if self._name_at(row) == chosen), rows[0] if rows else -1))
        self.search.setVisible(self._source.can_search)
        self.note.setVisible(self._source.can_search)

    def _add_heading(self, title: str) -> None:
        item = self._add_note(title)
        item.setFont(style().font(FONT_SIZE_SMALL, QFont.Weight.DemiBold))

    def _add_note(self, text: str) -> QListWidgetItem:
        item = disabled_item(text)
        item.setFont(style().font(FONT_SIZE_SMALL))
        self.list.addItem(item)
        return item

    def _add_model(self, model: ModelChoice) -> None:
        item = QListWidgetItem(model.label or model.name)
        item.setData(Qt.ItemDataRole.UserRole, model.name)
        item.setData(Qt.ItemDataRole.AccessibleDescriptionRole, model.hint)
        item.setToolTip(plain_tool_tip("\n".join(filter(None, (model.name, model.help)))))
        self.list.addItem(item)

    def _selectable(self) -> list[int]:
        return [row for row in range(self.list.count()) if self._name_at(row)]

    def _name_at(self, row: int) -> str | None:
        return self.list.item(row).data(Qt.ItemDataRole.UserRole)

    def _show_heading(self, row: int) -> None:
        """Scroll to the heading above the first model."""
        if row in self._selectable()[:1]:
            self.list.scrollToTop()

    def _choose(self, item: QListWidgetItem) -> None:
        name: str | None = item.data(Qt.ItemDataRole.UserRole)
        if name:
            self.close()
            self._chosen(name)

    def _get_model(self) -> None:
        self.close()
        self._source.download_requested.emit(self._use_if_open)

    def _use_if_open(self, name: str) -> None:
        if isValid(self):  # the field may have been closed meanwhile
            self._chosen(name)

    def _set_up(self) -> None:
        self.close()
        self._source.setup_requested.emit()


def _beside(field: QRect, width: int, height: int, screen: QRect) -> QRect:
    """Return where a list is shown: below a field, else above it, always on the screen."""
    below = field.bottom() + 1
    top = below if below + height <= screen.bottom() or field.top() - height < screen.top() else field.top() - height
    left = min(max(field.left(), screen.left()), screen.right() - width + 1)
    return QRect(left, min(top, screen.bottom() - height + 1), width, height)


class ModelComboBox(QComboBox):
    """Field for the name of a model. It completes what is typed, and opens the list of models.

    Args:
        source: Where the models come from.
        placeholder: Shown while the field is empty.
        with_setup: Whether the list offers to set up models.

    Signals:
        model_chosen: A model was chosen from the list or from the completions; its name.

    Attributes:
        line: The text field.
        list: The list of models; None until it was first opened.
    """

    model_chosen = Signal(str)

    def __init__(
        self, source: ModelSource, placeholder: str = "", parent: QWidget | None = None, *, with_setup: bool = True
    ) -> None:
        super().__init__(parent)
        self._source = source
        self._with_setup = with_setup
        self.list: ModelList | None = None
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(8)
        self.setEditable(True)
        self.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        line = self.lineEdit()
        assert line is not None
        self.line = line
        line.setPlaceholderText(placeholder)
        self._names = QStringListModel(source.names(), self)
        completer = QCompleter(self._names, self)
        completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        completer.setFilterMode(Qt.MatchFlag.MatchContains)
        completer.activated.connect(self._choose)
        line.setCompleter(completer)  # not the combo box's own, which would look for the text among its items
        source.changed.connect(self._update_names)

    def showPopup(self) -> None:
        """Open the list of models, and look for models again."""
        if self.list is None:
            self.list = ModelList(self._source, self._choose, self, with_setup=self._with_setup)
        self.list.open_below(self)
        self._source.refresh()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Open the list with Down."""
        if event.key() == Qt.Key.Key_Down:
            self.showPopup()
        else:
            super().keyPressEvent(event)

    def hidePopup(self) -> None:
        """Close the list."""
        super().hidePopup()
        if self.list is not None:
            self.list.close()

    def _update_names(self) -> None:
        self._names.setStringList(self._source.names())

    def _choose(self, name: str) -> None:
        self.line.setText(name)
        self.model_chosen.emit(name)
        self.line.setFocus()
