"""Imported workflows mean the same as in the other program. They run with scripted replies."""

from __future__ import annotations

import json

from engine import validate
from engine.models.protocol import Reply, ToolCall
from tests.engine.importing.samples import DEV_CYCLE, FAN_OUT, canvas, evaluated, read, rf_edge, rf_node
from tests.engine.semantics.kit import Played, play
from tests.engine.semantics.models import Answer, Call, by_node, verdict


async def imported(foreign: str, answer: Answer, /, **inputs: str) -> Played:
    """Import a text and run the workflow."""
    return await play(read(foreign).workflow, answer, inputs, allow_code=True)


async def test_an_evaluator_loop_continues_with_the_feedback() -> None:
    answers = by_node(draft=["one", "two"], judge=[verdict("continue"), verdict("done")])
    played = await imported(evaluated(), answers, topic="tea")
    assert played.result.outputs == {"Text": "two", "Rounds": 2}
    assert played.model.prompts("draft") == ["Write: tea", "Write: Better: one"]
    assert played.result.loops["loop_1"].exit_reason == "evaluator_done"


async def test_a_canvas_loop_that_appends_returns_all_iterations() -> None:
    text = canvas(
        [
            rf_node("in", "input", name="text"),
            rf_node("loop", "loop", maxIterations=3, exitCondition="max_iterations", feedbackMode="append"),
            rf_node("draft", "llm", prompt="{{input}}"),
            rf_node("critique", "llm", prompt="{{input}}"),
            rf_node("merge", "transform", template="{{draft}} / {{critique}}"),
            rf_node("exit", "exit"),
            rf_node("out", "output", name="out"),
            rf_node("all", "output", name="all"),
        ],
        [
            rf_edge("in", "loop"),
            rf_edge("loop", "draft"),
            rf_edge("draft", "critique"),
            rf_edge("draft", "merge", to="draft"),
            rf_edge("critique", "merge", to="critique"),
            rf_edge("merge", "exit"),
            rf_edge("exit", "out"),
            rf_edge("loop", "all", "iterations"),
        ],
    )
    played = await imported(text, by_node(draft=["d1", "d2", "d3"], critique=["c1", "c2", "c3"]), text="seed")
    assert played.out == "d3 / c3"
    assert played.model.prompts("draft")[2] == "seed\n---\nd1 / c1\n---\nd2 / c2"
    records = played.result.outputs["all"]
    assert isinstance(records, list)
    assert [record["result"] for record in records if isinstance(record, dict)] == ["d1 / c1", "d2 / c2", "d3 / c3"]


async def test_a_canvas_loop_stops_at_a_stable_output() -> None:
    text = canvas(
        [
            rf_node("in", "input", name="text"),
            rf_node("loop", "loop", maxIterations=9, exitCondition="stable_output", stabilityThreshold=0.95),
            rf_node("draft", "llm", prompt="{{input}}"),
            rf_node("exit", "exit"),
            rf_node("out", "output", name="out"),
        ],
        [
            rf_edge("in", "loop"),
            rf_edge("loop", "draft"),
            rf_edge("draft", "exit"),
            rf_edge("exit", "out"),
        ],
    )
    played = await imported(text, by_node(draft=["a", "bb", "bb"]), text="seed")
    assert (played.out, played.loop.exit_reason, len(played.results)) == ("bb", "stable_output", 3)


_WITHOUT_DELAY = DEV_CYCLE.replace("delay: 1m30s", "delay: 0s")


def _says(done: bool, reason: str) -> str:
    return json.dumps({"reason": reason, "score": 5, "done": done})


async def test_until_ends_a_step_loop_before_its_judge_is_called() -> None:
    played = await imported(
        _WITHOUT_DELAY, by_node(plan_it="the plan", build="code", check_it="FINE as it is", judge=_says(False, "no"))
    )
    assert played.result.outputs == {"dev-cycle": "--- iteration 1 ---\nFINE as it is"}
    assert played.result.loops["dev_cycle"].exit_reason == "until"
    assert not played.model.prompts("judge")


async def test_the_judge_ends_a_step_loop_and_its_reason_reaches_the_next_iteration() -> None:
    verdicts = [_says(False, "a test is missing"), _says(True, "all there")]
    played = await imported(
        _WITHOUT_DELAY, by_node(plan_it="the plan", build=["c1", "c2"], check_it=["hm", "ok"], judge=verdicts)
    )
    assert played.result.loops["dev_cycle"].exit_reason == "judge_done"
    first, second = played.model.prompts("build")
    assert first.startswith("Build round 0. Keep {{braces}}.\n\nthe plan")
    assert "Output of the previous iteration:\nhm" in second
    assert "Verdict of the judge: a test is missing" in second
    assert "the plan" in second
    assert played.model.prompts("check_it")[1].endswith("Output of build:\nc2")


async def test_an_unreadable_verdict_continues_the_step_loop() -> None:
    played = await imported(_WITHOUT_DELAY, by_node(plan_it="p", build="c", check_it="hm", judge="rubbish"))
    assert played.result.loops["dev_cycle"].exit_reason == "max_iterations"
    assert len(played.result.loops["dev_cycle"].iterations) == 4


async def test_tools_of_an_agent_are_called() -> None:
    wants = Reply("", tool_calls=(ToolCall("1", "shell", {"command": "echo hello"}),))
    played = await imported(
        _WITHOUT_DELAY, by_node(plan_it=[wants, "planned"], build="c", check_it="FINE", judge=_says(True, "r"))
    )
    (step,) = played.output_of("plan_it", "steps") or ()
    assert isinstance(step, dict)
    assert step["tool"] == "shell"


async def test_a_step_with_a_condition_runs_only_if_it_is_true() -> None:
    text = """
steps:
  - {id: look, instructions: Look.}
  - {id: weigh, instructions: Weigh.}
  - {id: act, dependsOn: [look, weigh], condition: "steps.weigh.content == steps.look.content", instructions: Act.}
  - {id: rest, dependsOn: [weigh], condition: "steps.weigh.content == 'light'", instructions: Rest.}
"""
    played = await imported(text, by_node(look="heavy", weigh="heavy", act="acted", rest="rested"))
    assert played.result.outputs == {"act": "acted"}
    (prompt,) = played.model.prompts("act")
    assert prompt.startswith("Act.\n\nOutput of weigh:\n")
    assert prompt.endswith("Output of look:\nheavy")


async def test_for_each_runs_for_each_item_and_the_next_step_sees_all_results() -> None:
    def writes(call: Call) -> str:
        return "about Ulm" if "Ulm" in call.prompt else "about Bonn"

    assert validate(read(FAN_OUT).workflow) == []
    played = await imported(
        FAN_OUT,
        by_node(
            list_cities=json.dumps({"cities": [{"name": "Ulm"}, {"name": "Bonn"}]}),
            write=writes,
            read=lambda call: call.prompt.splitlines()[-1].upper(),
            sum_up="Two.",
        ),
    )
    assert played.result.outputs == {"sum-up": "Two."}
    assert played.output_of("each_results") == ["ABOUT ULM", "ABOUT BONN"]
    assert {"each[0].write", "each[1].read"} <= set(played.model.paths)
    (second,) = [call.prompt for call in played.model.calls if call.path == "each[1].write"]
    assert second.startswith("Write about it, number 1.\n\nItem 1:\n")
    assert "ABOUT ULM" in played.model.prompts("sum_up")[0]


async def test_a_canvas_iterator_collects_its_results() -> None:
    text = canvas(
        [
            rf_node("in", "input", name="text", dataType="array", defaultValue=["a", "b"]),
            rf_node("each", "iterator", mode="sequential"),
            rf_node("draft", "llm", prompt="{{input}}"),
            rf_node("all", "aggregator", strategy="array"),
            rf_node("out", "output", name="out"),
        ],
        [
            rf_edge("in", "each"),
            rf_edge("each", "draft"),
            rf_edge("draft", "all"),
            rf_edge("all", "out"),
        ],
    )
    assert validate(read(text).workflow) == []
    assert (await imported(text, lambda call: call.prompt.upper())).out == ["A", "B"]
