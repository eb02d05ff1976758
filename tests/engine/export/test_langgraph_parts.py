"""Agents, people, iterators, subflows and exit conditions as LangGraph modules: same results, same model calls."""

# pyright: basic, reportOptionalIterable=false, reportGeneralTypeIssues=false, reportArgumentType=false, reportIndexIssue=false

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine import Answer
from engine.models.protocol import Reply
from tests.engine.export.kit import Both, echo, module_of
from tests.engine.semantics.agents import agent, tools_fixture, wants  # noqa: F401 # pyright: ignore[reportUnusedImport] - a fixture is used by its name
from tests.engine.semantics.documents import (
    around,
    each,
    entry,
    flow,
    for_each,
    formula,
    gather,
    leave,
    llm,
    loop,
    part,
    result,
    transform,
)  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

APPROVAL = "text -> check\ncheck.approved -> out\ncheck.rejected -> no\ncheck.comment -> said"


def _add(a: float, b: float = 0) -> float:
    return float(a + b)


def _break(**_arguments: Any) -> Any:
    raise KeyError("a")


ADD: dict[str, Any] = {"add": _add}


def subflow(inner: Any, node_id: str = "part", **config: Any) -> Any:
    return part(node_id, "subflow", file="part.loop.json", workflow=inner.to_json(), **config)


def replies(*script: Any) -> Any:
    """Replies turn by turn, chosen by the number of earlier replies in the conversation."""

    def reply(_node: str, messages: list[tuple[str, str]]) -> Any:
        return script[sum(role == "assistant" for role, _ in messages)]

    return reply


# Exit conditions


@pytest.mark.parametrize("patience", [1, 2])
@pytest.mark.parametrize("exit_when", ["any", "all"])
async def test_plateau_and_max_iterations_end_a_loop(patience: int, exit_when: str):
    score = "[1.0, 4.0, 4.0, 3.0, 9.0, 9.0, 9.0][loop.index]"
    listed = [
        {"condition": "plateau", "patience": patience, "epsilon": 0.5},
        {"condition": "max_iterations", "count": 5},
    ]
    workflow = around(
        llm("draft"), edges="loop -> draft -> exit", score=score, exit_conditions=listed, exit_when=exit_when,
        max_iterations=7,
    )  # fmt: skip
    both = await Both(workflow).play()
    both.check("loop")


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ({"condition": "plateau", "patience": 2}, "plateau"),
        ({"condition": "score", "minimum": 5.0}, "score_reached"),
        ({"condition": "score", "minimum": 5.1}, "max_iterations"),
    ],
)
async def test_a_judges_score_counts_for_a_condition(condition: dict[str, object], reason: str):
    def reply(node: str, messages: list[tuple[str, str]]) -> str:
        return json.dumps({"reason": "so", "score": 5, "done": False}) if node == "judge" else echo(node, messages)

    workflow = around(
        llm("draft"),
        edges="loop -> draft -> exit",
        judge={"criteria": "good"},
        stop_when=[condition],
        max_iterations=9,
    )
    both = await Both(workflow, reply).play()
    both.check("loop")
    assert both.ours.loop.exit_reason == reason


@pytest.mark.parametrize("results", ["['this', 'that', 'other', 'this']", "['one', 'one', 'two', 'one']"])
async def test_an_oscillation_ends_a_loop(results: str):
    body = formula("swing", f"{results}[loop.index]")
    listed = [{"condition": "oscillation", "threshold": 1.0}]
    workflow = around(body, edges="loop -> swing -> exit", exit_conditions=listed, max_iterations=9)
    both = await Both(workflow).play()
    both.check("loop")
    assert (both.ours.loop.exit_reason, both.ours.loop.iterations_run) == ("oscillation", 4)


@pytest.mark.parametrize("memory", [{"memory": "accumulate"}, {"memory": "window", "memory_window": 2}])
async def test_models_remember_earlier_iterations(memory: dict[str, Any]):
    body = (llm("draft", system="Be brief."), llm("critique"))
    both = await Both(around(*body, edges="loop -> draft -> critique -> exit", max_iterations=4, **memory)).play()
    both.check("loop")
    assert len(both.their_calls[-1][1]) == (7 if memory["memory"] == "accumulate" else 5)


def spending(workflow: Any, dollars_a_call: float) -> dict[str, Any]:
    """Run a module whose model calls have this cost, and return the final state."""
    both = Both(workflow)
    module = module_of(both.exported.text)

    def ask(messages: list[Any], *, node: str, **_settings: Any) -> str:
        module.add_cost("fake/model", SimpleNamespace(prompt_tokens=0, completion_tokens=10))
        return echo(node, [(message["role"], message["content"]) for message in messages])

    module.__dict__["ask"] = ask
    module.PRICES["fake/model"] = (0.0, dollars_a_call / 10)
    return module.build().invoke(
        {"_inputs": {"text": "seed"}, "_values": {}, "_loops": {}, "_named": {}, "_agents": {}}
    )


@pytest.mark.parametrize(
    "config",
    [
        {"exit_conditions": [{"condition": "budget", "budget_usd": 0.5}]},
        {"until": "cost_usd >= 0.5"},
        {"budget_usd": 0.5, "on_budget": "return_last"},
    ],
    ids=str,
)
def test_a_budget_ends_a_loop(config: dict[str, Any]):
    workflow = around(llm("draft"), edges="loop -> draft -> exit", max_iterations=9, **config)
    ended = spending(workflow, 0.2)["_values"]["loop"]
    assert (ended["count"], ended["converged"]) == (3, "until" in config)


def test_a_run_with_a_used_up_budget_makes_no_more_calls():
    workflow = flow(entry(), llm("a"), llm("b"), result(), edges="text -> a -> b -> out", settings={"budget_usd": 0.5})
    module = module_of(Both(workflow).exported.text)
    module.SPENT.append(0.6)
    with pytest.raises(RuntimeError, match=r"The budget of 0\.5 US dollars is used up\."):
        module.ask([], node="a")


def test_a_time_limit_ends_a_loop_after_an_iteration():
    limit = {"timeout_s": 1e-9, "on_timeout": "return_last"}
    workflow = around(llm("draft"), edges="loop -> draft -> exit", max_iterations=9, **limit)
    both = Both(workflow)
    both.run_module({"text": "seed"})
    ended = both.end["_values"]["loop"]
    assert (ended["count"], ended["exit_reason"], ended["converged"]) == (1, "timeout", False)


async def test_a_model_can_exit_its_loop():
    def reply(node: str, messages: list[tuple[str, str]]) -> str | Reply:
        calls = both.our_calls if not both.their_calls else both.their_calls
        if node == "refine" and sum(one == "refine" for one, _ in calls) == 3:
            return wants(("exit_loop", {}))
        return echo(node, messages)

    body = (llm("critic"), llm("refine", may_exit_loop=True), transform("never", "{{input}}!"))
    both = Both(around(*body, edges="loop -> critic -> refine -> never -> exit", max_iterations=5), reply)
    await both.play()
    both.check("loop")
    assert both.ours.loop.exit_reason == "exit_loop"


async def test_exit_loop_ends_the_innermost_loop_only():
    body = (
        loop("inner", max_iterations=4), llm("draft", may_exit_loop=True), leave("end", "inner"),
        transform("join", "{{input}}+"),
    )  # fmt: skip
    edges = "loop -> inner -> draft -> end\nend -> join -> exit"
    both = await Both(around(*body, edges=edges, max_iterations=3), lambda _n, _m: wants(("exit_loop", {}))).play()
    both.check("loop")
    assert len(both.their_calls) == 3


# Iterators


@pytest.mark.parametrize(
    "gathered",
    [
        {}, {"mode": "join", "separator": "; "}, {"mode": "first"}, {"mode": "vote"},
        {"mode": "expression", "expression": "results.map(r, r + '!').filter(r, size(items) == 3)"},
    ],
    ids=str,
)  # fmt: skip
async def test_an_iterator_processes_each_item_and_its_aggregator_joins(gathered: dict[str, Any]):
    workflow = for_each(llm("say", "{{item}} {{index}}"), edges="each.item -> say -> gather", gathered=gathered)
    both = await Both(workflow).play()
    both.check(in_order=False)
    assert len(both.their_calls) == 3


@pytest.mark.parametrize(
    "config",
    [
        {"source": "list", "items": ["x", {"y": 1}]},
        {"source": "expression", "expression": "items.map(i, i + i)"},
        {"condition": "size(items) > 5"},
        {"max_concurrency": 1},
    ],
    ids=str,
)
async def test_items_come_from_any_source(config: dict[str, Any]):
    both = await Both(for_each(llm("say", "{{input}}"), edges="each.item -> say -> gather", **config)).play()
    both.check(in_order=False)


@pytest.mark.parametrize("on_item_error", ["skip", "collect"])
async def test_a_failed_item_is_skipped(on_item_error: str):
    body = formula("third", "[1, 2, 3][size(item)]")
    workflow = for_each(body, edges="each.item -> third\nthird -> gather", on_item_error=on_item_error)
    both = await Both(workflow).play({"items": ["a", "four", "bb"]})
    both.check()
    assert both.theirs == {"out": [2, 3] if on_item_error == "skip" else [2, None, 3]}


async def test_loops_in_iterators_and_iterators_in_loops():
    inner = (loop("deep", max_iterations=2), llm("draft", "{{input}} {{item}} {{loop.index}}"), leave("end", "deep"))
    workflow = for_each(*inner, edges="each.item -> deep -> draft -> end\nend -> gather")
    both = await Both(workflow).play()
    both.check(in_order=False)
    assert len(both.their_calls) == 6
    body = (
        each(source="expression", expression="[items, 'x']"), llm("say", "{{item}} of {{loop.iteration}}: {{start}}"),
        gather(mode="join"),
    )  # fmt: skip
    edges = "loop.body -> each.items\neach.item -> say.input\nloop.body -> say.start\nsay -> gather\ngather -> exit"
    both = await Both(around(*body, edges=edges, max_iterations=2)).play()
    both.check("loop", in_order=False)


async def test_items_that_share_named_state_run_one_after_the_other():
    body = transform("add", "{{state.sum}}{{item}}", output_key="sum")
    workflow = for_each(body, edges="each.item -> add.input\nadd -> gather", max_concurrency=1)
    both = await Both(workflow).play()
    both.check()
    assert both.theirs == {"out": ["a", "ab", "abc"]}


# Subflows


async def test_a_subflow_is_a_separate_graph():
    inner = flow(
        entry("given"), entry("tone", default="kindly"), llm("draft", "{{input}} {{tone}} {{state.note}}"),
        transform("note", "{{input}}", output_key="note"), result("made"),
        edges="given -> draft\ntone -> draft.tone\ndraft -> note -> made",
    )  # fmt: skip
    outer = flow(
        entry(), subflow(inner), subflow(inner, "again"), transform("keep", output_key="note"),
        llm("draft", "{{input}} {{state.note}}"), result(),
        edges="text -> keep -> part.given\npart.made -> again.given\nagain.made -> draft -> out",
    )  # fmt: skip
    both = await Both(outer).play()
    both.check()
    assert [node for node, _ in both.their_calls] == ["draft"] * 3


async def test_subflows_in_loops_and_in_subflows():
    deepest = flow(entry("given"), llm("draft"), result("made"), edges="given -> draft -> made")
    middle = flow(
        entry("given"), loop(max_iterations=2), subflow(deepest), leave(), result("made"),
        edges="given -> loop\nloop -> part.given\npart.made -> exit\nexit -> made",
    )  # fmt: skip
    workflow = around(subflow(middle), edges="loop -> part.given\npart.made -> exit", max_iterations=2)
    both = await Both(workflow).play()
    both.check("loop")
    assert len(both.their_calls) == 4


# Agents and people


async def test_an_agent_calls_tools_until_it_is_done(tools: Any):
    script = replies(wants(("add", {"a": 1, "b": 2}), ("none", {}), text="First."), wants(("break", {"a": 1})), "")

    def reply(node: str, messages: list[tuple[str, str]]) -> str | Reply:
        return "Three." if messages[-1][1].startswith("You said nothing") else script(node, messages)

    workflow = flow(
        entry(), agent("agent", tools=["add", "break"], system="Work.", retries=1, retry_delay_s=0),
        result(), result("steps"), result("status"),
        edges="text -> agent -> out\nagent.steps -> steps\nagent.status -> status",
    )  # fmt: skip
    both = Both(workflow, reply)
    with_break = {**ADD, "break": _break}
    await both.play(tools=with_break)
    assert (both.theirs["out"], both.theirs["status"]) == ("Three.", "finished")
    theirs, ours = [
        [(step["turn"], step["tool"], step["result"]) for step in steps]
        for steps in cast("list[Any]", [both.theirs["steps"], both.ours.result.outputs["steps"]])
    ]
    assert theirs == ours
    assert both.their_calls[1][1][:4] == both.our_calls[1][1][:4]  # the message for an unknown tool differs
    assert len(both.their_calls) == len(both.our_calls) == 4


@pytest.mark.parametrize("on_max_turns", ["return_last", "flag"])
async def test_an_agent_reaches_max_turns(tools: Any, on_max_turns: str):
    workflow = flow(
        entry(), agent("agent", tools=["add"], max_turns=2, on_max_turns=on_max_turns), result(), result("status"),
        edges="text -> agent -> out\nagent.status -> status",
    )  # fmt: skip
    both = await Both(workflow, lambda _n, _m: wants(("add", {"a": 1}), text="Still at it.")).play(tools=ADD)
    assert both.theirs == both.ours.result.outputs == {"out": "Still at it.", "status": "max_turns"}


async def test_an_agent_finishes_with_an_answer_of_its_schema():
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}}, "required": ["n"]}
    script = (wants(("finish", {"answer": {"n": 1}})), wants(("finish", {"answer": {"n": 4}})))
    workflow = flow(entry(), agent("agent", reply_schema=schema), result(), edges="text -> agent -> out")
    both = await Both(workflow, replies(*script)).play()
    both.check()
    assert both.theirs == {"out": {"n": 4}}


@pytest.mark.parametrize("answer", [{"N": "4"}, "{'n': 4,}", '{"n": 4}', 'It is {"n": "4"}'], ids=str)
async def test_a_final_answer_is_parsed_in_any_dialect(answer: Any):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    workflow = flow(entry(), agent("agent", reply_schema=schema), result(), edges="text -> agent -> out")
    for script in (wants(("finish", {"answer": answer})), str(answer)):
        both = await Both(workflow, replies(script)).play()
        both.check()
        assert both.theirs == {"out": {"n": 4}}


async def test_an_agent_with_an_invalid_answer_is_asked_again():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    workflow = flow(entry(), agent("agent", reply_schema=schema), result(), edges="text -> agent -> out")
    both = await Both(workflow, replies('{"n": 1} {"n": 2}', '{"n": 3}')).play()
    both.check()
    assert both.theirs == {"out": {"n": 3}}
    assert "differ" in both.their_calls[1][1][-1][1]


async def test_an_agent_in_a_loop_remembers_and_exits_it():
    def reply(_node: str, messages: list[tuple[str, str]]) -> str | Reply:
        turn = sum(role == "assistant" for role, _ in messages)
        return wants(("exit_loop", {})) if turn == 2 else f"Version {turn}."

    body = agent("agent", tools=["exit_loop"])
    workflow = around(body, edges="loop -> agent -> exit", max_iterations=5, memory="accumulate")
    both = await Both(workflow, reply).play()
    both.check("loop")
    assert (both.ours.loop.exit_reason, both.theirs) == ("exit_loop", {"out": "Version 1."})


async def test_an_agent_with_a_single_call():
    workflow = flow(entry(), agent("agent", turn_strategy="single_call"), result(), edges="text -> agent -> out")
    both = await Both(workflow).play()
    both.check()


@pytest.mark.parametrize(
    ("answer", "gives"),
    [
        (Answer("approve", comment="fine"), {"out": "seed", "said": "fine"}),
        (Answer("approve", value="seedling"), {"out": "seedling", "said": ""}),
        (Answer("reject", comment="no"), {"no": "seed", "said": "no"}),
    ],
    ids=str,
)
async def test_a_person_approves_rejects_or_edits(answer: Answer, gives: dict[str, Any]):
    parts = (entry(), part("check", "approval", message="{{input}}?"), result(), result("no"), result("said"))
    both = await Both(flow(*parts, edges=APPROVAL), answers=[answer]).play()
    both.check()
    assert both.theirs == gives
    (asked,) = both.their_questions
    assert (asked["message"], asked["value"], asked["choices"]) == ("seed?", "seed", ["approve", "reject"])


async def test_waiting_for_a_person_repeats_no_call(tools: Any):
    script = (wants(("add", {"a": 1, "b": 1})), wants(("ask_person", {"question": "Which one?"})), "Done.")
    helper = agent("helper", tools=["add", "ask_person"], require_approval=["add"])
    body = (llm("draft"), helper, part("check", "approval"))
    edges = "loop -> draft -> helper -> check\ncheck.approved -> exit"
    workflow = around(*body, edges=edges, max_iterations=2)
    answers = [Answer("reject", comment="Not that."), Answer("answer", value="The blue one."), Answer("approve")]

    def reply(node: str, messages: list[tuple[str, str]]) -> str | Reply:
        return replies(*script)(node, messages) if node == "helper" else echo(node, messages)

    both = await Both(workflow, reply, [*answers, *answers]).play(tools=ADD)
    both.check("loop")
    assert len(both.their_calls) == 8


async def test_a_person_is_asked_about_each_item():
    body = (llm("say", "{{item}}"), part("check", "approval"))
    workflow = for_each(
        *body, edges="each.item -> say.input\nsay -> check\ncheck.approved -> gather", max_concurrency=1
    )
    both = await Both(workflow, answers=[Answer("approve", value=one) for one in "xyz"]).play()
    both.check()
    assert both.theirs == {"out": ["x", "y", "z"]}


# Errors


@pytest.mark.parametrize("on_error", [{"on_error": "continue", "error_value": "none"}, {"on_error": "branch"}], ids=str)
async def test_a_failed_node_can_let_the_run_continue(on_error: dict[str, Any]):
    body = formula("third", "[1, 2][size(input)]", **on_error)
    parts, edges = (entry(), body, result()), "text -> third -> out"
    if on_error["on_error"] == "branch":
        parts, edges = (*parts, result("why")), f"{edges}\nthird.error -> why"
    both = await Both(flow(*parts, edges=edges)).play()
    assert both.theirs.keys() == both.ours.result.outputs.keys()
    assert both.theirs.get("out") == both.ours.result.outputs.get("out")


def test_a_failed_call_is_retried_as_often_as_the_workflow_says():
    workflow = flow(entry(), llm("draft", retries=2, retry_delay_s=0.0), result(), edges="text -> draft -> out")
    module, asked = module_of(Both(workflow).exported.text), list[str]()

    def ask(_messages: list[Any], *, node: str, **_settings: Any) -> str:
        asked.append(node)
        if len(asked) < 3:
            raise ConnectionError
        return "at last"

    module.__dict__["ask"] = ask
    assert module.run({"text": "x"}) == {"out": "at last"}
