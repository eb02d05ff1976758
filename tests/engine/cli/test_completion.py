"""Completion in the shell of what documents and files name, which must stay inert in every shell."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from engine.cli.main import main
from tests.engine.cli.kit import document, environment, process

Captured = pytest.CaptureFixture[str]
HOSTILE = ("\\$(touch x)", "\\`touch x\\`", "'; touch x; '", '"; touch x; "', "a\nb\x1b[31m", "[/bold]", "%F{red}")


def complete(capsys: Captured, monkeypatch: pytest.MonkeyPatch, shell: str, words: str) -> str:
    monkeypatch.setenv("_LOOPWRIGHT_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", f"loopwright {words}")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    monkeypatch.setenv("COMP_WORDS", f"loopwright {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(f"{words}x".split())))
    with pytest.raises(SystemExit):
        main([])
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


@pytest.mark.parametrize("shell", ["zsh", "bash", "fish"])
def test_titles_and_ids_of_a_hostile_document_have_no_meaning_to_a_shell(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shell: str
) -> None:
    titled = [{"id": f"n{index}", "type": "output", "title": title} for index, title in enumerate(HOSTILE)]
    named = [{"id": f"n{text}", "type": "output", "title": ""} for text in HOSTILE]
    file = tmp_path / "hostile.loopwright"
    file.write_text(json.dumps(document([*titled, *named], [])), "utf-8")
    out = complete(capsys, monkeypatch, shell, f"run {file} --until n")
    assert all(f"n{index}" in out for index in range(len(HOSTILE)))
    written = out.removeprefix("_arguments '*: :((").rstrip().removesuffix("))'")
    assert not set("\\$`'[]%\x1b") & set(written)
    assert written.count('"') == (4 * len(HOSTILE) if shell == "zsh" else 0)


def test_a_subflow_whose_file_is_missing_disturbs_nothing(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "w.loopwright"
    file.write_text(json.dumps(document([{"id": "sub", "type": "subflow", "config": {"file": "none.json"}}], [])))
    assert complete(capsys, monkeypatch, "bash", f"run {file} --until s") == "sub\n"


def test_a_path_in_the_home_folder_is_found(capsys: Captured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "w.loopwright").write_text(json.dumps(document([{"id": "one", "type": "output"}], [])))
    assert complete(capsys, monkeypatch, "bash", "run ~/w.loopwright --until o") == "one\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("run", "x", "--model", "embedded", ":", "smo"), "smollm2-135m"),
        (("run", "x", "--model", "embedded", ":", ""), "smollm2-135m"),
        (("run", "x", "--model", "embedded", ":"), "smollm2-135m"),
        (("run", "x", "--model", "=", "embedded", ":"), "smollm2-135m"),
        (("run", "x", "--model", "=", "embedded", ":", "s"), "smollm2-135m"),
        (("run", "x", "--model", "=", "emb"), "embedded:smollm2-135m"),
        (("run", "-i", "a", "=", "b", "self-refine", "--until", "dr"), "draft"),
        (("run", "self-refine", "--until", "=", "dr"), "draft"),
    ],
)
def test_words_that_bash_splits_are_completed_in_part(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], expected: str
) -> None:
    monkeypatch.setenv("_LOOPWRIGHT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "\n".join(("loopwright", *words)))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    with pytest.raises(SystemExit):
        main([])
    assert capsys.readouterr().out == f"{expected}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="the user's folder has no variable HOME there")
@pytest.mark.parametrize(
    ("shell", "file"),
    [
        ("bash", ".bash_completions/loopwright.sh"),
        ("zsh", ".zfunc/_loopwright"),
        ("fish", ".config/fish/completions/loopwright.fish"),
    ],
)
def test_shell_is_set_up_to_ask_the_program(tmp_path: Path, shell: str, file: str) -> None:
    # The shell is an argument then, and not the one that runs the tests.
    variables = environment(HOME=str(tmp_path), _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")

    ended = process("--install-completion", shell, env=variables)

    assert (ended.returncode, ended.stderr) == (0, b"")
    assert f"_LOOPWRIGHT_COMPLETE=complete_{shell}" in (tmp_path / file).read_text("utf-8")
