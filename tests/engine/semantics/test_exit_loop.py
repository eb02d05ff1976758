"""A model in a loop's body exits the loop by calling `exit_loop`; the current result is the output."""

from __future__ import annotations

from typing import Any

import pytest

from engine import Workflow, validate
from engine.events import LoopIterationStarted, NodeCompleted, NodeSkipped, NodeToolCalled
from tests.engine.semantics.agents import agent, wants
from tests.engine.semantics.documents import around, entry, flow, leave, llm, loop, result, transform
from tests.engine.semantics.kit import play
from tests.engine.semantics.models import Answer, Call, by_node

EXIT = wants(("exit_loop", {}))
FINE = "Nothing is left to improve."


def improving(refiner: Any, **config: Any) -> Workflow:
    """A document is written once, then criticized and refined until the refiner exits the loop."""
    return flow(
        entry("topic"),
        llm("write", "Write about {{topic}}.", output_key="current_document"),
        loop("refining", **{"max_iterations": 5, **config}),
        llm("critique", "What could be better?\n{{state.current_document}}", output_key="criticism"),
        refiner,
        leave("refined", "refining"),
        result("document"),
        edges="topic -> write.topic\nwrite -> refining -> critique -> refine -> refined -> document",
    )


REFINE = "{{state.current_document}}\n{{state.criticism}}"
REFINERS = [
    llm("refine", REFINE, output_key="current_document", may_exit_loop=True),
    agent("refine", prompt=REFINE, output_key="current_document", tools=["exit_loop"]),
]


def people(good_after: int) -> Answer:
    """A critic that accepts the given version, and a refiner that then exits the loop."""

    def critique(call: Call) -> str:
        return FINE if call.prompt.startswith(f"What could be better?\nversion {good_after}") else "Make it longer."

    def refine(call: Call) -> Any:
        return EXIT if FINE in call.prompt else f"version {call.iteration + 1}"

    return by_node(write="version 0", critique=critique, refine=refine)


@pytest.mark.parametrize("refiner", REFINERS, ids=["llm", "agent"])
@pytest.mark.parametrize("good_after", [0, 1, 3])
async def test_exit_loop_returns_the_unchanged_document(refiner: Any, good_after: int) -> None:
    played = await play(improving(refiner), people(good_after), {"topic": "the sea"})

    refining = played.result.loops["refining"]
    assert played.result.outputs == {"document": f"version {good_after}"}
    assert (refining.exit_reason, refining.converged) == ("exit_loop", True)
    assert refining.iterations_run == good_after + 1
    assert refining.iterations[-1].result == f"version {good_after}"
    last = f"refining[{good_after}].refine"
    assert "output" not in played.of(NodeCompleted, last)[0].outputs
    (call,) = played.of(NodeToolCalled)
    assert (call.path, call.tool) == (last, "exit_loop")
    assert validate(improving(refiner)) == []


async def test_an_agent_that_exited_the_loop_says_so() -> None:
    played = await play(improving(REFINERS[1]), people(0), {"topic": "x"})

    (completed,) = played.of(NodeCompleted, "refining[0].refine")
    assert completed.outputs["status"] == "exited_loop"
    assert (completed.exits_loop, completed.output_key) == (True, "")


@pytest.mark.parametrize("refiner", REFINERS, ids=["llm", "agent"])
async def test_without_the_call_max_iterations_ends_the_loop(refiner: Any) -> None:
    played = await play(improving(refiner), people(99), {"topic": "x"})

    assert played.result.outputs == {"document": "version 5"}
    assert played.result.loops["refining"].exit_reason == "max_iterations"


async def test_the_value_at_the_exit_is_the_result_and_nodes_after_the_caller_are_skipped() -> None:
    workflow = around(
        llm("draft"),
        llm("check", may_exit_loop=True),
        transform("after_check"),
        edges="loop -> draft -> exit\ndraft -> check -> after_check -> exit.feedback",
        max_iterations=4,
    )

    def check(call: Call) -> Any:
        return EXIT if call.iteration == 1 else "go on"

    played = await play(workflow, by_node(draft=lambda call: f"draft {call.iteration}", check=check))

    assert played.out == "draft 1"
    assert (played.loop.exit_reason, played.loop.iterations_run) == ("exit_loop", 2)
    assert [event.path for event in played.of(NodeSkipped)] == ["loop[1].after_check"]


def nested(**config: Any) -> Workflow:
    return flow(
        entry(),
        loop("outer", max_iterations=2),
        loop("inner", max_iterations=3, **config),
        llm("work", may_exit_loop=True),
        leave("leave_inner", "inner"),
        leave("leave_outer", "outer"),
        result(),
        edges="text -> outer.input\nouter.body -> inner.input\ninner.body -> work\nwork -> leave_inner\n"
        "leave_inner -> leave_outer -> out",
    )


async def test_exit_loop_ends_the_innermost_loop_only() -> None:
    def work(call: Call) -> Any:
        return EXIT if call.indices == (0, 1) else f"{call.indices}"

    played = await play(nested(), work)

    loops = played.result.loops
    assert [loops[path].exit_reason for path in ("outer[0].inner", "outer[1].inner")] == ["exit_loop", "max_iterations"]
    assert (loops["outer"].exit_reason, loops["outer"].iterations_run) == ("max_iterations", 2)
    assert [record.result for record in loops["outer"].iterations] == ["(0, 0)", "(1, 2)"]
    assert [event.index for event in played.of(LoopIterationStarted, "outer[0].inner")] == [0, 1]


async def test_exit_loop_precedes_every_other_reason_and_calls_no_judge() -> None:
    workflow = around(
        llm("work", may_exit_loop=True),
        edges="loop -> work -> exit",
        max_iterations=1,
        until="true",
        on_max_iterations="fail",
    )

    played = await play(workflow, EXIT)

    assert (played.loop.exit_reason, played.out) == ("exit_loop", "seed")


async def test_a_call_of_any_other_tool_is_a_warning() -> None:
    workflow = around(llm("work", may_exit_loop=True), edges="loop -> work -> exit", max_iterations=1)

    played = await play(workflow, wants(("leave_loop", {}), text="text"))

    assert played.out == "text"
    (completed,) = played.of(NodeCompleted, "loop[0].work")
    (warning,) = completed.warnings
    assert '"leave_loop"' in warning


@pytest.mark.parametrize(
    ("node", "field"),
    [(llm("work", may_exit_loop=True), "may_exit_loop"), (agent("work", tools=["exit_loop"]), "tools")],
)
def test_exit_loop_outside_of_loops_is_a_problem(node: Any, field: str) -> None:
    (problem,) = validate(flow(entry(), node, result(), edges="text -> work -> out"))

    assert (problem.code, problem.node, problem.field) == ("exit-loop-outside", "work", field)


def test_exit_loop_excludes_a_structured_reply() -> None:
    node = llm("work", may_exit_loop=True, reply_schema={"type": "object"})

    problems = validate(around(node, edges="loop -> work -> exit"))

    assert [problem.code for problem in problems] == ["exit-loop-with-schema"]
