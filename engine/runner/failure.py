"""A node that failed and takes with it what it is part of."""

from __future__ import annotations

from engine.errors import EngineError


class NodeFailure(EngineError):  # noqa: N818 - it is told as an event, and never reaches a user as an exception
    """A node's failure on its way up.

    Attributes:
        path: The node that failed.
        title: What people call it.
    """

    def __init__(self, path: str, title: str, cause: EngineError) -> None:
        super().__init__(cause.message, cause.remedy)
        self.path = path
        self.title = title

    @property
    def sentence(self) -> str:
        """What failed and why, in one sentence."""
        return f"“{self.title}” failed: {self.message}"
