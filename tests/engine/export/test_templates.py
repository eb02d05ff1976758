"""Every template, exported in either way, gives the same result as itself with a fake model."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from engine import load
from engine.bundled import templates_folder
from engine.export.python_script import export_python
from engine.models.protocol import Reply, ToolCall
from tests.engine.export.kit import ALLOWED_IMPORTS, Both, echo, imports_of, module_of
from tests.engine.semantics.documents import entry, flow, held, llm, result
from tests.wording import mentions

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

FILES = sorted(templates_folder().glob("*.loop.json"))


def name_of(file: Path) -> str:
    return file.name.removesuffix(".loop.json")


def says(node: str, messages: list[tuple[str, str]]) -> str | Reply:
    """A reply of the requested kind that depends on all messages."""
    number = zlib.crc32(repr(messages).encode()) % 1000
    system = messages[0][1] if messages[0][0] == "system" else ""
    match node:
        case "enough":
            return json.dumps({"reason": f"because {number}", "branch": "done" if number % 3 == 0 else "continue"})
        case "judge":
            names = ("fit", "fresh") if "fit" in f"{messages}" else ("clear", "tone", "complete")
            scores = dict.fromkeys(names, number % 10)
            return json.dumps(
                {"reason": f"so {number}", "score": number % 10, "scores": scores, "done": number % 4 == 0}
            )
        case "classify":
            return json.dumps({"reason": str(number), "kind": ("question", "praise", "rant")[number % 3]})
        case "write" if "JSON object" in system:
            return json.dumps({"name": "P", "minutes": number, "ingredients": ["flour"] if number % 2 else []})
        case "extract":
            record: dict[str, Any] = dict.fromkeys(("title", "date", "place", "leader"), f"text {number}")
            return json.dumps({**record, "seats": number, "price": None if number % 2 else 3})
        case "calculator" if not any(role == "tool" for role, _ in messages):
            return Reply("Let me see.", tool_calls=(ToolCall("1", "python", {"code": "print(1)"}),))
        case "refiner" if number % 2:
            return Reply("", tool_calls=(ToolCall("1", "exit_loop", {}),))
        case _:
            return echo(node, messages)


def _printed(**_arguments: Any) -> Any:
    return {"stdout": "1\n", "stderr": "", "exit_code": 0}


def _found(**_arguments: Any) -> Any:
    return [{"file": "a.md", "text": "Rain."}]


PROVIDED = {"python": _printed, "search_files": _found}


@pytest.mark.parametrize("file", FILES, ids=name_of)
async def test_a_template_as_a_langgraph_module_gives_the_same_result(file: Path, monkeypatch: pytest.MonkeyPatch):
    async def call_tool(_self: Any, name: str, arguments: Any, _context: Any, **_more: Any) -> Any:
        return PROVIDED[name](**arguments)

    monkeypatch.setattr("engine.runner.run_scope.RunScope.call_tool", call_tool)
    both = Both(load(file), says)
    assert not [sentence for sentence in both.exported.left_out if "is left out" in sentence]
    assert imports_of(both.exported.text) <= ALLOWED_IMPORTS
    await both.play_ours({}, allow_code=True)
    both.theirs = both.run_module({}, PROVIDED)
    both.check(in_order=name_of(file) != "map-reduce-summary")
    assert both.their_calls


def test_pinned_values_are_in_a_python_script():
    workflow = flow(entry(), held(llm("draft"), output="x"), result(), edges="text -> draft -> out")
    assert module_of(export_python(workflow).text).workflow.to_json() == workflow.to_json()


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_a_template_as_a_python_script_is_the_same_workflow(file: Path):
    workflow = load(file)
    exported = export_python(workflow)
    assert imports_of(exported.text) - {"pathlib"} == {"__future__", "argparse", "json", "sys", "typing", "loopwright"}
    assert module_of(exported.text).workflow.to_json() == {**workflow.to_json(), "layout": {}}
    (left_out,) = exported.left_out
    assert mentions(left_out, "positions … nodes")
