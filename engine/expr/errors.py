"""What can go wrong in an expression or a template, with the place in its text. Knows nothing of how either works."""

from __future__ import annotations

from engine.errors import EngineError


class PlacedError(EngineError):
    """An error at a place in a text that a person wrote.

    Attributes:
        detail: The sentence without the place.
        position: Characters of the text before the place; None where no single place is to blame.
    """

    def __init__(self, detail: str, remedy: str = "", position: int | None = None) -> None:
        super().__init__(detail if position is None else f"Character {position + 1}: {detail}", remedy)
        self.detail = detail
        self.position = position


class ExpressionError(PlacedError):
    """An expression that cannot be understood, or that has no value for these inputs."""


class MissingError(ExpressionError):
    """A member that its object does not have: the one failure that `has()` turns into an answer."""


class LimitError(ExpressionError):
    """An expression that would take too long or grow too large: the one failure that `||` and `&&` never swallow."""


class TemplateError(PlacedError):
    """A template that cannot be understood, or that cannot be filled in with these values."""
