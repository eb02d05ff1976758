"""What can be wrong with a document, told so that a person can put it right.

A problem never stops a document from being opened, edited and saved; an *error* stops it from running.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import islice

from engine.document.json_rules import JsonPath, faults
from engine.errors import EngineError
from engine.text_sanitizing import shown
from engine.values import Value


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


MAX_PROBLEMS = 100
"""How many faults of one text are told; more help nobody."""


def problem_at(document: dict[str, Value], path: JsonPath, code: str, message: str, remedy: str) -> Problem:
    """A problem at a path of a document.

    A node that has an id is named by it, an edge by its ends; of both, only the rest of the path is left as the field.
    What has no usable name is named by its index: `nodes.3.id`.
    """
    node, edge, rest = None, None, path
    if len(path) > 1:
        part = _part(document, path[0], path[1])
        if path[0] == "nodes" and isinstance(part.get("id"), str):
            node, rest = str(part["id"]), path[2:]
            rest = rest[1:] if rest[:1] == ("config",) and len(rest) > 1 else rest
        elif path[0] == "edges" and isinstance(part.get("from"), str) and isinstance(part.get("to"), str):
            edge, rest = f"{part['from']} -> {part['to']}", path[2:]
    return Problem(code, message, remedy, node=node, edge=edge, field=".".join(map(str, rest)) or None)


def rule_problems(document: dict[str, Value]) -> list[Problem]:
    """Where a document breaks the rules of `json_rules`, at most `MAX_PROBLEMS` of them."""
    return [
        problem_at(document, fault.path, fault.code, fault.message, fault.remedy)
        for fault in islice(faults(document), MAX_PROBLEMS)
    ]


def broken(source: str, problems: list[Problem], remedy: str = "") -> DocumentError:
    """The one error for all that is wrong with a document.

    Args:
        source: What to call the document; shown as it is.
        problems: At least one.
        remedy: What to do, where the problems' own remedies miss the cause.
    """
    first = problems[0]
    where = f"{first.place}: " if first.place else ""
    if len(problems) == 1:
        return DocumentError(f"{source}: {where}{first.message}", remedy or first.remedy, problems)
    count = f"{len(problems)} or more" if len(problems) >= MAX_PROBLEMS else str(len(problems))
    message = f"{source}: The document has {count} faults; the first: {where}{first.message}"
    return DocumentError(message, remedy or "Mend them in a text editor.", problems)


def kind_of(value: object) -> str:
    """What a JSON value is, in words: `a number`, shown as itself where that is shorter."""
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case int() | float():
            return f"the number {shown(value, 40)}"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "an object"


def _part(document: dict[str, Value], key: str | int, index: str | int) -> dict[str, Value]:
    parts = document.get(key) if isinstance(key, str) else None
    part = parts[index] if isinstance(parts, list) and isinstance(index, int) else None
    return part if isinstance(part, dict) else {}
