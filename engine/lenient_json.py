"""Lenient JSON: find and parse JSON values in the replies of models, in the dialects that models write.

`json` parses strict JSON. `json_repair` repairs single or typographic quotes, comments, trailing commas, Python
literals, raw newlines and keys without quotes. It also completes truncated values and drops unknown parts, so a repair
is used only if the value was closed, and if the result has exactly the content of the text. Strings are replaced
by placeholders during a repair, so that it does not change them.

Exported LangGraph modules include the source of this module, so it imports nothing from the engine.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Final, cast

_MAX_REPAIR_LENGTH: Final = 50_000
"""Maximum length of a repaired value without its strings; `json_repair` is slow on long values."""

GAP: Final = "\ufffc"
"""Placeholder of a JSON value in the text around it; not part of a word."""

_MARK: Final = "\ufdd0"
"""Delimiter of the placeholder of a string; a noncharacter, which no text has."""

_NOTHING: Final = "\0"
"""Placeholder of something that is not a value, as in {"score": NaN}."""

_OPENING: Final = re.compile(r"[{\[｛［]")
_STRAIGHT_OPENING: Final = re.compile(r"[{\[]")
_LIKE_JSON: Final = re.compile(
    r"""[{｛]\s*(?:["'“”„‘’‚«»‹›「『`}｝]|//|/\*|\#|[^\W\d]\w{0,60}\s*[:：]|\Z)"""
    r"""|[\[［]\s*(?:["'“”„‘’‚«»‹›「『`{｛\[［\]］]|//|/\*|[-+]?\.?\d|(?:true|false|null|True|False|None)\b|\Z)"""
)
_WIDE: Final = str.maketrans("｛｝［］：，", "{}[]:,")
_CLOSING: Final = {"{": "}", "[": "]", "(": ")"}
_CLOSING_QUOTES: Final = {
    '"': '"', "'": "'", "`": "`'´", **dict.fromkeys("“”„‟", '"“”„‟'), **dict.fromkeys("‘’‚‛", "'‘’‚‛"),
    "«": "»", "»": "«", "‹": "›", "›": "‹", "「": "」", "『": "』",
}  # fmt: skip
_QUOTE_ENDS: Final = {
    opening: re.compile(rf"\\.|[{closing}]", re.DOTALL) for opening, closing in _CLOSING_QUOTES.items()
}
_STRING_QUOTES: Final = "".join(_CLOSING_QUOTES)
_AFTER_KEY: Final = re.compile(r"\s*[:：,，}｝]")
_AFTER_MEMBER: Final = re.compile(
    rf"\s*(?:[,，;]\s*(?:[{_STRING_QUOTES}}}｝,]|[\w$-]+\s*[:：]|//|/\*|#|\.\.\.|\Z)|[}}｝]|//|/\*|#|\Z"
    rf"|[{_STRING_QUOTES}][\w -]{{1,60}}[{_STRING_QUOTES}]\s*[:：])"
)
_AFTER_ITEM: Final = re.compile(
    rf"\s*(?:[,，;]\s*(?:[{_STRING_QUOTES}{{\[(\])｛［］\d,-]|(?:true|false|null|True|False|None)\b|//|/\*|#|\Z)"
    r"|[\])］]|//|/\*|#|\Z)"
)
_LONG_STRING: Final = re.compile(r"(\"{3}|'{3})(.*?)\1(?=\s*[,:}\])])", re.DOTALL)
_NO_VALUE: Final = re.compile(r"(?:[-+]?(?:nan|infinity|inf|undefined)|\.\.\.|…)(?=\s*[,}\]])", re.IGNORECASE)
_COMMENT: Final = re.compile(r"(?://|#)[^\n\r]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_BARE_AMOUNT: Final = re.compile(
    r"[-+]?\d+(?:[.,]\d+)?(?:\s*%|\s*(?:/|out\s+of|of)\s*\d+(?:[.,]\d+)?)(?=\s*(?:[,}\]\n]|//|/\*|#))"
)
_BARE_DECIMAL_COMMA: Final = re.compile(r"[-+]?\d+,\d+(?=\s*(?:[,}\n]|//|/\*|#))")
_ESCAPE: Final = re.compile(r"\\(?:((?:u[0-9a-fA-F]{4})(?:\\u[0-9a-fA-F]{4})*)|(.))", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", "\n": "\n"}
_ESCAPES: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u0000|u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""JSON escapes; NUL and lone surrogates, which cannot be written elsewhere, are in a group."""
_NUMBER: Final = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?(?![\w.])")
_STRUCTURE: Final = re.compile(r"""[\s"',:;{}\[\]()]+""")


def find_json(text: str) -> tuple[list[Any], str, bool]:
    """Find the outermost JSON objects and lists in a text, inside and outside of fences.

    Returns:
        The values in order; the text around them; and whether the text ends inside an unclosed value, after whose
        start nothing was searched.
    """
    text = _clean(text)
    values: list[Any] = []
    around: list[str] = []
    kept = place = 0
    openings = _OPENING
    while (opening := openings.search(text, place)) is not None:
        place = opening.start()
        if _LIKE_JSON.match(text, place) is None:  # a bracket in prose
            place += 1
            continue
        found = _parse_strict_at(text, place)
        if found is None:
            end, simple, strings = _scan(text, place)
            if end < 0 and text[place] in "｛［":  # probably a bracket in prose
                openings = _STRAIGHT_OPENING
                continue
            if end < 0:
                return values, "".join((*around, text[kept:place])), True
            found = _repair(simple, strings), end
        value, end = found
        if value is not None:
            values.append(value)
        around += (text[kept:place], f"\n{GAP}\n")  # the text after it starts a new line
        kept = place = end
    return values, "".join((*around, text[kept:])), False


def parse_lenient(text: str) -> Any:
    """Parse a text that is one JSON object or list in any dialect, and nothing else.

    Raises:
        ValueError: It is not.
    """
    values, around, is_cut_off = find_json(text)
    if is_cut_off or len(values) != 1 or around.strip() != GAP:
        raise ValueError("it is not one JSON value")
    return values[0]


def parse_strict(text: str) -> Any:
    """Parse strict JSON with finite numbers and without a key that has two different values.

    Raises:
        ValueError: It is not strict JSON.
    """
    try:
        return _DECODER.decode(_clean(text))
    except RecursionError:
        raise ValueError("objects and lists are nested too deeply") from None


def _clean(text: str) -> str:
    return _ESCAPES.sub(lambda escape: "\\ufffd" if escape[1] else escape[0], text) if "\\u" in text else text


def _parse_strict_at(text: str, place: int) -> tuple[Any, int] | None:
    try:
        return _DECODER.raw_decode(text, place)
    except (ValueError, RecursionError):
        return None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise ValueError(f"the key {key!r} has two values")
        found[key] = value
    return found


def _finite(number: str) -> float:
    if not math.isfinite(float(number)):
        raise ValueError(f"{number} is too large")
    return float(number)


def _not_a_number(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_without_duplicates, parse_float=_finite, parse_constant=_not_a_number
)


def _scan(text: str, start: int) -> tuple[int, str, list[str]]:
    """Find the end of the value that starts at a position; -1 if it is not closed.

    Also returns its text without comments and with placeholders for strings, and the strings. Amounts such as 8/10
    count as strings, because `json_repair` would keep only the first number.
    """
    open_brackets: list[str] = []
    pieces: list[str] = []
    strings: list[str] = []
    place, before = start, ""  # before: the last character outside of white space and comments
    while place < len(text):
        sign = text[place].translate(_WIDE)
        if before and before in "{[(,:" and sign in _CLOSING_QUOTES:
            end, string = _scan_string(text, place, before, open_brackets[-1])
            if end < 0:
                break
            place, before = end, "x"
            pieces.append(f'"{_MARK}{len(strings)}{_MARK}"')
            strings.append(string)
            continue
        length, written = _scan_unquoted(text, place, before, open_brackets)
        if length:
            is_string = bool(written.strip()) and written != _NOTHING
            pieces.append(f'"{_MARK}{len(strings)}{_MARK}"' if is_string else written)
            strings += [written] if is_string else []
            place, before = place + length, before if written == " " else "x"
            continue
        if sign in _CLOSING:
            open_brackets.append(_CLOSING[sign])
        elif sign in ")]}" and (not open_brackets or open_brackets.pop() != sign):
            break
        place += 1
        pieces.append(", " if sign == "," else sign)
        before = before if sign.isspace() else sign
        if not open_brackets:
            return place, "".join(pieces), strings
    return -1, "", []


def _scan_unquoted(text: str, place: int, before: str, open_brackets: list[str]) -> tuple[int, str]:
    """Return the length and the replacement of a comment, an amount or an invalid value at a position."""
    if text[place] in "/#" and (place == 0 or text[place - 1].isspace() or text[place - 1] in "{[,]}\"'"):
        comment = _COMMENT.match(text, place)
        return (len(comment[0]), " ") if comment is not None else (0, "")
    if not before or before not in "[,:":
        return 0, ""
    nothing = _NO_VALUE.match(text, place)
    amount = nothing or _BARE_AMOUNT.match(text, place)
    if amount is None and before == ":" and open_brackets[-1:] == ["}"]:
        amount = _BARE_DECIMAL_COMMA.match(text, place)
    if amount is None:
        return 0, ""
    return len(amount[0]), _NOTHING if nothing is not None else amount[0]


def _scan_string(text: str, start: int, before: str, closing: str) -> tuple[int, str]:
    """Return the end (-1 if there is none) and the content of the string that starts at a position.

    A quote closes it only before something that can follow a string there, so that strings may contain quotes.
    """
    long = _LONG_STRING.match(text, start)
    if long is not None:
        return long.end(), long[2]
    after = _AFTER_MEMBER if before == ":" else _AFTER_KEY if closing == "}" else _AFTER_ITEM
    for quote in _QUOTE_ENDS[text[start]].finditer(text, start + 1):
        if quote[0][0] != "\\" and after.match(text, quote.end()) is not None:
            return quote.end(), _ESCAPE.sub(_unescape, text[start + 1 : quote.start()])
    return -1, ""


def _unescape(escape: re.Match[str]) -> str:
    if escape[1]:
        return str(json.loads(f'"{escape[0]}"'))
    sign = escape[2]
    return _ESCAPED.get(sign, sign if sign in _STRING_QUOTES + "»›」』´" else escape[0])


def _repair(simple: str, strings: list[str]) -> Any:
    """Repair the text of an object or list; None if the result would be a guess.

    Args:
        simple: The text with placeholders for its strings.
        strings: The strings.
    """
    from json_repair import repair_json

    if len(simple) > _MAX_REPAIR_LENGTH or _NOTHING in simple or simple.count(_MARK) != 2 * len(strings):
        return None
    try:
        value: Any = repair_json(simple, return_objects=True, skip_json_loads=True, strict=True)
        is_whole = isinstance(value, (dict, list)) and (
            _count_members(value),
            _normalized(" ".join(_leaves(value))),
        ) == (
            simple.count(":"),
            _normalized(simple),
        )
        return _with_strings(value, strings) if is_whole else None
    except (ValueError, RecursionError, AssertionError, IndexError):
        return None


def _with_strings(value: Any, strings: list[str]) -> Any:
    """Replace the placeholders in a value by their strings.

    Raises:
        ValueError: A key has two values.
    """
    if isinstance(value, dict):
        inside = cast("dict[str, Any]", value)
        return _without_duplicates(
            [(_with_strings(key, strings), _with_strings(inner, strings)) for key, inner in inside.items()]
        )
    if isinstance(value, list):
        return [_with_strings(inner, strings) for inner in cast("list[Any]", value)]
    if isinstance(value, str) and value.startswith(_MARK):
        return strings[int(value.strip(_MARK))]
    return value


def _leaves(value: Any) -> Iterator[str]:
    """Yield all keys and scalar values in order, as texts."""
    if isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            yield str(key)
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _leaves(inner)
    elif isinstance(value, float) and not math.isfinite(value):
        yield _NOTHING
    else:
        yield value if isinstance(value, str) else str(value).lower()


def _count_members(value: Any) -> int:
    """Count the members of all objects in a value."""
    if isinstance(value, dict):
        inside = cast("dict[str, Any]", value)
        return len(inside) + sum(map(_count_members, inside.values()))
    return sum(map(_count_members, cast("list[Any]", value))) if isinstance(value, list) else 0


def _normalized(text: str) -> str:
    """Return the content of a text without its structure, with numbers in one form and null as in Python."""
    numbers = _NUMBER.sub(lambda number: f" {float(number[0])!r} ", text.casefold())
    return _STRUCTURE.sub("", re.sub(r"\bnull\b", "none", numbers))
