"""`loopwright config`, and the settings that runs use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.cli.main import main
from engine.models import keys
from engine.store import open_store
from tests.engine.cli.kit import Program, document, environment, process, refine, write
from tests.engine.wire.server import WireServer


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of settings of the test."""
    monkeypatch.delenv("LOOPWRIGHT_MODEL", raising=False)
    file = tmp_path / "config" / "settings.json"
    monkeypatch.setenv("LOOPWRIGHT_SETTINGS", str(file))
    return file


def stored_options(history_file: Path, run_id: str) -> dict[str, Any]:
    store = open_store(history_file)
    try:
        return dict(store.options(run_id))
    finally:
        store.close()


def test_settings_are_set_read_listed_and_unset(program: Program, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert program("config", "path").out == f"{path}\n"
    assert program("config", "set", "budget_usd", "0.5").code == 0
    assert program("config", "set", "theme", "dark").code == 0
    assert program("config", "get", "budget_usd").out == "0.5\n"
    assert program("config", "get", "theme").out == "dark\n"
    monkeypatch.setenv("LOOPWRIGHT_MODEL", "openai/gpt-5")

    rows = {line.split()[0]: line.split()[1:4] for line in program("config", "list").out.splitlines()}
    listed = program("config", "list", "--json").json

    assert rows["budget_usd"][:2] == ["0.5", "file"]
    assert rows["default_model"] == ["openai/gpt-5", "environment", "(LOOPWRIGHT_MODEL)"]
    assert rows["budget_tokens"][:2] == ["null", "default"]
    assert listed["path"] == str(path)
    assert listed["settings"]["theme"] == {"value": "dark", "source": "file", "variable": "LOOPWRIGHT_THEME"}

    assert program("config", "unset", "theme").code == 0
    assert program("config", "get", "theme").out == "system\n"
    assert "LOOPWRIGHT_MODEL" in program("config", "set", "default_model", "groq/x").err
    assert json.loads(path.read_text()) == {"version": 1, "budget_usd": 0.5, "default_model": "groq/x"}


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("set", "theme", "pink"), ("theme", "'dark'")),
        (("set", "max_iterations_cap", "0"), ("at least 1",)),
        (("set", "budget_usd", "-1"), ("at least 0",)),
        (("set", "servers", '[{"model": "openai/x"}]'), ('"address" of item 1 is missing.',)),
        (("set", "servers", '[{"model": 5, "address": "http://a/v1"}]'), ('"model" of item 1 must be ',)),
        (("set", "servers", '[{"model": "openai/x", "address": "http://a/v1", "extra": 1}]'), ('"extra"',)),
        (("set", "servers", "[5]"), ("Item 1 must be ",)),
        (("set", "servers", "5"), ("Must be a list.",)),
        (("set", "thme", "dark"), ("thme", '"theme"')),
        (("get", "zzzz"), ("budget_usd",)),
        (("unset", "window"), ("window",)),
        (("reset",), ("--yes",)),
    ],
)
def test_wrong_use_is_one_sentence_and_changes_nothing(
    program: Program, path: Path, arguments: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    ended = program("config", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert all(part in ended.err for part in parts)
    assert not path.exists()


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("openai_api_key", "set-key openai"),
        ("ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY"),
        ("mistral-token", "set-key mistral"),
        ("password", "set-key"),
    ],
)
def test_secret_is_refused_with_its_right_place(program: Program, path: Path, key: str, place: str) -> None:
    ended = program("config", "set", key, "sk-very-secret")
    assert ended.code == 2
    assert place in ended.err
    assert "sk-very-secret" not in ended.err
    assert not path.exists()


@pytest.mark.parametrize("field", ["key", "api_key", "API-Key", "token"])
@pytest.mark.parametrize(
    ("address", "place"),
    [("http://localhost:8080/v1", "set-key host:localhost:8080"), ("nowhere", "set-key"), (None, "set-key")],
)
def test_server_with_a_key_is_refused_with_the_right_place(
    program: Program, path: Path, field: str, address: str | None, place: str
) -> None:
    server = {"model": "openai/x", "address": address, field: "sk-1"}
    ended = program("config", "set", "servers", json.dumps([server]))
    assert (ended.code, ended.out) == (2, "")
    assert place in ended.err
    assert "sk-1" not in ended.err
    assert not path.exists()


def test_group_without_a_command_shows_its_help_alone(program: Program) -> None:
    ended = program("config")
    assert (ended.code, ended.err) == (2, "")
    assert "unset" in ended.out


def test_reset_keeps_what_the_window_remembers(program: Program, path: Path) -> None:
    path.parent.mkdir()
    path.write_text('{"theme": "dark", "window": {"learned": ["tour"]}}')
    assert program("config", "reset", "--yes").code == 0
    assert json.loads(path.read_text()) == {"version": 1, "window": {"learned": ["tour"]}}

    path.write_text("{")
    assert "settings.broken.json" in program("config", "reset", "-y").out
    assert json.loads(path.read_text()) == {"version": 1}


def test_run_uses_model_budgets_and_cap_of_the_settings(
    program: Program, path: Path, tmp_path: Path, history_file: Path
) -> None:
    file, script = write(tmp_path, refine(9)), write(tmp_path, {"default": "words"}, "script.json")
    settings = {"default_model": f"scripted:{script}", "budget_tokens": 90_000, "max_iterations_cap": 2}
    path.parent.mkdir()
    path.write_text(json.dumps({**settings, "budget_usd": 1.5}))

    result = program("run", file, "--json").json

    assert result["loops"]["loop"]["iterations_run"] == 2
    assert stored_options(history_file, result["run_id"]).items() >= {**settings, "budget_usd": 1.5}.items()


def test_options_beat_the_environment_which_beats_the_document_and_the_file(
    program: Program, path: Path, tmp_path: Path, history_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = write(tmp_path, {"default": "words"}, "script.json")
    path.parent.mkdir()
    path.write_text(json.dumps({"max_iterations_cap": 2, "budget_tokens": 90_000, "budget_usd": 3.0}))
    monkeypatch.setenv("LOOPWRIGHT_MAX_ITERATIONS_CAP", "3")
    monkeypatch.setenv("LOOPWRIGHT_MODEL", f"scripted:{script}")
    plain = write(tmp_path, refine(9))
    limited = write(tmp_path, {**refine(9), "settings": {"budget_tokens": 80_000}}, "limited.loop.json")

    from_environment = program("run", plain, "--json").json
    from_option = program("run", limited, "--json", "--max-iterations-cap", 4, "--budget-usd", 2).json

    assert [one["loops"]["loop"]["iterations_run"] for one in (from_environment, from_option)] == [3, 4]
    options = stored_options(history_file, from_option["run_id"])
    assert (options["budget_usd"], options["budget_tokens"]) == (2.0, 80_000)
    assert stored_options(history_file, from_environment["run_id"])["budget_tokens"] == 90_000


def test_resumed_run_keeps_its_own_options(program: Program, path: Path, tmp_path: Path, history_file: Path) -> None:
    file, script = write(tmp_path, refine(4)), write(tmp_path, {"default": "words"}, "script.json")
    first = program("run", file, "--json", "--model", f"scripted:{script}", "--budget-tokens", 5000).json
    path.parent.mkdir()
    path.write_text('{"default_model": "openai/none", "budget_tokens": 1}')

    forked = program("runs", "fork", first["run_id"], "--at", "loop[2]", "--yes", "--json").json

    assert forked["status"] == "completed"
    assert stored_options(history_file, forked["run_id"])["budget_tokens"] == 5000


def test_batch_rows_have_the_budget_of_the_settings(program: Program, path: Path, tmp_path: Path) -> None:
    script = write(tmp_path, {"default": "words"}, "script.json")
    path.parent.mkdir()
    path.write_text(json.dumps({"default_model": f"scripted:{script}", "budget_tokens": 1}))
    table = tmp_path / "rows.csv"
    table.write_text("task\na\nb\n")
    file = write(tmp_path, refine(2))

    assert program("batch", file, table, "--json").json["summary"]["failed"] == 2
    ended = program("batch", file, table, "--json", "--budget-tokens", 50_000, "--name", "more")
    assert ended.json["summary"]["completed"] == 2


def test_model_on_the_users_own_server_runs(program: Program, path: Path, tmp_path: Path, wire: WireServer) -> None:
    servers = [{"model": "openai/plain", "address": wire.base_url}]
    path.parent.mkdir()
    path.write_text(json.dumps({"servers": servers, "default_model": "openai/plain"}))
    nodes = [{"id": "draft", "type": "llm", "config": {"prompt": "Hello."}}, {"id": "answer", "type": "output"}]
    file = write(tmp_path, document(nodes, ["draft.output > answer.value"]))

    ended = program("run", file, "--json")

    assert ended.json["status"] == "completed", ended.err
    assert wire.requests
    assert "openai/plain  " in program("models", "--filter", "custom server").out


def test_invalid_environment_stops_a_run_and_an_invalid_file_does_not(
    program: Program, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = write(tmp_path, {"default": "words"}, "script.json")
    run = ("run", write(tmp_path, refine(1)), "--model", f"scripted:{script}", "--no-store")
    path.parent.mkdir()
    for content in ("{", '{"budget_usd": "much"}'):
        path.write_text(content)
        ended = program(*run)
        assert ended.code == 0
        assert ended.err.startswith("Warning: ")
        assert ended.err.count("Warning") == 1
        assert path.read_text() == content
    path.unlink()

    monkeypatch.setenv("LOOPWRIGHT_BUDGET_USD", "1,50")
    ended = program(*run)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("LOOPWRIGHT_BUDGET_USD") == 1


def test_invalid_setting_of_the_window_does_not_concern_a_run(
    program: Program, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = write(tmp_path, {"default": "words"}, "script.json")
    path.parent.mkdir()
    path.write_text('{"theme": "purple"}')
    monkeypatch.setenv("LOOPWRIGHT_TEXT_SCALE", "abc")
    ended = program("run", write(tmp_path, refine(1)), "--model", f"scripted:{script}", "--no-store")
    assert (ended.code, "Warning" in ended.err) == (0, False)
    assert "LOOPWRIGHT_TEXT_SCALE" in program("config", "list").err


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("scripted:replies.json", "scripted:{folder}/replies.json"),
        ("gguf:./mine.gguf", "gguf:{folder}/mine.gguf"),
        ("gguf:mine", "gguf:mine"),
        ("gguf:/models/mine.gguf", "gguf:/models/mine.gguf"),
        ("openai/x", "openai/x"),
        ("null", "null"),
    ],
)
def test_default_model_in_a_file_does_not_depend_on_the_current_folder(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert program("config", "set", "default_model", model).code == 0
    assert program("config", "get", "default_model").out == f"{expected.format(folder=tmp_path)}\n"


def test_validate_uses_the_cap_of_the_settings(program: Program, path: Path, tmp_path: Path) -> None:
    file = write(tmp_path, refine(60))
    assert "iterations-clamped" in json.dumps(program("validate", file, "--json").json)
    program("config", "set", "max_iterations_cap", 60)
    assert "iterations-clamped" not in json.dumps(program("validate", file, "--json").json)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("config set budget_", ["budget_usd", "budget_tokens"]),
        ("config set theme d", ["dark"]),
        ("config set notify_when_done t", ["true"]),
        ("config unset keep_r", ["keep_runs"]),
        ("config set default_model embedded", ["embedded:smollm2-135m"]),
        ("run x --model embedded", ["embedded:smollm2-135m"]),
        ("batch x --model openai/gpt-4o-mini-2024-0", ["openai/gpt-4o-mini-2024-07-18"]),
        ("run self-refine --until dr", ["draft"]),
        ("run - --until dr", []),
    ],
)
def test_shell_completes_settings_and_their_values(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: str, expected: list[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789")
    monkeypatch.setattr(keys, "read_secret", lambda *_: pytest.fail("completion asks no keyring"))
    monkeypatch.setenv("_LOOPWRIGHT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"loopwright {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
    with pytest.raises(SystemExit):
        main([])
    assert capsys.readouterr().out.split() == expected


def test_settings_of_a_process_are_those_of_the_next(path: Path) -> None:
    own = environment(LOOPWRIGHT_SETTINGS=str(path))
    assert process("config", "set", "budget_usd", "0.5", env=own).returncode == 0
    assert process("config", "get", "budget_usd", env=own).stdout == b"0.5\n"
