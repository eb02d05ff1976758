"""Folders of the user that this user may not enter, such as those of a start with `sudo`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.closed_folder import close_folder
from tests.engine.cli.kit import Program

VARIABLES = {
    "LOOPWRIGHT_SETTINGS": "settings.json",
    "LOOPWRIGHT_EXTENSIONS": "extensions.json",
    "LOOPWRIGHT_APPROVED": "approved.json",
    "LOOPWRIGHT_MODELS_FOLDER": "models",
}


@pytest.fixture
def closed_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the settings and the models, which this user may not enter."""
    for variable, name in VARIABLES.items():
        monkeypatch.setenv(variable, str(tmp_path / name))

    close_folder(tmp_path, monkeypatch)
    return tmp_path


@pytest.mark.usefixtures("closed_folder")
@pytest.mark.parametrize("command", ["models", "models get", "models remove x", "templates", "config", "plugins"])
def test_commands_work_or_say_in_a_sentence_what_they_cannot_read(program: Program, command: str):
    ended = program(*command.split())
    assert ended.code in {0, 2}
    assert "Internal" not in ended.err
    assert "ermission" in ended.err


def test_models_of_a_closed_folder_count_as_missing(program: Program, closed_folder: Path):
    ended = program("run", "self-refine", "--model", f"gguf:{closed_folder / 'x.gguf'}")
    assert ended.code == 1
    assert "x.gguf does not exist" in ended.err
