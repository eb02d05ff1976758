"""Writes GGUF files: small ones that are only a header, and the demo model with another header."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

from engine.models.demo_weights import find_weights

_ALIGNMENT = 32
_TEXT, _ARRAY, _INT = 8, 9, 5
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

Entry = str | int | list[str] | list[int]


def write_header(file: Path, entries: Mapping[str, Entry], *, version: int = 3, count: int | None = None) -> Path:
    """Write a file without weights.

    Args:
        file: The file; its folders are created.
        entries: Its values by key, without the architecture's prefix.
        version: The version of the format.
        count: The number of entries that the header promises.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    written = b"".join(_text(key) + _value(value) for key, value in entries.items())
    promised = len(entries) if count is None else count
    file.write_bytes(b"GGUF" + struct.pack("<IQQ", version, 0, promised) + written)
    return file


def language_model(name: str = "Tiny", /, **more: Entry) -> dict[str, Entry]:
    """The usual entries of a language model."""
    return {
        "general.architecture": "llama",
        "general.name": name,
        "general.size_label": "1B",
        "general.file_type": 15,
        "llama.context_length": 2048,
        **more,
    }


def write_demo_model(file: Path, changes: Mapping[str, Entry | None]) -> Path:
    """Write the demo model, which the runtime can load, with changed entries; None removes one."""
    source = find_weights().read_bytes()
    _, tensors, count = struct.unpack_from("<IQQ", source, 4)
    at, entries = 24, dict[str, bytes]()
    for _ in range(count):
        key, start = _read_text(source, at)
        at = _end_of_value(source, start)
        entries[key] = source[start:at]
    infos = at
    for _ in range(tensors):
        _, at = _read_text(source, at)
        dimensions = struct.unpack_from("<I", source, at)[0]
        at += 4 + 8 * dimensions + 4 + 8
    for key, value in changes.items():
        entries.pop(key, None)
        if value is not None:
            entries[key] = _value(value)
    head = b"GGUF" + struct.pack("<IQQ", 3, tensors, len(entries))
    head += b"".join(_text(key) + value for key, value in entries.items()) + source[infos:at]
    head += bytes(-len(head) % _ALIGNMENT)
    with file.open("wb") as stream:
        stream.write(head)
        stream.write(memoryview(source)[at + -at % _ALIGNMENT :])
    return file


def write_ollama_model(folder: Path, place: str, digest: str, content: bytes, kind: str = "model") -> Path:
    """Write a model as Ollama stores it; return the file with its weights.

    Args:
        folder: Ollama's folder with models.
        place: Where its manifest is (`registry.ollama.ai/library/llama3.2/1b`).
        digest: Hash in the manifest; it need not fit.
        content: Content of the file with the weights.
        kind: Kind of its first layer.
    """
    manifest = folder / "manifests" / place
    manifest.parent.mkdir(parents=True, exist_ok=True)
    layers = f'[{{"mediaType": "application/vnd.ollama.image.{kind}", "digest": "sha256:{digest}"}}]'
    manifest.write_text(f'{{"schemaVersion": 2, "layers": {layers}}}')
    blob = folder / "blobs" / f"sha256-{digest}"
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(content)
    return blob


def _text(text: str) -> bytes:
    encoded = text.encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(encoded)) + encoded


def _value(value: Entry) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", _TEXT) + _text(value)
    if isinstance(value, int):
        return struct.pack("<Iq", 11, value)
    texts = [item for item in value if isinstance(item, str)]
    head = struct.pack("<IIQ", _ARRAY, _TEXT if texts else _INT, len(value))
    return head + b"".join(_text(item) if isinstance(item, str) else struct.pack("<i", item) for item in value)


def _read_text(source: bytes, at: int) -> tuple[str, int]:
    end = at + 8 + struct.unpack_from("<Q", source, at)[0]
    return source[at + 8 : end].decode("utf-8", "replace"), end


def _end_of_value(source: bytes, at: int) -> int:
    (kind,) = struct.unpack_from("<I", source, at)
    at += 4
    if kind == _TEXT:
        return _read_text(source, at)[1]
    if kind != _ARRAY:
        return at + _SIZES[kind]
    kind, count = struct.unpack_from("<IQ", source, at)
    at += 12
    if kind != _TEXT:
        return at + count * _SIZES[kind]
    for _ in range(count):
        _, at = _read_text(source, at)
    return at
