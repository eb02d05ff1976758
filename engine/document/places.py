"""How a fault of a JSON text becomes a `Problem` with a place, and many of them one `DocumentError`.

Here a path into the JSON gets the words that people know: the node's id, the edge's ends.
"""

from __future__ import annotations

from itertools import islice

from engine.document.json_rules import JsonPath, faults
from engine.document.problems import DocumentError, Problem
from engine.document.wording import shown
from engine.values import Value

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
