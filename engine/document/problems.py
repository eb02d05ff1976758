"""What can be wrong with a document, told so that a person can put it right.

A problem never stops a document from being opened, edited and saved; an *error* stops it from running.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from engine.document.wording import shown
from engine.errors import EngineError


class Severity(StrEnum):
    """Whether the document runs in spite of a problem."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and where.

    Attributes:
        code: A stable name of the kind of problem (`missing-exit`), for tests, filters and quick fixes.
        message: One sentence: what is wrong.
        remedy: One sentence: what would put it right.
        severity: Whether the document runs in spite of it.
        node: Id of the node that it belongs to, if any.
        port: Port of that node, if any.
        field: Config field of that node as a dotted path (`branches.0.when`), or a top-level place of the document
            (`settings.budget_usd`).
        edge: The edge that it belongs to, as `from -> to`.
    """

    code: str
    message: str
    remedy: str = ""
    severity: Severity = Severity.ERROR
    node: str | None = None
    port: str | None = None
    field: str | None = None
    edge: str | None = None

    @property
    def place(self) -> str:
        """Where it is, in words and on one line: `node "draft", field "prompt"`; empty for the document as a whole."""
        named = (("node", self.node), ("port", self.port), ("field", self.field), ("edge", self.edge))
        return ", ".join(f'{kind} "{shown(name)}"' for kind, name in named if name is not None)

    def to_json(self) -> dict[str, str | None]:
        """A JSON object of all attributes, with `place` in words added."""
        return {**asdict(self), "severity": str(self.severity), "place": self.place}

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        return f"{self.severity}: {where}{self.message} {self.remedy}".rstrip()


class DocumentError(EngineError):
    """A document that cannot be opened, or does not run.

    Attributes:
        problems: All that is wrong, in the document's order.
    """

    def __init__(self, message: str, remedy: str = "", problems: Sequence[Problem] = ()) -> None:
        super().__init__(message, remedy)
        self.problems = tuple(problems)


def has_errors(problems: Sequence[Problem]) -> bool:
    """Whether at least one of them stops the document from running."""
    return any(problem.severity is Severity.ERROR for problem in problems)
