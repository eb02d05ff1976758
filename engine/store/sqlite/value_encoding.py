"""Encode values as JSON with references to blobs for long parts, and decode them.

The encoding of a value:

- a short text, a number, a boolean or null: itself;
- a longer text: `{"$": 17}`, the blob with its UTF-8 bytes;
- a list or object with short JSON: itself, with its parts encoded;
- one with long JSON: `{"$": -18}`, the blob with that JSON;
- an object that looks like one of these, or whose keys do not survive JSON: `{"$": [[key, value], …]}`.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, Final, cast

from engine.store.codec import is_container, json_start, truncate_text
from engine.store.sqlite.blobs import BlobReader, BlobWriter

_MARK: Final = "$"
_MAX_INLINE_TEXT: Final = 64
"""Characters of the longest inline text. For shorter ones, a blob's row costs more than it saves."""
_MAX_INLINE_JSON: Final = 512
_MAX_KNOWN_OBJECTS: Final = 4_096
"""Number of latest objects that are recognized by identity."""
_STEP: Final = 64
"""Containers of one value between two pauses. A list of a thousand iterations takes long to encode, and the window's
thread would wait for the GIL at each of its own steps."""
_PAUSE_S: Final = 0.0005
# In JSON escapes, two adjacent surrogates are indistinguishable from the character that they form.
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")

to_json: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
"""Encode as compact JSON with ASCII escapes."""


class ValueEncoder:
    """Encodes the values of one run."""

    def __init__(self, blobs: BlobWriter) -> None:
        self._blobs = blobs
        self._connection: sqlite3.Connection | None = None
        self._node = ""
        self._written = 0
        self._same: OrderedDict[int, tuple[object, int]] = OrderedDict()

    def forget(self) -> None:
        """Forget all blob ids after the transaction that created them was rolled back."""
        self._same.clear()
        self._blobs.forget()

    def begin(self, connection: sqlite3.Connection, node: str) -> None:
        """Set the connection, and the node (without iteration indexes) whose values follow."""
        self._connection = connection
        self._node = node

    def put(self, value: Any, place: tuple[Hashable, ...]) -> Any:
        """Encode the value at a place of an event."""
        if isinstance(value, str):
            if len(value) <= _MAX_INLINE_TEXT and survives_json(value):
                return value
            return {_MARK: self._text(value, place)}
        if is_container(value):
            self._written = 0
            return self._container(value, place, [])
        return value

    def _text(self, text: str, place: Hashable) -> int:
        known = self._known(text)
        if known is None:
            assert self._connection is not None
            known = self._blobs.put(self._connection, text.encode("utf-8", "surrogatepass"), (self._node, place))
            self._note(text, known)
        return known

    def _container(self, value: Any, place: tuple[Hashable, ...], children: list[int]) -> Any:
        """Encode a list or object and add the blobs that it references to `children`.

        It recurses directly and only for containers, so nesting takes one stack frame per level.
        """
        known = self._known(value)
        if known is not None:
            children.append(known)
            return {_MARK: -known}
        self._written += 1
        if not self._written % _STEP:
            time.sleep(_PAUSE_S)
        mine: list[int] = []
        is_object = isinstance(value, dict)
        written: list[Any] = []
        for key, item in cast(dict[str, Any], value).items() if is_object else enumerate(cast(list[Any], value)):
            # Items of a list share a place, because they tend to be similar.
            inner = (*place, key) if is_object else place
            if is_container(item):
                node = self._container(item, inner, mine)
            elif isinstance(item, str) and not (len(item) <= _MAX_INLINE_TEXT and survives_json(item)):
                blob = self._text(item, inner)
                mine.append(blob)
                node = {_MARK: blob}
            else:
                node = item
            written.append(node)
        node = self._object(cast(dict[str, Any], value), written, place, mine) if is_object else written
        text = to_json(node)
        if len(text) > _MAX_INLINE_JSON:
            assert self._connection is not None
            blob = self._blobs.put(self._connection, text.encode("ascii"), (self._node, place, _MARK), mine)
            self._note(value, blob)
            children.append(blob)
            return {_MARK: -blob}
        children += mine
        return node

    def _object(
        self, value: dict[str, Any], written: list[Any], place: tuple[Hashable, ...], children: list[int]
    ) -> dict[str, Any]:
        if is_plain(value):
            return dict(zip(value, written, strict=True))
        pairs: list[list[Any]] = []
        for key, node in zip(value, written, strict=True):
            stored = self.put(key, place)
            if stored is not key:
                children.append(stored[_MARK])
            pairs.append([stored, node])
        return {_MARK: pairs}

    def _known(self, value: object) -> int | None:
        """Return the blob of this object if it was encoded recently. Values are never mutated."""
        found = self._same.get(id(value))
        if found is None:
            return None
        self._blobs.use(found[1])
        return found[1]

    def _note(self, value: object, blob: int) -> None:
        self._same[id(value)] = (value, blob)  # a reference keeps the id from being reused
        if len(self._same) > _MAX_KNOWN_OBJECTS:
            self._same.popitem(last=False)


class ValueDecoder:
    """Decodes values over one connection.

    Args:
        blobs: Reader of the blobs.
        preview: Truncate values to this many characters; None for whole values.
    """

    def __init__(self, blobs: BlobReader, preview: int | None = None) -> None:
        self._blobs = blobs
        self._preview = preview

    def get(self, node: Any) -> Any:
        """Decode a value, or its preview."""
        return self._whole(node) if self._preview is None else self._cut(node, self._preview)

    def _whole(self, node: Any) -> Any:
        if isinstance(node, list):
            found: list[Any] = []
            for item in cast(list[Any], node):
                found.append(self._whole(item) if is_container(item) else item)  # noqa: PERF401 - one frame per level
            return found
        if not isinstance(node, dict):
            return node
        node = cast(dict[str, Any], node)
        mark = node.get(_MARK) if len(node) == 1 else None
        if mark is None:
            plain: dict[str, Any] = {}
            for key, item in node.items():
                plain[key] = self._whole(item) if is_container(item) else item
            return plain
        if isinstance(mark, list):
            pairs: dict[str, Any] = {}
            for key, item in cast(list[tuple[Any, Any]], mark):
                pairs[self._whole(key)] = self._whole(item)
            return pairs
        if mark > 0:
            return self._blobs.whole(mark).decode("utf-8", "surrogatepass")
        return self._whole(json.loads(self._blobs.whole(-mark)))

    def _cut(self, node: Any, limit: int) -> Any:
        if isinstance(node, str):
            return truncate_text(node, limit)
        if not is_container(node):
            return node
        opened = self._open(node)
        if isinstance(opened, str):
            return truncate_text(opened, limit)
        if not is_container(opened):
            return opened
        start = json_start(node, limit + 1, self._open)
        return self._whole(node) if len(start) <= limit else truncate_text(start, limit)

    def _open(self, node: Any) -> Any:
        """Decode one level of a container, or as much of a text as a preview needs."""
        if not isinstance(node, dict):
            return node
        node = cast(dict[str, Any], node)
        mark = node.get(_MARK) if len(node) == 1 else None
        if mark is None:
            return node
        if isinstance(mark, list):
            return {self._whole(key): item for key, item in cast(list[tuple[Any, Any]], mark)}
        if mark > 0:
            return self._text_start(mark)
        return self._open(json.loads(self._blobs.whole(-mark)))

    def _text_start(self, blob: int) -> str:
        assert self._preview is not None
        wanted = self._preview + 1
        # A character has at most four bytes; the last one may be incomplete.
        data, _size = self._blobs.start(blob, 4 * wanted + 4)
        return data.decode("utf-8", "surrogatepass") if len(data) == _size else _decode_truncated(data)[:wanted]


def _decode_truncated(data: bytes) -> str:
    """Decode bytes whose last character may be incomplete."""
    end = len(data)
    while end > 0 and data[end - 1] & 0xC0 == 0x80:
        end -= 1
    return data[: max(end - 1, 0)].decode("utf-8", "surrogatepass")


def is_plain(value: dict[str, Any]) -> bool:
    """Return whether an object can be written as is: its keys survive JSON and it is no reference."""
    return all(map(survives_json, value)) and not (len(value) == 1 and _MARK in value)


def survives_json(text: str) -> bool:
    """Return whether a text is unchanged by a JSON round trip."""
    return text.isascii() or _PAIR.search(text) is None
