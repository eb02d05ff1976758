"""Headers of GGUF files: of the demo model, and of small files that are well-formed or damaged."""

from __future__ import annotations

import contextlib
import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.models.demo_weights import find_weights
from engine.models.gguf_header import DamagedFileError, GgufError, GgufHeader, read_header
from tests.engine.models.gguf_writer import language_model, write_header


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "model.gguf"


def test_header_of_a_real_model() -> None:
    header = read_header(find_weights(), with_vocabulary=True)

    assert (header.architecture, header.context_tokens, header.quantization) == ("llama", 8192, "Q4_1")
    assert (header.size_label, header.size, header.writes_text) == ("135M", 98_362_432, True)
    assert header.has_chat_template
    assert {"<|im_start|>", "<|im_end|>", "<|endoftext|>"} <= set(header.control_tokens)
    assert "the" not in header.control_tokens
    assert read_header(find_weights()).context_tokens == 8192


def test_summary_names_model_parameters_quantization_and_size(file: Path) -> None:
    write_header(file, language_model("Tiny Chat"))
    assert read_header(file).summary == f"Tiny Chat, 1B, Q4_K_M, {file.stat().st_size} bytes"
    write_header(file, language_model("Tiny 1B Chat", **{"general.file_type": 4}))
    assert read_header(file).summary == f"Tiny 1B Chat, {file.stat().st_size} bytes"


@pytest.mark.parametrize(
    ("entries", "writes_text"),
    [
        ({}, True),
        ({"general.type": "model"}, True),
        ({"general.type": "adapter"}, False),
        ({"general.type": "mmproj"}, False),
        ({"general.architecture": "clip"}, False),
        ({"general.architecture": "bert"}, False),
        ({"general.architecture": "nomic-bert-moe"}, False),
        ({"llama.pooling_type": 3}, False),
    ],
)
def test_only_language_models_write_text(file: Path, entries: dict[str, str | int], writes_text: bool) -> None:
    assert read_header(write_header(file, language_model(**entries))).writes_text is writes_text


def test_control_tokens_are_those_of_that_type(file: Path) -> None:
    vocabulary = {"tokenizer.ggml.tokens": ["a", "<|end|>", "é"], "tokenizer.ggml.token_type": [1, 3, 3]}
    write_header(file, language_model(**vocabulary))

    assert read_header(file, with_vocabulary=True).control_tokens == ("<|end|>", "é")
    assert read_header(file).control_tokens == ()


def test_names_have_no_control_characters(file: Path) -> None:
    write_header(file, language_model("A\n\x1b[31mB\ud800" + "x" * 500))
    name = read_header(file).name
    assert name.startswith("A [31mB")
    assert name.isprintable()
    assert len(name) == 100


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not a GGUF file"),
        (b"PK\3\4 an archive", "not a GGUF file"),
        (b"GGUF", "it is incomplete or damaged"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "GGUF format, 1, is not supported"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "is not supported"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 0), "does not name the architecture"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**63, 2**64 - 1), "it is incomplete or damaged"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**64 - 1), "it is incomplete or damaged"),
        (b"GGUF" + struct.pack("<IQQQcI", 3, 0, 1, 1, b"k", 99), "its header is damaged"),
        (b"GGUF" + struct.pack("<IQQQcIIQ", 3, 0, 1, 1, b"k", 9, 9, 5), "its header is damaged"),
        (b"GGUF" + struct.pack("<IQQQcIIQ", 3, 0, 1, 1, b"k", 9, 12, 2**61), "it is incomplete or damaged"),
        (b"GGUF" + struct.pack("<IQQQcIIQ", 3, 0, 1, 1, b"k", 9, 8, 2**64 - 1), "it is incomplete or damaged"),
        (b"GGUF" + struct.pack("<IQQQcI", 3, 1, 0, 1, b"k", 2**32 - 1), "its header is damaged"),
        (b"GGUF" + struct.pack("<IQQQcIQIQ", 3, 1, 0, 1, b"k", 1, 2**63, 0, 2**63), "it is incomplete or damaged"),
    ],
)
def test_unusable_file_has_a_reason(file: Path, content: bytes, reason: str) -> None:
    file.write_bytes(content)
    with pytest.raises(GgufError, match=reason):
        read_header(file, with_vocabulary=True)


def test_every_cut_of_a_header_is_noticed(file: Path) -> None:
    vocabulary = {"tokenizer.ggml.tokens": ["a", "b"], "tokenizer.ggml.token_type": [1, 3]}
    content = write_header(file, language_model(**vocabulary)).read_bytes()
    for length in range(len(content)):
        file.write_bytes(content[:length])
        with pytest.raises(GgufError):
            read_header(file, with_vocabulary=True)


@pytest.mark.parametrize(
    ("tensors", "weights"),
    [
        ([((2, 3), 0, 0)], 24),
        ([((256, 2), 12, 0)], 288),
        ([((32, 4), 8, 0), ((10,), 1, 160)], 180),
        ([((32, 4), 8, 64), ((10,), 1, 0)], 200),
        ([((2, 3), 0, 0), ((10,), 99, 640)], 640),
        ([((), 0, 0)], 4),
    ],
)
@pytest.mark.parametrize(("alignment", "more"), [(32, {}), (256, {"general.alignment": 256})])
def test_file_that_ends_before_its_weights_is_incomplete(
    file: Path, tensors: list[tuple[tuple[int, ...], int, int]], weights: int, alignment: int, more: dict[str, int]
) -> None:
    header = write_header(file, language_model(**more), tensors=tensors).stat().st_size
    complete = header + -header % alignment + weights
    os.truncate(file, complete)

    assert read_header(file).size == complete
    os.truncate(file, complete - 1)
    with pytest.raises(GgufError, match="incomplete"):
        read_header(file)


def test_half_of_a_real_model_is_incomplete(file: Path) -> None:
    size = find_weights().stat().st_size
    with find_weights().open("rb") as stream:
        file.write_bytes(stream.read(4_000_000))  # the header, and some weights
    os.truncate(file, size)
    assert read_header(file).size == size
    os.truncate(file, size // 2)
    with pytest.raises(GgufError, match="incomplete"):
        read_header(file)


def test_part_that_only_has_weights_is_checked_too(file: Path) -> None:
    first = write_header(file.with_name("first.gguf"), language_model())
    header = write_header(file, {"split.no": 1}, tensors=[((64,), 0, 0)]).stat().st_size
    os.truncate(file, header + 32 + 256)
    assert read_header(first, file).size == first.stat().st_size + file.stat().st_size
    os.truncate(file, header + 100)
    with pytest.raises(GgufError, match="incomplete"):
        read_header(first, file)


@pytest.mark.parametrize(
    ("foreign", "tensors", "reason"),
    [
        ({"split.no": 1}, 2, ""),
        ({"split.no": 0}, 2, "second.gguf"),
        ({"split.count": 3}, 2, "second.gguf"),
        ({"split.tensors.count": 4}, 2, "second.gguf"),
        ({}, 1, "different models"),
    ],
)
def test_part_of_another_model_is_noticed(file: Path, foreign: dict[str, int], tensors: int, reason: str) -> None:
    split = {"split.count": 2, "split.tensors.count": 3}
    first = write_header(file.with_name("first.gguf"), language_model(**split), tensors=[((0,), 0, 0)])
    second = {**split, "split.no": 1, **foreign}
    part = write_header(file.with_name("second.gguf"), second, tensors=[((0,), 0, 0)] * tensors)
    for each in (first, part):
        os.truncate(each, 1_000)
    if reason:
        with pytest.raises(DamagedFileError, match=reason):
            read_header(first, part)
    else:
        assert read_header(first, part).size == 2_000


@given(st.binary(max_size=200), st.integers(0, 150))
def test_damage_never_raises_another_error(tmp_path_factory: pytest.TempPathFactory, noise: bytes, at: int) -> None:
    file = tmp_path_factory.getbasetemp() / f"noise-{os.getpid()}.gguf"
    content = write_header(file, language_model()).read_bytes()
    file.write_bytes(content[:at] + noise + content[at + len(noise) :])
    with contextlib.suppress(GgufError):
        assert isinstance(read_header(file, with_vocabulary=True), GgufHeader)


def test_folder_and_missing_file_are_errors_of_the_system(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.gguf"):
        with pytest.raises(OSError, match=r"Is a directory|No such file"):
            read_header(path)
