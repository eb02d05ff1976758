from __future__ import annotations

from pathlib import Path

import pytest

from engine import bundled
from engine.errors import EngineError


def test_bundled_folders_are_found() -> None:
    assert bundled.templates_folder().is_dir()
    assert (bundled.resources_folder() / "handbook" / "stable-output.md").is_file()


@pytest.mark.parametrize("place", ["site/engine/bundled/resources", "site/resources"])
def test_bundled_folders_in_a_wheel_and_in_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    (tmp_path / "site" / "engine" / "bundled").mkdir(parents=True)
    (tmp_path / place).mkdir()
    monkeypatch.setattr(bundled, "_PACKAGE", tmp_path / "site" / "engine" / "bundled")
    assert bundled.resources_folder() == tmp_path / place
    with pytest.raises(EngineError, match="'templates' is missing") as caught:
        bundled.templates_folder()
    assert "Install the program again" in caught.value.remedy
