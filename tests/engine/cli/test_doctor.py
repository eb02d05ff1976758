from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import engine
from engine.cli.main import main
from engine.models.protocol import EMBEDDED_MODEL
from engine.store import open_store
from tests.engine.cli.kit import Program

SECRET = "sk-very-secret-0123456789"


def test_report_names_versions_models_files_and_the_window(program: Program) -> None:
    sections = json.loads(program("doctor", "--json").out)

    assert list(sections) == ["Program", "Packages", "Models", "Settings", "Keys", "Files", "Window"]
    assert sections["Program"]["loopwright"] == engine.__version__
    assert sections["Packages"]["litellm"][0].isdigit()
    assert {"Ollama", "LM Studio", "llama.cpp", "default"} <= set(sections["Models"])
    assert sections["Models"]["GGUF files"].partition(" ")[0].isdigit()
    assert "does not exist" in sections["Files"]["extensions"]
    assert sections["Window"] == {"state": "not checked"}


def test_report_names_the_command_that_gets_missing_weights(
    program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LOOPWRIGHT_MODELS_FOLDER", str(tmp_path))
    monkeypatch.setattr("engine.models.demo_weights.PACKAGE", "no_such_package")

    models = program("doctor", "--json").json["Models"]

    assert "loopwright models get demo" in models[EMBEDDED_MODEL]


def test_report_says_which_providers_have_a_key_and_shows_none(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)

    output = program("doctor").out

    assert "providers with a key: OpenAI" in output
    assert SECRET not in output


def test_report_names_changed_settings_and_their_sources_but_no_values(
    program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"default_model": "openai/private", "theme": "blue"}')
    monkeypatch.setenv("LOOPWRIGHT_SETTINGS", str(path))
    monkeypatch.setenv("LOOPWRIGHT_BUDGET_USD", "1")

    output = program("doctor", "--json").out

    sections = json.loads(output)
    assert sections["Settings"] == {
        "file": f"{path} ({path.stat().st_size} bytes)",
        "default_model": "file",
        "budget_usd": "environment",
        "theme": "invalid (file)",
    }
    assert sections["Models"]["default"] == "openai/private"

    path.write_text("{")
    assert "cannot be read" in json.loads(program("doctor", "--json").out)["Settings"]["file"]


def test_report_says_whether_the_history_is_one(
    program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = ("history", "text", "other", "empty")
    history, text, other, empty = paths = [tmp_path / name for name in names]
    open_store(history).close()
    text.write_text("Not a history.")
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE t (x)")
    empty.touch()
    lines: dict[str, str] = {}
    for path in paths:
        monkeypatch.setenv("LOOPWRIGHT_STORE", str(path))
        lines[path.name] = program("doctor", "--json").json["Files"]["history"]

    assert "14 bytes" in lines["text"]
    assert [name for name in names if "not a Loopwright history" in lines[name]] == ["text", "other"]


def test_report_has_no_name_of_the_user(program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "jane"))
    for variable in ("XDG_DATA_HOME", "LOOPWRIGHT_MODELS_FOLDER"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)

    output = program("doctor").out

    assert "models: ~/" in output
    assert "jane" not in output


@pytest.mark.parametrize(("obstacle", "state"), [("", "can be shown"), ("No screen.", "No screen.")])
def test_report_says_what_the_window_lacks(capsys: pytest.CaptureFixture[str], obstacle: str, state: str) -> None:
    assert main(["doctor", "--json"], window_obstacle=lambda: obstacle) == 0

    assert json.loads(capsys.readouterr().out)["Window"] == {"state": state}


def test_shell_completes_commands() -> None:
    environment = {"_LOOPWRIGHT_COMPLETE": "complete_bash", "COMP_WORDS": "loopwright mod", "COMP_CWORD": "1"}
    command = [sys.executable, "-m", "loopwright"]

    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.split() == ["models"]
