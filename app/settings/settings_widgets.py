"""Small widgets and helpers of the Settings dialog."""

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

_SECRET_INPUT = (
    Qt.InputMethodHint.ImhHiddenText
    | Qt.InputMethodHint.ImhSensitiveData
    | Qt.InputMethodHint.ImhNoPredictiveText
    | Qt.InputMethodHint.ImhNoAutoUppercase
)


def make_button(text: str, pressed: Callable[[], object], *, primary: bool = False) -> QPushButton:
    """Create a button that Enter activates only while it has the focus."""
    button = QPushButton(text)
    button.setAutoDefault(False)
    if primary:
        button.setProperty("primary", True)
    button.clicked.connect(lambda _checked=False: pressed())
    return button


def password_field(name: str) -> QLineEdit:
    """Create a password field that input methods do not learn from."""
    field = QLineEdit()
    field.setEchoMode(QLineEdit.EchoMode.Password)
    field.setInputMethodHints(_SECRET_INPUT)
    field.setAccessibleName(name)
    return field


class StatusLabel(PlainLabel):
    """Label for a status or error; hidden while it is empty."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent, wrap=True)
        self.hide()

    def say(self, text: str, tone: str = "") -> None:
        """Set the text; tones are `good`, `warning` and `bad`, or empty for neutral."""
        self.setText(text)
        self.setVisible(bool(text))
        set_style_properties(self, tone=tone or False, dim=not tone)


class SettingsSection(QWidget):
    """Section of a page: title, help text and content."""

    def __init__(self, title: str, help_text: str, body: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(UNIT)
        layout.addWidget(PlainLabel(title, look="title"))
        layout.addWidget(PlainLabel(help_text, look="dim", wrap=True))
        layout.addSpacing(2 * UNIT)
        layout.addWidget(body)


ResultT = TypeVar("ResultT")


def run_in_engine(
    owner: QObject,
    engine: EngineThread,
    work: Coroutine[Any, Any, ResultT],
    on_result: Callable[[ResultT], None],
    on_error: Callable[[EngineError], None],
) -> Future[ResultT]:
    """Run a coroutine in the engine thread and call back in the window's thread, unless `owner` was deleted."""

    def to_answer(result: ResultT) -> None:
        if isValid(owner):
            on_result(result)

    def to_fail(error: EngineError) -> None:
        if isValid(owner):
            on_error(error)

    return engine.ask(work, to_answer, to_fail)
