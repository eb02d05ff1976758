"""Models: documents call them `echo:NAME`. This one says what it was told, in capitals if it is `echo:loud`."""

from __future__ import annotations

from engine.models.protocol import Model, ModelError, ModelErrorKind, OnText, Price, Reply, Request, Usage


class EchoModel:
    """What a model has to have is said by `engine.models.protocol.Model`."""

    def __init__(self, name: str) -> None:
        self.name = f"echo:{name}"
        self.note = ""
        self._is_loud = name == "loud"

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Say again what was said last."""
        text = request.messages[-1].text
        said = text.upper() if self._is_loud else text
        if on_text is not None:
            on_text(said)
        return Reply(said, usage=Usage(len(text.split()), len(said.split())))

    async def price(self) -> Price | None:
        """It costs nothing."""
        return Price(0.0, 0.0)

    async def close(self) -> None:
        """It holds nothing."""


def make_echo(name: str) -> Model:
    """Make the model of a name behind `echo:`."""
    if name not in {"plain", "loud"}:
        raise ModelError(ModelErrorKind.NOT_FOUND, f'There is no model "echo:{name}".', "Take echo:plain or echo:loud.")
    return EchoModel(name)
