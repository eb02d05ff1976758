"""Lenient parser of structured replies: JSON for a schema, a router's verdict, a judge's verdict.

The form is read leniently, but the answer is never guessed: everything in a reply that could be the answer is read, and
it counts only if all candidates agree. JSON is fitted to its schema where only the form differs: "8" for 8, "yes" for
true, "Done" for done. A value is changed only if the schema allows a single reading, and nothing is lost.

LangGraph exports contain this module's source, so it imports from the engine only what they contain too.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from engine.lenient_json import GAP, find_json, parse_strict

_DEEPEST: Final = 100
"""Maximum depth of nested schemas; a schema may refer to itself."""

_TRUE: Final = frozenset({"true", "yes"})
_FALSE: Final = frozenset({"false", "no"})
_PLAIN_AMOUNT: Final = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_DECIMAL_COMMA: Final = re.compile(r"[-+]?(?:\d+,(?:\d{1,2}|\d{4,})|0,\d+)")
_AMOUNT_OF_SCALE: Final = re.compile(r"(.*?)\s*(?:/|out\s+of|of)\s*(.*)", re.IGNORECASE)
_LONGEST_AMOUNT: Final = 60


def fold(text: str) -> str:
    """Normalize a name: no case, no full-width letters, no punctuation around it.

    White space and hyphens inside become underscores. A question mark stays: "done?" is no answer.
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
    """Convert a value to the form of a schema, as far as nothing is lost.

    Args:
        value: A JSON value; it is not modified.
        schema: The JSON Schema, or a part of one.
        root: The whole schema of the part; None if it is the whole.
        depth: The number of schemas around it.
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
    """Resolve a reference inside the schema."""
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
    """Convert a value to the only option that changes it; unchanged if an option accepts it."""
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
    """The types that a schema lists."""
    types: Any = rules.get("type", ())
    return [types] if isinstance(types, str) else list(types)


def members(rules: dict[str, Any]) -> list[Any] | None:
    """The values that a schema lists; None without a list."""
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
    """Rename keys to the spelling of the schema, where only one key and one property match."""
    spelled = [fold(name) for name in names]
    keys = [fold(key) for key in value]
    renamed: dict[str, str] = {}
    for key, like in zip(value, keys, strict=True):
        if key not in names and spelled.count(like) == 1 and keys.count(like) == 1:
            renamed[key] = names[spelled.index(like)]
    return {renamed.get(key, key): inner for key, inner in value.items()} if renamed else value


def _coerced_text(value: str, rules: dict[str, Any]) -> Any:
    """Convert a text for a schema that accepts no text, or only certain ones."""
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
    """Read a number; None if the text is none or is ambiguous.

    Args:
        text: Such as 8, 8.5, 8,5, and on a scale from 0 also 8/10, 8 out of 10 and 80%.
        lowest: The lower end of the scale, if there is one.
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


_FENCED: Final = re.compile(r"```[a-zA-Z]*\n(.*?)```", re.DOTALL)
_FENCE_LINE: Final = re.compile(r"^```.*$", re.MULTILINE)
_NO_JSON: Final = "there is no JSON in it."
_CUT_OFF: Final = "the JSON in it is not closed; it may have been cut off."
_EXAMPLE: Final = re.compile(
    r"\b(?:e\.g\.?|(?:examples?|for instance|beispiel|exemple|ejemplo|esempio)\b)[^.!?]*:\W*$", re.IGNORECASE
)
_ONLY_EXAMPLE: Final = "the JSON in it is introduced as an example."
_LABELS: Final = frozenset(
    {"branch", "decision", "verdict", "choice", "answer", "selected_branch", "chosen_branch"}
    | {f"{which}_{what}" for which in ("final", "my") for what in ("branch", "decision", "verdict", "choice", "answer")}
)
"""Names of a router's branch in replies."""

_NUMBERS: Final = ("number", "integer")
_LONGEST_LINE: Final = 2000
_LONGEST_QUOTE: Final = 60

Faults = Callable[[Any], Sequence[tuple[int, str]]]
"""A check of a value: the depth of each fault, and a sentence."""


class UnreadableReplyError(ValueError):
    """A reply has no valid answer; the text says why, for the model and for the history.

    Attributes:
        asked: The request to the model, if the caller has set it.
        said: The reply.
    """

    asked = ""
    said = ""


def read_structured(text: str, schema: Mapping[str, Any], faults: Faults) -> Any:
    """Read the JSON value in a reply.

    Args:
        text: The reply.
        schema: The JSON Schema of the value.
        faults: Checks a value against the schema.

    Raises:
        UnreadableReplyError: No value follows the schema, or several values differ.
    """
    fitting: dict[str, Any] = {}
    failures: list[tuple[bool, int, int, str]] = []
    for found in _candidates(text, schema):
        value, wrong = _fitted(found, schema, faults)
        if not wrong:
            fitting.setdefault(_written(value), value)
        else:
            depth = max(deep for deep, _ in wrong)
            failures.append((not _is_of_type(value, schema), len(wrong), -depth, wrong[0][1]))
    if len(fitting) > 1:
        raise UnreadableReplyError(_differing(list(fitting.values())))
    if fitting:
        return next(iter(fitting.values()))
    raise UnreadableReplyError(min(failures)[3] if failures else _NO_JSON)


def read_given(value: Any, schema: Mapping[str, Any], faults: Faults) -> Any:
    """Fit a value from a model, such as an argument of a tool, to its schema; a text may contain the JSON.

    Raises:
        UnreadableReplyError: It does not follow the schema.
    """
    changed, wrong = _fitted(value, schema, faults)
    if wrong and isinstance(value, str):
        return read_structured(value, schema, faults)
    if wrong:
        raise UnreadableReplyError(wrong[0][1])
    return changed


def read_branch(text: str, names: Sequence[str]) -> tuple[str, str]:
    """Read the branch that a model chose, and its reason.

    The reply is a JSON object with a `branch`, a line such as "Decision: done", or only the name of a branch. A name in
    a sentence does not count ("not done").

    Raises:
        UnreadableReplyError: There is no branch, or there are several.
    """
    if len(text) <= _LONGEST_LINE and fold(text) in names:
        return fold(text), ""
    values, around = _found(text)
    verdicts: list[tuple[str, str]] = []
    failures: list[str] = []
    for value in values:
        try:
            verdicts.append(_branch_in(value, names))
        except UnreadableReplyError as error:
            failures.append(str(error))
    in_json, labelled = len(verdicts), list(_labelled(around))
    reason = next((value for label, value in labelled if label == "reason"), "")
    verdicts += [(fold(value), reason) for label, value in labelled if label in _LABELS and fold(value) in names]
    chosen = list(dict.fromkeys(branch for branch, _ in verdicts))
    if len(chosen) > 1:
        raise UnreadableReplyError(_differing(chosen))
    if verdicts and len(verdicts) == in_json and _are_examples(around):
        raise UnreadableReplyError(_ONLY_EXAMPLE)
    if chosen:
        return chosen[0], next((reason for _, reason in verdicts if reason), "")
    stated = [value for label, value in labelled if label in _LABELS]
    failures += [f"{_quoted(value)} is none of {', '.join(names)}." for value in stated]
    raise UnreadableReplyError(failures[0] if failures else _NO_JSON)


def _branch_in(value: Any, names: Sequence[str]) -> tuple[str, str]:
    value = _unwrapped(value)
    if not isinstance(value, dict):
        raise UnreadableReplyError("the verdict must be a JSON object.")
    verdict = cast("dict[str, Any]", value)
    stated = [inner for key, inner in verdict.items() if fold(key) == "branch"]
    others = [inner for key, inner in verdict.items() if fold(key) in _LABELS and fold(key) != "branch"]
    chosen = {fold(inner) if isinstance(inner, str) else "" for inner in stated}
    named = {fold(inner) for inner in others if isinstance(inner, str)} & set(names)
    for inner in stated:
        if not isinstance(inner, str) or fold(inner) not in names:
            raise UnreadableReplyError(f"{_quoted(inner)} is none of {', '.join(names)}.")
    if len(chosen | named) > 1:
        raise UnreadableReplyError(_differing(sorted(chosen | named)))
    if not chosen | named:
        raise UnreadableReplyError('the value: "branch" is a required property.')
    reason = next((inner for key, inner in verdict.items() if fold(key) == "reason"), None)
    return (chosen | named).pop(), reason if isinstance(reason, str) else "" if reason is None else _written(reason)


def read_judgement(
    text: str, schema: Mapping[str, Any], faults: Faults, weights: Mapping[str, float], threshold: float | None
) -> dict[str, Any]:
    """Read a judge's verdict: `done`, `score`, `reason`, and by criterion `scores`.

    Args:
        text: The reply.
        schema: The JSON Schema of a verdict.
        faults: Checks a value against the schema.
        weights: The weights of the rubric's criteria; empty without a rubric.
        threshold: The minimum score for `done`; None if the judge decides.

    Raises:
        UnreadableReplyError: There is no verdict, or several verdicts differ.
    """
    values, around = _found(text)
    properties: Mapping[str, Any] = schema["properties"]
    plain = _from_lines(around, properties, list(weights))
    failures: list[tuple[bool, int, int, str]] = []
    verdicts: list[dict[str, Any]] = []
    for found in (*values, *([plain] if plain else [])):
        value, wrong = _fitted(_unwrapped(found), schema, faults)
        wrong = wrong or _key_conflicts(value, properties)
        if not wrong:
            verdicts.append(_judgement(value, weights, threshold))
        elif found is not plain or not values:
            depth = max(deep for deep, _ in wrong)
            failures.append((not isinstance(value, dict), len(wrong), -depth, wrong[0][1]))
    for verdict in verdicts:
        if any(verdict[key] != verdicts[0][key] for key in ("done", "score", "scores")):
            raise UnreadableReplyError(_differing([verdicts[0], verdict]))
    if not verdicts:
        raise UnreadableReplyError(min(failures)[3] if failures else _NO_JSON)
    if not plain and _are_examples(around):
        raise UnreadableReplyError(_ONLY_EXAMPLE)
    _refuse_contradiction(verdicts[0], plain, schema, threshold)
    return verdicts[0]


def _judgement(value: dict[str, Any], weights: Mapping[str, float], threshold: float | None) -> dict[str, Any]:
    scores = {name: float(value["scores"][name]) for name in weights}
    total = sum(weights.values())
    if weights:
        score = sum(scores[name] * weight for name, weight in weights.items()) / total if total else 0.0
    else:
        score = float(value["score"])
    done = value["done"] is True if threshold is None else score >= threshold
    return {"done": done, "score": score, "reason": str(value["reason"]), "scores": scores}


def _from_lines(around: str, properties: Mapping[str, Any], criteria: list[str]) -> dict[str, Any]:
    """The verdict in lines such as "Score: 8/10"; empty without such lines.

    A label with two values is omitted, so the verdict is incomplete.
    """
    stated: dict[str, set[str]] = {}
    for label, value in _labelled(around):
        stated.setdefault(label, set()).add(value)
    found = {label: next(iter(values)) for label, values in stated.items() if len(values) == 1}
    verdict: dict[str, Any] = {name: found[name] for name in properties if name in found}
    scores = {name: found[name] for name in criteria if name in found}
    return {**verdict, "scores": scores} if scores else verdict


def _refuse_contradiction(
    verdict: dict[str, Any], plain: dict[str, Any], schema: Mapping[str, Any], threshold: float | None
) -> None:
    """Refuse a verdict that a line contradicts, such as "Done: no" above {"done": true}."""
    said: dict[str, Any] = coerced(plain, schema)
    pairs = [(said.get("score"), verdict["score"])]
    pairs += [(said.get("done"), verdict["done"])] if threshold is None else []
    pairs += [(score, verdict["scores"].get(name)) for name, score in said.get("scores", {}).items()]
    for one, other in pairs:
        if isinstance(one, (int, float)) and one != other:
            raise UnreadableReplyError(_differing([one, other]))


def _key_conflicts(value: Any, names: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Keys that differ from a property only in case, beside that property with another value."""
    if not isinstance(value, dict):
        return []
    verdict = cast("dict[str, Any]", value)
    likes = ((key, fold(key)) for key in verdict if key not in names)
    wrong = [key for key, like in likes if like in names and verdict.get(like) != verdict[key]]
    return [(0, f"{_quoted(key)} contradicts {_quoted(fold(key))}.") for key in wrong]


def _fitted(value: Any, schema: Mapping[str, Any], faults: Faults) -> tuple[Any, Sequence[tuple[int, str]]]:
    changed = coerced(value, schema)
    wrong = faults(changed)
    if wrong and changed != value and not faults(value):
        return value, ()
    return changed, wrong


def _candidates(text: str, schema: Mapping[str, Any]) -> Iterator[Any]:
    """All candidates for a reply's value: its outermost JSON, else the reply as a plain value."""
    values, around = _found(text, takes_text=_takes(schema, "string"))
    for value in values:
        yield value if _takes(schema, "array") else _unwrapped(value)
    if values:
        return
    for part in (text, *_FENCED.findall(around)):
        try:
            yield parse_strict(part.strip())
        except ValueError:
            plain = coerced(part.strip(), schema)
            if not isinstance(plain, str) or members(dict(schema)) is not None:
                yield plain


def _unwrapped(value: Any) -> Any:
    """The element of a list with one element; other values unchanged."""
    inside: list[Any] = cast("list[Any]", value) if isinstance(value, list) else []
    return inside[0] if len(inside) == 1 else cast("Any", value)


def _found(text: str, *, takes_text: bool = False) -> tuple[list[Any], str]:
    """The outermost JSON in a reply, and the text around it. JSON inside a JSON text is read too.

    Raises:
        UnreadableReplyError: The reply ends inside the JSON.
    """
    if not takes_text and text.lstrip().startswith('"'):
        try:
            inside = parse_strict(text.strip())
        except ValueError:
            inside = None
        text = inside if isinstance(inside, str) else text
    values, around, is_cut_off = find_json(text)
    if is_cut_off:
        raise UnreadableReplyError(_CUT_OFF)
    return values, around


def _are_examples(around: str) -> bool:
    """Whether all JSON of a text is introduced as an example ("Example:", "e.g.:")."""
    *before, _ = around.split(GAP)
    return bool(before) and all(_EXAMPLE.search(_FENCE_LINE.sub("", text)[-_LONGEST_LINE:]) for text in before)


def _labelled(text: str) -> Iterator[tuple[str, str]]:
    """The lines of the form "**Label:** value" in a text; the value may be on the next line."""
    label = ""
    for line in text.splitlines():
        plain = unicodedata.normalize("NFKC", line[:_LONGEST_LINE]).strip()
        before, sign, value = plain.partition(":" if ":" in plain else "=")
        if label and fold(plain) and not sign:
            yield label, plain.strip("*_` ")
        label = "" if fold(plain) else label
        if sign:
            label = fold(re.sub(r"^\W*\d+[.)]\s", "", before))
            if fold(value):
                yield label, value.strip("*_` ")
                label = ""


def _takes(schema: Mapping[str, Any], kind: str) -> bool:
    types = types_of(dict(schema))
    return not types or kind in types


def _is_of_type(value: Any, schema: Mapping[str, Any]) -> bool:
    if isinstance(value, (dict, list)):
        return _takes(schema, "object" if isinstance(value, dict) else "array")
    if isinstance(value, str) or value is None:
        return _takes(schema, "null" if value is None else "string")
    return _takes(schema, "boolean") if isinstance(value, bool) else any(_takes(schema, one) for one in _NUMBERS)


def _differing(answers: Sequence[Any]) -> str:
    first, second = (_quoted(answer) for answer in answers[:2])
    return f"it contains different answers, {first} and {second}, and nothing says which one counts."


def _quoted(value: Any) -> str:
    text = _written(value)
    short = text if len(text) <= _LONGEST_QUOTE else f"{text[: _LONGEST_QUOTE - 1]}…"
    return short.encode("utf-8", "backslashreplace").decode()


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
