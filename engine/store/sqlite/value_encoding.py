"""Values as JSON in which long parts are replaced by references to blobs, and back.

What is written instead of a value:

- a short text, a number, a boolean, null: itself;
- a longer text: `{"$": 17}`, the blob with its UTF-8 bytes;
- a list or object with short JSON: itself, its parts written in this way;
- one with long JSON: `{"$": -18}`, the blob with that JSON;
- an object that could be taken for one of these, or whose keys JSON would change: `{"$": [[key, value], …]}`.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, Final, cast

from engine.store.preview import cut_text, is_container, json_start
from engine.store.sqlite.blobs import BlobReader, BlobWriter

_MARK: Final = "$"
_LONGEST_TEXT: Final = 64
"""Characters of a text that stays where it is. A blob's own row costs more than a shorter one."""
_LONGEST_JSON: Final = 512
_SAME_OBJECTS: Final = 4_096
"""How many of the latest objects are known again without a look at what is in them."""
_STEP: Final = 64
"""Lists and objects of one value from one pause to the next. A list of a thousand iterations takes long, and the
window's thread would wait for Python's lock again at every step of its own."""
_PAUSE_S: Final = 0.0005
# JSON's escapes cannot tell two halves of a surrogate pair that stand side by side from the character that they make.
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")

to_json: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
"""Compact JSON with ASCII escapes."""


class SkeletonWriter:
    """Writes the values of one run."""

    def __init__(self, blobs: BlobWriter) -> None:
        self._blobs = blobs
        self._connection: sqlite3.Connection | None = None
        self._node = ""
        self._written = 0
        self._same: OrderedDict[int, tuple[object, int]] = OrderedDict()

    def forget(self) -> None:
        """Forget all numbers of blobs: the transaction that gave them was taken back."""
        self._same.clear()
        self._blobs.forget()

    def begin(self, connection: sqlite3.Connection, node: str) -> None:
        """Name the transaction's connection and the node (of whichever iteration) whose values follow."""
        self._connection = connection
        self._node = node

    def put(self, value: Any, place: tuple[Hashable, ...]) -> Any:
        """What is written instead of the value that stands in that place of an event."""
        if isinstance(value, str):
            if len(value) <= _LONGEST_TEXT and survives_json(value):
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
        """The same for a list or object; the blobs that it names are added to `children`.

        It calls itself directly and for nothing but lists and objects, so that deep nesting needs one frame a level.
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
            # Items of a list are in the same place: they tend to resemble each other.
            inner = (*place, key) if is_object else place
            if is_container(item):
                node = self._container(item, inner, mine)
            elif isinstance(item, str) and not (len(item) <= _LONGEST_TEXT and survives_json(item)):
                blob = self._text(item, inner)
                mine.append(blob)
                node = {_MARK: blob}
            else:
                node = item
            written.append(node)
        node = self._object(cast(dict[str, Any], value), written, place, mine) if is_object else written
        text = to_json(node)
        if len(text) > _LONGEST_JSON:
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
        """The blob of this very object, if it was written lately. Values are never changed in place."""
        found = self._same.get(id(value))
        if found is None:
            return None
        self._blobs.use(found[1])
        return found[1]

    def _note(self, value: object, blob: int) -> None:
        self._same[id(value)] = (value, blob)  # holding the object keeps its id from being used again
        if len(self._same) > _SAME_OBJECTS:
            self._same.popitem(last=False)


class SkeletonReader:
    """Reads values over one connection.

    Args:
        blobs: Where blobs come from.
        preview: Cut values to that many characters; None: whole.
    """

    def __init__(self, blobs: BlobReader, preview: int | None = None) -> None:
        self._blobs = blobs
        self._preview = preview

    def get(self, node: Any) -> Any:
        """The value that was written as this, or its preview."""
        return self._whole(node) if self._preview is None else self._cut(node, self._preview)

    def _whole(self, node: Any) -> Any:
        if isinstance(node, list):
            found: list[Any] = []
            for item in cast(list[Any], node):
                found.append(self._whole(item) if is_container(item) else item)  # noqa: PERF401 - one frame a level
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
            return cut_text(node, limit)
        if not is_container(node):
            return node
        opened = self._open(node)
        if isinstance(opened, str):
            return cut_text(opened, limit)
        if not is_container(opened):
            return opened
        start = json_start(node, limit + 1, self._open)
        return self._whole(node) if len(start) <= limit else cut_text(start, limit)

    def _open(self, node: Any) -> Any:
        """One level of a list or object, or as much of a text as a preview may need."""
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
        # A character has four bytes at most; the last ones may be a part of one.
        data, _size = self._blobs.start(blob, 4 * wanted + 4)
        return data.decode("utf-8", "surrogatepass") if len(data) == _size else _whole_characters(data)[:wanted]


def _whole_characters(data: bytes) -> str:
    """The text of bytes whose last character may be cut off."""
    end = len(data)
    while end > 0 and data[end - 1] & 0xC0 == 0x80:
        end -= 1
    return data[: max(end - 1, 0)].decode("utf-8", "surrogatepass")


def is_plain(value: dict[str, Any]) -> bool:
    """Whether an object may be written as one: JSON gives back its keys, and nothing takes it for a reference."""
    return all(map(survives_json, value)) and not (len(value) == 1 and _MARK in value)


def survives_json(text: str) -> bool:
    """Whether JSON gives the text back as it is."""
    return text.isascii() or _PAIR.search(text) is None
