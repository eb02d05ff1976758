"""Empty replies are failures in an exported module as in the engine, unless they are allowed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.export.kit import Both
from tests.engine.semantics.agents import agent
from tests.engine.semantics.documents import Part, around, entry, flow, llm, part, result

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

AGAIN: dict[str, Any] = {"retries": 1, "retry_delay_s": 0.0}
ASKING: dict[str, Part] = {
    "llm": llm("ask", **AGAIN),
    "llm that may end its loop": llm("ask", may_exit_loop=True, **AGAIN),
    "structured": llm("ask", reply_schema={"type": "object"}, **AGAIN),
    "single call": agent("ask", turn_strategy="single_call", **AGAIN),
    "agent": agent("ask", **AGAIN),
    "router": part("ask", "router", criteria="Good?", **AGAIN),
}


@pytest.mark.parametrize("empties", [0, 1, 2])
@pytest.mark.parametrize("kind", ASKING)
async def test_an_empty_reply_is_a_failure_and_retried(kind: str, empties: int) -> None:
    asked = 0

    def reply(_node: str, _messages: list[tuple[str, str]]) -> str:
        nonlocal asked
        asked += 1
        return " " if asked <= empties else {"structured": "{}", "router": "done"}.get(kind, "Here.")

    edges = "loop -> ask\nask.done -> exit" if kind == "router" else "loop -> ask -> exit"
    both = Both(around(ASKING[kind], edges=edges, max_iterations=1), reply)
    if empties < 2:
        await both.play_ours({"text": "seed"})
        asked = 0
        both.theirs = both.run_module({"text": "seed"})
        both.check("loop")
        return
    with pytest.raises(AssertionError, match="empty"):
        await both.play_ours({"text": "seed"})
    asked = 0
    with pytest.raises(Exception, match="empty"):
        both.run_module({"text": "seed"})
    assert both.their_calls == both.our_calls


@pytest.mark.parametrize("kind", ["llm", "single call", "agent"])
async def test_an_allowed_empty_reply_is_an_empty_text(kind: str) -> None:
    node = part("ask", ASKING[kind].type, **{**ASKING[kind].config, "allow_empty": True})
    both = await Both(flow(entry(), node, result(), edges="text -> ask -> out"), lambda _node, _said: "").play()
    both.check()
    assert both.theirs == {"out": ""}


@pytest.mark.parametrize("on_cut_off", ["warn", "continue", "fail"])
def test_differences_for_truncated_replies_are_listed(on_cut_off: str) -> None:
    workflow = flow(entry(), llm("ask", on_cut_off=on_cut_off), result(), edges="text -> ask -> out")
    notes = [sentence for sentence in Both(workflow).exported.left_out if "cut off" in sentence]
    assert len(notes) == (on_cut_off != "warn")
