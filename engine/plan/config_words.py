"""What pydantic finds wrong in a config, said in plain words and with a place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel, ValidationError

_KINDS: Final = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "finite_number": "a finite number",
    "enum": None,
    "literal_error": None,
}


def config_faults(model: type[BaseModel], error: ValidationError) -> Iterator[tuple[str, str, str]]:
    """Each fault of a config as field (a dotted path), message and remedy."""
    for detail in error.errors(include_url=False):
        path = [str(step) for step in detail["loc"]]
        title = _title(model, path)
        kind, context = detail["type"], detail.get("ctx", {})
        yield ".".join(path), f"{title} {_wrong(kind, context, detail['input'])}.", _remedy(kind, context)


def _title(model: type[BaseModel], path: list[str]) -> str:
    field = model.model_fields.get(path[0]) if path else None
    title = field.title if field is not None and field.title else (path[0] if path else "It")
    return f'"{title}"' if len(path) <= 1 else f'"{title}" ({".".join(path[1:])})'


def _wrong(kind: str, context: dict[str, Any], value: Any) -> str:
    wanted = _wanted(kind, context)
    if kind == "missing":
        return "is missing"
    if wanted:
        return f"is {_shown(value)}, not {wanted}"
    return f"is {_shown(value)}, which does not fit"


def _wanted(kind: str, context: dict[str, Any]) -> str:
    if kind in {"enum", "literal_error"}:
        return f"one of {str(context.get('expected', '')).replace(chr(39), '')}"
    bounds = {
        "greater_than": f"more than {context.get('gt')}",
        "greater_than_equal": f"{context.get('ge')} or more",
        "less_than": f"less than {context.get('lt')}",
        "less_than_equal": f"{context.get('le')} or less",
        "string_too_long": f"at most {context.get('max_length')} characters",
        "too_long": f"at most {context.get('max_length')} entries",
        "too_short": f"at least {context.get('min_length')} entries",
        "string_pattern_mismatch": "small letters, digits and underscores, with a letter first",
    }
    return bounds.get(kind) or _KINDS.get(kind) or ""


def _remedy(kind: str, context: dict[str, Any]) -> str:
    wanted = _wanted(kind, context)
    return f"Give {wanted}." if wanted else "Correct it."


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value[:40]}…"' if len(value) > 40 else f'"{value}"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    return str(value)[:40]
