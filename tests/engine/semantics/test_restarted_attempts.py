"""Retries of loops and subflows: events of failed attempts no longer count."""

from __future__ import annotations

from engine.models.protocol import ModelError, ModelErrorKind, Usage
from engine.runner.replay import Replay
from tests.engine.cli.kit import Events
from tests.engine.semantics.documents import entry, flow, leave, llm, loop, part, result, transform
from tests.engine.semantics.kit import play
from tests.engine.semantics.models import by_node
from tests.wording import mentions

_FAULT = ModelError(ModelErrorKind.NOT_FOUND, "Gone.", "Find it.")
_INNER = (loop("inner", max_iterations=1, until="false", on_max_iterations="return_with_flag"), transform("work"))
_EDGES = "inner -> work -> leave_inner -> draft"
_FLAG = "not converge within 1 iteration"


async def test_inner_loops_of_a_retried_loop_show_the_last_attempt_only() -> None:
    workflow = flow(
        entry(),
        loop("outer", max_iterations=2, retries=1, retry_delay_s=0.0, until="output == 'good'"),
        *_INNER,
        leave("leave_inner", "inner"),
        llm("draft"),
        leave("leave_outer", "outer"),
        result(),
        edges=f"text -> outer -> {_EDGES} -> leave_outer -> out",
    )

    played = await play(workflow, by_node(draft=["bad", _FAULT, "good"]))

    assert set(played.result.loops) == {"outer", "outer[0].inner"}
    (warning,) = played.result.warnings
    assert mentions(warning, f"outer[0].inner: … {_FLAG}"), warning


async def test_loops_in_a_retried_subflow_show_the_last_attempt_only() -> None:
    inner = flow(
        entry("given"),
        *_INNER,
        leave("leave_inner", "inner"),
        llm("draft"),
        result("made"),
        edges=f"given -> {_EDGES} -> made",
    )
    config = {"file": "part.loop.json", "workflow": inner.to_json(), "retries": 1, "retry_delay_s": 0.0}
    workflow = flow(entry(), part("part", "subflow", **config), result(), edges="text -> part.given\npart.made -> out")

    played = await play(workflow, by_node(draft=[_FAULT, "good"]))

    assert set(played.result.loops) == {"part.inner"}
    assert len(played.result.loops["part.inner"].iterations) == 1
    (warning,) = played.result.warnings
    assert mentions(warning, f"part.inner: … {_FLAG}"), warning


def test_a_subflow_that_failed_in_an_earlier_attempt_has_no_error_in_the_next() -> None:
    event = Events()

    def attempt(error: str) -> list[object]:
        return [
            event("LoopIterationStarted", "loop", index=0, total=2, input_preview=""),
            event("NodeStarted", "loop[0].part", node_type="subflow", inputs={}),
            event.node("loop[0].part", Usage(), node_type="subflow", error=error),
        ]

    assert Replay(attempt("It failed.")).completed_with_error("loop[0].part")
    assert not Replay([*attempt("It failed."), *attempt("")]).completed_with_error("loop[0].part")
