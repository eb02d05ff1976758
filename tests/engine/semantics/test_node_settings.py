"""Every setting of every node type has an effect. Settings of several types are tested here for each type.

Settings of a single type are tested with that type; `TESTED_ELSEWHERE` lists where, and the last tests check that no
setting is missing.
"""

from __future__ import annotations

import ast
import functools
import json
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from engine import Workflow, validate
from engine.models.protocol import ModelError, ModelErrorKind
from engine.nodes.node_registry import builtin_registry
from engine.nodes.spec import NodeConfig
from tests.engine.semantics.agents import agent
from tests.engine.semantics.documents import around, entry, flow, llm, part, result
from tests.engine.semantics.kit import play
from tests.engine.semantics.models import Call, verdict
from tests.engine.store.memory_store import MemoryStore

ASKING = ("llm", "agent", "router", "judge")
"""What calls a model."""


def asking(kind: str, **config: Any) -> Workflow:
    """A workflow in which the node `ask`, or a loop's judge, calls a model with these settings."""
    if kind == "llm":
        return flow(entry(), llm("ask", **config), result(), edges="text -> ask -> out")
    if kind == "agent":
        return flow(entry(), agent("ask", **config), result(), edges="text -> ask -> out")
    if kind == "router":
        router = part("ask", "router", **{"criteria": "Is it good?", **config})
        return flow(entry(), router, result(), edges="text -> ask\nask.done -> out")
    judge = {"criteria": "It is good.", "retries": 0, **config}
    return around(llm("draft"), edges="loop -> draft -> exit", max_iterations=2, exit_condition="judge", judge=judge)


def says(call: Call) -> str:
    """A reply that each of them accepts."""
    if call.node == "judge":
        return json.dumps({"reason": "because", "score": 3, "done": False})
    return verdict("done") if call.request.schema is not None else "an answer"


def of_the_asker(calls: list[Call]) -> list[Call]:
    return [call for call in calls if call.node in {"ask", "judge"}]


@pytest.mark.parametrize("kind", ASKING)
async def test_model_address_and_sampling_reach_the_call(kind: str) -> None:
    config = {"model": "a/b", "api_base": "http://localhost:1/v1", "temperature": 0.5, "max_tokens": 77, "seed": 3}
    more = {"top_p": 0.9, "stop": ["END"], "reasoning_effort": "low", "extra_parameters": {"top_k": 40}}

    played = await play(asking(kind, **config, **more), says)

    requests = [call.request for call in of_the_asker(played.model.calls)]
    assert requests
    assert {(one.temperature, one.max_tokens, one.seed) for one in requests} == {(0.5, 77, 3)}
    assert {(one.top_p, one.stop, one.reasoning_effort) for one in requests} == {(0.9, ("END",), "low")}
    assert [one.extra_parameters for one in requests] == [{"top_k": 40}] * len(requests)
    assert ("a/b", "http://localhost:1/v1") in played.models.asked


@pytest.mark.parametrize("kind", ["llm", "agent"])
async def test_system_prompt_and_prompt_reach_the_call(kind: str) -> None:
    played = await play(asking(kind, system="You are brief.", prompt="Say: {{input}}"), says)

    (call,) = played.model.calls
    assert [message.text for message in call.request.messages] == ["You are brief.", "Say: seed"]


@pytest.mark.parametrize("kind", ASKING)
async def test_a_cached_reply_is_reused_if_the_setting_allows_it(kind: str) -> None:
    made: dict[str, int] = {}
    for cache in ("off", "always"):
        store = MemoryStore()
        await play(asking(kind, cache=cache), says, store=store)
        made[cache] = len(of_the_asker((await play(asking(kind, cache=cache), says, store=store)).model.calls))

    assert made["off"] > 0
    assert made["always"] == 0


@pytest.mark.parametrize("kind", ASKING)
async def test_a_failed_call_is_retried(kind: str) -> None:
    failures = iter([ModelError(ModelErrorKind.SERVER, "down")])

    def answer(call: Call) -> Any:
        return next(failures, says(call)) if call.node in {"ask", "judge"} else says(call)

    await play(asking(kind, retries=1, retry_delay_s=0), answer)

    assert next(failures, None) is None


@pytest.mark.parametrize(("on_error", "error_value"), [("continue", None), ("continue", False), ("branch", None)])
async def test_a_failing_judge_can_let_the_loop_continue(on_error: str, error_value: Any) -> None:
    def answer(call: Call) -> Any:
        return ModelError(ModelErrorKind.SERVER, "down") if call.node == "judge" else call.path

    played = await play(asking("judge", on_error=on_error, error_value=error_value), answer)

    assert (played.loop.exit_reason, played.loop.iterations_run, played.out) == ("max_iterations", 2, "loop[1].draft")


async def test_a_failing_judge_ends_the_loop_by_default() -> None:
    def answer(call: Call) -> Any:
        return ModelError(ModelErrorKind.SERVER, "down") if call.node == "judge" else call.path

    await play(asking("judge"), answer, ends="failed")


async def test_branch_descriptions_are_sent_to_the_router() -> None:
    branches = [{"name": "done", "description": "It rhymes."}, {"name": "continue", "description": "It does not."}]

    played = await play(asking("router", branches=branches), says)

    (call,) = played.model.calls
    asked = "\n".join(message.text for message in call.request.messages)
    assert "It rhymes." in asked
    assert "It does not." in asked
    assert "Is it good?" in asked


@pytest.mark.parametrize(("named", "is_sound"), [("first", True), ("second", False), ("nobody", False)])
def test_an_aggregator_collects_for_the_iterator_it_names(named: str, is_sound: bool) -> None:
    workflow = flow(
        entry(type="list"),
        part("first", "iterator"),
        llm("a"),
        part("first_end", "aggregator", iterator=named),
        part("second", "iterator"),
        llm("b"),
        part("second_end", "aggregator", iterator="second"),
        result(),
        edges="text -> first -> a -> first_end -> second -> b -> second_end -> out",
    )

    assert (validate(workflow) == []) is is_sound


_ENGINE = Path(__file__).parents[1]
TESTED_ELSEWHERE = {
    "timeout_s": "semantics/test_errors.py",
    "retries": "semantics/test_errors.py",
    "retry_delay_s": "semantics/test_errors.py",
    "on_error": "semantics/test_errors.py",
    "error_value": "semantics/test_errors.py",
    "output_key": "semantics/test_state.py",
    "input.name": "semantics/test_input_output.py",
    "input.type": "semantics/test_input_output.py",
    "input.default": "semantics/test_input_output.py",
    "input.description": "semantics/test_subflow.py",
    "output.name": "semantics/test_input_output.py",
    "llm.reply_schema": "semantics/test_model_nodes.py",
    "llm.may_exit_loop": "semantics/test_exit_loop.py",
    "agent.tools": "semantics/test_agent.py",
    "agent.max_turns": "semantics/test_agent.py",
    "agent.on_max_turns": "semantics/test_agent.py",
    "agent.require_approval": "semantics/test_agent_approval.py",
    "agent.reply_schema": "semantics/test_agent.py",
    "agent.tool_timeout_s": "semantics/test_agent.py",
    "agent.turn_strategy": "semantics/test_agent.py",
    "router.mode": "nodes/test_single_nodes.py",
    "router.branches.when": "nodes/test_single_nodes.py",
    "transform.mode": "nodes/test_single_nodes.py",
    "transform.template": "semantics/test_loop_variables.py",
    "transform.expression": "nodes/test_single_nodes.py",
    "validator.mode": "semantics/test_nodes_without_models.py",
    "validator.json_schema": "semantics/test_nodes_without_models.py",
    "validator.expression": "semantics/test_nodes_without_models.py",
    "validator.message": "semantics/test_nodes_without_models.py",
    "approval.message": "semantics/test_approval.py",
    "approval.answer_within_s": "semantics/test_approval.py",
    "approval.when_unanswered": "semantics/test_approval.py",
    "tool.tool": "nodes/test_tool_node.py",
    "tool.arguments": "nodes/test_tool_node.py",
    "tool.cache": "runner/test_cache.py",
    "loop.max_iterations": "semantics/test_loop_count.py",
    "loop.stop_when": "semantics/test_loop_conditions.py",
    "loop.stop_mode": "semantics/test_loop_conditions.py",
    "loop.judge": "semantics/test_loop_judge.py",
    "loop.judge.rubric": "semantics/test_loop_judge.py",
    "loop.judge.rubric.name": "semantics/test_loop_judge.py",
    "loop.judge.rubric.description": "semantics/test_loop_judge.py",
    "loop.judge.rubric.weight": "semantics/test_loop_judge.py",
    "loop.judge.criteria": "semantics/test_loop_judge.py",
    "loop.judge.threshold": "semantics/test_loop_judge.py",
    "loop.judge.runs": "semantics/test_loop_judge.py",
    "loop.feedback_mode": "semantics/test_loop_feedback.py",
    "loop.append_window": "semantics/test_loop_feedback.py",
    "loop.evaluator": "semantics/test_loop_evaluator.py",
    "loop.on_max_iterations": "semantics/test_loop_count.py",
    "loop.score": "semantics/test_loop_conditions.py",
    "loop.output_mode": "semantics/test_loop_outcome.py",
    "loop.inject_feedback": "semantics/test_loop_feedback.py",
    "loop.condition": "semantics/test_loop_outcome.py",
    "loop.delay_s": "semantics/test_cancellation.py",
    "loop.budget_usd": "semantics/test_budget_loops.py",
    "loop.on_budget": "semantics/test_budget_loops.py",
    "loop.on_timeout": "semantics/test_loop_conditions.py",
    "loop.memory": "semantics/test_loop_memory.py",
    "loop.memory_window": "semantics/test_loop_memory.py",
    "exit.loop": "semantics/test_nested_loops.py",
    "iterator.source": "semantics/test_iterator.py",
    "iterator.items": "semantics/test_iterator.py",
    "iterator.expression": "semantics/test_iterator.py",
    "iterator.max_concurrency": "semantics/test_iterator.py",
    "iterator.on_item_error": "semantics/test_iterator_errors.py",
    "iterator.on_empty": "semantics/test_iterator.py",
    "iterator.condition": "semantics/test_iterator.py",
    "aggregator.mode": "semantics/test_aggregator.py",
    "aggregator.separator": "semantics/test_aggregator.py",
    "aggregator.expression": "semantics/test_aggregator.py",
    "fallback_models": "semantics/test_fallback.py",
    "on_cut_off": "semantics/test_replies.py",
    "allow_empty": "semantics/test_replies.py",
    "subflow.file": "semantics/test_subflow.py",
    "subflow.workflow": "semantics/test_subflow.py",
}
"""By setting (of every type, or of one), the file of tests that shows what it does."""
_SAMPLING = ("model", "api_base", "temperature", "max_tokens", "seed", "top_p", "stop", "reasoning_effort")
_TESTED_HERE = {*_SAMPLING, "extra_parameters", "cache", "system", "prompt", "criteria", "iterator", "branches"}
_TESTED_HERE |= {"branches.name", "branches.description"}


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    for one in (annotation, *typing.get_args(annotation)):
        if isinstance(one, type) and issubclass(one, BaseModel):
            yield one
        elif one is not annotation:
            yield from _models(one)


def _settings(prefix: str, model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        if name not in NodeConfig.model_fields:
            yield f"{prefix}.{name}"
            for inner in _models(field.annotation):
                yield from _settings(f"{prefix}.{name}", inner)


ALL = [setting for spec in builtin_registry() for setting in _settings(spec.type, spec.config)]


@functools.cache
def _words(file: str) -> frozenset[str]:
    """The names, arguments and texts in a test file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse((_ENGINE / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.keyword) and node.arg:
            found.add(node.arg)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
    return frozenset(found)


@pytest.mark.parametrize("setting", [*NodeConfig.model_fields, *ALL])
def test_every_setting_has_a_test(setting: str) -> None:
    name, own = setting.rpartition(".")[2], setting.partition(".")[2].removeprefix("judge.")
    file = TESTED_ELSEWHERE.get(setting) or TESTED_ELSEWHERE.get(name)
    assert file is not None or own in _TESTED_HERE, "add a test of its effect, and name the file above"
    assert name in _words(file or f"semantics/{Path(__file__).name}")


def test_every_listed_setting_exists() -> None:
    names = {setting.rpartition(".")[2] for setting in ALL} | set(NodeConfig.model_fields)
    assert [setting for setting in TESTED_ELSEWHERE if setting not in ALL and setting not in names] == []
