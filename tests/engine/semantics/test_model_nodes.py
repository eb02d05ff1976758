"""The node types that call a model: `llm`, and `router` by model."""

from __future__ import annotations

import json

import pytest

from engine.events import NodeCompleted
from engine.models.protocol import Finish, Message, Price, Reply, Usage
from tests.engine.semantics.documents import Part, entry, flow, judge, llm, result, transform
from tests.engine.semantics.kit import play
from tests.engine.semantics.models import FakeModels, FunctionModel, by_node, verdict

_SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def _asks(node: Part) -> object:
    return flow(entry(), node, result(), edges=f"text -> {node.id} -> out")


async def test_an_llm_node_sends_its_prompts_and_outputs_the_reply() -> None:
    played = await play(_asks(llm("draft", "Write: {{input}}", system="You are {{input}}.")), "a reply")

    assert played.out == "a reply"
    (call,) = played.model.calls
    assert call.path == "draft"
    assert call.request.messages == (Message("system", "You are seed."), Message("user", "Write: seed"))


async def test_a_prompt_that_does_not_name_the_input_gets_it_appended() -> None:
    played = await play(_asks(llm("draft", "Improve this.")), "x")

    assert played.model.prompts("draft") == ["Improve this.\n\nseed"]


async def test_an_empty_prompt_is_the_input() -> None:
    played = await play(_asks(llm("draft", "")), "x")

    assert played.model.prompts("draft") == ["seed"]


async def test_line_ends_of_other_systems_reach_the_model_as_newlines() -> None:
    played = await play(_asks(llm("draft", "One.\r\nTwo.\r{{input}}", system="Be\r\nbrief.")), "x", {"text": "a\r\nb"})

    (call,) = played.model.calls
    assert call.request.messages == (Message("system", "Be\nbrief."), Message("user", "One.\nTwo.\na\nb"))


async def test_every_bare_name_in_a_prompt_is_a_port() -> None:
    workflow = flow(
        entry("topic"),
        entry("tone"),
        llm("draft", "About {{topic}}, {{ tone }}."),
        result(),
        edges="topic -> draft.topic\ntone -> draft.tone\ndraft -> out",
    )

    played = await play(workflow, "x", {"topic": "bees", "tone": "dry"})

    assert played.model.prompts("draft") == ["About bees, dry."]


async def test_sampling_settings_reach_the_model() -> None:
    played = await play(_asks(llm("draft", temperature=0.5, max_tokens=7, seed=3)), "x")

    (call,) = played.model.calls
    assert (call.request.temperature, call.request.max_tokens, call.request.seed) == (0.5, 7, 3)


async def test_the_usage_port_reports_tokens_and_price() -> None:
    workflow = flow(entry(), llm("draft"), result(), edges="text -> draft\ndraft.usage -> out")
    model = FunctionModel("x", usage=Usage(10, 4), price=Price(0.5, 0.25))

    played = await play(workflow, model)

    assert played.out == {"input_tokens": 10, "output_tokens": 4, "exact": True, "cost_usd": 6.0}
    assert played.result.usage == Usage(10, 4)
    assert played.result.cost_usd == 6.0


async def test_the_price_reported_by_the_provider_counts() -> None:
    reply = Reply("x", usage=Usage(10, 4), cost_usd=0.125)

    played = await play(_asks(llm("draft")), FunctionModel(reply, price=Price(1.0, 1.0)))

    assert played.result.cost_usd == 0.125


async def test_an_unknown_cost_is_null_and_not_zero() -> None:
    played = await play(_asks(llm("draft")), FunctionModel("x", price=None))

    assert played.result.cost_usd is None
    assert played.result.usage == Usage(10, 5)


async def test_a_structured_reply_is_output_as_json() -> None:
    played = await play(_asks(llm("draft", reply_schema=_SCHEMA)), '{"n": 4}')

    assert played.out == {"n": 4}
    assert played.model.calls[0].request.schema == _SCHEMA


async def test_an_invalid_structured_reply_is_requested_again_with_the_error() -> None:
    played = await play(_asks(llm("draft", reply_schema=_SCHEMA)), by_node(draft=["{}", '{"n": 1}']))

    assert played.out == {"n": 1}
    first, second = played.model.calls
    assert second.request.messages[: len(first.request.messages)] == first.request.messages
    assert second.request.messages[-2] == Message("assistant", "{}")
    assert played.of(NodeCompleted, "draft")[0].warnings


async def test_a_structured_reply_that_never_fits_fails_the_node_after_two_calls() -> None:
    played = await play(_asks(llm("draft", reply_schema=_SCHEMA)), "no", ends="failed")

    assert len(played.model.calls) == 2
    assert played.result.node == "draft"
    assert played.result.remedy


async def test_a_truncated_reply_is_reported() -> None:
    played = await play(_asks(llm("draft")), Reply("cut", finish=Finish.LENGTH))

    (event,) = played.of(NodeCompleted, "draft")
    assert event.warnings
    assert played.out == "cut"


@pytest.mark.parametrize(
    ("node_model", "settings_model", "option", "asked"),
    [
        (None, "a/settings", None, "a/settings"),
        ("a/node", "a/settings", None, "a/node"),
        ("a/node", "a/settings", "a/option", "a/option"),
        (None, None, "a/option", "a/option"),
    ],
)
async def test_the_nodes_model_is_called(
    node_model: str | None, settings_model: str | None, option: str | None, asked: str
) -> None:
    settings = {} if settings_model is None else {"model": settings_model}
    workflow = flow(entry(), llm("draft", model=node_model), result(), edges="text -> draft -> out", settings=settings)
    right, wrong = FunctionModel("right", name=asked), FunctionModel("wrong")

    played = await play(workflow, FakeModels(wrong, **{asked: right}), model=option)

    assert played.out == "right"
    assert {name for name, _ in played.models.asked} == {asked}


@pytest.mark.parametrize(("node_model", "asked"), [(None, "a/default"), ("a/node", "a/node")])
async def test_a_default_model_is_called_if_the_document_names_none(node_model: str | None, asked: str) -> None:
    workflow = flow(entry(), llm("draft", model=node_model), result(), edges="text -> draft -> out")

    played = await play(workflow, FakeModels(FunctionModel("x", name=asked)), default_model="a/default")

    assert {name for name, _ in played.models.asked} == {asked}


async def test_a_server_address_reaches_the_model_catalogue() -> None:
    played = await play(_asks(llm("draft", model="a/b", api_base="http://localhost:1/v1")), "x")

    assert set(played.models.asked) == {("a/b", "http://localhost:1/v1")}


async def test_model_output_is_never_expanded() -> None:
    workflow = flow(
        entry(),
        llm("draft", "{{input}}"),
        transform("wrap", "<{{input}}>"),
        llm("again", "See {{input}} and {{input}}"),
        result(),
        edges="text -> draft -> wrap -> again -> out",
    )

    played = await play(workflow, "{{input}} {{loop.index}} \\{{x}}", {"text": "{{text}}"})

    wrote = "{{input}} {{loop.index}} \\{{x}}"
    assert played.model.prompts("draft") == ["{{text}}"]
    assert played.model.prompts("again") == [f"See <{wrote}> and <{wrote}>"]
    assert played.out == wrote


def _decided(**config: object) -> object:
    return flow(
        entry(),
        judge(**config),
        result("good"),
        result("more"),
        result("why"),
        edges="text -> check\ncheck.done -> good\ncheck.continue -> more\ncheck.reason -> why",
    )


async def test_a_router_requests_branch_and_reason_and_passes_its_input_on_unchanged() -> None:
    played = await play(_decided(criteria="Is {{input}} short?"), verdict("done", "it is"))

    assert played.result.outputs == {"good": "seed", "why": "it is"}
    (call,) = played.model.calls
    assert call.request.schema is not None
    assert call.request.schema["properties"]["branch"]["enum"] == ["done", "continue"]  # type: ignore[index,call-overload]
    sent = "\n".join(message.text for message in call.request.messages)
    assert "Is seed short?" in sent


async def test_a_router_passes_json_on_unchanged() -> None:
    workflow = flow(entry(type="json"), judge(), result("good"), edges="text -> check\ncheck.done -> good")

    played = await play(workflow, verdict("done"), {"text": {"a": [1]}})

    assert played.result.outputs == {"good": {"a": [1]}}


@pytest.mark.parametrize(
    "reply",
    ["Done.", "DONE", " done \n", '"done"', "**Done**", '```json\n{"branch": "done", "reason": ""}\n```'],
)
async def test_a_verdict_is_read_regardless_of_case_and_punctuation(reply: str) -> None:
    played = await play(_decided(), reply)

    assert played.result.outputs["good"] == "seed"
    assert len(played.model.calls) == 1


@pytest.mark.parametrize("reply", ["not done yet", "I think it is done", "yes", "{}", json.dumps({"branch": "no"})])
async def test_an_unreadable_verdict_is_requested_again_and_then_counts_as_continue(reply: str) -> None:
    played = await play(_decided(), reply)

    assert played.result.outputs["more"] == "seed"
    assert "good" not in played.result.outputs
    assert len(played.model.calls) == 2
    (event,) = played.of(NodeCompleted, "check")
    assert len(event.warnings) == 2


async def test_a_verdict_that_is_readable_on_the_second_request_counts() -> None:
    played = await play(_decided(), by_node(check=["hm", verdict("done")]))

    assert played.result.outputs["good"] == "seed"
    (event,) = played.of(NodeCompleted, "check")
    assert len(event.warnings) == 1


async def test_an_unreadable_verdict_fails_without_a_fallback_branch() -> None:
    branches = [{"name": "left"}, {"name": "right"}]
    workflow = flow(entry(), judge(branches=branches), result(), edges="text -> check\ncheck.left -> out")

    played = await play(workflow, "perhaps", ends="failed")

    assert played.result.node == "check"
    assert played.result.remedy
