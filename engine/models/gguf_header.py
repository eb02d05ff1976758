"""Reader of the header of a GGUF file: what the model is, without loading it.

The format is described at https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. A file may come from anywhere, so
nothing in it is trusted: lengths are checked before anything is read, and only a limited part of the file is.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.formatting import format_bytes

_MAGIC: Final = b"GGUF"
_VERSIONS: Final = frozenset({2, 3})
_QUICK_BYTES: Final = 1_000_000
_MAX_BYTES: Final = 64_000_000
"""Size of the part of a file that is read: for a list, and to run the model. Vocabularies take up to 20 MB."""
_MAX_TEXT_BYTES: Final = 100_000
"""Length of a text, such as a chat template, above which it is ignored."""
_VOCABULARY: Final = "tokenizer."
"""Start of the keys of the vocabulary, which follow the description of the model."""
_FORMATS: Final = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))
"""Formats of `struct` by the type of a value."""
_TEXT: Final = 8
_ARRAY: Final = 9
_CONTROL: Final = 3
"""Type of a token that is not part of a text, such as the end of a message."""

_QUANTIZATIONS: Final = """
F32 F16 Q4_0 Q4_1 - - - Q8_0 Q5_0 Q5_1 Q2_K Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K IQ2_XXS IQ2_XS
Q2_K_S IQ3_XS IQ3_XXS IQ1_S IQ4_NL IQ3_S IQ3_M IQ2_S IQ2_M IQ4_XS IQ1_M BF16 - - - TQ1_0 TQ2_0 MXFP4
""".split()  # noqa: SIM905 - quoted words on separate lines would be harder to compare
"""The names of the values of `general.file_type` in llama.cpp; those without a name are no longer in use."""

_NO_CHAT: Final = re.compile(r"clip|(.*-)?bert(-.*)?|t5encoder|gemma-embedding|wavtokenizer-dec")
"""Architectures that write no text: encoders, embeddings and parts of other models."""

Scalar = str | int | float | bool


class GgufError(ValueError):
    """A file that is not a usable GGUF file; the text is a clause that says why."""


class DamagedFileError(GgufError):
    """A GGUF file that is incomplete or damaged: another download may help."""


class _EndOfPartError(Exception):
    """The part of the file that was read ends."""


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What the header of a GGUF file says about its model.

    Attributes:
        size: Size of the file in bytes.
        architecture: Its architecture (`llama`, `qwen2`).
        name: The model's name; may be empty.
        size_label: Its number of parameters (`7B`); may be empty.
        quantization: How its weights are stored (`Q4_K_M`); may be empty.
        context_tokens: The context length that it was trained with; None if unknown.
        writes_text: Whether it is a language model, and not one for embeddings or a part of another model.
        has_chat_template: Whether it says how to write a conversation. Only known if the vocabulary was read.
        control_tokens: Tokens that start or end messages; in a text they would start or end one too. Only known if the
            vocabulary was read.
    """

    size: int
    architecture: str
    name: str = ""
    size_label: str = ""
    quantization: str = ""
    context_tokens: int | None = None
    writes_text: bool = True
    has_chat_template: bool = False
    control_tokens: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """Its name, number of parameters, quantization and size in a phrase."""
        label = "" if self.size_label.casefold() in self.name.casefold() else self.size_label
        return ", ".join(filter(None, (self.name, label, self.quantization, format_bytes(self.size))))


def read_header(file: Path, *, with_vocabulary: bool = False) -> GgufHeader:
    """Read the header of a file.

    Args:
        file: The file.
        with_vocabulary: Whether to read the vocabulary too, which may take half a second. In a small file, which
            may be the beginning of one, it is always read.

    Raises:
        OSError: The file cannot be read.
        GgufError: It is not a usable GGUF file.
    """
    with file.open("rb") as stream:
        size = file.stat().st_size
        part = stream.read(_MAX_BYTES if with_vocabulary else _QUICK_BYTES)
    reader = _Reader(part)
    values: dict[str, Scalar] = {}
    try:
        for key in reader.each_key():
            if key.startswith(_VOCABULARY) and not with_vocabulary and len(part) < size:
                break
            reader.read_value(key, values)
    except _EndOfPartError:
        if len(part) == size:
            raise DamagedFileError("it is incomplete or damaged") from None
        if with_vocabulary:
            raise GgufError("its header is too large") from None
    return _header(size, values, reader.control_tokens if with_vocabulary else ())


def _header(size: int, values: dict[str, Scalar], control_tokens: tuple[str, ...]) -> GgufHeader:
    architecture = values.get("general.architecture")
    if not isinstance(architecture, str) or not architecture:
        raise GgufError("it does not name the architecture of a model")
    kind = str(values.get("general.type", "model"))
    context = values.get(f"{architecture}.context_length")
    name, label = (_line(values.get(f"general.{key}", "")) for key in ("name", "size_label"))
    return GgufHeader(
        size=size,
        architecture=_line(architecture),
        name=name,
        size_label=label,
        quantization=_quantization(values.get("general.file_type")),
        context_tokens=context if isinstance(context, int) and 0 < context < 1 << 40 else None,
        writes_text=kind == "model"
        and not _NO_CHAT.fullmatch(architecture)
        and not values.get(f"{architecture}.pooling_type"),
        has_chat_template=bool(values.get("tokenizer.chat_template")),
        control_tokens=control_tokens,
    )


def _line(value: Scalar) -> str:
    return "".join(character for character in " ".join(str(value).split()) if character.isprintable())[:100]


def _quantization(file_type: Scalar | None) -> str:
    if isinstance(file_type, int) and 0 <= file_type < len(_QUANTIZATIONS):
        return _QUANTIZATIONS[file_type].strip("-")
    return ""


class _Reader:
    """Reads the values at the start of a file.

    Attributes:
        control_tokens: The tokens that start or end messages, as far as the vocabulary was read.
    """

    def __init__(self, part: bytes) -> None:
        self._part = part
        self._at = 4
        self._tokens: list[bytes] = []
        self.control_tokens: tuple[str, ...] = ()
        if not part.startswith(_MAGIC):
            raise DamagedFileError("it is not a GGUF file")

    def each_key(self) -> Iterator[str]:
        """Yield the key of each value, which has to be read before the next."""
        version = self._number("I")
        if version not in _VERSIONS:
            raise GgufError(f"its version of the GGUF format, {version}, is not supported")
        self._number("Q")  # number of tensors
        for _ in range(self._number("Q")):
            yield self._text().decode("utf-8", "replace")

    def read_value(self, key: str, values: dict[str, Scalar]) -> None:
        """Read a value; add it to the others if it is not a list."""
        kind = self._number("I")
        if kind == _TEXT:
            text = self._text()
            if len(text) <= _MAX_TEXT_BYTES:
                values[key] = text.decode("utf-8", "replace")
        elif kind == _ARRAY:
            self._read_array(key)
        elif kind in _FORMATS:
            values[key] = self._number(_FORMATS[kind])
        else:
            raise DamagedFileError("its header is damaged")

    def _read_array(self, key: str) -> None:
        kind, count = self._number("I"), self._number("Q")
        if kind == _TEXT:
            tokens = self._texts(count)
            if key == "tokenizer.ggml.tokens":
                self._tokens = tokens
        elif kind in _FORMATS:
            form = f"<{count}{_FORMATS[kind]}"
            start = self._skip(count * struct.calcsize(f"<{_FORMATS[kind]}"))
            if key == "tokenizer.ggml.token_type":
                kinds: tuple[int, ...] = struct.unpack_from(form, self._part, start)
                controls = (token for token, kind in zip(self._tokens, kinds, strict=False) if kind == _CONTROL)
                self.control_tokens = tuple(token.decode("utf-8", "replace") for token in controls)
        else:
            raise DamagedFileError("its header is damaged")

    def _number(self, form: str) -> int:
        form = f"<{form}"
        return struct.unpack_from(form, self._part, self._skip(struct.calcsize(form)))[0]

    def _text(self) -> bytes:
        length = self._number("Q")
        start = self._skip(length)
        return self._part[start : start + length]

    def _texts(self, count: int) -> list[bytes]:
        """Read many texts, as fast as there are hundreds of thousands."""
        part, at, unpack = self._part, self._at, struct.Struct("<Q").unpack_from
        found: list[bytes] = []
        try:
            for _ in range(count):
                start = at + 8
                at = start + unpack(part, at)[0]
                found.append(part[start:at])
        except struct.error:
            raise _EndOfPartError from None
        self._at = at
        self._skip(0)
        return found

    def _skip(self, size: int) -> int:
        """Move behind the next bytes; return where they start."""
        start, self._at = self._at, self._at + size
        if self._at > len(self._part):
            raise _EndOfPartError
        return start
