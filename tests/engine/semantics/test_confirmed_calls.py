"""Confirmation of tool calls that are not in the document: once for each distinct call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import BaseModel

from engine import Workflow
from engine.events import NodeWaiting
from engine.nodes.context import Answer
from engine.tools.registry import set_tools
from engine.tools.tool import Consent, Tool, ToolContext
from tests.engine.semantics.agents import agent, results, script, wants
from tests.engine.semantics.documents import entry, flow, for_each, formula, part, result
from tests.engine.semantics.kit import Played, begin, finish
from tests.wording import mentions


class _Call(BaseModel):
    url: str = ""
    text: str = ""


@dataclass
class _Called:
    calls: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])

    def tool(self, name: str, **more: Any) -> Tool[_Call]:
        async def run(call: _Call, _context: ToolContext) -> str:
            self.calls.append((name, call.url, call.text))
            return f"{name} {call.url}{call.text}"

        return Tool(name, name, name, _Call, "text", run, **more)


@pytest.fixture
def called() -> Iterator[_Called]:
    called = _Called()
    tools = [
        called.tool("command", runs_code=True),
        called.tool("server/act", consent=Consent.CALL),
        called.tool("page", consent=Consent.HOST),
        called.tool("plain"),
    ]
    set_tools("test", tools)
    yield called
    set_tools("test", ())


async def talk(
    workflow: Workflow,
    answers: Sequence[Answer],
    inputs: dict[str, Any],
    says: Callable[..., Any] | str = "",
    ends: str = "completed",
    **more: Any,
) -> Played:
    run, models = begin(workflow, says, inputs, **{"confirm_calls": True, "allow_code": True, **more})
    left = list(answers)
    async for event in run.events():
        if isinstance(event, NodeWaiting):
            run.answer(event.path, left.pop(0))
    assert left == [], "nobody asked"
    played = await finish(run, models)
    assert played.result.status == ends, played.result.error
    return played


def each_text(tool: str, port: str = "text") -> Workflow:
    return for_each(part("act", "tool", tool=tool), edges=f"each.item -> act.{port}\nact -> gather", max_concurrency=1)


YES, NO = Answer("approve"), Answer("reject")


@pytest.mark.parametrize("tool", ["command", "server/act"])
async def test_each_distinct_call_is_confirmed_once(called: _Called, tool: str) -> None:
    played = await talk(each_text(tool), [YES, YES], {"items": ["a", "b", "a", "a", "b"]})

    assert [asked.value for asked in played.of(NodeWaiting)] == [{"text": "a"}, {"text": "b"}]
    assert [text for _, _, text in called.calls] == ["a", "b", "a", "a", "b"]


async def test_each_host_is_confirmed_once(called: _Called) -> None:
    pages = ["https://a.example/1", "https://a.example/2", "http://b.example", "https://A.example/3"]

    played = await talk(each_text("page", "url"), [YES, YES], {"items": pages})

    assert [asked.value for asked in played.of(NodeWaiting)] == [{"url": pages[0]}, {"url": pages[2]}]
    assert len(called.calls) == 4


async def test_a_rejection_is_remembered_too(called: _Called) -> None:
    workflow = for_each(
        part("act", "tool", tool="command", on_error="continue", error_value="no"),
        edges="each.item -> act.text\nact -> gather",
        max_concurrency=1,
    )

    played = await talk(workflow, [NO, YES], {"items": ["a", "b", "a"]})

    assert called.calls == [("command", "", "b")]
    assert played.out == ["no", "command b", "no"]


async def test_a_changed_call_is_made_with_the_changes(called: _Called) -> None:
    await talk(each_text("command"), [Answer("approve", {"text": "safe"})], {"items": ["a", "a"]})

    assert called.calls == [("command", "", "safe")] * 2


@pytest.mark.parametrize(
    ("tool", "more"), [("plain", {}), ("command", {"confirm_calls": False}), ("page", {"confirm_calls": False})]
)
async def test_other_tools_and_other_runs_need_no_confirmation(
    called: _Called, tool: str, more: dict[str, Any]
) -> None:
    await talk(each_text(tool), [], {"items": ["a"]}, **more)

    assert len(called.calls) == 1


async def test_calls_written_in_the_document_need_no_confirmation(called: _Called) -> None:
    act = part("act", "tool", tool="command", arguments={"text": "known"})
    workflow = flow(
        entry(), act, formula("both", "input + text"), result(), edges="text -> both.text\nact -> both -> out"
    )

    await talk(workflow, [], {"text": "x"})

    assert called.calls == [("command", "", "known")]


async def test_an_agent_that_requires_approval_asks_only_once(called: _Called) -> None:
    says = script(
        wants(("command", {"text": "a"}), ("server/act", {"text": "b"}), ("page", {"url": "https://x"})), "done"
    )
    worker = agent(tools=["command", "server/act", "page"], require_approval=["command"])
    workflow = flow(entry(), worker, result(), edges="text -> agent -> out")

    played = await talk(workflow, [YES, NO], {"text": "x"}, says)

    assert [name for name, _, _ in called.calls] == ["command", "page"]
    assert mentions(results(played.model.calls[1])[1], "Error: … person refused")
