"""Models named `echo:NAME` in documents: they repeat the last message, `echo:loud` in capitals."""

from __future__ import annotations

from engine.models.protocol import Model, ModelError, ModelErrorKind, OnText, Price, Reply, Request, Usage


class EchoModel:
    """Implements the protocol `engine.models.protocol.Model`."""

    def __init__(self, name: str) -> None:
        self.name = f"echo:{name}"
        self.note = ""
        self._is_loud = name == "loud"

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Repeat the last message."""
        text = request.messages[-1].text
        said = text.upper() if self._is_loud else text
        if on_text is not None:
            on_text(said)
        return Reply(said, usage=Usage(len(text.split()), len(said.split())))

    async def price(self) -> Price | None:
        """Return the price; it is free."""
        return Price(0.0, 0.0)

    async def close(self) -> None:
        """Release resources; there are none."""


def make_echo(name: str) -> Model:
    """Create the model with the name that follows `echo:`."""
    if name not in {"plain", "loud"}:
        raise ModelError(
            ModelErrorKind.NOT_FOUND, f'There is no model "echo:{name}".', "Choose echo:plain or echo:loud."
        )
    return EchoModel(name)
