"""What users of other programs with loops look for: the promises of `docs/coming-from.md`."""

from __future__ import annotations

import asyncio
import threading

from engine import RunOptions, run, validate
from engine.events import AnyEvent, NodeCompleted, RunCompleted
from engine.models.protocol import Reply
from tests.engine.semantics.agents import agent
from tests.engine.semantics.documents import around, entry, flow, leave, llm, loop, result, transform
from tests.engine.semantics.kit import play
from tests.engine.semantics.models import Call, FakeModels, FunctionModel, by_node
from tests.engine.semantics.test_imported_workflows import imported


async def test_the_loop_output_is_the_last_body_nodes_output_of_the_last_iteration() -> None:
    workflow = around(llm("write"), llm("criticize"), edges="loop -> write -> criticize -> exit", max_iterations=3)
    answers = by_node(write=["w1", "w2", "w3"], criticize=["c1", "c2", "c3"])

    assert (await play(workflow, answers)).result.outputs == {"out": "c3"}


def test_until_sees_no_node_outside_its_loop() -> None:
    workflow = flow(
        entry(),
        llm("before"),
        loop(until="nodes.before == 'done'"),
        llm("draft"),
        leave(),
        result(),
        edges="text -> before -> loop -> draft -> exit -> out",
    )

    (problem,) = validate(workflow)

    assert (problem.code, problem.node, problem.field) == ("unknown-name", "loop", "stop_when.0.expression")
    assert "draft" in problem.message


async def test_independent_loops_run_at_the_same_time() -> None:
    begun = {"a": asyncio.Event(), "b": asyncio.Event()}

    async def answer(call: Call) -> str:
        begun[call.node].set()
        await asyncio.wait_for(begun["b" if call.node == "a" else "a"].wait(), 30)  # each waits for the other
        return call.path

    workflow = flow(
        entry(),
        loop("first", max_iterations=2),
        llm("a"),
        leave("first_exit", "first"),
        loop("second", max_iterations=3),
        llm("b"),
        leave("second_exit", "second"),
        result(),
        result("other"),
        edges="text -> first -> a -> first_exit -> out\ntext -> second -> b -> second_exit -> other",
    )

    assert (await play(workflow, answer)).result.outputs == {"out": "first[1].a", "other": "second[2].b"}


async def test_a_loop_waits_for_its_inputs_and_later_nodes_wait_for_the_loop() -> None:
    workflow = flow(
        entry(),
        llm("research"),
        loop(max_iterations=2),
        llm("draft"),
        leave(),
        llm("publish"),
        result(),
        edges="text -> research -> loop -> draft -> exit -> publish -> out",
    )

    played = await play(workflow, lambda call: call.path)

    assert played.model.paths == ["research", "loop[0].draft", "loop[1].draft", "publish"]
    assert played.model.prompts("draft") == ["research", "loop[0].draft"]
    assert played.model.prompts("publish") == ["loop[1].draft"]


async def test_a_blocking_event_callback_delays_nothing() -> None:
    may_continue, received, has_ended = threading.Event(), [], asyncio.Event()

    def listen(event: AnyEvent) -> None:
        may_continue.wait(30)
        received.append(event)

    def answer(call: Call) -> str:
        if call.path == "loop[2].draft":
            has_ended.set()
        return "text"

    workflow = around(llm("draft"), edges="loop -> draft -> exit", max_iterations=3)
    models = FakeModels(FunctionModel(answer))
    running = asyncio.create_task(run(workflow, {"text": "seed"}, RunOptions(models=models), on_event=listen))
    await asyncio.wait_for(has_ended.wait(), 30)
    assert received == []  # all iterations are done although the callback of the first has not returned
    may_continue.set()
    ended = await asyncio.wait_for(running, 30)

    assert ended.status == "completed"
    assert [event.path for event in received if isinstance(event, NodeCompleted) and event.node_type == "llm"] == [
        f"loop[{index}].draft" for index in range(3)
    ]
    assert isinstance(received[-1], RunCompleted)


def test_tools_on_a_single_call_are_a_problem() -> None:
    workflow = flow(
        entry(), agent(tools=["read_file"], turn_strategy="single_call"), result(), edges="text -> agent -> out"
    )

    (problem,) = validate(workflow)

    assert (problem.code, problem.node, problem.field) == ("tools-on-single-call", "agent", "tools")


async def test_usage_is_a_port() -> None:
    workflow = flow(
        entry(), llm("draft"), result(), result("spent"), edges="text -> draft -> out\ndraft.usage -> spent"
    )

    spent = (await play(workflow, lambda _call: Reply("text"))).result.outputs["spent"]

    assert isinstance(spent, dict)
    assert {"input_tokens", "output_tokens"} <= set(spent)


async def test_a_loop_of_steps_outputs_the_last_content() -> None:
    text = """
steps:
  - id: cycle
    loop:
      maxIterations: 3
      outputMode: last
      steps:
        - {id: work, instructions: Work.}
        - {id: report, dependsOn: [work], instructions: Report.}
"""
    played = await imported(text, by_node(work="worked", report=["r1", "r2", "r3"]))

    assert played.result.outputs == {"cycle": "r3"}


async def test_a_start_value_is_an_input() -> None:
    workflow = flow(
        entry(),
        transform("greet", "On {{topic}}: {{input}}"),
        entry("topic", default="cats"),
        result(),
        edges="text -> greet\ntopic -> greet.topic\ngreet -> out",
    )

    assert (await play(workflow)).out == "On cats: seed"
    assert (await play(workflow, inputs={"text": "seed", "topic": "dogs"})).out == "On dogs: seed"
