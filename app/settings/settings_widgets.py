"""Widgets shared by the sections of the Settings dialog, and the test whether a model replies."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QHideEvent
from PySide6.QtWidgets import QFormLayout, QLineEdit, QListWidget, QPushButton, QWidget

from app.engine_thread import EngineThread
from app.settings.preferences import FIXED_NOTE, Preferences
from app.theme.style import ThemedIcon, set_style_properties, style
from app.theme.tokens import UNIT
from app.theme.widgets import STRETCH, PlainLabel, hbox, push_button, vbox
from engine.errors import EngineError
from engine.formatting import format_duration, format_timeout
from engine.models.catalog import Models
from engine.models.protocol import Message, Request

_SECRET_INPUT = (
    Qt.InputMethodHint.ImhHiddenText
    | Qt.InputMethodHint.ImhSensitiveData
    | Qt.InputMethodHint.ImhNoPredictiveText
    | Qt.InputMethodHint.ImhNoAutoUppercase
)


def disable_fixed(preferences: Preferences, name: str, *widgets: QWidget) -> None:
    """Disable widgets that change a setting whose value comes from the environment, and say why."""
    if preferences.is_fixed(name):
        for widget in widgets:
            widget.setEnabled(False)
            widget.setToolTip(FIXED_NOTE)


def line_field(name: str, placeholder: str) -> QLineEdit:
    """Create a field for a line of text, with an example in it."""
    line = QLineEdit()
    line.setAccessibleName(name)
    line.setPlaceholderText(placeholder)
    return line


def password_field(name: str) -> QLineEdit:
    """Create a password field that input methods do not learn from."""
    field = QLineEdit()
    field.setEchoMode(QLineEdit.EchoMode.Password)
    field.setInputMethodHints(_SECRET_INPUT)
    field.setAccessibleName(name)
    return field


ROW_HEIGHT: Final = 28


def labeled_rows(fields: Iterable[tuple[str, QWidget]]) -> QFormLayout:
    """Lay out fields in rows, each with its label before it."""
    rows = QFormLayout()
    rows.setHorizontalSpacing(3 * UNIT)
    rows.setVerticalSpacing(2 * UNIT)
    rows.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
    rows.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
    for title, field in fields:
        add_labeled_row(rows, title, field)
    return rows


def add_labeled_row(rows: QFormLayout, title: str, field: QWidget) -> None:
    """Add a field with its label below the others."""
    rows.addRow(PlainLabel(title, buddy=field), field)


def fit_rows(entries: QListWidget, most: int) -> None:
    """Give a list the height of its rows, at most that of a number of rows."""
    height = round(ROW_HEIGHT * style().scale)
    for index in range(entries.count()):
        entries.item(index).setSizeHint(QSize(0, height))
    entries.setFixedHeight(height * min(max(entries.count(), 1), most) + 2 * UNIT)


class SettingsSection(QWidget):
    """Section of a page: title, help text and content, which may be added later."""

    def __init__(self, title: str, help_text: str, *body: QWidget) -> None:
        super().__init__()
        self._column = vbox(
            PlainLabel(title, look="title"),
            PlainLabel(help_text, look="dim", wrap=True),
            2,
            *body,
            spacing=1,
            parent=self,
        )

    def add(self, body: QWidget) -> None:
        """Add the content."""
        self._column.addWidget(body)


TIMEOUT_S: Final = 60.0
SHOWN_CHARACTERS: Final = 120
_REQUEST: Final = Request((Message("user", "Reply with the word ready"),), max_tokens=8)


@dataclass(frozen=True, slots=True)
class ModelTestResult:
    """Duration in seconds and the beginning of the reply in one line."""

    duration_s: float
    text: str

    @property
    def sentence(self) -> str:
        """The result as a sentence."""
        return f"Replied in {format_duration(self.duration_s)}: {self.text or '(empty)'}"


async def run_model_test(models: Models, name: str, address: str | None = None) -> ModelTestResult:
    """Make one small call, which costs a few tokens.

    Raises:
        EngineError: The call failed. API keys are removed from the message.
    """
    started = time.monotonic()
    try:
        async with asyncio.timeout(TIMEOUT_S):
            reply = await models.get(name, address).complete(_REQUEST)
    except TimeoutError:
        raise EngineError(f"{name} did not reply within {format_timeout(TIMEOUT_S)}.", "Try again later.") from None
    except EngineError as error:
        raise EngineError(models.keys.redact(error.message), models.keys.redact(error.remedy)) from None
    text = " ".join(models.keys.redact(reply.text[: 10 * SHOWN_CHARACTERS]).split())
    return ModelTestResult(
        time.monotonic() - started, f"{text[:SHOWN_CHARACTERS]}…" if len(text) > SHOWN_CHARACTERS else text
    )


COST_NOTE: Final = "Test makes one small call that costs a few tokens."

ModelTestCall = Coroutine[Any, Any, ModelTestResult]


class ModelTestRow(QWidget):
    """Button that tests a model or cancels the test, with the result below.

    Args:
        call: Returns the call to make, or None after showing why there is none.
        subject: What is tested, for the accessible name of the button.
        other_buttons: Buttons to the right.
    """

    def __init__(
        self,
        engine: EngineThread,
        call: Callable[[], ModelTestCall | None],
        subject: str,
        other_buttons: Sequence[QPushButton] = (),
    ) -> None:
        super().__init__()
        self._engine = engine
        self._call = call
        self._subject = subject
        self._future: Future[ModelTestResult] | None = None
        self.button = push_button("", self._press)
        self.button.setToolTip(COST_NOTE)
        self._icon = ThemedIcon(self.button, "mdi6.play-outline")
        self.result = PlainLabel(wrap=True, selectable=True)
        vbox(hbox(self.button, *other_buttons, STRETCH, spacing=2), self.result, spacing=2, parent=self)
        self.reset()

    @property
    def is_running(self) -> bool:
        """Whether a test is running."""
        return self._future is not None

    def reset(self) -> None:
        """Cancel a running test and clear the result."""
        if self._future is not None:
            self._future.cancel()
        self._finish(COST_NOTE, "")

    def hideEvent(self, event: QHideEvent) -> None:
        """Cancel a running test."""
        super().hideEvent(event)
        if self.is_running:
            self._cancel()

    def _press(self) -> None:
        if self.is_running:
            self._cancel()
        elif (work := self._call()) is not None:
            self._future = self._engine.ask(self, work, self._show_result, self._show_error)
            self._name_button("Cancel", "mdi6.stop")
            self._say("Waiting for a reply…", "")

    def _cancel(self) -> None:
        assert self._future is not None
        self._future.cancel()
        self._finish("Cancelled.", "")

    def _show_result(self, result: ModelTestResult) -> None:
        if self.is_running:
            self._finish(f"✓ {result.sentence}", "good")

    def _show_error(self, error: EngineError) -> None:
        if self.is_running:
            self._finish(f"✗ {error}", "bad")

    def _finish(self, sentence: str, tone: str) -> None:
        self._future = None
        self._name_button("Test", "mdi6.play-outline")
        self._say(sentence, tone)

    def _say(self, sentence: str, tone: str) -> None:
        self.result.setText(sentence)
        set_style_properties(self.result, tone=tone or False, dim=not tone)

    def _name_button(self, text: str, icon: str) -> None:
        self.button.setText(text)
        self.button.setAccessibleName(f"{text}: {self._subject}")
        self._icon.show(icon)
