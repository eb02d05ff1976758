"""What pydantic finds wrong in a config, said in plain words and with a place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from engine.text_sanitizing import shown

_SHOWN_LENGTH: Final = 40

_WANTED: Final = {
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
    "dict_type": "an object",
    "model_type": "an object",
    "string_pattern_mismatch": "small letters, digits and underscores with a letter first",
}
"""What a value of the wrong kind should have been."""

_SAID: Final = {
    "missing": ("is missing", "Add it."),
    "extra_forbidden": ("is not known here", "Remove it."),
    "string_unicode": ("holds half of a character (a lone surrogate)", "Remove that character."),
    "int_parsing_size": ("is a number too long to be read", "Give an ordinary number."),
    "greater_than": ("is {shown}, and must be more than {gt:g}", "Give more than {gt:g}."),
    "greater_than_equal": ("is {shown}, and must be {ge:g} or more", "Give {ge:g} or more."),
    "less_than": ("is {shown}, and must be less than {lt:g}", "Give less than {lt:g}."),
    "less_than_equal": ("is {shown}, and must be {le:g} or less", "Give {le:g} or less."),
    "string_too_long": ("has more than {max_length} characters", "Shorten it."),
    "reserved_parameter": ('holds "{name}", which is not an extra parameter', "Remove it: {instead}."),
    "string_too_short": ("is empty or too short", "Fill it in."),
    "too_long": ("has more than {max_length} entries", "Remove some."),
    "too_short": ("has fewer entries than the {min_length} that it needs", "Add what is missing."),
}
"""What is wrong, and what to do about it, for all other kinds."""


def config_errors(model: type[BaseModel], error: ValidationError) -> Iterator[tuple[str, str, str]]:
    """Each fault of a config as field (a dotted path), message and remedy."""
    for detail in error.errors(include_url=False):
        path = [shown(step, _SHOWN_LENGTH) for step in detail["loc"]]
        wrong, remedy = _words(detail["type"], detail.get("ctx", {}), detail["input"])
        yield ".".join(path), f"{_title(model, path)} {wrong}.", remedy


def _title(model: type[BaseModel], path: list[str]) -> str:
    if not path:
        return "It"
    field = model.model_fields.get(path[0])
    title = field.title if field is not None and field.title else path[0]
    return f'"{title}"' if len(path) <= 1 else f'"{title}" ({".".join(path[1:])})'


def _words(kind: str, context: Mapping[str, Any], value: Any) -> tuple[str, str]:
    if kind in {"enum", "literal_error"}:
        choices = str(context.get("expected", "")).replace("'", "")
        return f"is {_shown(value)}, not one of {choices}", f"Give one of {choices}."
    if kind in _SAID:
        wrong, remedy = _SAID[kind]
        facts = {**context, "shown": _shown(value)}
        return wrong.format(**facts), remedy.format(**facts)
    if kind in _WANTED:
        return f"is {_shown(value)}, not {_WANTED[kind]}", f"Give {_WANTED[kind]}."
    return f"is {_shown(value)}, which does not fit", "Correct it."


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f'"{shown(value, _SHOWN_LENGTH)}"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    return str(value)[:_SHOWN_LENGTH]
