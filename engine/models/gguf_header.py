"""Reader of the header of a GGUF file: what the model is and whether the file is complete, without loading it.

The format is described at https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. The values of the header are
followed by a table that says where the weights of each tensor are, and then by the weights. A file may come from
anywhere, so nothing in it is trusted: lengths are checked before anything is read, and only a limited part of the file
is.
"""

from __future__ import annotations

import math
import re
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Final

from engine.formatting import format_bytes

_MAGIC: Final = b"GGUF"
_VERSIONS: Final = frozenset({2, 3})
_READ_BYTES: Final = 1 << 20
"""Size of the pieces in which a header is read."""
_MAX_BYTES: Final = 64_000_000
"""Size of the largest header that is read. Vocabularies take up to 20 MB."""
_MAX_TEXT_LENGTH: Final = 100_000
"""Length of a text, such as a chat template, above which it is ignored."""
_FORMATS: Final = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))
"""Formats of `struct` by the type of a value."""
_TEXT: Final = 8
_ARRAY: Final = 9
_CONTROL: Final = 3
"""Type of a token that is not part of a text, such as the end of a message."""
_PARTS, _NUMBER, _TENSORS = "split.count", "split.no", "split.tensors.count"
"""Keys of a model in several files: how many there are, which one this is, and the number of tensors in all of them."""
_INCOMPLETE: Final = "it is incomplete or damaged"
_MAX_DIMENSIONS: Final = 4
_DEFAULT_ALIGNMENT: Final = 32
_BLOCKS: Final = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 40),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292), 16: (256, 66),
    17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82), 23: (256, 136),
    24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54),
    35: (256, 66), 39: (32, 17),
}  # fmt: skip
"""How the weights of a tensor are stored, by its type in ggml: numbers in a block, and the size of a block in bytes."""

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


def read_header(*parts: Path, with_vocabulary: bool = False) -> GgufHeader:
    """Read the header of a model, and check that the weights that it announces are there.

    Args:
        parts: Its file, or the files that it is split into, of which the later ones may only have weights.
        with_vocabulary: Whether to find the control tokens too, which takes longer.

    Raises:
        OSError: A file cannot be read.
        GgufError: A file is not a usable GGUF file, or not the part that its name says.
    """
    first = _read(parts[0], with_vocabulary=with_vocabulary)
    header = _header(first.size, first.values, first.control_tokens)
    others = list(map(_read, parts[1:]))
    if others:
        _check_parts(first, dict(zip(parts[1:], others, strict=True)))
    return replace(header, size=sum(reader.size for reader in (first, *others)))


def _check_parts(first: _Reader, others: dict[Path, _Reader]) -> None:
    """Check that files are the parts of one model, as far as the first one says what that has.

    Raises:
        DamagedFileError: One is another part, or of another model.
    """
    of_model = {key: first.values[key] for key in (_PARTS, _TENSORS) if key in first.values}
    for number, (file, other) in enumerate(others.items(), 1):
        expected = {**of_model, _NUMBER: number}
        if any(other.values.get(key, value) != value for key, value in expected.items()):
            raise DamagedFileError(f"{file.name} is not the part that its name says")
    if of_model.get(_TENSORS) not in {None, sum(reader.tensors for reader in (first, *others.values()))}:
        raise DamagedFileError("its files are parts of different models")


def _read(file: Path, *, with_vocabulary: bool = False) -> _Reader:
    mode = file.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise GgufError("it is not a file")  # opening a pipe would wait for another program
    with file.open("rb") as stream:
        reader = _Reader(stream, file.stat().st_size, with_vocabulary=with_vocabulary)
        reader.read()
    return reader


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
    """Reads the header at the start of a file, in pieces.

    Attributes:
        size: Size of the file in bytes.
        values: The values of the header that are not lists.
        control_tokens: The tokens that start or end messages; empty without the vocabulary.
        tensors: The number of tensors in the file.
    """

    def __init__(self, stream: IO[bytes], size: int, *, with_vocabulary: bool) -> None:
        self.size = size
        self.values: dict[str, Scalar] = {}
        self.control_tokens: tuple[str, ...] = ()
        self.tensors = 0
        self._stream = stream
        self._with_vocabulary = with_vocabulary
        self._part = bytearray()
        self._at = 0
        self._tokens: list[bytes] = []

    def read(self) -> None:
        """Read all values, and check that the file is as long as its table of tensors says.

        Raises:
            GgufError: It is not a usable GGUF file.
        """
        if self.size < len(_MAGIC) or self._bytes(len(_MAGIC)) != _MAGIC:
            raise DamagedFileError("it is not a GGUF file")
        version = self._number("I")
        if version not in _VERSIONS:
            raise GgufError(f"its version of the GGUF format, {version}, is not supported")
        self.tensors, values = self._number("Q"), self._number("Q")
        for _ in range(values):
            self._read_value(self._text())
        if self.tensors:
            self._check_tensors()

    def _read_value(self, key: str) -> None:
        kind = self._number("I")
        if kind == _TEXT:
            text = self._text()
            if len(text) <= _MAX_TEXT_LENGTH:
                self.values[key] = text
        elif kind == _ARRAY:
            self._read_array(key)
        elif kind in _FORMATS:
            self.values[key] = self._number(_FORMATS[kind])
        else:
            raise DamagedFileError("its header is damaged")

    def _read_array(self, key: str) -> None:
        kind, count = self._number("I"), self._number("Q")
        if kind == _TEXT:
            if self._with_vocabulary and key == "tokenizer.ggml.tokens":
                self._tokens = list(self._texts(count))
            else:
                self._skip_texts(count)
        elif kind in _FORMATS:
            start = self._skip(count * struct.calcsize(f"<{_FORMATS[kind]}"))
            if self._with_vocabulary and key == "tokenizer.ggml.token_type":
                kinds: tuple[int, ...] = struct.unpack_from(f"<{count}{_FORMATS[kind]}", self._part, start)
                controls = (token for token, kind in zip(self._tokens, kinds, strict=False) if kind == _CONTROL)
                self.control_tokens = tuple(token.decode("utf-8", "replace") for token in controls)
        else:
            raise DamagedFileError("its header is damaged")

    def _check_tensors(self) -> None:
        """Read where the weights of each tensor are, and check that the file does not end before them."""
        end = 0
        for _ in range(self.tensors):
            self._text()
            dimensions = self._number("I")
            if dimensions > _MAX_DIMENSIONS:
                raise DamagedFileError("its header is damaged")
            numbers = math.prod(self._number("Q") for _ in range(dimensions))
            kind, offset = self._number("I"), self._number("Q")
            block, size = _BLOCKS.get(kind, (1, 0))
            end = max(end, offset + -(-numbers // block) * size)
        alignment = self.values.get("general.alignment")
        alignment = alignment if isinstance(alignment, int) and alignment > 0 else _DEFAULT_ALIGNMENT
        if self._at + -self._at % alignment + end > self.size:
            raise DamagedFileError(_INCOMPLETE)

    def _number(self, form: str) -> int:
        form = f"<{form}"
        return struct.unpack_from(form, self._part, self._skip(struct.calcsize(form)))[0]

    def _text(self) -> str:
        return self._bytes(self._number("Q")).decode("utf-8", "replace")

    def _bytes(self, length: int) -> bytes:
        start = self._skip(length)
        return bytes(self._part[start : self._at])

    def _texts(self, count: int) -> Iterator[bytes]:
        for _ in range(count):
            yield self._bytes(self._number("Q"))

    def _skip_texts(self, count: int) -> None:
        """Move behind many texts, as fast as there are hundreds of thousands."""
        part, at, unpack = self._part, self._at, struct.Struct("<Q").unpack_from
        while count:
            try:
                for _ in range(count):
                    at += 8 + unpack(part, at)[0]
                    count -= 1
            except struct.error:  # more has to be read
                self._fill(at + 8)
        self._skip(at - self._at)

    def _skip(self, size: int) -> int:
        """Move behind the next bytes; return where they start."""
        start, self._at = self._at, self._at + size
        if self._at > len(self._part):
            self._fill(self._at)
        return start

    def _fill(self, end: int) -> None:
        """Read the file at least up to a position."""
        if end > self.size:
            raise DamagedFileError(_INCOMPLETE)
        if end > _MAX_BYTES:
            raise GgufError("its header is too large")
        while len(self._part) < end:
            piece = self._stream.read(max(_READ_BYTES, end - len(self._part)))
            if not piece:  # it became shorter meanwhile
                raise DamagedFileError(_INCOMPLETE)
            self._part += piece
