"""docs/library.md is correct: every example runs and prints the output below it."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import shutil
from pathlib import Path

import pytest

from tests.architecture.markdown import Block, blocks
from tests.architecture.project import ROOT

PAGE = "docs/library.md"

_REPLIES = {
    "rules": [
        {"pattern": "Please fail", "reply": {"error": {"kind": "authentication", "message": "The key is refused."}}},
        {"node": "draft", "iteration": 0, "reply": "Rain is water."},
        {"node": "draft", "iteration": 1, "reply": "Rain is water that falls from clouds."},
        {"node": "draft", "iteration": 2, "reply": "Rain is the sky's slow letter to the ground."},
        {"node": "critique", "reply": "It could be more vivid."},
        {"node": "shorter", "iteration": 0, "reply": "It rains and rains, without an end."},
        {"node": "shorter", "iteration": 1, "reply": "Still raining."},
    ]
}


def _examples() -> list[tuple[Block, Block]]:
    """Each Python example with the output below it."""
    found = blocks(PAGE)
    return [(block, found[at + 1]) for at, block in enumerate(found) if block.language == "python"]


def _execute(source: str, name: str) -> None:
    """Run an example as a script, or as a notebook if it awaits."""
    code = compile(source, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    names = {"__name__": "__main__"}
    if not code.co_flags & inspect.CO_COROUTINE:
        exec(code, names)
        return

    async def cell() -> None:
        await eval(code, names)

    asyncio.run(cell())


@pytest.mark.parametrize(
    ("example", "printed"), [pytest.param(*pair, id=f"line {pair[0].line}") for pair in _examples()]
)
def test_every_example_prints_the_output_below_it(
    example: Block,
    printed: Block,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    shutil.copy(ROOT / "templates" / "self-refine.loop.json", tmp_path)
    (tmp_path / "replies.json").write_text(json.dumps(_REPLIES), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOOPWRIGHT_MODEL", "scripted:replies.json")
    # The only model that costs money is replaced by the script.
    source = example.text.replace("openai/gpt-4o-mini", "scripted:replies.json")

    _execute(source, f"{PAGE}:{example.line}")

    assert printed.language == "text"
    assert capsys.readouterr().out == printed.text


def test_the_page_has_examples():
    assert len(_examples()) >= 8
