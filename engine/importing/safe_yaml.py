"""Safe YAML parser: returns plain JSON values, whatever a hostile file contains.

Values are built from the parser's events, so only objects, lists, texts, numbers, booleans and null are constructed:
tags cannot create Python objects. Size, depth and the number of values are limited far beyond any hand-written
workflow; values that an alias repeats count each time.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, cast

from engine.document.problems import DocumentError
from engine.formatting import format_count
from engine.text_sanitizing import shown
from engine.values import Value

MAX_YAML_BYTES: Final = 300_000
"""Maximum size of a YAML file; a workflow written by hand has a few thousand bytes."""

MAX_YAML_DEPTH: Final = 60
MAX_YAML_VALUES: Final = 20_000
"""Maximum number of values; those that an alias repeats count each time."""

_SCALAR_TAGS: Final = frozenset({f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null")})
_COLLECTION_TAGS: Final = frozenset({f"tag:yaml.org,2002:{name}" for name in ("map", "seq")})
_TEXT_TAG: Final = "tag:yaml.org,2002:str"
_MERGE_KEY: Final = "<<"
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,30}")
_OCTAL_OR_HEX: Final = re.compile(r"0o[0-7]{1,20}|0x[0-9a-fA-F]{1,20}")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]{1,30}|[0-9]{1,30}(\.[0-9]{0,30})?)([eE][-+]?[0-9]{1,3})?")
_CONSTANTS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NO_KEY: Final = object()
_REMEDY: Final = "Correct the file in a text editor, or choose another."


@dataclass(slots=True)
class _OpenCollection:
    """An object or list under construction, and the number of values in it so far."""

    value: dict[str, Value] | list[Value]
    anchor: str | None
    size: int = 1
    key: object = _NO_KEY
    merged: list[dict[str, Value]] = field(default_factory=list[dict[str, Value]])


class _ValueBuilder:
    """Builds the value of a document from the parser's events."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._open: list[_OpenCollection] = []
        self._anchors: dict[str, tuple[Value, int]] = {}
        self._count = 0
        self.root: Value = None

    def handle(self, event: Any) -> None:
        """Process the next event.

        Raises:
            DocumentError: The file exceeds a limit, or uses a feature that is not supported.
        """
        kind = type(event).__name__
        if kind == "ScalarEvent":
            self._put(self._scalar(event), 1, event.anchor, counted=1)
        elif kind == "AliasEvent":
            if event.anchor not in self._anchors:
                raise self.error(f'the alias "*{shown(event.anchor, 40)}" is not defined before its use')
            value, size = self._anchors[event.anchor]
            self._put(value, size, None, counted=size)
        elif kind in {"MappingStartEvent", "SequenceStartEvent"}:
            self._check_tag(event.tag, _COLLECTION_TAGS)
            if len(self._open) >= MAX_YAML_DEPTH:
                raise self.error(f"values are nested more than {MAX_YAML_DEPTH} levels deep")
            self._open.append(_OpenCollection({} if kind == "MappingStartEvent" else [], event.anchor))
        elif kind in {"MappingEndEvent", "SequenceEndEvent"}:
            closed = self._open.pop()
            for more in closed.merged:
                closed.value = {**more, **cast("dict[str, Value]", closed.value)}
            self._put(closed.value, closed.size, closed.anchor, counted=1)

    def _put(self, value: Value, size: int, anchor: str | None, *, counted: int) -> None:
        self._count += counted
        if self._count > MAX_YAML_VALUES:
            raise self.error(f"it contains more than {format_count(MAX_YAML_VALUES, 'value')}")
        if anchor is not None:
            self._anchors[anchor] = (value, size)
        if not self._open:
            self.root = value
            return
        parent = self._open[-1]
        parent.size += size
        if isinstance(parent.value, list):
            parent.value.append(value)
        elif parent.key is _NO_KEY:
            parent.key = self._key(value, parent.value)
        else:
            self._set_member(parent, cast("str", parent.key), value)
            parent.key = _NO_KEY

    def _set_member(self, parent: _OpenCollection, key: str, value: Value) -> None:
        members = cast("dict[str, Value]", parent.value)
        if key != _MERGE_KEY:
            members[key] = value
            return
        for more in value if isinstance(value, list) else [value]:
            if not isinstance(more, dict):
                raise self.error('the value of "<<" is not an object')
            parent.merged.append(more)

    def _key(self, key: Value, siblings: dict[str, Value]) -> str:
        if isinstance(key, dict | list):
            raise self.error("a key is an object or a list")
        text = key if isinstance(key, str) else json.dumps(key)
        if text in siblings:
            raise self.error(f'the key "{shown(text, 40)}" is repeated in the same object')
        return text

    def _scalar(self, event: Any) -> Value:
        self._check_tag(event.tag, _SCALAR_TAGS)
        is_text = event.tag == _TEXT_TAG or (event.tag is None and not event.implicit[0])
        return event.value if is_text else _unquoted(event.value)

    def _check_tag(self, tag: str | None, allowed: frozenset[str]) -> None:
        if tag is not None and tag not in allowed:
            raise self.error(f'the tag "{shown(tag, 60)}" is not a plain value')

    def error(self, reason: str) -> DocumentError:
        """The error for a file that is not accepted."""
        return DocumentError(f"{self._source}: The YAML is not accepted: {reason}.", _REMEDY)


def _unquoted(text: str) -> Value:
    """The value of an unquoted scalar by the core schema of YAML 1.2, in which `yes` is a text."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _OCTAL_OR_HEX.fullmatch(text):
        return int(text[2:], 8 if text[1] == "o" else 16)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text


def read_yaml(text: str, source: str) -> Value:
    """Parse a YAML text with one document.

    Args:
        text: The text.
        source: The file's name for error messages.

    Raises:
        DocumentError: The text is too large or too deeply nested, holds more than plain values, or is not YAML.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    if len(text.encode(errors="surrogatepass")) > MAX_YAML_BYTES:
        message = f"{source}: The YAML is larger than {format_count(MAX_YAML_BYTES // 1000)} kB, the maximum."
        raise DocumentError(message, "Move long texts to separate files.")
    builder = _ValueBuilder(source)
    try:
        # Only the parser, which yields events; no loader that could construct objects.
        events = cast("Iterator[Any]", YAML(typ="safe", pure=True).parse(text))  # pyright: ignore[reportUnknownMemberType]
        documents = 0
        for event in events:
            documents += type(event).__name__ == "DocumentStartEvent"
            if documents > 1:
                raise builder.error("it holds several documents; put each into a separate file")
            builder.handle(event)
    except MarkedYAMLError as error:
        marked: Any = error
        mark = marked.problem_mark
        place = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
        message = f"{source}: The file is not valid YAML: {place}{shown(marked.problem or 'it cannot be parsed', 120)}."
        raise DocumentError(message, _REMEDY) from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise DocumentError(f"{source}: The file is not valid YAML: {shown(error, 120)}.", _REMEDY) from error
    return builder.root
