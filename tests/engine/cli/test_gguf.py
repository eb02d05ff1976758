"""Models in GGUF files on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.models.demo_weights import find_weights
from tests.engine.cli.kit import Program, refine, write
from tests.engine.models.gguf_writer import language_model, write_header


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with downloaded models."""
    folder = tmp_path / "models"
    folder.mkdir()
    monkeypatch.setenv("LOOPWRIGHT_MODELS_FOLDER", str(folder))
    return folder


def test_loop_runs_with_a_file_for_free_within_budgets(program: Program, tmp_path: Path, folder: Path) -> None:
    (folder / "Tiny-Chat.gguf").symlink_to(find_weights())
    workflow = refine(2)
    workflow["nodes"][2]["config"]["max_tokens"] = 6

    ended = program(
        *("run", write(tmp_path, workflow), "-m", "gguf:tiny-chat", "--json"),
        *("--budget-usd", 0, "--budget-tokens", 1000),
    )

    assert ended.code == 0, ended.err
    assert ended.json["loops"]["loop"]["iterations_run"] == 2
    assert ended.json["cost_usd"] == 0
    assert 2 <= ended.json["usage"]["output_tokens"] <= 12

    ended = program("run", tmp_path / "w.loop.json", "-m", "gguf:tiny-chat", "--json", "--budget-tokens", 5)
    assert (ended.code, ended.json["usage"]["output_tokens"]) == (1, 0)
    assert "budget" in ended.json["error"]


def test_call_that_needs_more_tokens_than_the_budget_is_not_made(
    program: Program, tmp_path: Path, folder: Path
) -> None:
    (folder / "Tiny-Chat.gguf").symlink_to(find_weights())
    workflow = refine(1)
    workflow["nodes"][2]["config"].update(max_tokens=6, prompt='{"a": [1, 2, 3], "b": {"c": null}}, ' * 40)
    run = ("run", write(tmp_path, workflow), "-m", "gguf:tiny-chat", "--json", "--budget-tokens")

    ended = program(*run, 800)  # enough for a token of three bytes
    assert (ended.code, ended.json["usage"]["input_tokens"]) == (1, 0)
    assert "budget" in ended.json["error"]
    ended = program(*run, 1000)
    assert ended.code == 0
    assert 800 < ended.json["usage"]["input_tokens"] < 1000


def test_context_length_of_the_settings_applies_and_the_environment_wins(
    program: Program, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "Tiny-Chat.gguf").symlink_to(find_weights())
    settings = tmp_path / "settings.json"
    settings.write_text('{"gguf_context_tokens": 1000000, "default_model": "gguf:tiny-chat"}')
    monkeypatch.setenv("LOOPWRIGHT_SETTINGS", str(settings))
    monkeypatch.delenv("LOOPWRIGHT_MODEL", raising=False)
    run = ("run", write(tmp_path, refine(1)), "--no-store")

    ended = program(*run)
    assert "1,000,000 tokens" in ended.err
    assert "loopwright config set gguf_context_tokens VALUE" in " ".join(ended.err.split())
    monkeypatch.setenv("LOOPWRIGHT_GGUF_CONTEXT_TOKENS", "2000000")
    assert "2,000,000 tokens" in program(*run).err


def test_models_lists_files_with_their_figures(program: Program, folder: Path) -> None:
    write_header(folder / "Tiny.gguf", language_model("Tiny Chat"))

    (listed,) = program("models", "--filter", "gguf:tiny", "--json").json["models"]

    assert (listed["available"], listed["context_tokens"], listed["input_usd_per_million_tokens"]) == (True, 2048, 0)
    assert "Tiny Chat, 1B, Q4_K_M" in listed["note"]
    assert "gguf:tiny" in program("models", "--filter", "gguf").out


@pytest.mark.parametrize("name", ["gguf:none", "gguf:/no/such/file.gguf"])
def test_missing_file_fails_the_run_with_a_remedy(program: Program, tmp_path: Path, name: str) -> None:
    file = write(tmp_path, refine(1))
    ended = program("run", file, "-m", name)
    assert ended.code == 1
    assert "loopwright models" in ended.err
    assert "Traceback" not in ended.err


def test_document_that_names_a_path_needs_approval_and_one_with_a_name_does_not(
    program: Program, tmp_path: Path
) -> None:
    by_path = write(tmp_path, {**refine(1), "settings": {"model": "gguf:/no/such/file.gguf"}})
    ended = program("run", by_path)
    assert ended.code == 2
    assert "gguf:/no/such/file.gguf" in ended.err

    by_name = write(tmp_path, {**refine(1), "settings": {"model": "gguf:none"}}, "other.loop.json")
    assert program("run", by_name).code == 1


def problems(program: Program, file: Path) -> list[tuple[str, str, str]]:
    listed = program("validate", file, "--json").json["files"][0]["problems"]
    return [(problem["severity"], problem["code"], problem["fix"]) for problem in listed]


def test_validate_warns_of_a_missing_file_but_looks_at_no_path(
    program: Program, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_name = write(tmp_path, {**refine(1), "settings": {"model": "gguf:tiny"}})
    by_path = write(tmp_path, {**refine(1), "settings": {"model": "gguf:/no/file.gguf"}}, "other.loop.json")
    by_default = write(tmp_path, refine(1), "default.loop.json")
    missing = ("warning", "missing-model-file", "choose_model")

    found = problems(program, by_name)
    assert found
    assert set(found) == {missing}
    assert problems(program, by_path) == []
    monkeypatch.setenv("LOOPWRIGHT_MODEL", "gguf:/no/file.gguf")  # the user's own
    assert set(problems(program, by_default)) == {missing}
    write_header(folder / "Tiny.gguf", language_model())
    assert problems(program, by_name) == []


@pytest.mark.parametrize("name", ["gguf:none", "gguf:/no/such/file.gguf"])
def test_batch_with_a_missing_file_starts_no_row(program: Program, tmp_path: Path, name: str) -> None:
    table = tmp_path / "t.csv"
    table.write_text("task\none\ntwo\n")

    ended = program("batch", write(tmp_path, refine(1)), table, "-m", name)

    assert ended.code == 2
    assert "loopwright models" in ended.err
    assert program("runs", "--json").json["runs"] == []


def test_batch_uses_the_fallback_of_a_missing_file(program: Program, tmp_path: Path) -> None:
    workflow = refine(1)
    workflow["nodes"][2]["config"] |= {"model": "gguf:none", "fallback_models": ["embedded:smollm2-135m"]}
    assert problems(program, write(tmp_path, workflow)) == []
