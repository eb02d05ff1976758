"""Problems of a document: what is wrong, where, and how to fix it; and the rules for the JSON of documents.

A problem never prevents a document from being opened, edited and saved; an *error* prevents it from running.

The JSON rules (finite numbers, unique keys, limited depth) are checked when a file is read and before one is written,
so every saved document can be opened again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import islice
from typing import Any, Final, TypeAlias, cast

from pydantic import BaseModel, ValidationError

from engine.errors import EngineError
from engine.text_sanitizing import shown
from engine.values import Value

MAX_DEPTH = 200
"""Maximum nesting of objects and lists; deeper values overflow the stack of some JSON tools."""

MAX_DIGITS = 600
"""Maximum number of digits of an integer. Python can be configured to refuse 640 digits and more."""

_INTEGER_BOUND = 10**MAX_DIGITS

JsonPath: TypeAlias = "tuple[str | int, ...]"
"""Keys and list indices from the root to a value."""


class RepeatingObject(dict[str, object]):
    """A JSON object with repeated keys."""

    def __init__(self, pairs: list[tuple[str, object]], repeated: frozenset[str]) -> None:
        super().__init__(pairs)
        self.repeated = repeated


@dataclass(frozen=True, slots=True)
class Fault:
    """A violation of the rules.

    Attributes:
        code: Stable identifier of the kind of violation.
        path: Its place.
        message: One sentence: what is wrong.
        remedy: One sentence: how to fix it.
    """

    code: str
    path: JsonPath
    message: str
    remedy: str


def faults(root: object, *, depth: int = 0) -> Iterator[Fault]:
    """Find all violations of the rules in a value; stops at the first place that is too deep.

    Iterative, so that deep values do not overflow the stack.

    Args:
        root: The output of `json.loads`, or the input of `json.dumps`.
        depth: The number of objects and lists that contain it.

    Yields:
        A violation for each invalid value or key.
    """
    pending: list[Iterator[tuple[str | int, object]]] = [iter([(0, root)])]
    path: list[str | int] = [0]
    if depth > MAX_DEPTH:
        yield _too_deep(())
        return
    while pending:
        step = next(pending[-1], None)
        if step is None:
            pending.pop()
            path.pop()
            continue
        path[-1], value = step
        if isinstance(value, str):  # the most frequent case
            continue
        if isinstance(value, dict):
            keyed = cast("dict[object, object]", value)
            for wrong in () if has_usual_keys(keyed) else _key_faults(keyed):
                yield Fault(wrong[0], tuple(path[1:]), *wrong[1:])
            inside: Iterator[tuple[str | int, object]] = iter(cast("dict[str, object]", value).items())
        elif isinstance(value, list):
            inside = enumerate(cast("list[object]", value))
        else:
            if wrong := plain_fault(value):
                yield Fault(wrong[0], tuple(path[1:]), *wrong[1:])
            continue
        if len(pending) + depth > MAX_DEPTH:
            yield _too_deep(tuple(path[1:4]))
            return
        pending.append(inside)
        path.append(0)


def _too_deep(path: JsonPath) -> Fault:
    message = f"Objects and lists are nested more than {MAX_DEPTH} levels deep."
    return Fault("too-deep", path, message, "Use fewer levels.")


def has_usual_keys(value: dict[Any, object]) -> bool:
    """Whether all keys are encodable texts without repetition, which holds for almost every object."""
    if isinstance(value, RepeatingObject):
        return False
    try:
        "".join(value).encode()
    except (TypeError, UnicodeEncodeError):
        return False
    return True


def _key_faults(value: dict[object, object]) -> Iterator[tuple[str, str, str]]:
    if isinstance(value, RepeatingObject):
        for key in sorted(value.repeated):
            message = f'The key "{shown(key)}" is repeated in the same object.'
            yield "duplicate-key", message, "Keep one of them."
    for key in value:
        if not isinstance(key, str):
            yield "bad-key", f'The key "{shown(key)}" is not a text.', "Use texts as keys."
        elif not _encodable(key):
            message = f'The key "{shown(key)}" contains half of a surrogate pair.'
            yield "bad-key", message, "Use complete characters in the key."


def _encodable(key: str) -> bool:
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True


def plain_fault(value: object) -> tuple[str, str, str] | None:
    """The violation in a value other than a text, object or list: its code, message and remedy."""
    if value is None:
        return None
    if isinstance(value, int):
        ordinary = -_INTEGER_BOUND < value < _INTEGER_BOUND
    elif isinstance(value, float):
        ordinary = math.isfinite(value)
    else:
        message = f"A value of the Python type {type(value).__name__} cannot be written as JSON."
        return "not-json", message, "Use texts, numbers, true, false, null, lists and objects."
    if ordinary:
        return None
    message = "The number is infinite or too long."
    return "bad-number", message, "Use a finite number, or write it as a text in quotes."


class Severity(StrEnum):
    """Severity of a problem. Only errors prevent a run."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem and its place.

    Attributes:
        code: Stable identifier of the kind of problem (`missing-exit`), for tests, filters and quick fixes.
        message: One sentence: what is wrong.
        remedy: One sentence: how to fix it.
        severity: Whether it prevents a run.
        node: The id of its node, if any.
        port: The port of that node, if any.
        field: The config field of that node as a dotted path (`branches.0.when`), or a top-level field of the
            document (`settings.budget_usd`).
        edge: Its edge, as `from -> to`.
        correction: A text for the field that may be what was meant; empty without one.
        fix: What the program offers for it, as in `EngineError`.
    """

    code: str
    message: str
    remedy: str = ""
    severity: Severity = Severity.ERROR
    node: str | None = None
    port: str | None = None
    field: str | None = None
    edge: str | None = None
    correction: str = ""
    fix: str = ""

    @property
    def place(self) -> str:
        """The place in words: `node "draft", field "prompt"`; empty for the document as a whole."""
        named = (("node", self.node), ("port", self.port), ("field", self.field), ("edge", self.edge))
        return ", ".join(f'{kind} "{shown(name)}"' for kind, name in named if name is not None)

    def to_json(self) -> dict[str, str | None]:
        """All attributes and `place` as a JSON object."""
        return {**asdict(self), "severity": str(self.severity), "place": self.place}

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        return f"{self.severity}: {where}{self.message} {self.remedy}".rstrip()


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """A problem of one config that its pydantic model cannot find; whoever knows the node makes it a `Problem`."""

    code: str
    field: str | None
    message: str
    remedy: str = ""
    severity: Severity = Severity.ERROR
    correction: str = ""


class DocumentError(EngineError):
    """A document cannot be opened or run.

    Attributes:
        problems: The problems, in the document's order.
    """

    def __init__(self, message: str, remedy: str = "", problems: Sequence[Problem] = ()) -> None:
        super().__init__(message, remedy)
        self.problems = tuple(problems)


def has_errors(problems: Sequence[Problem]) -> bool:
    """Whether at least one problem is an error."""
    return any(problem.severity is Severity.ERROR for problem in problems)


MAX_PROBLEMS = 100
"""Maximum number of problems that are reported for one file."""


def problem_at(document: dict[str, Value], path: JsonPath, code: str, message: str, remedy: str) -> Problem:
    """Create the problem at a JSON path of a document.

    A node is identified by its id, an edge by its ends, and the rest of the path becomes the field. Without a usable
    id, the field contains the index: `nodes.3.id`.
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
    """Violations of the JSON rules in a document, at most `MAX_PROBLEMS`."""
    return [
        problem_at(document, fault.path, fault.code, fault.message, fault.remedy)
        for fault in islice(faults(document), MAX_PROBLEMS)
    ]


def broken(source: str, problems: list[Problem], remedy: str = "") -> DocumentError:
    """Create the error for a document with these problems.

    Args:
        source: The document's name for the message, escaped already.
        problems: At least one problem.
        remedy: Replaces the remedies of the problems.
    """
    first = problems[0]
    where = f"{first.place}: " if first.place else ""
    if len(problems) == 1:
        return DocumentError(f"{source}: {where}{first.message}", remedy or first.remedy, problems)
    count = f"{len(problems)} or more" if len(problems) >= MAX_PROBLEMS else str(len(problems))
    message = f"{source}: The document has {count} problems; the first: {where}{first.message}"
    return DocumentError(message, remedy or "Correct them in a text editor.", problems)


def kind_of(value: object) -> str:
    """The kind of a JSON value in words; numbers, booleans and null as themselves."""
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


_SHOWN_LENGTH: Final = 40

EXPECTED_TYPES: Final = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "string_pattern_mismatch": "lowercase letters, digits and underscores, starting with a letter",
}
"""Expected type, by the kind of error."""

_VIOLATIONS: Final = {
    "missing": ("is missing", "Add it."),
    "extra_forbidden": ("is unknown", "Remove it."),
    "string_unicode": ("contains half of a character (a lone surrogate)", "Remove that character."),
    "int_parsing_size": ("is a number too long to be read", "Use a shorter number."),
    "greater_than": ("is {shown}, and must be more than {gt:g}", "Use a number greater than {gt:g}."),
    "greater_than_equal": ("is {shown}, and must be {ge:g} or more", "Use {ge:g} or more."),
    "less_than": ("is {shown}, and must be less than {lt:g}", "Use a number less than {lt:g}."),
    "less_than_equal": ("is {shown}, and must be {le:g} or less", "Use {le:g} or less."),
    "string_too_long": ("has more than {max_length} characters", "Shorten it."),
    "reserved_parameter": ('contains "{name}", which is not an extra parameter', "Remove it: {instead}."),
    "string_too_short": ("is empty or too short", "Fill it in."),
    "too_long": ("has more than {max_length} entries", "Remove some."),
    "too_short": ("has fewer than {min_length} entries", "Add what is missing."),
}
"""Description and remedy of all other kinds of errors."""


def config_errors(model: type[BaseModel], error: ValidationError) -> Iterator[tuple[str, str, str]]:
    """Yield each error of a config as field (a dotted path), message and remedy."""
    for detail in error.errors(include_url=False):
        path = [shown(step, _SHOWN_LENGTH) for step in detail["loc"]]
        wrong, remedy = _describe(detail["type"], detail.get("ctx", {}), detail["input"])
        yield ".".join(path), f"{_title(model, path)} {wrong}.", remedy


def _title(model: type[BaseModel], path: list[str]) -> str:
    if not path:
        return "It"
    field = model.model_fields.get(path[0])
    title = field.title if field is not None and field.title else path[0]
    return f'"{title}"' if len(path) <= 1 else f'"{title}" ({".".join(path[1:])})'


def _describe(kind: str, context: Mapping[str, Any], value: Any) -> tuple[str, str]:
    if kind in {"enum", "literal_error"}:
        choices = str(context.get("expected", "")).replace("'", "")
        return f"is {_shown(value)}, not one of {choices}", f"Choose one of {choices}."
    if kind in _VIOLATIONS:
        wrong, remedy = _VIOLATIONS[kind]
        facts = {**context, "shown": _shown(value)}
        return wrong.format(**facts), remedy.format(**facts)
    if kind in EXPECTED_TYPES:
        return f"is {_shown(value)}, not {EXPECTED_TYPES[kind]}", f"Use {EXPECTED_TYPES[kind]}."
    return f"is {_shown(value)}, which does not fit", "Correct it."


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f'"{shown(value, _SHOWN_LENGTH)}"'
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return str(value)[:_SHOWN_LENGTH] if is_number else kind_of(value)
