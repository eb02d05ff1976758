"""Replies in every shape that servers send, over a real connection: types from a server are never trusted."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from engine.models.protocol import Finish, Message, ModelErrorKind, Reply, Request, ToolCall, ToolDefinition, Usage
from tests.engine.models.litellm_fixtures import QUESTION, SECRET, MakeModel, failure_of, make_model_fixture
from tests.engine.wire.behaviors import PARTIAL_REPLY, USAGE
from tests.engine.wire.server import WireServer

__all__ = ["make_model_fixture"]

LOOK = ToolDefinition("look", "Looks around.", {"type": "object"})
ADD = ToolDefinition("add", "Adds.", {"type": "object"})
DEEP = "[" * 100_000 + "]" * 100_000


def message(content: Any = "Hello", **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def completion(sent: Any, finish: Any = "stop", usage: Any = USAGE, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": sent, "finish_reason": finish}
    return {"id": "1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage, **more}


def events(*deltas: Any, finish: Any = "stop", usage: Any = USAGE, done: bool = True) -> str:
    """A stream with a chunk for each delta."""
    bodies: list[Any] = [{"model": "m", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    if finish is not None:
        bodies.append({"model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage is not None:
        bodies.append({"model": "m", "choices": [], "usage": usage})
    return as_events(*bodies) + ("data: [DONE]\n\n" if done else "")


def as_events(*bodies: Any) -> str:
    return "".join(f"data: {json.dumps(body)}\n\n" for body in bodies)


class Talk:
    """A model whose server sends what a test specifies."""

    def __init__(self, wire: WireServer, make_model: MakeModel) -> None:
        self.wire = wire
        self.make_model = make_model
        self.pieces: list[str] = []

    async def whole(self, body: Any, request: Request = QUESTION) -> Reply:
        self._say(body)
        return await self.make_model("verbatim").complete(request)

    async def stream(self, text: str, request: Request = QUESTION) -> Reply:
        self._say(text)
        return await self.make_model("verbatim").complete(request, self.pieces.append)

    async def either(self, sent: Any, *, stream: bool, finish: Any = "stop", request: Request = QUESTION) -> Reply:
        """The same message as a whole, or as the only delta of a stream."""
        if stream:
            return await self.stream(events(sent, finish=finish), request)
        return await self.whole(completion(sent, finish), request)

    async def failure(self, body: Any, *, stream: bool = False) -> Any:
        self._say(body)
        return await failure_of(self.make_model("verbatim"), stream=stream)

    def _say(self, body: Any) -> None:
        text = body if isinstance(body, str) else json.dumps(body)
        self.wire.reply = lambda _body: text


@pytest.fixture
def talk(wire: WireServer, make_model: MakeModel) -> Talk:
    return Talk(wire, make_model)


both_ways = pytest.mark.parametrize("stream", [False, True])


@both_ways
@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Hello", "Hello"),
        ([{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}], "Hello"),
        ([{"type": "output_text", "text": "Hello"}], "Hello"),
        ([{"text": "Hello"}, {"type": "image_url", "image_url": {"url": "x"}}], "Hello"),
        (["Hel", "lo"], "Hello"),
        ([["Hel"], [{"content": "lo"}]], "Hello"),
        ({"type": "text", "text": "Hello"}, "Hello"),
        ({"type": "text", "text": {"value": "Hello"}}, "Hello"),
        ({"branch": "done"}, '{"branch":"done"}'),
        (42, "42"),
        (0.5, "0.5"),
        (True, "true"),
        (None, ""),
        ("", ""),
        ([], ""),
    ],
)
async def test_content_of_any_type_becomes_text(talk: Talk, content: Any, text: str, stream: bool) -> None:
    reply = await talk.either(message(content), stream=stream)

    assert (reply.text, reply.finish, reply.usage, reply.model) == (text, Finish.STOP, Usage(11, 5), "m")
    assert "".join(talk.pieces) == (text if stream else "")


@both_ways
async def test_message_without_content_is_an_empty_reply(talk: Talk, stream: bool) -> None:
    assert (await talk.either({"role": "assistant"}, stream=stream)).text == ""


@both_ways
@pytest.mark.parametrize(
    "content",
    [
        [{"type": "image_url", "image_url": {"url": "x"}}],
        {"type": "audio", "data": 1},
        [[[[[[[[[[[[[[[[[[[[[[[[[[[["deep"]]]]]]]]]]]]]]]]]]]]]]]]]]]],
        float("nan"),
        {"a": float("inf")},
        {},
    ],
)
async def test_content_without_text_is_a_bad_reply(talk: Talk, content: Any, stream: bool) -> None:
    body = events(message(content)) if stream else completion(message(content))

    assert (await talk.failure(body, stream=stream)).kind is ModelErrorKind.BAD_REPLY


NO_MESSAGE: list[Any] = [
    {},
    {"choices": None},
    {"choices": []},
    {"choices": {}},
    {"choices": "none"},
    {"choices": 7},
    {"choices": [None, 7, "x", []]},
    {"choices": [{}]},
    {"choices": [{"message": None}]},
    {"choices": [{"message": 7, "delta": []}]},
    {"choices": [{"delta": None, "finish_reason": "stop"}]},
    [],
    [1, 2],
    7,
    "text",
    None,
]


@both_ways
@pytest.mark.parametrize("body", NO_MESSAGE)
async def test_response_without_a_message_is_a_bad_reply(talk: Talk, body: Any, stream: bool) -> None:
    text = as_events(body) + "data: [DONE]\n\n" if stream else json.dumps(body)
    error = await talk.failure(text, stream=stream)

    assert (error.kind, error.partial) == (ModelErrorKind.BAD_REPLY, "")


@both_ways
@pytest.mark.parametrize(
    "text", [DEEP, '{"choices":' + DEEP + "}", "{", '{"choices": [', "<html></html>", "", "\ud800"]
)
async def test_response_that_is_not_json_is_a_bad_reply(talk: Talk, text: str, stream: bool) -> None:
    text = text.replace("\ud800", "\udcff\udcfe")  # bytes that are no UTF-8
    error = await talk.failure(f"data: {text}\n\n" if stream and text else text, stream=stream)

    assert error.kind is ModelErrorKind.BAD_REPLY


async def test_choices_in_unusual_shapes_are_found(talk: Talk) -> None:
    sent = message("Hello")
    for choices in (
        {"message": sent, "finish_reason": "stop"},
        {"0": {"message": sent}},
        [{"message": None}, {"message": sent}],
        [{"index": 0, "message": sent}, {"index": 1, "message": message("Bye")}],
        [{"text": "Hello"}],
        [{"message": "Hello"}],
        [{"delta": sent}],
    ):
        assert (await talk.whole({"choices": choices})).text == "Hello"


async def test_second_choice_of_a_stream_is_ignored(talk: Talk) -> None:
    two = [{"index": index, "delta": {"content": text}} for index, text in enumerate(("Hello", "Bye"))]

    reply = await talk.stream(as_events({"choices": two}, {"choices": [two[1]]}))

    assert (reply.text, talk.pieces) == ("Hello", ["Hello"])


@both_ways
@pytest.mark.parametrize(
    ("sent", "finish"),
    [
        ("stop", Finish.STOP),
        ("STOP", Finish.STOP),
        ("end_turn", Finish.STOP),
        (None, Finish.STOP),
        ("", Finish.STOP),
        ("length", Finish.LENGTH),
        ("max_tokens", Finish.LENGTH),
        ("content_filter", Finish.CONTENT_FILTER),
        ("SAFETY", Finish.CONTENT_FILTER),
        ("tool_calls", Finish.STOP),
        ("whatever", Finish.OTHER),
        (7, Finish.OTHER),
        ({"type": "stop"}, Finish.OTHER),
    ],
)
async def test_finish_reason_is_mapped_or_other(talk: Talk, sent: Any, finish: Finish, stream: bool) -> None:
    reply = await talk.either(message(), stream=stream, finish=sent)

    assert (reply.text, reply.finish) == ("Hello", finish)


@pytest.mark.parametrize("done", [False, True])
async def test_stream_with_a_proper_end_needs_no_finish_reason(talk: Talk, done: bool) -> None:
    reply = await talk.stream(events(message("Hel"), message("lo"), finish=None, usage=None, done=done))

    assert (reply.text, reply.finish) == ("Hello", Finish.STOP)


async def test_stream_without_an_end_marker_is_complete(make_model: MakeModel) -> None:
    reply = await make_model("quiet-end").complete(QUESTION, lambda _text: None)

    assert (reply.text, reply.finish) == (PARTIAL_REPLY, Finish.STOP)


async def test_stream_that_ends_inside_an_event_is_interrupted(talk: Talk) -> None:
    error = await talk.failure(events(message("Hello"), finish=None, usage=None, done=False)[:-9] + "\n", stream=True)
    assert (error.kind, error.partial) == (ModelErrorKind.BAD_REPLY, "")

    broken = events(message("Hello"), message(" world"), finish=None, usage=None, done=False)
    error = await talk.failure(broken[: broken.index(" world")], stream=True)
    assert (error.kind, error.partial) == (ModelErrorKind.INTERRUPTED, "Hello")


@both_ways
@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 2}, Usage(3, 2)),
        ({"input_tokens": 3, "output_tokens": 2}, Usage(3, 2)),
        ({"prompt_tokens": 3, "completion_tokens": 0}, Usage(3, 0)),
        ({"prompt_tokens": 3}, Usage(3, 2, exact=False)),
        ({"completion_tokens": 3}, Usage(5, 3, exact=False)),
        ({"completion_tokens": 3, "prompt_tokens": 0}, Usage(0, 3)),
        ({"completion_tokens": 900, "prompt_tokens": None}, Usage(5, 900, exact=False)),
        ({"prompt_tokens": -3, "completion_tokens": 2}, Usage(5, 2, exact=False)),
        ({"prompt_tokens": "3", "completion_tokens": "2"}, Usage(5, 2, exact=False)),
        ({"prompt_tokens": 3.0, "completion_tokens": 2.5}, Usage(5, 2, exact=False)),
        ({"prompt_tokens": float("nan"), "completion_tokens": float("inf")}, Usage(5, 2, exact=False)),
        ({"prompt_tokens": True, "completion_tokens": False}, Usage(5, 2, exact=False)),
        ({"prompt_tokens": 10**400, "completion_tokens": 10**30}, Usage(5, 2, exact=False)),
        ({"prompt_tokens": [3], "completion_tokens": {"n": 2}}, Usage(5, 2, exact=False)),
        ({"prompt_tokens": 0, "completion_tokens": 0}, Usage(5, 2, exact=False)),
        ({}, Usage(5, 2, exact=False)),
        ([], Usage(5, 2, exact=False)),
        ("3", Usage(5, 2, exact=False)),
        (7, Usage(5, 2, exact=False)),
        (None, Usage(5, 2, exact=False)),
    ],
)
async def test_invalid_usage_is_estimated(talk: Talk, usage: Any, expected: Usage, stream: bool) -> None:
    body = events(message(), usage=usage) if stream else completion(message(), usage=usage)
    reply = await (talk.stream(body) if isinstance(body, str) else talk.whole(body))

    assert reply.usage == expected


def call(call_id: Any = "a", name: Any = "look", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


CALLS: list[Any] = [
    ([call()], [("a", "look", {})]),
    (call(), [("a", "look", {})]),
    ([call(arguments={"x": 1})], [("a", "look", {"x": 1})]),
    ([call(arguments='"{\\"x\\": 1}"')], [("a", "look", {"x": 1})]),
    ([call(arguments=None)], [("a", "look", {})]),
    ([call(arguments=[1])], [("a", "look", "[1]")]),
    ([call(arguments=7)], [("a", "look", "7")]),
    ([call(arguments='{"x": NaN}')], [("a", "look", '{"x": NaN}')]),
    ([call(name=None)], [("a", "", {})]),
    ([call(name=["look"])], [("a", "", {})]),
    ([call(7)], [("7", "look", {})]),
    ([call(""), call(None), call([])], [("call_1", "look", {}), ("call_2", "look", {}), ("call_3", "look", {})]),
    ([call(), call(name="add")], [("a", "look", {}), ("a_2", "add", {})]),
    ([call("call_2"), call("")], [("call_2", "look", {}), ("call_3", "look", {})]),
    ([{"id": "a", "name": "look", "arguments": {}}], [("a", "look", {})]),
    ([{"id": "a", "function": "look", "arguments": "{}"}], [("a", "look", {})]),
    ([None, 7, "look", [], {}, {"function": None}, call()], [("a", "look", {})]),
    ([call(index=True), call("b", index=10**400)], [("a", "look", {}), ("b", "look", {})]),
    ([call(index="0"), call("b", index=None)], [("a", "look", {}), ("b", "look", {})]),
]


@both_ways
@pytest.mark.parametrize(("calls", "expected"), CALLS)
async def test_tool_calls_of_any_shape_get_unique_ids(
    talk: Talk, calls: Any, expected: list[Any], stream: bool
) -> None:
    request = Request(QUESTION.messages, tools=(LOOK, ADD))
    reply = await talk.either(message(None, tool_calls=calls), stream=stream, request=request)

    assert reply.tool_calls == tuple(ToolCall(*one) for one in expected)
    assert (reply.text, reply.finish) == ("", Finish.TOOL_CALLS)


@both_ways
@pytest.mark.parametrize("calls", [None, [], {}, "look", 7, True, [None], [{"function": None}]])
async def test_invalid_tool_calls_are_ignored(talk: Talk, calls: Any, stream: bool) -> None:
    reply = await talk.either(message("Hello", tool_calls=calls), stream=stream, finish="tool_calls")

    assert (reply.text, reply.tool_calls, reply.finish) == ("Hello", (), Finish.STOP)


async def test_streamed_calls_with_one_index_and_no_ids_stay_separate(talk: Talk) -> None:
    pieces = [
        call("", "look", '{"x"', index=0),
        {"index": 0, "function": {"arguments": ": 1}"}},
        call("", "look", '{"x": 2}', index=0),
        call("", "add", "{}"),
    ]
    reply = await talk.stream(events(*({"tool_calls": [piece]} for piece in pieces), finish="tool_calls"))

    assert [(one.id, one.name, one.arguments) for one in reply.tool_calls] == [
        ("call_1", "look", {"x": 1}),
        ("call_2", "look", {"x": 2}),
        ("call_3", "add", {}),
    ]


@both_ways
async def test_function_call_becomes_a_tool_call(talk: Talk, stream: bool) -> None:
    sent = message(None, function_call={"name": "look", "arguments": '{"x": 1}'})
    reply = await talk.either(sent, stream=stream, finish="function_call")

    assert reply.tool_calls == (ToolCall("call_1", "look", {"x": 1}),)


@both_ways
@pytest.mark.parametrize(
    "sent",
    [
        message("Hello", reasoning_content="They greet."),
        message("Hello", reasoning="They greet."),
        message("Hello", thinking="They greet."),
        message("Hello", reasoning="They greet.", reasoning_content="They greet."),
        message("Hello", reasoning_details=[{"type": "reasoning.text", "text": "They greet."}]),
        message("Hello", thinking_blocks=[{"type": "thinking", "thinking": "They greet."}]),
        message([{"type": "thinking", "thinking": "They greet."}, {"type": "text", "text": "Hello"}]),
        message([{"type": "thinking", "thinking": [{"type": "text", "text": "They greet."}]}, "Hello"]),
        message([{"type": "reasoning", "summary": [{"text": "They greet."}]}, {"text": "Hello"}]),
        message([{"text": "They greet.", "thought": True}, {"text": "Hello"}]),
        message("<think>They greet.</think>\n\nHello"),
        message("<|channel|>analysis<|message|>They greet.<|end|><|start|>assistant<|channel|>final<|message|>Hello"),
    ],
)
async def test_reasoning_is_separate_from_the_text(talk: Talk, sent: Any, stream: bool) -> None:
    reply = await talk.either(sent, stream=stream)

    assert (reply.text, reply.reasoning) == ("Hello", "They greet.")
    assert "".join(talk.pieces) == ("Hello" if stream else "")


async def test_reasoning_is_separated_even_if_chunks_split_a_tag(talk: Talk) -> None:
    text = "<think>1 < 2 </b></think>\nSo <think> it is."
    reply = await talk.stream(events(*({"content": sign} for sign in text)))

    assert (reply.text, reply.reasoning) == ("So <think> it is.", "1 < 2 </b>")
    assert "".join(talk.pieces) == reply.text


@both_ways
@pytest.mark.parametrize("refusal", ["I won't.", [{"type": "refusal", "refusal": "I won't."}]])
async def test_refusal_has_its_own_field(talk: Talk, refusal: Any, stream: bool) -> None:
    reply = await talk.either(message(None, refusal=refusal), stream=stream)
    assert (reply.text, reply.refusal) == ("", "I won't.")

    reply = await talk.either(message([{"type": "refusal", "refusal": "I won't."}]), stream=stream)
    assert (reply.text, reply.refusal) == ("", "I won't.")


async def test_streamed_refusal_is_joined(talk: Talk) -> None:
    reply = await talk.stream(events({"refusal": "I "}, {"refusal": "won't."}, {"refusal": None}))

    assert (reply.text, reply.refusal, talk.pieces) == ("", "I won't.", [])


@both_ways
async def test_invalid_characters_are_replaced_everywhere(talk: Talk, stream: bool) -> None:
    bad, good = "\ud83d\ude00 \ud83d \0", "😀 � �"
    sent = message(bad, reasoning_content=bad, refusal=bad, tool_calls=[call(bad, bad, json.dumps({bad: [bad]}))])
    body = completion(sent, model=bad)
    reply = await (talk.stream(as_events(body)) if stream else talk.whole(body))

    assert (reply.text, reply.reasoning, reply.refusal, reply.model) == (good,) * 4
    assert reply.tool_calls == (ToolCall(good, good, {good: [good]}),)
    assert "".join(talk.pieces) == (good if stream else "")


async def test_character_split_between_chunks_is_joined(talk: Talk) -> None:
    reply = await talk.stream(events({"content": "a\ud83d"}, {"content": "\ude00b"}))

    assert (reply.text, "".join(talk.pieces)) == ("a😀b", "a😀b")


@both_ways
async def test_invalid_utf8_is_replaced(talk: Talk, stream: bool) -> None:
    text = (events(message("x")) if stream else json.dumps(completion(message("x")))).replace('"x"', '"a\udcffb"')
    reply = await (talk.stream(text) if stream else talk.whole(text))

    assert reply.text == "a\ufffdb"


@both_ways
async def test_echoed_key_is_redacted_everywhere(talk: Talk, stream: bool) -> None:
    sent = message(
        f"It is {SECRET}.",
        reasoning_content=SECRET,
        refusal=SECRET,
        tool_calls=[call(SECRET, SECRET, json.dumps({SECRET: [SECRET]}))],
    )
    body = completion(sent, model=SECRET)
    reply = await (talk.stream(as_events(body)) if stream else talk.whole(body))

    assert SECRET not in repr(reply)
    assert (reply.text, reply.reasoning, reply.refusal, reply.model) == ("It is ….", "…", "…", "…")
    assert reply.tool_calls == (ToolCall("…", "…", {"…": ["…"]}),)
    assert "".join(talk.pieces) == ("It is …." if stream else "")


async def test_key_split_between_chunks_never_reaches_on_text(talk: Talk) -> None:
    reply = await talk.stream(events(*({"content": sign} for sign in f"It is {SECRET}, sk-very")))

    assert "".join(talk.pieces) == reply.text == "It is …, sk-very"


@both_ways
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "Slow down", "code": 429}, ModelErrorKind.RATE_LIMIT),
        ({"message": "Slow down", "code": "429"}, ModelErrorKind.RATE_LIMIT),
        ({"message": "Slow down", "type": "rate_limit_error"}, ModelErrorKind.RATE_LIMIT),
        ({"message": "No such key", "code": "invalid_api_key"}, ModelErrorKind.AUTHENTICATION),
        ({"message": "Not here", "type": "not_found_error"}, ModelErrorKind.NOT_FOUND),
        (
            {"message": "This model's maximum context length is 8192 tokens.", "code": "context_length_exceeded"},
            ModelErrorKind.CONTEXT_LENGTH,
        ),
        ({"message": "top_k is too large", "type": "invalid_request_error"}, ModelErrorKind.BAD_REQUEST),
        ({"message": "Something broke", "type": "server_error", "code": 500}, ModelErrorKind.SERVER),
        ({"message": "Overloaded", "type": "overloaded_error"}, ModelErrorKind.SERVER),
        ("Something broke", ModelErrorKind.SERVER),
        ({"message": ["odd"], "code": {}}, ModelErrorKind.SERVER),
    ],
)
async def test_error_with_a_success_status_is_an_error(
    talk: Talk, error: Any, kind: ModelErrorKind, stream: bool
) -> None:
    body = {"error": error}
    first = events({"role": "assistant"}, finish=None, usage=None, done=False)
    for text in (json.dumps(body), as_events(body), first + as_events(body)):
        caught = await talk.failure(text, stream=stream)
        assert (caught.kind, caught.partial) == (kind, "")


@both_ways
@pytest.mark.parametrize("nothing", [None, False, "", {}, [], 0, {"message": None}])
async def test_empty_error_is_ignored(talk: Talk, nothing: Any, stream: bool) -> None:
    body = completion(message(), error=nothing)

    assert (await (talk.stream(as_events(body)) if stream else talk.whole(body))).text == "Hello"


@both_ways
@pytest.mark.parametrize(
    "more",
    [
        {"schema": {"type": "object", "description": "x" * 400}},
        {"tools": (ToolDefinition("look", "x" * 400, {"type": "object"}),)},
        {"tools": (ToolDefinition("look", "", {"type": "object", "description": "x" * 400}),)},
        {
            "messages": (
                *QUESTION.messages,
                Message("assistant", "", (ToolCall("1", "look", {"at": "x" * 400}),)),
                Message("tool", "nothing", tool_call_id="1"),
            )
        },
    ],
    ids=["schema", "description", "parameters", "arguments"],
)
async def test_estimate_counts_everything_that_was_sent(talk: Talk, more: dict[str, Any], stream: bool) -> None:
    request = replace(QUESTION, **more)
    body = events(message("{}"), usage=None) if stream else completion(message("{}"), usage=None)

    reply = await (talk.stream(body, request) if isinstance(body, str) else talk.whole(body, request))

    assert 100 < reply.usage.input_tokens < 200
    assert not reply.usage.exact


@both_ways
async def test_reply_of_only_tool_calls_is_estimated_by_them(talk: Talk, stream: bool) -> None:
    call = {"index": 0, "id": "1", "function": {"name": "look", "arguments": json.dumps({"at": "x" * 400})}}
    sent = {"role": "assistant", "tool_calls": [call]}
    body = events(sent, usage=None) if stream else completion(sent, usage=None)
    request = replace(QUESTION, tools=(ToolDefinition("look", "", {}),))

    reply = await (talk.stream(body, request) if isinstance(body, str) else talk.whole(body, request))

    assert reply.usage.output_tokens > 100


@pytest.mark.parametrize(
    ("sent", "least"),
    [
        ([message([{"type": "image"}])], 5),
        ([{"reasoning_content": "x" * 400}], 100),
        ([{"content": "<think>" + "x" * 400}], 100),
        ([message("x" * 400)], 100),
    ],
    ids=["a reply that nobody can read", "reasoning", "reasoning in tags", "text"],
)
async def test_failed_call_reports_its_usage(talk: Talk, sent: list[Any], least: int) -> None:
    broken = events(*sent, sent[0], finish=None, usage=None, done=False)
    unreadable = events(*sent)

    error = await talk.failure(unreadable if least == 5 else broken[:-9] + "\n", stream=True)

    assert error.kind in {ModelErrorKind.BAD_REPLY, ModelErrorKind.INTERRUPTED}
    assert error.usage.output_tokens >= least


async def test_refused_call_has_no_usage(talk: Talk) -> None:
    assert (await talk.failure({"error": {"message": "top_k is too large"}})).usage is None


async def test_whole_and_streamed_replies_are_interchangeable(talk: Talk) -> None:
    whole = completion(message("Hello", reasoning="Hm."))

    for body in (json.dumps(whole), json.dumps(whole, indent=2)):
        reply = await talk.stream(body)
        assert (reply.text, reply.reasoning, talk.pieces) == ("Hello", "Hm.", ["Hello"])
        talk.pieces.clear()
    reply = await talk.whole(events({"content": "Hel"}, {"content": "lo"}))
    assert (reply.text, reply.usage) == ("Hello", Usage(11, 5))


async def test_events_of_every_form_are_parsed(talk: Talk) -> None:
    one, two = ({"choices": [{"delta": {"content": text}}]} for text in ("Hel", "lo"))
    compact, indented = json.dumps(one), json.dumps(two, indent=1).replace("\n", "\ndata: ")
    for text in (
        f"data: {compact}\ndata: {json.dumps(two)}\ndata: [DONE]\n",
        f": wait\n\nevent: x\nid: 1\ndata:{compact}\n\ndata: {indented}\n\ndata:[DONE]\n\n",
        f"data: {compact}\r\n\r\n\r\ndata: {json.dumps(two)}\r\n\r\n",
        f"{compact}\n{json.dumps(two)}\n",
        f"data: ping\n\ndata: \n\ndata: {compact}\n\nretry: 5\n\ndata: {json.dumps(two)}",
    ):
        assert (await talk.stream(text)).text == "Hello"


async def test_repeated_chunks_do_not_end_a_stream(talk: Talk) -> None:
    reply = await talk.stream(events(*[{"content": "again "}] * 300))

    assert reply.text == "again " * 300
