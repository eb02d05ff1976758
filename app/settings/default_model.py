"""Where the model is chosen that is called when no document names one."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QVBoxLayout, QWidget

from app.settings.choices import fault
from app.settings.models_list import model_names
from app.settings.parts import Note
from app.settings.preferences import Preferences
from app.settings.providers import EMBEDDED_LINE
from app.theme.style import mark
from app.theme.tokens import UNIT
from engine.models.catalogue import default_model_name
from engine.models.model_names import EMBEDDED_MODEL


class ModelBox(QComboBox):
    """A combo box that takes any text and offers the models there are when it is opened.

    Signals:
        opening: The list is about to be shown.
    """

    opening = Signal()

    def showPopup(self) -> None:
        """Let the list be brought up to date first."""
        self.opening.emit()
        super().showPopup()


class DefaultModel(QWidget):
    """The chooser, and what should be known of the model that counts."""

    def __init__(self, preferences: Preferences, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._preferences = preferences
        self.box = ModelBox()
        self.box.setEditable(True)
        self.box.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.box.setAccessibleName("Default model")
        self.box.lineEdit().setAccessibleName("Default model")
        self.box.lineEdit().setPlaceholderText(f"{default_model_name()} (where nothing is chosen)")
        self.box.opening.connect(self._offer)
        self.box.lineEdit().textEdited.connect(self._take_up)
        self.box.lineEdit().editingFinished.connect(self._remember)
        self.box.textActivated.connect(self._choose)
        self.note = Note()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2 * UNIT)
        layout.addWidget(self.box)
        layout.addWidget(self.note)
        preferences.changed.connect(self._follow)
        self._offer()
        self._show()

    def _offer(self) -> None:
        text = self.box.currentText()
        self.box.clear()
        self.box.addItems(model_names(self._preferences))
        self.box.setCurrentIndex(self.box.findText(text))
        self.box.setEditText(text)

    def _take_up(self, text: str) -> None:
        name = text.strip() or None
        problem = fault("default_model", name)
        mark(self.box, invalid=bool(problem))
        if problem:
            self.note.say(problem, "bad")
        else:
            self._preferences.set(default_model=name)
            self._remark()

    def _choose(self, text: str) -> None:
        self._take_up(text)
        self._remember()

    def _remember(self) -> None:
        """A name that was typed to its end, or chosen, is offered from now on, also when another one counts."""
        name = self._preferences.choices.default_model
        if name is not None and name == self.box.currentText().strip():
            self._preferences.remember_model(name)

    def _follow(self, names: frozenset[str]) -> None:
        if "default_model" in names:
            self._show()

    def _show(self) -> None:
        name = self._preferences.choices.default_model or ""
        if self.box.currentText().strip() != name:
            self.box.setEditText(name)
        mark(self.box, invalid=False)
        self._remark()

    def _remark(self) -> None:
        name = self._preferences.choices.default_model or default_model_name()
        self.note.say(f"{EMBEDDED_LINE}." if name == EMBEDDED_MODEL else "")
