"""From the text of a YAML file to plain JSON values, whatever the text tries.

Built from the parser's events, so that nothing is ever constructed but objects, lists, texts, numbers, true, false and
null: no tag makes an object of Python, an alias repeats what stands in the file and is counted as often as it does, and
depth, length and number of values end where no hand-written workflow comes. What the values mean is not known here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, cast

from engine.document.problems import DocumentError
from engine.document.wording import shown
from engine.values import Value

MAX_YAML_BYTES: Final = 300_000
"""The largest YAML file that is read; a workflow written by hand has a few thousand bytes."""

MAX_YAML_DEPTH: Final = 60
MAX_YAML_VALUES: Final = 20_000
"""The most values, those that aliases repeat counted each time."""

_PLAIN_TAGS: Final = frozenset({f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null")})
_OTHER_TAGS: Final = frozenset({f"tag:yaml.org,2002:{name}" for name in ("map", "seq")})
_TEXT_TAG: Final = "tag:yaml.org,2002:str"
_MERGE: Final = "<<"
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,30}")
_OCTAL_OR_HEX: Final = re.compile(r"0o[0-7]{1,20}|0x[0-9a-fA-F]{1,20}")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]{1,30}|[0-9]{1,30}(\.[0-9]{0,30})?)([eE][-+]?[0-9]{1,3})?")
_WORDS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NO_KEY: Final = object()
_REMEDY: Final = "Mend the file in a text editor, or choose another."


@dataclass(slots=True)
class _Open:
    """An object or a list that is not closed yet, and how many values stand in it so far."""

    value: dict[str, Value] | list[Value]
    anchor: str | None
    size: int = 1
    key: object = _NO_KEY
    merged: list[dict[str, Value]] = field(default_factory=list[dict[str, Value]])


class _Reading:
    """The value of one document, as far as its events have come."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Value, int]] = {}
        self._count = 0
        self.root: Value = None

    def take(self, event: Any) -> None:
        """Take up the next event.

        Raises:
            DocumentError: It is more than is read.
        """
        kind = type(event).__name__
        if kind == "ScalarEvent":
            self._put(self._scalar(event), 1, event.anchor, counted=1)
        elif kind == "AliasEvent":
            if event.anchor not in self._anchors:
                raise self.refused(f'the alias "*{shown(event.anchor, 40)}" stands for nothing before it')
            value, size = self._anchors[event.anchor]
            self._put(value, size, None, counted=size)
        elif kind in {"MappingStartEvent", "SequenceStartEvent"}:
            self._check_tag(event.tag, _OTHER_TAGS)
            if len(self._open) >= MAX_YAML_DEPTH:
                raise self.refused(f"values stand more than {MAX_YAML_DEPTH} deep inside one another")
            self._open.append(_Open({} if kind == "MappingStartEvent" else [], event.anchor))
        elif kind in {"MappingEndEvent", "SequenceEndEvent"}:
            closed = self._open.pop()
            for more in closed.merged:
                closed.value = {**more, **cast("dict[str, Value]", closed.value)}
            self._put(closed.value, closed.size, closed.anchor, counted=1)

    def _put(self, value: Value, size: int, anchor: str | None, *, counted: int) -> None:
        self._count += counted
        if self._count > MAX_YAML_VALUES:
            raise self.refused(f"it holds more than {MAX_YAML_VALUES:,} values")
        if anchor is not None:
            self._anchors[anchor] = (value, size)
        if not self._open:
            self.root = value
            return
        around = self._open[-1]
        around.size += size
        if isinstance(around.value, list):
            around.value.append(value)
        elif around.key is _NO_KEY:
            around.key = self._key(value, around.value)
        else:
            self._member(around, cast("str", around.key), value)
            around.key = _NO_KEY

    def _member(self, around: _Open, key: str, value: Value) -> None:
        members = cast("dict[str, Value]", around.value)
        if key != _MERGE:
            members[key] = value
            return
        for more in value if isinstance(value, list) else [value]:
            if not isinstance(more, dict):
                raise self.refused('what "<<" takes in is no object')
            around.merged.append(more)

    def _key(self, key: Value, there: dict[str, Value]) -> str:
        if isinstance(key, dict | list):
            raise self.refused("a key is an object or a list")
        text = key if isinstance(key, str) else json.dumps(key)
        if text in there:
            raise self.refused(f'the key "{shown(text, 40)}" stands twice in the same object')
        return text

    def _scalar(self, event: Any) -> Value:
        self._check_tag(event.tag, _PLAIN_TAGS)
        is_text = event.tag == _TEXT_TAG or (event.tag is None and not event.implicit[0])
        return event.value if is_text else _plain(event.value)

    def _check_tag(self, tag: str | None, allowed: frozenset[str]) -> None:
        if tag is not None and tag not in allowed:
            raise self.refused(f'the tag "{shown(tag, 60)}" asks for something else than plain values')

    def refused(self, why: str) -> DocumentError:
        """The error that says why the file is not read."""
        return DocumentError(f"{self._source}: The YAML is not read: {why}.", _REMEDY)


def _plain(text: str) -> Value:
    """What a plain word stands for, by the core schema of YAML 1.2: `yes` is a text."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _OCTAL_OR_HEX.fullmatch(text):
        return int(text[2:], 8 if text[1] == "o" else 16)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text


def read_yaml(text: str, source: str) -> Value:
    """Read the first document of a YAML text.

    Args:
        text: The text.
        source: What to call the file in messages.

    Raises:
        DocumentError: It is too large or too deep, asks for more than plain values, or is no YAML.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    if len(text.encode(errors="surrogatepass")) > MAX_YAML_BYTES:
        message = f"{source}: The YAML is larger than {MAX_YAML_BYTES // 1000} kB, the most that is read."
        raise DocumentError(message, "Keep long texts in files of their own.")
    reading = _Reading(source)
    try:
        # The parser alone, which makes events of a text and nothing else; no loader is asked to construct anything.
        events = cast("Iterator[Any]", YAML(typ="safe", pure=True).parse(text))  # pyright: ignore[reportUnknownMemberType]
        documents = 0
        for event in events:
            documents += type(event).__name__ == "DocumentStartEvent"
            if documents > 1:
                raise reading.refused("it holds several documents; put each into a file of its own")
            reading.take(event)
    except MarkedYAMLError as error:
        told: Any = error
        mark = told.problem_mark
        place = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
        message = f"{source}: The file is no YAML: {place}{shown(told.problem or 'it cannot be read', 120)}."
        raise DocumentError(message, _REMEDY) from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise DocumentError(f"{source}: The file is no YAML: {shown(error, 120)}.", _REMEDY) from error
    return reading.root
