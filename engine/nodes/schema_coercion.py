"""Fitting a model's JSON to a schema where only its form differs: "8" for 8, "yes" for true, "Done" for done.

A value is changed only if the schema leaves one way to read it, and nothing of it is lost. Whether the outcome follows
the schema is for the validator to say.

Exported LangGraph modules carry this module's source, so of the engine it imports only what they carry too.
"""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Any, Final, cast

from engine.lenient_json import parse_strict

_DEEPEST: Final = 100
"""How many schemas inside one another are followed; a schema may refer to itself."""

_TRUE: Final = frozenset({"true", "yes"})
_FALSE: Final = frozenset({"false", "no"})
_PLAIN_AMOUNT: Final = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_DECIMAL_COMMA: Final = re.compile(r"[-+]?(?:\d+,(?:\d{1,2}|\d{4,})|0,\d+)")
_AMOUNT_OF_SCALE: Final = re.compile(r"(.*?)\s*(?:/|out\s+of|of)\s*(.*)", re.IGNORECASE)
_LONGEST_AMOUNT: Final = 60


def fold(text: str) -> str:
    """Reduce a name to what tells it from others: no case, no full-width letters, no punctuation around it.

    White space and hyphens inside count as underscores. A question mark stays: "done?" is no answer.
    """
    plain = unicodedata.normalize("NFKC", text).casefold()
    first, last = 0, len(plain)
    while first < last and _is_around_names(plain[first]):
        first += 1
    while first < last and _is_around_names(plain[last - 1]):
        last -= 1
    return re.sub(r"[\s\-]+", "_", plain[first:last])


def _is_around_names(sign: str) -> bool:
    if sign in "_?¿":
        return False
    category = unicodedata.category(sign)
    return sign in "$+<=>^`|~" or category[0] in "PZ" or category in {"Cc", "Cf"}


def coerced(value: Any, schema: Any, root: Any = None, depth: int = 0) -> Any:
    """A value in the form that a schema asks for, as far as nothing is lost.

    Args:
        value: A JSON value; it is not changed itself.
        schema: The JSON Schema, or a part of one.
        root: The schema that the part belongs to; None where it is the whole.
        depth: How many schemas are already around it.
    """
    root = schema if root is None else root
    schema = _referred(schema, root)
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return value
    rules = cast("dict[str, Any]", schema)
    for part in rules.get("allOf", ()):
        value = coerced(value, part, root, depth + 1)
    options = rules.get("anyOf", rules.get("oneOf"))
    if isinstance(options, list):
        value = _by_option(value, cast("list[Any]", options), root, depth)
    if isinstance(value, str):
        value = _coerced_text(value, rules)
    if isinstance(value, dict):
        return _coerced_object(cast("dict[str, Any]", value), rules, root, depth)
    if isinstance(value, list):
        first: Any = rules.get("prefixItems", ())
        parts = [*first, *[rules.get("items")] * max(0, len(cast("list[Any]", value)) - len(first))]
        pairs = zip(cast("list[Any]", value), parts, strict=False)
        return [coerced(item, part, root, depth + 1) for item, part in pairs]
    return value


def _referred(schema: Any, root: Any) -> Any:
    """The schema that a reference inside the document leads to."""
    for _ in range(_DEEPEST):
        if not isinstance(schema, dict) or "$ref" not in schema:
            return cast("Any", schema)
        reference: Any = cast("dict[str, Any]", schema)["$ref"]
        if not isinstance(reference, str) or not reference.startswith("#"):
            return cast("Any", schema)
        schema = root
        for step in reference[1:].split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            schema = cast("dict[str, Any]", schema).get(name) if isinstance(schema, dict) else None
    return None


def _by_option(value: Any, options: list[Any], root: Any, depth: int) -> Any:
    """The value in the form of the only option that would change it; unchanged where one takes it as it is."""
    if isinstance(value, str) and any(_takes_text(_referred(option, root), value) for option in options):
        return value
    changed = [one for option in options if (one := coerced(value, option, root, depth + 1)) != value]
    return changed[0] if changed and all(one == changed[0] for one in changed) else value


def _takes_text(rules: Any, value: str) -> bool:
    if not isinstance(rules, dict):
        return rules is True
    allowed = members(cast("dict[str, Any]", rules))
    if allowed is not None:
        return value in allowed
    types = types_of(cast("dict[str, Any]", rules))
    return not types or "string" in types


def types_of(rules: dict[str, Any]) -> list[Any]:
    """The types that a schema names itself."""
    types: Any = rules.get("type", ())
    return [types] if isinstance(types, str) else list(types)


def members(rules: dict[str, Any]) -> list[Any] | None:
    """The values that a schema lists; None where it lists none."""
    if "const" in rules:
        return [rules["const"]]
    listed: Any = rules.get("enum")
    return cast("list[Any]", listed) if isinstance(listed, list) else None


def _coerced_object(value: dict[str, Any], rules: dict[str, Any], root: Any, depth: int) -> dict[str, Any]:
    declared: Any = rules.get("properties")
    properties = cast("dict[str, Any]", declared) if isinstance(declared, dict) else {}
    others: Any = rules.get("additionalProperties")
    if not others and "patternProperties" not in rules:
        value = _with_keys_of(value, list(properties))
    parts = ((key, properties.get(key, others)) for key in value)
    return {key: coerced(value[key], part, root, depth + 1) for key, part in parts}


def _with_keys_of(value: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """The object with each key as the schema writes it, where only one of each is like the other."""
    spelled = [fold(name) for name in names]
    keys = [fold(key) for key in value]
    renamed: dict[str, str] = {}
    for key, like in zip(value, keys, strict=True):
        if key not in names and spelled.count(like) == 1 and keys.count(like) == 1:
            renamed[key] = names[spelled.index(like)]
    return {renamed.get(key, key): inner for key, inner in value.items()} if renamed else value


def _coerced_text(value: str, rules: dict[str, Any]) -> Any:
    """What a text stands for where the schema takes none, or only certain ones."""
    listed = members(rules)
    types = types_of(rules)
    if listed is not None:
        return _member(value, listed)
    if not types or "string" in types:
        return value
    word = fold(value)
    if "boolean" in types and word in _TRUE | _FALSE:
        return word in _TRUE
    if "null" in types and word == "null":
        return None
    number = amount(value, rules.get("minimum"), rules.get("maximum")) if {"number", "integer"} & {*types} else None
    if number is not None:
        return int(number) if "number" not in types and float(number).is_integer() else number
    return _inside(value) if {"object", "array"} & {*types} else value


def _inside(value: str) -> Any:
    """The object or list that a text holds as JSON."""
    try:
        inside = parse_strict(value)
    except ValueError:
        return value
    return cast("Any", inside) if isinstance(inside, (dict, list)) else value


def _member(value: str, listed: list[Any]) -> Any:
    if value in listed:
        return value
    like: list[Any] = [one for one in listed if isinstance(one, str) and fold(one) == fold(value)]
    if not like:
        number, word = amount(value), fold(value)
        for one in listed:
            if isinstance(one, bool):
                like += [one] if word in (_TRUE if one else _FALSE) else []
            elif isinstance(one, (int, float)) and one == number:
                like.append(one)
    return like[0] if len(like) == 1 else value


def amount(text: str, lowest: Any = None, highest: Any = None) -> float | int | None:
    """The number that a text stands for; None where it is none, or can be read in two ways.

    Args:
        text: Such as 8, 8.5, 8,5, and on a scale from 0 also 8/10, 8 out of 10 and 80%.
        lowest: The lower end of the scale, where there is one.
        highest: Its upper end.
    """
    plain = unicodedata.normalize("NFKC", text).replace("\u2212", "-").replace("\u2044", "/").strip()
    if len(plain) > _LONGEST_AMOUNT:
        return None
    number = _number(plain)
    if number is not None:
        return number
    if isinstance(lowest, bool) or isinstance(highest, bool) or lowest != 0 or not isinstance(highest, (int, float)):
        return None
    parts = _AMOUNT_OF_SCALE.fullmatch(f"{plain[:-1].rstrip()}/100" if plain.endswith("%") else plain)
    if parts is None:
        return None
    part, whole = _number(parts[1]), _number(parts[2])
    if part is None or whole not in {100, highest}:
        return None
    return part if whole == highest else part * highest / 100


def _number(text: str) -> float | int | None:
    if _DECIMAL_COMMA.fullmatch(text) is not None:
        text = text.replace(",", ".")
    elif _PLAIN_AMOUNT.fullmatch(text) is None:
        return None
    number = int(text) if text.lstrip("+-").isdigit() else float(text)
    return number if math.isfinite(number) else None
