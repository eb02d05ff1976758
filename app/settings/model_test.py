"""A button that makes one small call of a model, with what came of it below."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtGui import QHideEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.engine_thread import EngineThread
from app.settings.settings_widgets import send
from app.theme.style import ThemedIcon, set_style_properties
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel
from engine.errors import EngineError
from engine.formatting import format_duration
from engine.models.base import Message, Request
from engine.models.catalogue import Models

LIMIT_S: Final = 60.0
SHOWN_CHARACTERS: Final = 120
_REQUEST: Final = Request((Message("user", "Reply with the word ready"),), max_tokens=8)


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of it: the time in seconds, and the beginning of the reply on one line."""

    duration_s: float
    text: str

    @property
    def sentence(self) -> str:
        """What to tell a person."""
        return f"Answered in {format_duration(self.duration_s)}: {self.text or '(no text)'}"


async def try_model(models: Models, name: str, address: str | None = None) -> Trial:
    """Make one small call, which costs a few tokens.

    Raises:
        EngineError: It gave no reply; the sentence says why, without any key.
    """
    started = time.monotonic()
    try:
        async with asyncio.timeout(LIMIT_S):
            reply = await models.get(name, address).complete(_REQUEST)
    except TimeoutError:
        raise EngineError(f"{name} has not answered within {LIMIT_S:.0f} s.", "Try again later.") from None
    except EngineError as error:
        raise EngineError(models.keys.redact(error.message), models.keys.redact(error.remedy)) from None
    text = " ".join(models.keys.redact(reply.text[: 10 * SHOWN_CHARACTERS]).split())
    return Trial(time.monotonic() - started, f"{text[:SHOWN_CHARACTERS]}…" if len(text) > SHOWN_CHARACTERS else text)


COSTS: Final = "Test makes one small call. It costs a few tokens."

Work = Coroutine[Any, Any, Trial]


class TrialRow(QWidget):
    """Test, and while the call is under way Cancel.

    Args:
        engine: Where the call is made.
        call: Gives the call to make; None where there is none, after it has said why.
        about: What is tested, for those who cannot see where the button stands.
        beside: What else can be done with it.
    """

    def __init__(
        self,
        engine: EngineThread,
        call: Callable[[], Work | None],
        about: str,
        beside: Sequence[QPushButton] = (),
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._engine = engine
        self._call = call
        self._about = about
        self._future: Future[Trial] | None = None
        self.button = QPushButton()
        self.button.setAutoDefault(False)
        self.button.setToolTip(COSTS)
        self._icon = ThemedIcon(self.button, "mdi6.play-outline")
        self.button.clicked.connect(self._press)
        self.result = PlainLabel(wrap=True, selectable=True)
        buttons = QHBoxLayout()
        buttons.setSpacing(2 * UNIT)
        for button in (self.button, *beside):
            buttons.addWidget(button)
        buttons.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2 * UNIT)
        layout.addLayout(buttons)
        layout.addWidget(self.result)
        self.forget()

    @property
    def is_running(self) -> bool:
        """Whether a call is under way."""
        return self._future is not None

    def forget(self) -> None:
        """Give up the call under way, and say nothing of any other any more."""
        if self._future is not None:
            self._future.cancel()
        self._settle(COSTS, "")

    def hideEvent(self, event: QHideEvent) -> None:
        """Nobody waits for an answer any more."""
        super().hideEvent(event)
        if self.is_running:
            self._cancel()

    def _press(self) -> None:
        if self.is_running:
            self._cancel()
        elif (work := self._call()) is not None:
            self._future = send(self, self._engine, work, self._answered, self._failed)
            self._name_button("Cancel", "mdi6.stop")
            self._say("Waiting for an answer…", "")

    def _cancel(self) -> None:
        assert self._future is not None
        self._future.cancel()
        self._settle("Cancelled.", "")

    def _answered(self, trial: Trial) -> None:
        if self.is_running:
            self._settle(f"✓ {trial.sentence}", "good")

    def _failed(self, error: EngineError) -> None:
        if self.is_running:
            self._settle(f"✗ {error}", "bad")

    def _settle(self, sentence: str, tone: str) -> None:
        self._future = None
        self._name_button("Test", "mdi6.play-outline")
        self._say(sentence, tone)

    def _say(self, sentence: str, tone: str) -> None:
        self.result.setText(sentence)
        set_style_properties(self.result, tone=tone or False, dim=not tone)

    def _name_button(self, text: str, icon: str) -> None:
        self.button.setText(text)
        self.button.setAccessibleName(f"{text}: {self._about}")
        self._icon.show(icon)
