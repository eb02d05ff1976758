"""State of a connection to an MCP server: whether its stream has ended, and why."""

from __future__ import annotations

from typing import Final

MAX_MESSAGE_BYTES: Final = 8_000_000
"""The longest message that a server may send."""


_TAIL: Final = 600


class Life:
    """The life of one connection.

    Attributes:
        is_over: Whether the server's line has ended.
        fault: Why it was ended by this program; empty where it was not.
        secrets: What no text of the server may show.
    """

    def __init__(self) -> None:
        self.is_over = False
        self.fault = ""
        self.secrets: tuple[str, ...] = ()
        self._errors = b""

    def too_long(self) -> None:
        """Note that it sent a message beyond all measure."""
        self.fault = f"it sent a message of more than {MAX_MESSAGE_BYTES:,} bytes"
        self.is_over = True

    def complain(self, errors: bytes) -> None:
        """Take up what it wrote to its errors; the end of it is kept."""
        self._errors = (self._errors + errors)[-4 * _TAIL :]

    def without_secrets(self, text: str) -> str:
        """The text with every secret that was put into the server's settings struck out."""
        for secret in self.secrets:
            text = text.replace(secret, "…")
        return text

    @property
    def last_words(self) -> str:
        """The end of what it wrote to its errors, on one line; empty where it wrote nothing."""
        text = " ".join(self.without_secrets(self._errors.decode("utf-8", "replace")).split())
        return text if len(text) <= _TAIL else f"…{text[-_TAIL:]}"
