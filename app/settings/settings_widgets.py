"""Small parts of which the pages of the settings are put together."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QLineEdit, QPushButton, QVBoxLayout, QWidget
from shiboken6 import isValid

from app.engine_thread import EngineThread
from app.theme.style import set_style_properties
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel
from engine.errors import EngineError

_NO_TRACE = (
    Qt.InputMethodHint.ImhHiddenText
    | Qt.InputMethodHint.ImhSensitiveData
    | Qt.InputMethodHint.ImhNoPredictiveText
    | Qt.InputMethodHint.ImhNoAutoUppercase
)


def push_button(text: str, pressed: Callable[[], object], *, primary: bool = False) -> QPushButton:
    """A button that Enter presses only while it has the keyboard."""
    button = QPushButton(text)
    button.setAutoDefault(False)
    if primary:
        button.setProperty("primary", True)
    button.clicked.connect(lambda _checked=False: pressed())
    return button


def key_field(name: str) -> QLineEdit:
    """A field for a key: it shows dots, and no input method learns what is typed."""
    field = QLineEdit()
    field.setEchoMode(QLineEdit.EchoMode.Password)
    field.setInputMethodHints(_NO_TRACE)
    field.setAccessibleName(name)
    return field


class Note(PlainLabel):
    """A line that says how things are, or what is wrong; hidden while there is nothing to say."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent, wrap=True)
        self.hide()

    def say(self, sentence: str, tone: str = "") -> None:
        """Say something; tones are `good`, `warning` and `bad`, empty for a plain remark."""
        self.setText(sentence)
        self.setVisible(bool(sentence))
        set_style_properties(self, tone=tone or False, dim=not tone)


class Section(QWidget):
    """A part of a page: a title, a line of help, and what belongs to it."""

    def __init__(self, title: str, words: str, body: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(UNIT)
        layout.addWidget(PlainLabel(title, look="title"))
        layout.addWidget(PlainLabel(words, look="dim", wrap=True))
        layout.addSpacing(2 * UNIT)
        layout.addWidget(body)


ResultT = TypeVar("ResultT")


def send(
    owner: QObject,
    engine: EngineThread,
    work: Coroutine[Any, Any, ResultT],
    answered: Callable[[ResultT], None],
    failed: Callable[[EngineError], None],
) -> Future[ResultT]:
    """Do it, and tell the owner's functions what came of it, unless the owner is gone by then."""

    def to_answer(result: ResultT) -> None:
        if isValid(owner):
            answered(result)

    def to_fail(error: EngineError) -> None:
        if isValid(owner):
            failed(error)

    return engine.ask(work, to_answer, to_fail)
