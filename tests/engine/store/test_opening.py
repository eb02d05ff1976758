"""Path of the history."""

from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest

from engine.store import PATH_VARIABLE, open_store, store_path


@pytest.mark.parametrize("named", [None, ""])
def test_folder_of_the_default_history_is_created(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, named: str) -> None:
    monkeypatch.setattr(platformdirs, "user_data_path", lambda *_names, **_more: tmp_path / "data" / "loopwright")
    monkeypatch.delenv(PATH_VARIABLE, raising=False)
    if named is not None:
        monkeypatch.setenv(PATH_VARIABLE, named)

    open_store().close()

    assert store_path() == tmp_path / "data" / "loopwright" / "history.sqlite3"
    assert store_path().is_file()


def test_folder_of_a_named_history_is_not_created(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path / "nowhere" / "h.sqlite3"))

    with pytest.raises(Exception, match="does not exist"):
        open_store()
