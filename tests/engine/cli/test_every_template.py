"""Every template runs from the command line by its name, with its sample inputs, and completes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.bundled import templates_folder
from tests.engine.cli.kit import Program

NAMES = sorted(file.name.removesuffix(".loop.json") for file in templates_folder().glob("*.loop.json"))
WALK = {"title": "Walk", "date": "Sunday", "place": "Harbour", "leader": "Ida", "seats": 20, "price": 5}
SOUP = {"name": "Soup", "minutes": 20, "ingredients": ["water", "salt"]}
REPLIES = {
    "classify": json.dumps({"reason": "It asks.", "kind": "question"}),
    "multi-pass-extraction": json.dumps(WALK),
    "valid-json": json.dumps(SOUP),
}
"""Replies of the model for nodes that do not accept every text."""
OPTIONS = {"calculator-agent": ("--allow-code",)}


@pytest.mark.parametrize("name", NAMES)
def test_template_completes(program: Program, tmp_path: Path, name: str):
    script = tmp_path / "replies.json"
    script.write_text(json.dumps({"rules": [], "default": REPLIES.get(name, "APPROVED. LGTM. A text.")}), "utf-8")

    ended = program("run", name, "-m", f"scripted:{script}", "--json", *OPTIONS.get(name, ()))

    assert ended.code == 0, ended.err
    result: dict[str, Any] = ended.json
    assert result["status"] == "completed"
    assert [value for value in result["outputs"].values() if value not in (None, "")]
