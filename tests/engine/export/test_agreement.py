"""Engine and exported module agree on memory, and on the result of a loop that a node exits."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from engine.models.protocol import Reply
from tests.engine.export.kit import Both, echo
from tests.engine.semantics.agents import agent, wants
from tests.engine.semantics.documents import around, formula, judge, leave, llm, loop, rules, transform

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}, "z": {"type": "string"}}, "required": ["n"]}
MEMORIES = [{"memory": "accumulate"}, {"memory": "window", "memory_window": 1}, {"memory": "fresh"}]


def dressed(node: str, messages: list[tuple[str, str]]) -> str:
    """A structured reply inside prose, with keys in another order."""
    number = len(messages)
    return f"As you like it, {node}:\n```json\n{{'z': 'é', 'N': '{number}',}}\n```\n{echo(node, messages)}"


def second_time(node: str, messages: list[tuple[str, str]]) -> str:
    """A structured reply that is readable only on the second request."""
    is_again = "could not be read" in messages[-1][1]
    return json.dumps({"z": "x", "n": len(messages)}) if is_again else f"{node}: I would say {{'n': 1}} or {{'n': 2}}."


STRUCTURED = {
    "llm": llm("ask", reply_schema=SCHEMA),
    "agent": agent("ask", reply_schema=SCHEMA),
    "agent of a single call": agent("ask", reply_schema=SCHEMA, turn_strategy="single_call"),
}


@pytest.mark.parametrize("memory", MEMORIES, ids=str)
@pytest.mark.parametrize("reply", [dressed, second_time])
@pytest.mark.parametrize("kind", STRUCTURED)
async def test_a_structured_reply_is_remembered_as_written(kind: str, reply: Any, memory: dict[str, Any]):
    edges = "loop -> ask -> exit"
    both = await Both(around(STRUCTURED[kind], edges=edges, max_iterations=3, **memory), reply).play()
    both.check("loop")
    replies = [text for role, text in both.their_calls[-1][1] if role == "assistant"]
    assert (replies == []) == (memory["memory"] == "fresh" and reply is dressed)


@pytest.mark.parametrize("memory", MEMORIES, ids=str)
async def test_an_answer_in_a_tool_call_is_remembered(memory: dict[str, Any]):
    def reply(_node: str, messages: list[tuple[str, str]]) -> Reply:
        return wants(("finish", {"answer": {"n": len(messages)}}), text="" if len(messages) % 2 else "So be it.")

    body = (agent("ask", reply_schema=SCHEMA), llm("more", "{{input}}", reply_schema=SCHEMA))
    workflow = around(*body, edges="loop -> ask -> more -> exit", max_iterations=4, **memory)
    both = await Both(workflow, lambda node, said: reply(node, said) if node == "ask" else dressed(node, said)).play()
    both.check("loop")


@pytest.mark.parametrize("memory", MEMORIES, ids=str)
async def test_routers_and_judges_remember_nothing_and_other_nodes_do(memory: dict[str, Any]):
    def reply(node: str, messages: list[tuple[str, str]]) -> str:
        if node == "check":
            return f"{{'Branch': 'continue', 'reason': 'so {len(messages)}',}}"
        if node == "judge":
            return "Score: 3/10\nDone: no\nReason: too short"
        return dressed(node, messages) if node == "ask" else echo(node, messages)

    body = (llm("ask", reply_schema=SCHEMA), judge("check"), llm("draft", "{{input}} {{loop.iteration}}"))
    edges = "loop -> ask -> check\ncheck.continue -> draft -> exit\ncheck.done -> exit"
    config = {"exit_condition": "judge", "judge": {"criteria": "Good."}, "max_iterations": 3, **memory}
    both = await Both(around(*body, edges=edges, **config), reply).play()
    both.check("loop")


@pytest.mark.parametrize("memory", MEMORIES, ids=str)
async def test_a_nested_loop_has_its_own_memory(memory: dict[str, Any]):
    inner = (loop("inner", max_iterations=2, **memory), llm("ask", reply_schema=SCHEMA), leave("end", "inner"))
    body = (*inner, llm("outer_ask", reply_schema=SCHEMA))
    edges = "loop -> inner -> ask -> end\nend -> outer_ask -> exit"
    both = await Both(around(*body, edges=edges, max_iterations=2, **memory), dressed).play()
    both.check("loop")


@pytest.mark.parametrize("memory", MEMORIES, ids=str)
async def test_messages_of_a_failed_node_are_remembered(memory: dict[str, Any]):
    def reply(node: str, messages: list[tuple[str, str]]) -> str:
        return dressed(node, messages) if len(messages) > 4 else f"{node}: no JSON at all"

    body = llm("ask", reply_schema=SCHEMA, on_error="continue", error_value={"n": 0})
    both = await Both(around(body, edges="loop -> ask -> exit", max_iterations=4, **memory), reply).play()
    both.check("loop")


def ending(iteration: int, leaver: str = "leaver") -> Any:
    """Replies of models, one of which exits its loop at the given call."""
    asked: Counter[str] = Counter()

    def reply(node: str, messages: list[tuple[str, str]]) -> str | Reply:
        asked[node] += 1
        if node == leaver and asked[node] == iteration + 1:
            asked.clear()  # for the module, which runs after the engine
            return wants(("exit_loop", {}))
        return dressed(node, messages) if node == "ask" else echo(node, messages)

    return reply


LEAVERS = {
    "llm": llm("leaver", may_exit_loop=True),
    "agent": agent("leaver", tools=["exit_loop"]),
}


@pytest.mark.parametrize("output_mode", ["final", "last_iteration", "all_iterations"])
@pytest.mark.parametrize("iteration", [0, 2])
@pytest.mark.parametrize("kind", LEAVERS)
async def test_exit_loop_gives_the_same_result(kind: str, iteration: int, output_mode: str):
    body = (
        llm("ask", reply_schema=SCHEMA),
        LEAVERS[kind],
        transform("after", "{{input}}!"),
        formula("size", "size(input)"),
    )
    edges = "loop -> ask -> leaver -> after -> exit\nloop -> size"
    workflow = around(*body, edges=edges, max_iterations=5, output_mode=output_mode)
    both = await Both(workflow, ending(iteration)).play()
    both.check("loop")
    assert both.ours.loop.exit_reason == "exit_loop"


@pytest.mark.parametrize("iteration", [0, 1])
@pytest.mark.parametrize("kind", LEAVERS)
async def test_exit_loop_by_a_node_beside_the_result_gives_the_same_result(kind: str, iteration: int):
    body = (LEAVERS[kind], llm("draft"), rules("way", {"long": "size(input) > 500", "short": "else"}), llm("never"))
    edges = "loop -> leaver\nloop -> draft -> way\nway.long -> never\nway.short -> exit"
    workflow = around(*body, edges=edges, max_iterations=4, output_mode="last_iteration")
    both = Both(workflow, ending(iteration))
    await both.play()
    both.check("loop", in_order=False)


@pytest.mark.parametrize("inner_mode", ["final", "last_iteration"])
@pytest.mark.parametrize("memory", MEMORIES, ids=str)
async def test_exit_loop_in_an_inner_loop_gives_the_same_result(memory: dict[str, Any], inner_mode: str):
    inner = (
        loop("inner", max_iterations=3, output_mode=inner_mode, **memory),
        llm("ask", reply_schema=SCHEMA),
        llm("leaver", may_exit_loop=True),
        leave("end", "inner"),
    )
    body = (*inner, transform("wrap"))
    edges = "loop -> inner -> ask -> leaver -> end\nend -> wrap -> exit"
    workflow = around(*body, edges=edges, max_iterations=2, output_mode="last_iteration", **memory)
    both = await Both(workflow, ending(1)).play()
    both.check("loop")


async def test_a_skipped_inner_loop_gives_the_same_result():
    for config in ({"condition": "false"}, {"max_iterations": 1}):
        inner = (loop("inner", **config), llm("leaver", may_exit_loop=True), leave("end", "inner"))
        workflow = around(
            *inner, edges="loop -> inner -> leaver -> end\nend -> exit", max_iterations=2, output_mode="last_iteration"
        )
        both = await Both(workflow, ending(0)).play()
        both.check("loop")
