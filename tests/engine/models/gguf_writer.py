"""Writes GGUF files: small ones that are only a header, and the demo model with another header."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.models.demo_weights import find_weights

_ALIGNMENT = 32
_TEXT, _ARRAY, _INT = 8, 9, 5
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

Entry = str | int | list[str] | list[int]


def write_header(
    file: Path,
    entries: Mapping[str, Entry],
    *,
    version: int = 3,
    count: int | None = None,
    tensors: Sequence[tuple[Sequence[int], int, int]] = (),
) -> Path:
    """Write a file without weights.

    Args:
        file: The file; its folders are created.
        entries: Its values by key, without the architecture's prefix.
        version: The version of the format.
        count: The number of entries that the header promises.
        tensors: Dimensions, type and offset of each tensor that the header promises.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(header_bytes(entries, version=version, count=count, tensors=tensors))
    return file


def header_bytes(
    entries: Mapping[str, Entry],
    *,
    version: int = 3,
    count: int | None = None,
    tensors: Sequence[tuple[Sequence[int], int, int]] = (),
) -> bytes:
    """The content of a file without weights, as in `write_header`."""
    written = b"".join(_text(key) + _value(value) for key, value in entries.items())
    promised = len(entries) if count is None else count
    for dimensions, kind, offset in tensors:
        written += _text("weights") + struct.pack("<I", len(dimensions))
        written += struct.pack(f"<{len(dimensions)}QIQ", *dimensions, kind, offset)
    return b"GGUF" + struct.pack("<IQQ", version, len(tensors), promised) + written


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
    source = _DemoModel()
    for key, value in changes.items():
        source.entries.pop(key, None)
        if value is not None:
            source.entries[key] = _value(value)
    source.write(file, source.entries, source.tensors)
    return file


def write_split_demo_model(folder: Path, stem: str, count: int = 3) -> list[Path]:
    """Write the demo model, which the runtime can load, as a model in several files."""
    source = _DemoModel()
    size = -(-len(source.tensors) // count)
    files = [folder / f"{stem}-{number + 1:05}-of-{count:05}.gguf" for number in range(count)]
    for number, file in enumerate(files):
        split = {
            "split.no": struct.pack("<IH", 2, number),
            "split.count": struct.pack("<IH", 2, count),
            "split.tensors.count": struct.pack("<Ii", _INT, len(source.tensors)),
        }
        entries = {} if number else source.entries
        source.write(file, {**entries, **split}, source.tensors[number * size : (number + 1) * size])
    return files


class _DemoModel:
    """The content of the demo model.

    Attributes:
        entries: Its values by key, as in the file.
        tensors: For each tensor, the beginning of its entry in the table, and its weights.
    """

    def __init__(self) -> None:
        source = memoryview(find_weights().read_bytes())
        _, tensors, count = struct.unpack_from("<IQQ", source, 4)
        at, self.entries = 24, dict[str, bytes]()
        for _ in range(count):
            key, start = _read_text(source, at)
            at = _end_of_value(source, start)
            self.entries[key] = bytes(source[start:at])
        table: list[tuple[bytes, int]] = []
        for _ in range(tensors):
            start, (_, at) = at, _read_text(source, at)
            at += 4 + 8 * struct.unpack_from("<I", source, at)[0] + 4
            table.append((bytes(source[start:at]), struct.unpack_from("<Q", source, at)[0]))
            at += 8
        weights = source[at + -at % _ALIGNMENT :]
        ends = [*(offset for _, offset in table[1:]), len(weights)]
        self.tensors = [(entry, weights[offset:end]) for (entry, offset), end in zip(table, ends, strict=True)]

    def write(self, file: Path, entries: Mapping[str, bytes], tensors: Sequence[tuple[bytes, memoryview]]) -> None:
        head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries))
        head += b"".join(_text(key) + value for key, value in entries.items())
        offset = 0
        for entry, weights in tensors:
            head += entry + struct.pack("<Q", offset)
            offset += len(weights)
        with file.open("wb") as stream:
            stream.write(head + bytes(-len(head) % _ALIGNMENT))
            for _, weights in tensors:
                stream.write(weights)


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


def _read_text(source: memoryview, at: int) -> tuple[str, int]:
    end = at + 8 + struct.unpack_from("<Q", source, at)[0]
    return bytes(source[at + 8 : end]).decode("utf-8", "replace"), end


def _end_of_value(source: memoryview, at: int) -> int:
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
