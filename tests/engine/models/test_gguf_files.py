"""GGUF files on this computer: of the program, LM Studio and Ollama, and how workflows name them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.models.catalog import check_model_name
from engine.models.gguf_files import find_gguf, gguf_files, list_gguf_models, models_folder
from engine.models.protocol import ModelError, ModelErrorKind, is_gguf_path, reads_this_machine
from tests.engine.models.gguf_writer import language_model, write_header, write_ollama_model
from tests.wording import mentions

DIGEST = "0123456789abcdef" * 4


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of the user."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("LOOPWRIGHT_MODELS_FOLDER", str(tmp_path / "downloaded"))
    monkeypatch.setenv("OLLAMA_MODELS", str(home / ".ollama" / "models"))
    return home


def names() -> dict[str, str]:
    return {file.model: file.source for file in gguf_files()}


def header(**more: str | int) -> bytes:
    """The content of a small file."""
    return write_header(models_folder().parent / "header.tmp", language_model(**more)).read_bytes()


def error_of(model: str) -> ModelError:
    with pytest.raises(ModelError) as caught:
        find_gguf(model)
    return caught.value


def test_without_files_the_list_is_empty() -> None:
    assert gguf_files() == []
    assert list_gguf_models() == []


def test_files_of_all_programs_are_found(home: Path) -> None:
    mine = write_header(models_folder() / "Mine-Q4_K_M.gguf", language_model())
    write_header(home / ".lmstudio/models/maker/Chat-GGUF/Chat-7B-Q8_0.gguf", language_model())
    write_header(home / ".cache/lm-studio/models/maker/Old-GGUF/old.GGUF", language_model())
    folder = home / ".ollama/models"
    for place, digest in (
        ("registry.ollama.ai/library/llama3.2/1b", DIGEST),
        ("registry.ollama.ai/jane/mine/latest", DIGEST[::-1]),
        ("hub.example/maker/Chat-GGUF/Q8_0", DIGEST[1:] + "0"),
    ):
        write_ollama_model(folder, place, digest, header())

    assert names() == {
        "gguf:mine-q4_k_m": "Downloaded",
        "gguf:chat-7b-q8_0": "LM Studio",
        "gguf:old": "LM Studio",
        "gguf:hub.example/maker/Chat-GGUF:Q8_0": "Ollama",
        "gguf:jane/mine:latest": "Ollama",
        "gguf:llama3.2:1b": "Ollama",
    }
    for name in names():
        check_model_name(name)
        assert not reads_this_machine(name)
        assert find_gguf(name).is_file()
    assert find_gguf("gguf:MINE-q4_k_m") == mine
    assert find_gguf("gguf:llama3.2:1b").name == f"sha256-{DIGEST}"
    assert find_gguf("gguf:jane/mine").name == f"sha256-{DIGEST[::-1]}"


def test_first_file_of_a_name_counts(home: Path) -> None:
    write_header(home / ".lmstudio/models/a/b/Same.gguf", language_model())
    mine = write_header(models_folder() / "same.gguf", language_model())
    assert names() == {"gguf:same": "Downloaded"}
    assert find_gguf("gguf:same") == mine


@pytest.mark.parametrize("pointer", ["elsewhere", "", "a\0b", "relative"])
def test_lm_studio_may_be_in_another_folder(home: Path, pointer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    write_header(home / "elsewhere/models/maker/Chat/Chat.gguf", language_model())
    write_header(home / "relative/models/maker/Chat/Other.gguf", language_model())
    is_valid = pointer == "elsewhere"
    (home / ".lmstudio-home-pointer").write_text(f"{home / pointer}\n" if is_valid else pointer)
    assert names() == ({"gguf:chat": "LM Studio"} if is_valid else {})


def test_linked_folders_are_searched_once(home: Path, tmp_path: Path) -> None:
    folder = home / ".lmstudio/models"
    linked = write_header(tmp_path / "disk/P/Linked.gguf", language_model())
    folder.mkdir(parents=True)
    (folder / "maker").symlink_to(tmp_path / "disk", target_is_directory=True)
    (tmp_path / "disk/P/back").symlink_to(folder, target_is_directory=True)

    assert [file.path for file in gguf_files()] == [folder / "maker/P/Linked.gguf"]
    assert find_gguf("gguf:linked").samefile(linked)


def test_list_has_headers_and_leaves_out_what_writes_no_text() -> None:
    write_header(models_folder() / "A.gguf", language_model("A"))
    write_header(models_folder() / "mmproj-a.gguf", language_model())
    write_header(models_folder() / "MMPROJ-b.gguf", language_model())
    write_header(models_folder() / "embed.gguf", {"general.architecture": "nomic-bert"})
    write_header(models_folder() / "half.gguf.part", language_model())
    (models_folder() / "broken.gguf").write_bytes(b"<html>")

    a, broken = list_gguf_models()

    assert a.header is not None
    assert (a.file.model, a.header.name, a.problem) == ("gguf:a", "A", "")
    assert (broken.file.model, broken.header) == ("gguf:broken", None)
    assert mentions(broken.problem, "broken.gguf cannot be used: … not a GGUF file")


def test_beginning_of_a_file_is_not_ready(home: Path) -> None:
    whole = write_header(home / "whole.gguf", language_model(**{"tokenizer.ggml.tokens": ["a"] * 500}))
    models_folder().mkdir()
    (models_folder() / "cut.gguf").write_bytes(whole.read_bytes()[:2_000])

    (cut,) = list_gguf_models()
    assert cut.header is None
    assert "incomplete" in cut.problem


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
def test_pipe_is_not_waited_for(tmp_path: Path) -> None:
    models_folder().mkdir()
    os.mkfifo(models_folder() / "Pipe.gguf")
    (models_folder() / "Dangling.gguf").symlink_to(tmp_path / "none.gguf")
    assert ["not a file" in entry.problem for entry in list_gguf_models()] == [False, True]


def test_file_that_lost_its_end_is_not_ready() -> None:
    file = write_header(models_folder() / "cut.gguf", language_model(), tensors=[((1_000,), 0, 0)])
    os.truncate(file, 5_000)
    assert list_gguf_models()[0].header is not None

    os.truncate(file, 3_000)
    (cut,) = list_gguf_models()
    assert cut.header is None
    assert "incomplete" in cut.problem


def test_model_with_an_incomplete_part_is_not_ready() -> None:
    parts = [models_folder() / f"Big-0000{number}-of-00002.gguf" for number in (1, 2)]
    write_header(parts[0], language_model("Big"))
    write_header(parts[1], {"split.no": 1}, tensors=[((1_000,), 0, 0)])
    os.truncate(parts[1], 3_000)

    (big,) = list_gguf_models()
    assert big.header is None
    assert "incomplete" in big.problem
    os.truncate(parts[1], 5_000)
    assert list_gguf_models()[0].header is not None


def test_model_with_another_part_in_the_place_of_one_is_not_ready() -> None:
    parts = [models_folder() / f"Big-0000{number}-of-00003.gguf" for number in (1, 2, 3)]
    write_header(parts[0], language_model("Big"))
    for number in (1, 2):
        write_header(parts[number], {"split.no": number})
    assert list_gguf_models()[0].header is not None
    parts[2].replace(parts[1])
    write_header(parts[2], {"split.no": 2})

    (big,) = list_gguf_models()
    assert (big.header, parts[1].name in big.problem) == (None, True)


def test_model_in_several_files_is_one() -> None:
    parts = [
        write_header(models_folder() / f"Big-0000{number}-of-00003.gguf", language_model("Big")) for number in (1, 2, 3)
    ]
    (big,) = list_gguf_models()
    assert big.header is not None
    assert (big.file.model, big.file.path) == ("gguf:big", parts[0])
    assert big.header.size == sum(part.stat().st_size for part in parts)

    parts[2].unlink()
    assert "1 of its 3 parts is missing" in list_gguf_models()[0].problem


@pytest.mark.parametrize(
    "manifest",
    ["", "[]", "{}", '{"layers": 5}', '{"layers": [5, {}]}', '{"layers": [{"mediaType": "x", "digest": 1}]}'],
)
def test_damaged_manifest_is_left_out(home: Path, manifest: str) -> None:
    write_ollama_model(home / ".ollama/models", "registry.ollama.ai/library/good/latest", DIGEST, header())
    (home / ".ollama/models/manifests/registry.ollama.ai/library/good/bad").write_text(manifest)
    assert list(names()) == ["gguf:good:latest"]


def test_manifest_cannot_name_another_file(home: Path) -> None:
    folder = home / ".ollama/models"
    write_ollama_model(folder, "registry.ollama.ai/library/evil/latest", "../../secret", header())
    assert names() == {}


def test_manifest_without_its_blob_is_left_out(home: Path) -> None:
    blob = write_ollama_model(home / ".ollama/models", "registry.ollama.ai/library/gone/latest", DIGEST, header())
    blob.unlink()
    assert names() == {}


@pytest.mark.parametrize(
    ("model", "is_path"),
    [
        ("gguf:~/models/a", True),
        ("gguf:/models/a", True),
        ("gguf:./a", True),
        ("gguf:models/A.GGUF", True),
        ("gguf:C:\\models\\a", True),
        ("gguf:\\\\server\\a", True),
        ("gguf:qwen2.5:7b", False),
        ("gguf:maker/model:7b", False),
        ("openai/model.gguf", False),
    ],
)
def test_paths_and_names(model: str, is_path: bool) -> None:
    assert is_gguf_path(model) is is_path
    assert reads_this_machine(model) is is_path


def test_path_may_start_with_the_users_folder(home: Path) -> None:
    file = write_header(home / "models" / "a.gguf", language_model())
    assert find_gguf("gguf:~/models/a.gguf") == file


def test_path_of_any_part_is_that_of_the_first(tmp_path: Path) -> None:
    first, second = (write_header(tmp_path / f"Big-0000{number}-of-00002.gguf", language_model()) for number in (1, 2))
    assert find_gguf(f"gguf:{second}") == find_gguf(f"gguf:{first}") == first


def test_missing_model_has_a_suggestion() -> None:
    write_header(models_folder() / "qwen-7b.gguf", language_model())

    error = error_of("gguf:qwen-8b")

    assert error.kind is ModelErrorKind.NOT_FOUND
    assert '"gguf:qwen-7b"' in error.remedy
    assert error.fix == "choose_model"


@pytest.mark.parametrize(
    ("name", "reason"),
    [("none.gguf", "does not exist"), ("", "is a folder"), ("a\0b.gguf", "does not exist")],
)
def test_missing_file_is_named(tmp_path: Path, name: str, reason: str) -> None:
    error = error_of(f"gguf:{tmp_path}/{name}")
    assert error.kind is ModelErrorKind.NOT_FOUND
    assert reason in error.message
    assert str(tmp_path) in error.message


def test_folder_for_downloads_may_start_with_the_users_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPWRIGHT_MODELS_FOLDER", "~/models")
    assert models_folder() == home / "models"


def test_unknown_user_in_a_path_is_no_crash() -> None:
    assert error_of("gguf:~no-such-user-at-all/a.gguf").kind is ModelErrorKind.NOT_FOUND
