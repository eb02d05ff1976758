"""Finding JSON in what a model wrote, in the dialects that models write.

Strict JSON is read by `json`. Anything else (single or typographic quotes, comments, trailing commas, Python literals,
raw newlines, keys without quotes) is repaired by `json_repair`. It also closes what was cut off, fills in what is
missing and drops what it cannot place. That would be a guess, so a repair counts only if the value was closed, and if
all that was written is in it and nothing else. Strings are put aside meanwhile, so that nothing in them is repaired.

Exported LangGraph modules carry this module's source, so it imports nothing of the engine.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Final, cast

_LONGEST_REPAIR: Final = 50_000
"""Characters of a value, its strings not counted, that are repaired at most; `json_repair` is slow on long ones."""

GAP: Final = "\ufffc"
"""Stands for a JSON value in the text around it. It is part of no word."""

_MARK: Final = "\ufdd0"
"""Around the number that stands for a string while a value is repaired. No text has it: it is no character."""

_NOTHING: Final = "\0"
"""Stands where a value should be and is none, as in {"score": NaN}."""

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
"""Escapes of JSON; in a group those of NUL and of lone surrogates, which nothing else can carry."""
_NUMBER: Final = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?(?![\w.])")
_STRUCTURE: Final = re.compile(r"""[\s"',:;{}\[\]()]+""")


def find_json(text: str) -> tuple[list[Any], str, bool]:
    """Find the outermost JSON objects and lists in a text, in fences and outside.

    Returns:
        The values in their order; the text around them; and whether the text ends inside a value that is not closed,
        in which case nothing after its beginning was looked at.
    """
    text = _clean(text)
    values: list[Any] = []
    around: list[str] = []
    kept = place = 0
    openings = _OPENING
    while (opening := openings.search(text, place)) is not None:
        place = opening.start()
        if _LIKE_JSON.match(text, place) is None:  # a brace or bracket of prose
            place += 1
            continue
        found = _strict(text, place)
        if found is None:
            end, simple, strings = _scanned(text, place)
            if end < 0 and text[place] in "｛［":  # most likely a bracket of prose
                openings = _STRAIGHT_OPENING
                continue
            if end < 0:
                return values, "".join((*around, text[kept:place])), True
            found = _repaired(simple, strings), end
        value, end = found
        if value is not None:
            values.append(value)
        around += (text[kept:place], f"\n{GAP}\n")  # what follows on the same line is a line of its own
        kept = place = end
    return values, "".join((*around, text[kept:])), False


def parse_lenient(text: str) -> Any:
    """Read a text that is one JSON object or list in any dialect, with nothing but white space around it.

    Raises:
        ValueError: It is none.
    """
    values, around, is_cut_off = find_json(text)
    if is_cut_off or len(values) != 1 or around.strip() != GAP:
        raise ValueError("it is not one JSON value")
    return values[0]


def parse_strict(text: str) -> Any:
    """Read a JSON text: numbers must be finite, and a key must not have two different values.

    Raises:
        ValueError: It is no JSON.
    """
    try:
        return _DECODER.decode(_clean(text))
    except RecursionError:
        raise ValueError("objects and lists stand too deep inside one another") from None


def _clean(text: str) -> str:
    return _ESCAPES.sub(lambda escape: "\\ufffd" if escape[1] else escape[0], text) if "\\u" in text else text


def _strict(text: str, place: int) -> tuple[Any, int] | None:
    try:
        return _DECODER.raw_decode(text, place)
    except (ValueError, RecursionError):
        return None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
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
    raise ValueError(f"{name} is no JSON value")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_once, parse_float=_finite, parse_constant=_not_a_number)


def _scanned(text: str, start: int) -> tuple[int, str, list[str]]:
    """Find the end of the value that begins there; -1 where it is not closed.

    Also gives its text without comments, with numbers in the place of its strings; and those strings. Amounts such as
    8/10 count as strings: `json_repair` would keep the first number alone.
    """
    open_ones: list[str] = []
    pieces: list[str] = []
    strings: list[str] = []
    place, before = start, ""  # before: the last sign that is neither white space nor part of a comment
    while place < len(text):
        sign = text[place].translate(_WIDE)
        if before and before in "{[(,:" and sign in _CLOSING_QUOTES:
            end, string = _string(text, place, before, open_ones[-1])
            if end < 0:
                break
            place, before = end, "x"
            pieces.append(f'"{_MARK}{len(strings)}{_MARK}"')
            strings.append(string)
            continue
        length, written = _unquoted(text, place, before, open_ones)
        if length:
            is_string = bool(written.strip()) and written != _NOTHING
            pieces.append(f'"{_MARK}{len(strings)}{_MARK}"' if is_string else written)
            strings += [written] if is_string else []
            place, before = place + length, before if written == " " else "x"
            continue
        if sign in _CLOSING:
            open_ones.append(_CLOSING[sign])
        elif sign in ")]}" and (not open_ones or open_ones.pop() != sign):
            break
        place += 1
        pieces.append(", " if sign == "," else sign)
        before = before if sign.isspace() else sign
        if not open_ones:
            return place, "".join(pieces), strings
    return -1, "", []


def _unquoted(text: str, place: int, before: str, open_ones: list[str]) -> tuple[int, str]:
    """A comment, an amount or a value that is none, if one begins there: its length, and what stands for it."""
    if text[place] in "/#" and (place == 0 or text[place - 1].isspace() or text[place - 1] in "{[,]}\"'"):
        comment = _COMMENT.match(text, place)
        return (len(comment[0]), " ") if comment is not None else (0, "")
    if not before or before not in "[,:":
        return 0, ""
    nothing = _NO_VALUE.match(text, place)
    amount = nothing or _BARE_AMOUNT.match(text, place)
    if amount is None and before == ":" and open_ones[-1:] == ["}"]:
        amount = _BARE_DECIMAL_COMMA.match(text, place)
    if amount is None:
        return 0, ""
    return len(amount[0]), _NOTHING if nothing is not None else amount[0]


def _string(text: str, start: int, before: str, closing: str) -> tuple[int, str]:
    """The end of the string that begins there, and what it says; -1 where it never ends.

    A quote closes it only where what follows may follow a string there, so that it may hold quotes of its own.
    """
    long = _LONG_STRING.match(text, start)
    if long is not None:
        return long.end(), long[2]
    after = _AFTER_MEMBER if before == ":" else _AFTER_KEY if closing == "}" else _AFTER_ITEM
    for quote in _QUOTE_ENDS[text[start]].finditer(text, start + 1):
        if quote[0][0] != "\\" and after.match(text, quote.end()) is not None:
            return quote.end(), _ESCAPE.sub(_unescaped, text[start + 1 : quote.start()])
    return -1, ""


def _unescaped(escape: re.Match[str]) -> str:
    if escape[1]:
        return str(json.loads(f'"{escape[0]}"'))
    sign = escape[2]
    return _ESCAPED.get(sign, sign if sign in _STRING_QUOTES + "»›」』´" else escape[0])


def _repaired(simple: str, strings: list[str]) -> Any:
    """The object or list that a text of some dialect stands for; None where that would be a guess.

    Args:
        simple: The text, with numbers in the place of its strings.
        strings: These strings.
    """
    from json_repair import repair_json

    if len(simple) > _LONGEST_REPAIR or _NOTHING in simple or simple.count(_MARK) != 2 * len(strings):
        return None
    try:
        value: Any = repair_json(simple, return_objects=True, skip_json_loads=True, strict=True)
        is_whole = isinstance(value, (dict, list)) and (_members(value), _content(" ".join(_leaves(value)))) == (
            simple.count(":"),
            _content(simple),
        )
        return _with_strings(value, strings) if is_whole else None
    except (ValueError, RecursionError, AssertionError, IndexError):
        return None


def _with_strings(value: Any, strings: list[str]) -> Any:
    """A value with its strings in their places again.

    Raises:
        ValueError: A key has two values.
    """
    if isinstance(value, dict):
        inside = cast("dict[str, Any]", value)
        return _once([(_with_strings(key, strings), _with_strings(inner, strings)) for key, inner in inside.items()])
    if isinstance(value, list):
        return [_with_strings(inner, strings) for inner in cast("list[Any]", value)]
    if isinstance(value, str) and value.startswith(_MARK):
        return strings[int(value.strip(_MARK))]
    return value


def _leaves(value: Any) -> Iterator[str]:
    """All keys and plain values, in their order, as texts."""
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


def _members(value: Any) -> int:
    """How many members all objects in a value have together."""
    if isinstance(value, dict):
        inside = cast("dict[str, Any]", value)
        return len(inside) + sum(map(_members, inside.values()))
    return sum(map(_members, cast("list[Any]", value))) if isinstance(value, list) else 0


def _content(text: str) -> str:
    """What a text says, without what only structures it; numbers in one form, null as Python writes it."""
    numbers = _NUMBER.sub(lambda number: f" {float(number[0])!r} ", text.casefold())
    return _STRUCTURE.sub("", re.sub(r"\bnull\b", "none", numbers))
