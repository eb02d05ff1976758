"""Single nodes: their requests to a model, outputs, warnings and errors."""

from __future__ import annotations

from typing import Any

import pytest

from engine.models.protocol import Finish, Message, ModelChoice, Reply
from engine.nodes.context import IterationNote
from engine.nodes.node_registry import builtin_registry
from engine.nodes.spec import NodeError
from engine.values import Value
from tests.engine.nodes.context import FakeServices, run_node
from tests.wording import mentions


def spec_of(node_type: str) -> Any:
    return builtin_registry().find(node_type)


def summary(node_type: str, **config: Any) -> str:
    spec = spec_of(node_type)
    return spec.summary(spec.config.model_validate(config))


async def test_an_input_outputs_the_value_of_the_run_unchanged() -> None:
    services = FakeServices(parameters={"who": '"Ada"', "here": 5})

    assert (await run_node("input", {"name": "who", "type": "json"}, services=services)).outputs == {"value": '"Ada"'}
    assert (await run_node("input", {}, services=services)).outputs == {"value": 5}


def test_a_default_of_the_wrong_type_is_a_problem() -> None:
    spec = spec_of("input")

    (fault,) = spec.check(spec.config.model_validate({"type": "number", "default": "many"}))

    assert (fault.code, fault.field) == ("bad-default", "default")
    assert mentions(fault.message, 'default … number: … "many" is not a number')
    assert list(spec.check(spec.config.model_validate({"type": "number", "default": "5"}))) == []


async def test_an_llm_renders_its_prompt_and_appends_an_input_that_it_does_not_name() -> None:
    named = await run_node(
        "llm", {"system": "Be {{how}}.", "prompt": "On {{input}}."}, {"input": "sea", "how": "short"}, "a"
    )
    behind = await run_node("llm", {"prompt": "Shorten."}, {"input": ["x"]}, "a")
    alone = await run_node("llm", {"prompt": "Hello."}, {}, "a")

    assert named.services.requests[0].messages == (Message("system", "Be short."), Message("user", "On sea."))
    assert behind.services.requests[0].messages == (Message("user", 'Shorten.\n\n["x"]'),)
    assert alone.services.requests[0].messages == (Message("user", "Hello."),)


async def test_the_iteration_note_is_at_the_end_of_the_prompt() -> None:
    ran = await run_node("llm", {"prompt": "Go."}, {"input": "x"}, "a", note=IterationNote(1, 2, None))

    assert ran.services.requests[0].messages[-1].text == "Go.\n\nx\n\nThis is iteration 1 of 2."


DRAFT = "A draft that is long enough to stand there by no chance"


@pytest.mark.parametrize("prompt", ["Go.", ""])
def test_the_iteration_note_of_the_first_iteration_is_the_number_alone(prompt: str) -> None:
    note = "This is iteration 1 of 3."
    assert IterationNote(1, 3, None).added_to(prompt) == "\n\n".join(filter(None, [prompt, note]))


@pytest.mark.parametrize(
    ("previous", "prompt", "quoted"),
    [
        ("a draft", "Go.", "a draft"),
        (DRAFT, f"Go: {DRAFT}.", None),
        (DRAFT, "Go: a draft.", DRAFT),
        (5, "Give a number from 1 to 15.", "5"),
        ("x" * 39, "x" * 39, "x" * 39),
        ("x" * 40, "x" * 40, None),
        ({"b": 1, "a": "{{x}}"}, "Go.", '{"a":"{{x}}","b":1}'),
        (None, "Go.", ""),
    ],
)
def test_the_iteration_note_has_the_number_and_the_previous_result_unless_the_prompt_has_it(
    previous: Value, prompt: str, quoted: str | None
) -> None:
    before, note = IterationNote(2, 3, previous).added_to(prompt).rsplit("\n\nThis is iteration 2 of 3. ")
    assert before == prompt
    assert note.split("\n")[1:-2] == ([] if quoted is None else [quoted])


@pytest.mark.parametrize(
    ("finish", "warning"), [(Finish.LENGTH, "cut off"), (Finish.CONTENT_FILTER, "content filter"), (Finish.STOP, "")]
)
async def test_a_truncated_reply_is_a_warning(finish: Finish, warning: str) -> None:
    ran = await run_node("llm", {"prompt": "Go."}, {}, Reply("Hal", finish))

    assert ran.outputs["output"] == "Hal"
    assert [warning in expected_summary for expected_summary in ran.context.warnings] == [True] * bool(warning)


async def test_model_settings_are_sent_with_the_call() -> None:
    config = {"model": "openai/x", "api_base": "http://h/v1", "temperature": 0.5, "max_tokens": 7, "seed": 3}

    ran = await run_node("llm", {"prompt": "Go.", **config}, {}, "a")

    (request,) = ran.services.requests
    assert ran.services.choices == [ModelChoice("openai/x", "http://h/v1")]
    assert (request.temperature, request.max_tokens, request.seed, request.schema) == (0.5, 7, 3, None)
    assert request.path == "here"


async def test_the_port_usage_is_null_without_a_model_call() -> None:
    services = FakeServices(["a"])
    spec = spec_of("llm")
    ran = await run_node("llm", {"prompt": "Go."}, services=services)

    assert ran.outputs["usage"] == {"input_tokens": 3, "output_tokens": 2, "exact": True, "cost_usd": 0.0}
    assert [port.name for port in spec.outputs(spec.config())] == ["output", "usage"]


async def test_an_invalid_structured_reply_is_requested_again_with_the_error() -> None:
    schema: dict[str, Value] = {"type": "object", "required": ["a"]}

    ran = await run_node("llm", {"prompt": "Go.", "reply_schema": schema}, {}, "No.", '{"a": 1}')

    first, second = ran.services.requests
    assert ran.outputs["output"] == {"a": 1}
    assert (first.schema, second.schema) == (schema, schema)
    said, asked = second.messages[len(first.messages) :]
    assert said == Message("assistant", "No.")
    assert asked.role == "user"
    assert mentions(asked.text, "not be read: … no JSON … Answer again"), asked.text


async def test_two_invalid_structured_replies_are_a_retryable_error() -> None:
    with pytest.raises(NodeError) as caught:
        await run_node("llm", {"prompt": "Go.", "reply_schema": {"required": ["a"]}}, {}, "No.", "{}")

    assert caught.value.retryable
    assert mentions(caught.value.message, 'asked twice: the value: "a" … required')


async def test_a_router_sends_criteria_branches_and_the_value() -> None:
    ran = await run_node(
        "router", {"criteria": "Is {{input}} good?"}, {"input": "it"}, '{"branch": "done", "reason": "r"}'
    )

    system, user = ran.services.requests[0].messages
    assert mentions(system.text, '"reason": … "branch": "done" or "continue"')
    assert user.text == (
        "Criteria:\nIs it good?\n\nBranches:\n- done: the criteria are met\n- continue: the criteria are not met yet"
        "\n\nThe work:\nit"
    )
    assert ran.outputs == {"done": "it", "reason": "r"}


async def test_a_router_with_two_unreadable_verdicts_warns_and_continues() -> None:
    ran = await run_node("router", {"criteria": "?"}, {"input": 5}, "perhaps", "not done")

    assert ran.outputs["continue"] == 5
    assert len(ran.context.warnings) == 2
    assert ran.services.requests[1].messages[-1].text.startswith("That could not be read: ")


async def test_a_router_without_a_safe_branch_fails_on_unreadable_verdicts() -> None:
    branches = [{"name": "a"}, {"name": "b"}]

    with pytest.raises(NodeError, match="asked twice") as caught:
        await run_node("router", {"criteria": "?", "branches": branches}, {"input": 5}, "?", "?")

    assert caught.value.retryable


@pytest.mark.parametrize(
    ("rules", "parts"),
    [
        ({"a": "size(input)"}, 'branch "a" returned 1, not true or false'),
        ({"a": "null"}, 'branch "a" returned null, not true or false'),
        ({"a": "false", "b": "1 > 2"}, "No rule … true"),
    ],
)
async def test_rules_without_a_decision_are_an_error(rules: dict[str, str], parts: str) -> None:
    branches = [{"name": name, "when": rule} for name, rule in rules.items()]

    with pytest.raises(NodeError) as caught:
        await run_node("router", {"mode": "rules", "branches": branches}, {"input": "x"})

    assert mentions(caught.value.message, parts), caught.value.message


@pytest.mark.parametrize(
    ("outputs", "recorded"),
    [
        ({"done": "x", "reason": "r"}, {"selected_branch": "done", "value": "x", "reason": "r"}),
        ({"error": "no"}, {"selected_branch": None, "value": None, "reason": None}),
    ],
)
def test_a_router_is_recorded_with_branch_value_and_reason(outputs: Any, recorded: Any) -> None:
    assert spec_of("router").recorded(outputs) == recorded


@pytest.mark.parametrize(
    ("config", "value", "outputs"),
    [
        ({"json_schema": {"type": "number"}}, "5", {"valid": 5, "errors": []}),
        ({"json_schema": {"type": "number"}}, 5, {"valid": 5, "errors": []}),
        (
            {"json_schema": {"type": "number"}},
            "five",
            {
                "invalid": "five",
                "errors": ["the text is not JSON (Expecting value: line 1 column 1 (char 0))."],
            },
        ),
        ({}, "NaN", {"invalid": "NaN", "errors": ["the text is not JSON (NaN is not a JSON value)."]}),
        (
            {},
            "1e999",
            {
                "invalid": "1e999",
                "errors": ["the text is not JSON (1e999 is too large a number)."],
            },
        ),
        (
            {},
            "[" * 100_000,
            {
                "invalid": "[" * 100_000,
                "errors": ["the text is not JSON (lists and objects are nested too deeply)."],
            },
        ),
        ({"mode": "expression", "expression": "size(input) < 3"}, "ab", {"valid": "ab", "errors": []}),
        (
            {"mode": "expression", "expression": "size(input) < 3", "message": "too long"},
            "abc",
            {"invalid": "abc", "errors": ["too long"]},
        ),
        (
            {"mode": "expression", "expression": "size(input) < 3"},
            "abc",
            {"invalid": "abc", "errors": ["not true: size(input) < 3"]},
        ),
    ],
)
async def test_a_validator_passes_a_valid_value_and_reports_errors(config: Any, value: Value, outputs: Any) -> None:
    assert (await run_node("validator", config, {"input": value})).outputs == outputs


def test_a_validator_is_recorded_with_its_verdict() -> None:
    recorded = spec_of("validator").recorded

    assert recorded({"valid": 1, "errors": []}) == {"valid": True, "value": 1, "errors": []}
    assert recorded({"invalid": 1, "errors": ["e"]}) == {"valid": False, "value": 1, "errors": ["e"]}


def test_the_default_recorded_value_is_the_output() -> None:
    recorded = spec_of("llm").recorded

    assert recorded({"output": 1, "usage": {}}) == 1
    assert recorded({"error": "no"}) is None


@pytest.mark.parametrize(
    ("node_type", "config", "expected_summary"),
    [
        ("input", {"type": "number"}, "Number, required"),
        ("input", {"default": "x"}, "Text, optional"),
        ("output", {"name": "answer"}, "answer"),
        ("llm", {}, "default model"),
        ("llm", {"model": "openrouter/a/b", "temperature": 0.5}, "b · temperature 0.5"),
        ("llm", {"reply_schema": {}}, "default model · structured"),
        ("router", {}, "done / continue · default model"),
        ("router", {"mode": "rules"}, "done / continue · by rules"),
        ("transform", {}, "Template"),
        ("aggregator", {"mode": "vote"}, "Most frequent result"),
        ("validator", {}, "JSON Schema"),
        ("validator", {"mode": "expression"}, "true"),
        ("loop", {"max_iterations": 3}, "at most 3"),
        ("loop", {"max_iterations": 3, "stop_when": [{"condition": "stable_output"}]}, "at most 3 · stable text"),
        ("exit", {"loop": "outer"}, "outer"),
    ],
)
def test_the_summary_of_a_node(node_type: str, config: dict[str, Any], expected_summary: str) -> None:
    assert summary(node_type, **config) == expected_summary
