"""Empty replies, refusals, and truncated replies, for every node type that calls a model."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from engine import RunResult
from engine.events import AnyEvent, NodeCompleted, NodeFailed, NodeRetrying
from engine.models.protocol import (
    Finish,
    Message,
    ModelCall,
    ModelError,
    ModelErrorKind,
    Reply,
    Request,
    ToolCall,
    Usage,
)
from engine.nodes.context import CONTINUE, MAX_CONTINUATIONS, is_context_full, join, rest_request
from engine.store.resume import resume
from engine.store.run_file import head_of
from tests.engine.semantics.documents import around, llm
from tests.engine.semantics.kit import Played, options, play
from tests.engine.semantics.models import Call, FakeModels, FunctionModel, by_node
from tests.engine.semantics.test_node_settings import ASKING, asking, of_the_asker, says
from tests.engine.store.memory_store import MemoryStore

SPENT = Usage(10, 5)
SECRET = "a thought that nobody else may see"

EMPTY = {
    "nothing": Reply(""),
    "spaces": Reply("  \u00a0"),
    "lines": Reply("\n\r\n\t"),
    "reasoning alone": Reply("", reasoning=SECRET),
    "reasoning and space": Reply(" \n", reasoning=SECRET),
    "reasoning that used up the limit": Reply("", Finish.LENGTH, reasoning=SECRET),
    "another end": Reply("", Finish.OTHER),
    "a tool that nobody offered": Reply("", Finish.TOOL_CALLS, tool_calls=(ToolCall("1", "weather", {}),)),
}
REFUSALS = {
    "refusal": Reply("", refusal="I can't help\nwith that."),
    "refusal beside a text": Reply("Sorry.", refusal="I can't help\nwith that."),
    "content filter": Reply("", Finish.CONTENT_FILTER),
    "content filter after reasoning": Reply(" ", Finish.CONTENT_FILTER, reasoning=SECRET),
}
UNUSABLE = EMPTY | REFUSALS
# An agent has tools: a call of an unknown one is an error that is reported to its model.
CASES = [
    (kind, name) for kind in ASKING for name in UNUSABLE if (kind, name) != ("agent", "a tool that nobody offered")
]


def bad_first(reply: Reply, times: int = 1) -> Any:
    """A model that gives a valid reply after a number of calls."""
    left = [replace(reply, usage=SPENT)] * times

    def answer(call: Call) -> Any:
        return left.pop() if left and call.node in {"ask", "judge"} else Reply(says(call), usage=SPENT)

    return answer


@pytest.mark.parametrize(("kind", "name"), CASES)
async def test_an_invalid_reply_is_a_failure_and_retried(kind: str, name: str) -> None:
    played = await play(asking(kind, retries=1, retry_delay_s=0), bad_first(UNUSABLE[name]))

    (retrying,) = played.of(NodeRetrying)
    completed = played.of(NodeCompleted, retrying.path)[0]
    assert completed.calls[0].reply.text == UNUSABLE[name].text
    assert completed.usage == SPENT + SPENT
    assert played.result.usage.total_tokens == SPENT.total_tokens * len(played.model.calls)


@pytest.mark.parametrize(("kind", "name"), CASES)
async def test_the_failure_is_stored_with_the_reply_and_its_cost(kind: str, name: str) -> None:
    played = await play(asking(kind, retries=0), bad_first(UNUSABLE[name], 9), ends="failed")

    (failed,) = [event for event in played.of(NodeFailed) if event.calls]
    (call,) = failed.calls
    assert call.reply == replace(UNUSABLE[name], usage=SPENT)
    assert (failed.usage, failed.remedy != "") == (SPENT, True)
    assert played.result.node == failed.path
    assert SECRET not in str(played.result.to_json())


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("nothing", "empty"),
        ("spaces", "empty"),
        ("reasoning alone", "reasoning and no answer"),
        ("reasoning that used up the limit", "reasoning and no answer"),
        ("a tool that nobody offered", '"weather"'),
        ("refusal", "“I can't help with that.”"),
        ("refusal beside a text", "“I can't help with that.”"),
        ("content filter", "content filter"),
    ],
)
async def test_the_failure_names_its_kind(name: str, answers: str) -> None:
    played = await play(asking("llm"), UNUSABLE[name], ends="failed")

    assert answers in played.result.error
    assert "\n" not in played.result.error


async def test_a_long_refusal_is_truncated() -> None:
    played = await play(asking("llm"), Reply("", refusal="no, " * 10_000), ends="failed")

    assert len(played.result.error) < 500


async def test_a_reply_without_room_for_text_says_to_raise_max_tokens() -> None:
    played = await play(asking("llm"), EMPTY["reasoning that used up the limit"], ends="failed")

    assert "Max tokens" in played.result.remedy


@pytest.mark.parametrize("name", [name for name in EMPTY if name != "a tool that nobody offered"])
@pytest.mark.parametrize("kind", ["llm", "agent"])
async def test_a_node_can_allow_empty_replies(kind: str, name: str) -> None:
    played = await play(asking(kind, allow_empty=True), EMPTY[name])

    assert played.out == EMPTY[name].text
    assert len(played.model.calls) == 1


@pytest.mark.parametrize("kind", ["router", "judge"])
async def test_an_allowed_empty_verdict_is_unreadable(kind: str) -> None:
    def answer(call: Call) -> str:
        return "" if call.node in {"ask", "judge"} else call.path

    played = await play(asking(kind, allow_empty=True), answer)

    assert len(of_the_asker(played.model.calls)) >= 2
    assert played.result.outputs.get("out") != "seed"


@pytest.mark.parametrize("name", REFUSALS)
async def test_a_refusal_is_never_allowed_as_an_empty_reply(name: str) -> None:
    await play(asking("llm", allow_empty=True), REFUSALS[name], ends="failed")


async def test_on_error_applies_to_an_empty_reply_as_to_any_failure() -> None:
    played = await play(asking("llm", on_error="continue", error_value="instead"), "")

    assert played.out == "instead"


async def test_an_empty_reply_is_not_cached() -> None:
    store = MemoryStore()
    await play(asking("llm", cache="always"), "", ends="failed", store=store)

    played = await play(asking("llm", cache="always"), "an answer", store=store)

    assert (played.out, len(played.model.calls)) == ("an answer", 1)


async def test_the_budget_counts_an_empty_reply() -> None:
    played = await play(
        asking("llm", retries=3, retry_delay_s=0, max_tokens=5),
        FunctionModel("", usage=Usage(0, 5)),
        ends="failed",
        budget_tokens=200,
    )

    assert played.result.usage.output_tokens == 5 * len(played.model.calls)


async def test_resume_does_not_pay_again_for_an_empty_reply() -> None:
    """The reply was stored and the run interrupted before it was checked: resume checks it and retries."""
    store, workflow = MemoryStore(), asking("llm", retries=1, retry_delay_s=0)
    first = await play(workflow, bad_first(Reply("", usage=SPENT)), store=store)
    before = list(store.events(first.result.run_id))
    cut = next(place for place, event in enumerate(before) if isinstance(event, NodeRetrying))

    resumed, models = await _resumed(store, first, before[:cut], "an answer")

    assert resumed.outputs["out"] == "an answer"
    assert len(models.model.calls) == 1


async def _resumed(
    store: MemoryStore, played: Played, past: list[AnyEvent], answer: str
) -> tuple[RunResult, FakeModels]:
    """Resume a run that was interrupted after these events."""
    broken, models = MemoryStore(), FakeModels(FunctionModel(answer))
    run_id = broken.import_run(head_of(store, played.result.run_id), past)
    run = resume(broken, run_id, options(models, store=broken))
    return await run.result(), models


async def test_reasoning_is_part_of_the_reply_only() -> None:
    """It is not in the later prompts of a loop, nor in its memory, feedback or results."""
    workflow = around(
        llm("draft", "{{input}} {{loop.previous}} {{loop.last.draft}}", output_key="seen"),
        edges="loop -> draft -> exit",
        max_iterations=3,
        memory="accumulate",
        exit_condition="stable_output",
    )

    played = await play(workflow, lambda call: Reply(f"draft {call.iteration}", reasoning=SECRET))

    assert all(SECRET not in message.text for call in played.model.calls for message in call.request.messages)
    assert SECRET not in json.dumps(played.result.to_json())
    (first, *_) = played.of(NodeCompleted, "loop[0].draft")
    assert first.calls[0].reply.reasoning == SECRET


# Truncated replies


def parts(*texts: str) -> Any:
    """A model whose reply arrives in parts, all but the last truncated."""

    left = list(texts)

    def answer(call: Call) -> Reply:
        assert (call.request.messages[-1] == CONTINUE) is (len(left) < len(texts))
        text = left.pop(0)
        return Reply(text, Finish.LENGTH if left else Finish.STOP, SPENT)

    return answer


def _warnings(played: Played, path: str = "ask") -> tuple[str, ...]:
    (completed,) = played.of(NodeCompleted, path)
    return completed.warnings


@pytest.mark.parametrize("kind", ["llm", "agent"])
async def test_a_truncated_reply_is_used_with_a_warning(kind: str) -> None:
    played = await play(asking(kind, max_tokens=7), Reply("half", Finish.LENGTH))

    assert played.out == "half"
    (warning,) = _warnings(played)
    assert "cut off at 7 tokens" in warning


@pytest.mark.parametrize("on_cut_off", ["warn", "fail"])
async def test_a_reply_shorter_than_max_tokens_was_cut_off_by_the_model(on_cut_off: str) -> None:
    reply = Reply("half", Finish.LENGTH, Usage(250, 6))
    ends = "failed" if on_cut_off == "fail" else "completed"
    played = await play(asking("llm", max_tokens=100_000, on_cut_off=on_cut_off), reply, ends=ends)

    said = played.result.error if on_cut_off == "fail" else _warnings(played)[0]
    assert "after 6 tokens" in said
    assert "100,000" not in said
    assert "Max tokens" not in said
    assert on_cut_off == "fail" or "context length" in said  # the remedy of an error is apart


@pytest.mark.parametrize("kind", ASKING)
async def test_a_truncated_reply_can_fail_the_node(kind: str) -> None:
    def answer(call: Call) -> Reply:
        return Reply(says(call), Finish.LENGTH if call.node in {"ask", "judge"} else Finish.STOP, SPENT)

    played = await play(asking(kind, on_cut_off="fail"), answer, ends="failed")

    assert "cut off" in played.result.error
    assert len(of_the_asker(played.model.calls)) == 1


@pytest.mark.parametrize("kind", ASKING)
async def test_a_truncated_reply_can_be_continued(kind: str) -> None:
    def answer(call: Call) -> Reply:
        whole = says(replace(call, request=call.request)) if call.node != "ask" or kind != "router" else _VERDICT
        if call.node not in {"ask", "judge"}:
            return Reply(call.path, usage=SPENT)
        half = len(whole) // 2
        is_rest = call.request.messages[-1] == CONTINUE
        return Reply(whole[half:] if is_rest else whole[:half], Finish.STOP if is_rest else Finish.LENGTH, SPENT)

    played = await play(asking(kind, on_cut_off="continue"), answer)

    (first, rest, *_) = of_the_asker(played.model.calls)
    assert first.request.schema is None or rest.request.schema is None
    assert rest.request.messages[-2].role == "assistant"
    assert played.result.usage.total_tokens == SPENT.total_tokens * len(played.model.calls)
    path = "loop[0].judge" if kind == "judge" else "ask"
    assert _warnings(played, path) == ()
    assert len(played.of(NodeCompleted, path)[0].calls) == 2
    if kind != "judge":
        assert played.out == ("seed" if kind == "router" else "an answer")


_VERDICT = json.dumps({"reason": "because", "branch": "done"})


async def test_a_reply_is_continued_until_it_ends_or_a_limit_is_reached() -> None:
    three = await play(asking("llm", on_cut_off="continue"), parts("one ", "two ", "three"))
    endless = await play(asking("llm", on_cut_off="continue", max_tokens=9), Reply("never ending ", Finish.LENGTH))

    assert (three.out, len(three.model.calls), _warnings(three)) == ("one two three", 3, ())
    assert len(endless.model.calls) == 1 + MAX_CONTINUATIONS
    (warning,) = _warnings(endless)
    assert "after 5 continuations" in warning


async def test_an_empty_continuation_leaves_the_reply_unchanged() -> None:
    played = await play(asking("llm", on_cut_off="continue"), by_node(ask=[Reply("half", Finish.LENGTH), ""]))

    assert played.out == "half"
    assert len(_warnings(played)) == 1


async def test_a_continuation_cut_by_the_content_filter_is_a_warning() -> None:
    answers = [Reply("half ", Finish.LENGTH), Reply("and a bit", Finish.CONTENT_FILTER)]

    played = await play(asking("llm", on_cut_off="continue"), by_node(ask=answers))

    assert played.out == "half and a bit"
    (warning,) = _warnings(played)
    assert "content filter" in warning


@pytest.mark.parametrize("kind", ["llm", "router", "judge"])
async def test_empty_replies_use_up_retries_and_fallbacks_and_each_is_charged(kind: str) -> None:
    usage = Usage(10, 5)

    def empty_of(name: str) -> FunctionModel:
        return FunctionModel(
            lambda call: Reply("" if call.node in {"ask", "judge"} else "draft", usage=usage), name=name
        )

    asked = [empty_of(name) for name in ("main", "second", "third")]
    names = [model.name for model in asked[1:]]
    schema = {"reply_schema": _SCHEMA} if kind == "llm" else {}
    workflow = asking(kind, retries=2, retry_delay_s=0, fallback_models=names, **schema)

    played = await play(workflow, FakeModels(asked[0], **dict(zip(names, asked[1:], strict=True))), ends="failed")

    counts = [len(of_the_asker(model.calls)) for model in asked]
    assert counts == [3, 3, 3]
    assert played.result.usage.total_tokens == usage.total_tokens * sum(len(model.calls) for model in asked)


async def test_each_continuation_must_fit_the_budget() -> None:
    endless = FunctionModel(lambda _: Reply("a word", Finish.LENGTH, Usage(0, 50)))

    played = await play(asking("llm", on_cut_off="continue", max_tokens=50), endless, ends="failed", budget_tokens=250)

    assert 1 <= len(endless.calls) < 1 + MAX_CONTINUATIONS
    assert "budget" in played.result.error


async def test_loop_memory_has_a_continued_reply_as_a_whole() -> None:
    workflow = around(
        llm("ask", on_cut_off="continue"), edges="loop -> ask -> exit", max_iterations=2, memory="accumulate"
    )

    def answer(call: Call) -> Reply:
        rest = call.request.messages[-1] == CONTINUE
        return Reply("the end" if rest else "half and ", Finish.STOP if rest else Finish.LENGTH)

    played = await play(workflow, answer)

    second = next(call for call in played.model.calls if call.iteration == 1)
    assert Message("assistant", "half and the end") in second.request.messages


async def test_resume_pays_for_no_part_of_a_continued_reply_twice() -> None:
    store = MemoryStore()
    workflow = asking("llm", on_cut_off="continue")
    first = await play(workflow, parts("one ", "two ", "three"), store=store)
    before = list(store.events(first.result.run_id))
    called = [place for place, event in enumerate(before) if event.type == "node.called"]

    resumed, models = await _resumed(store, first, before[: called[1] + 1], "three")

    assert (resumed.outputs["out"], len(models.model.calls)) == ("one two three", 1)


_SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize("kind", ["llm", "agent"])
async def test_a_truncated_structured_reply_says_so(kind: str) -> None:
    config: dict[str, Any] = {"reply_schema": _SCHEMA} | ({"turn_strategy": "single_call"} if kind == "agent" else {})

    played = await play(asking(kind, **config), Reply('{"n": 1', Finish.LENGTH), ends="failed")

    assert "cut off" in played.result.error


@pytest.mark.parametrize("kind", ["llm", "router", "judge"])
async def test_a_structured_reply_is_not_asked_for_again_in_a_full_context(kind: str) -> None:
    def answer(call: Call) -> Any:
        return Reply("Let me", Finish.LENGTH, Usage(250, 6)) if call.node in {"ask", "judge"} else "draft"

    config = {"reply_schema": _SCHEMA} if kind == "llm" else {}
    played = await play(
        asking(kind, max_tokens=1000, **config), answer, ends="failed" if kind == "llm" else "completed"
    )

    paths = [call.path for call in of_the_asker(played.model.calls)]
    assert len(paths) == len(set(paths))
    said = f"{played.result.error} {' '.join(played.result.warnings)}"
    assert "after 6 tokens" in said
    assert "twice" not in said
    if kind == "llm":
        assert "context length" in played.result.remedy
        assert "schema" not in played.result.remedy


@pytest.mark.parametrize(
    ("model", "max_tokens", "tokens", "expected"),
    [
        ("gguf:tiny", None, 6, True),
        ("ollama_chat/llama3", None, 6, True),
        ("openai/gpt-4o", None, 6, False),
        ("openai/gpt-4o", 7, 6, True),
        ("gguf:tiny", 6, 6, False),
    ],
)
def test_the_context_is_full_if_nothing_else_limits_the_reply(
    model: str, max_tokens: int | None, tokens: int, expected: bool
) -> None:
    request = Request((Message("user", "Go."),), max_tokens=max_tokens)
    reply = Reply("half", Finish.LENGTH, Usage(9, tokens))
    assert is_context_full(ModelCall(model, request, reply, 0.0, 0.0)) is expected
    assert not is_context_full(ModelCall(model, request, replace(reply, finish=Finish.STOP), 0.0, 0.0))


@pytest.mark.parametrize(
    ("max_tokens", "tokens", "advice"),
    [(9, 9, {"Max tokens"}), (900, 9, {"context length"}), (None, 9, {"Max tokens", "context length"})],
)
async def test_an_empty_reply_advises_what_its_limit_is(max_tokens: int | None, tokens: int, advice: set[str]) -> None:
    reply = Reply("", Finish.LENGTH, Usage(9, tokens), reasoning=SECRET)
    played = await play(asking("llm", max_tokens=max_tokens, retries=0), reply, ends="failed")
    assert {words for words in ("Max tokens", "context length") if words in played.result.remedy} == advice


@pytest.mark.parametrize("kind", ["llm", "router", "judge"])
async def test_a_verdict_cut_by_the_content_filter_counts_only_if_it_is_whole(kind: str) -> None:
    cut = 'Such as {"branch": "done", "done": true, "score": 9, "reason": "x", "n": 1} but'

    def answer(call: Call) -> Any:
        return Reply(cut, Finish.CONTENT_FILTER) if call.node in {"ask", "judge"} else "draft"

    config = {"reply_schema": _SCHEMA} if kind == "llm" else {}
    played = await play(asking(kind, **config), answer, ends="failed" if kind == "llm" else "completed")

    assert "content filter" in (played.result.error or " ".join(played.result.warnings))
    assert played.result.outputs.get("out") != "seed"


async def test_the_second_request_has_no_empty_model_message() -> None:
    answers = by_node(ask=["", '{"n": 1}'])

    played = await play(asking("llm", reply_schema=_SCHEMA, allow_empty=True), answers)

    assert played.out == {"n": 1}
    assert all(message.text for message in played.model.calls[1].request.messages)


async def test_a_structured_reply_truncated_after_its_json_is_read() -> None:
    played = await play(asking("llm", reply_schema=_SCHEMA), Reply('{"n": 1}\n\nNote that', Finish.LENGTH))

    assert played.out == {"n": 1}
    assert len(_warnings(played)) == 1


@pytest.mark.parametrize(
    ("text", "rest", "whole"),
    [
        ("hel", "lo", "hello"),
        ("The cat", " sat", "The cat sat"),
        ("I went to the", "to the shop", "I went to the shop"),
        ("I went to the ", "to the shop", "I went to the shop"),
        ("I went to the", " to the shop", "I went to the shop"),
        ("went to the", "the shop", "went to the shop"),
        ("The quick brow", "quick brown fox", "The quick brown fox"),
        ("One.\n\nTwo be", "\n\nTwo begins", "One.\n\nTwo begins"),
        ("Start here", "Start here and end", "Start here and end"),
        ('{"a": [1, 2', ", 2, 3]}", '{"a": [1, 2, 2, 3]}'),
        ("| 0 | 0", " | 0 | 0 |", "| 0 | 0 | 0 | 0 |"),
        ("banana", "nana split", "banananana split"),
        ("我们今天去公园散步然后", "去公园散步然后回家", "我们今天去公园散步然后回家"),
        ("end", "", "end"),
        ("x", "y", "xy"),
    ],
)
def test_a_continued_reply_repeats_no_words_at_the_seam(text: str, rest: str, whole: str) -> None:
    assert join(text, rest) == whole


def test_only_failures_that_can_pass_are_retried() -> None:
    retryable = {kind for kind in ModelErrorKind if ModelError(kind, "").retryable}
    assert {ModelErrorKind.EMPTY_REPLY, ModelErrorKind.REFUSAL} <= retryable
    assert ModelErrorKind.CUT_OFF not in retryable


def test_a_continuation_request_keeps_the_settings_of_the_first() -> None:
    first = Request((Message("user", "Go."),), 0.5, 7, {"type": "object"}, 3, "here")

    assert rest_request(first, "half") == replace(
        first, messages=(Message("user", "Go."), Message("assistant", "half"), CONTINUE), schema=None
    )
