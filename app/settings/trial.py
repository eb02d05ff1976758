"""One small call that shows whether a model answers. No Qt here."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Final

from engine.errors import EngineError
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
        return f"Answered in {self.duration_s:.1f} s: {self.text or '(no text)'}"


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
