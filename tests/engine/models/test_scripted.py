"""The scripted model: selection of replies, streaming, and errors of invalid files."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.models.protocol import Finish, Message, ModelError, ModelErrorKind, Price, Request, ToolCall, Usage
from engine.models.scripted import MAX_FILE_BYTES, Script, ScriptedModel, load_script, read_path
from engine.values import Value
from tests.wording import mentions

Make = Callable[[Value], ScriptedModel]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Creates a model from a script."""

    def make_one(script: Value) -> ScriptedModel:
        file = tmp_path / "replies.json"
        file.write_text(json.dumps(script), encoding="utf-8")
        return ScriptedModel(file)

    return make_one


def call(path: str = "", text: str = "") -> Request:
    return Request((Message("system", "Be brief."), Message("user", text)), path=path)


async def text_of(model: ScriptedModel, path: str = "", text: str = "") -> str:
    return (await model.complete(call(path, text))).text


async def error_of(model: ScriptedModel, path: str = "") -> ModelError:
    with pytest.raises(ModelError) as caught:
        await model.complete(call(path))
    return caught.value


def test_name_and_note(make: Make, tmp_path: Path) -> None:
    model = make({})
    assert model.name == f"scripted:{tmp_path / 'replies.json'}"
    assert model.note.startswith("scripted: ")


@pytest.mark.parametrize(
    ("path", "node", "iteration"),
    [
        ("", "", None),
        ("draft", "draft", None),
        ("loop[2].draft", "draft", 2),
        ("outer[1].inner[30].draft", "draft", 30),
        ("outer[1].inner", "inner", 1),
        ("loop[4]", "loop", 4),
    ],
)
def test_path_is_split_into_node_and_innermost_iteration(path: str, node: str, iteration: int | None) -> None:
    assert read_path(path) == (node, iteration)


async def test_first_matching_rule_decides(make: Make) -> None:
    model = make(
        {
            "rules": [
                {"path": "outer[1].inner[0].draft", "reply": "exactly here"},
                {"node": "draft", "iteration": 0, "reply": "first"},
                {"node": "draft", "iteration": 1, "pattern": "^again", "reply": "second, again"},
                {"node": "draft", "reply": "any"},
                {"iteration": 7, "reply": "seventh"},
            ],
            "default": "nothing else",
        }
    )
    assert await text_of(model, "outer[1].inner[0].draft") == "exactly here"
    assert await text_of(model, "outer[2].inner[0].draft") == "first"
    assert await text_of(model, "loop[1].draft", "again, please") == "second, again"
    assert await text_of(model, "loop[1].draft", "not again") == "any"
    assert await text_of(model, "draft") == "any"
    assert await text_of(model, "loop[7].other") == "seventh"
    assert await text_of(model, "loop[0].other") == "nothing else"
    assert await text_of(model) == "nothing else"


async def test_pattern_searches_only_the_last_user_message(make: Make) -> None:
    model = make({"rules": [{"pattern": "(?i)SNOW|é", "reply": "cold"}], "default": "other"})

    async def ask(*messages: Message) -> str:
        return (await model.complete(Request(messages))).text

    assert await ask(Message("user", "first snow"), Message("assistant", "yes")) == "cold"
    assert await ask(Message("user", "snow"), Message("user", "sun")) == "other"
    assert await ask(Message("system", "snow")) == "other"
    assert await ask(Message("user", "caf\ud800é")) == "cold"


async def test_patterns_take_linear_time(make: Make) -> None:
    model = make({"rules": [{"pattern": "^(a+)+$", "reply": "x"}], "default": "no match"})
    assert await text_of(model, "", "a" * 200_000 + "!") == "no match"


async def test_next_rule_applies_after_the_last_reply(make: Make) -> None:
    model = make({"rules": [{"node": "a", "replies": ["one", "two"]}, {"replies": ["last"]}]})
    assert [await text_of(model, "a") for _ in range(3)] == ["one", "two", "last"]
    assert "no reply for node 'a'." in (await error_of(model, "a")).message


async def test_each_list_of_replies_is_counted_separately(make: Make) -> None:
    model = make({"rules": [{"node": "a", "replies": ["a1", "a2"]}, {"node": "b", "replies": ["b1", "b2"]}]})
    assert [await text_of(model, node) for node in "abba"] == ["a1", "b1", "b2", "a2"]


async def test_delays_do_not_change_the_assignment_of_replies(make: Make) -> None:
    model = make({"rules": [{"replies": [{"text": str(n), "delay_s": (4 - n) / 1000} for n in range(4)]}]})
    assert await asyncio.gather(*(text_of(model, f"each[{n}].ask") for n in range(4))) == ["0", "1", "2", "3"]


async def test_json_reply_is_serialized(make: Make) -> None:
    model = make(
        {"rules": [{"node": "null", "reply": {"json": None}}], "default": {"json": {"b": "ü", "a": [1, True]}}}
    )
    assert await text_of(model) == '{"b": "ü", "a": [1, true]}'
    assert await text_of(model, "null") == "null"


async def test_tool_calls_with_or_without_a_text(make: Make) -> None:
    calls: Value = [{"name": "add", "arguments": {"a": 1}}, {"name": "look"}, {"name": "add", "arguments": "{broken"}]
    rule: Value = {"node": "a", "reply": {"text": "I add.", "tool_calls": calls}}
    model = make({"rules": [rule], "default": {"tool_calls": calls}})

    beside, alone = await model.complete(call("a")), await model.complete(call("b"))

    wanted = (ToolCall("call_1", "add", {"a": 1}), ToolCall("call_2", "look", {}), ToolCall("call_3", "add", "{broken"))
    assert (beside.text, beside.tool_calls, beside.finish) == ("I add.", wanted, Finish.TOOL_CALLS)
    assert (alone.text, alone.tool_calls, alone.finish) == ("", wanted, Finish.TOOL_CALLS)


async def test_error_has_all_fields_of_the_file(make: Make) -> None:
    error = {"kind": "rate_limit", "message": "Slow down.", "retry_after": 1.5, "partial": "so far"}
    received: list[str] = []
    with pytest.raises(ModelError) as caught:
        await make({"default": {"error": error}}).complete(call(), received.append)
    assert caught.value.kind is ModelErrorKind.RATE_LIMIT
    assert caught.value.message == "Slow down."
    assert caught.value.retry_after == 1.5
    assert caught.value.partial == "so far"
    assert received == ["so far"]


@pytest.mark.parametrize("kind", list(ModelErrorKind))
async def test_every_kind_of_error_can_be_scripted(make: Make, kind: ModelErrorKind) -> None:
    error = await error_of(make({"default": {"error": {"kind": kind.value}}}))
    assert error.kind is kind
    assert f"({kind.value})" in error.message
    assert error.retry_after is None


async def test_fail_times_counts_per_path(make: Make) -> None:
    model = make({"default": {"text": "at last", "error": {"kind": "server"}, "fail_times": 2}})

    async def attempts(path: str) -> list[str]:
        outcomes: list[str] = []
        for _ in range(4):
            try:
                outcomes.append(await text_of(model, path))
            except ModelError as error:
                outcomes.append(error.kind.value)
                await asyncio.sleep(0)
        return outcomes

    expected = ["server", "server", "at last", "at last"]
    assert await asyncio.gather(attempts("each[0].ask"), attempts("each[1].ask")) == [expected, expected]


@pytest.mark.parametrize(
    ("stream", "pieces"),
    [
        (None, ["abcdef"]),
        (4, ["abcd", "ef"]),
        (100, ["abcdef"]),
        (["abc", "", "def"], ["abc", "def"]),
    ],
)
async def test_reply_is_streamed_in_the_given_pieces(make: Make, stream: Value, pieces: list[str]) -> None:
    received: list[str] = []
    model = make({"default": {"text": "abcdef", "stream": stream, "chunk_delay_s": 0.001}})
    reply = await model.complete(call(), received.append)
    assert (reply.text, received) == ("abcdef", pieces)
    assert (await model.complete(call())).text == "abcdef"


async def test_pieces_without_text_are_a_reply(make: Make) -> None:
    assert await text_of(make({"default": {"stream": ["ab", "c"]}})) == "abc"


async def test_empty_reply_has_no_pieces(make: Make) -> None:
    received: list[str] = []
    assert (await make({"default": ""}).complete(call(), received.append)).text == ""
    assert received == []


async def test_delayed_reply_can_be_canceled(make: Make) -> None:
    model = make({"default": {"text": "late", "delay_s": 3600}})
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await model.complete(call())
    await model.close()


async def test_usage_comes_from_the_file_or_is_an_estimate(make: Make) -> None:
    model = make(
        {
            "rules": [{"node": "exact", "reply": {"text": "x", "finish": "length", "usage": {"output_tokens": 7}}}],
            "default": "12345",
        }
    )
    exact = await model.complete(call("exact"))
    assert (exact.usage, exact.finish) == (Usage(0, 7, exact=True), Finish.LENGTH)
    estimated = await model.complete(call("", "12345678"))
    assert estimated.usage == Usage(5, 2, exact=False)  # "Be brief." and 8 characters, four a token, rounded up
    assert estimated.finish is Finish.STOP
    assert estimated.model == model.name


@pytest.mark.parametrize(
    ("reply", "text", "reasoning", "refusal"),
    [
        ({"text": "Yes.", "reasoning": "Hm."}, "Yes.", "Hm.", ""),
        ({"reasoning": "Hm."}, "", "Hm.", ""),
        ({"refusal": "No."}, "", "", "No."),
        ({"text": "<think>Hm.</think>Yes."}, "Yes.", "Hm.", ""),
        ({"text": "<think>Hm.</think>Yes.", "reasoning": "First."}, "Yes.", "First.\n\nHm.", ""),
        ({"stream": ["<thi", "nk>Hm.</th", "ink>", "Ye", "s."]}, "Yes.", "Hm.", ""),
        ({"text": "<think>never closed", "stream": 3}, "", "never closed", ""),
        ({"text": "A <think> in the middle.", "stream": 1}, "A <think> in the middle.", "", ""),
    ],
)
async def test_reasoning_and_refusal_are_separate_from_the_text(
    make: Make, reply: dict[str, Any], text: str, reasoning: str, refusal: str
) -> None:
    pieces: list[str] = []

    given = await make({"default": reply}).complete(call(), pieces.append)

    assert (given.text, given.reasoning, given.refusal) == (text, reasoning, refusal)
    assert "".join(pieces) == text


async def test_price_comes_from_the_file_and_defaults_to_zero(make: Make) -> None:
    assert await make({}).price() == Price(0.0, 0.0)
    price = await make({"price": {"input_usd_per_million_tokens": 2, "output_usd_per_million_tokens": 8}}).price()
    assert price
    assert price.cost_usd(Usage(1_000_000, 500_000)) == pytest.approx(6.0)
    assert await make({"price": "unknown"}).price() is None


async def test_call_without_a_matching_rule_names_node_iteration_and_file(make: Make) -> None:
    error = await error_of(make({"rules": [{"node": "a", "reply": "x"}]}), "loop[2].draft")
    assert error.kind is ModelErrorKind.NOT_FOUND
    assert mentions(error.message, "replies.json' … no reply … 'draft' … iteration 2 (loop[2].draft).")
    assert "outside of a run" in (await error_of(make({}))).message


WRONG = [
    ("{", ": Invalid JSON: EOF while parsing an object at line 1 column 1"),
    ("", ": Invalid JSON: EOF while parsing"),
    ("[" * 100_000, ": Invalid JSON: recursion limit exceeded"),
    ('"\\ud800"', ": Invalid JSON:"),
    ("[]", ": Input should be an object"),
    ('{"rule": []}', " at rule: … no such key"),
    ('{"rules": [{"reply": "x"}, {"nod": "a", "reply": "x"}]}', " at rules[1].nod: … no such key"),
    ('{"rules": [{"node": "a"}]}', " at rules[0]: … either 'reply' or 'replies'"),
    ('{"rules": [{"reply": "a", "replies": ["b"]}]}', " at rules[0]: … either 'reply' or 'replies'"),
    ('{"rules": [{"replies": []}]}', " at rules[0].replies: List should have at least 1 item"),
    (
        '{"rules": [{"iteration": -1, "reply": "a"}]}',
        " at rules[0].iteration: … or equal to 0",
    ),
    (
        '{"rules": [{"pattern": "(", "reply": "a"}]}',
        " at rules[0]: … pattern is not … (missing ): ()",
    ),
    (
        '{"rules": [{"pattern": "(?=a)", "reply": "a"}]}',
        " at rules[0]: … pattern is not … (invalid perl operator: (?=)",
    ),
    (
        json.dumps({"rules": [{"pattern": "a" * 1001, "reply": "a"}]}),
        " at rules[0].pattern: String should have at most 1000",
    ),
    ('{"default": 5}', " at default: Input should be an object"),
    ('{"default": {}}', " at default: … either a reply"),
    ('{"default": {"text": "a", "json": null}}', " at default: … both … json"),
    ('{"default": {"json": NaN}}', " at default: Out of range float values"),
    ('{"default": {"text": "a", "stream": ["b"]}}', " at default: … 'stream' … 'text'"),
    ('{"default": {"text": "a", "stream": 0}}', " at default.stream: "),
    ('{"default": {"text": "a", "delay_s": Infinity}}', " at default.delay_s: "),
    ('{"default": {"text": "a", "delay_s": 1e9}}', " at default.delay_s: … or equal to 3600"),
    ('{"default": {"error": {"kind": "oops"}}}', " at default.error.kind: Input should be 'missing_key'"),
    ('{"default": {"text": "a", "error": {"kind": "server"}}}', " at default: … either a reply"),
    ('{"default": {"text": "a", "fail_times": 1}}', " at default: 'fail_times' needs an 'error'"),
    ('{"default": {"error": {"kind": "server"}, "fail_times": 1}}', " at default: 'fail_times' needs an 'error'"),
    (
        '{"rules": [{"replies": [{"text": "a", "error": {"kind": "server"}, "fail_times": 1}]}]}',
        " at rules[0]: 'fail_times' … 'replies'",
    ),
    ('{"price": {"input": 1}}', " at price.input: … no such key (and 1 more)"),
    ('{"price": "free"}', " at price: "),
]


@pytest.mark.parametrize(("content", "parts"), WRONG)
def test_invalid_file_reports_location_and_problem(tmp_path: Path, content: str, parts: str) -> None:
    file = tmp_path / "wrong.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ModelError) as caught:
        ScriptedModel(file)
    assert caught.value.kind is ModelErrorKind.BAD_REQUEST
    assert mentions(caught.value.message, f"{file} … {parts}"), caught.value.message
    assert "\n" not in str(caught.value)


def failure_of(file: Path) -> ModelError:
    with pytest.raises(ModelError) as caught:
        load_script(file)
    assert "\n" not in str(caught.value)
    return caught.value


def test_unreadable_path_is_an_error(tmp_path: Path) -> None:
    missing = failure_of(tmp_path / "missing.json")
    assert (missing.kind, "does not exist" in missing.message) == (ModelErrorKind.NOT_FOUND, True)
    assert "cannot be read: Is a directory" in failure_of(tmp_path).message
    assert re.search("cannot be read: .*embedded null", failure_of(Path("a\0b")).message)
    assert "does not exist" in failure_of(tmp_path / "two\nlines").message
    assert "cannot be read: File name too long" in failure_of(tmp_path / ("x" * 1000)).message


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no named pipes in its file system")
def test_named_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "not an ordinary file" in failure_of(tmp_path / "pipe").message


def test_too_large_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "large.json"
    with file.open("wb") as stream:
        stream.truncate(MAX_FILE_BYTES + 1)
    assert "more than 4 MB" in failure_of(file).message


def test_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "bytes.json"
    file.write_bytes(b'{"default": "\xff\xfe"}')
    assert "it is not UTF-8 text: byte 14 does not fit" in failure_of(file).message


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["rules", "default", "reply", "replies", "text", "json", "stream", "error", "kind", "price"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["rules", "default", "price"]), json_values, max_size=3))
def test_any_content_is_a_script_or_one_error_sentence(
    tmp_path_factory: pytest.TempPathFactory, content: dict[str, Value]
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    try:
        outcome = repr(load_script(file))
    except ModelError as error:
        outcome = str(error)
    assert outcome.startswith(("Script(", f"The scripted model's file '{file}' is invalid"))
    assert "\n" not in outcome


PAGE = Path(__file__).parents[3] / "docs" / "scripted-model.md"


async def test_documented_example_works(make: Make) -> None:
    examples = re.findall(r"```json\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == 1
    model = make(json.loads(examples[0]))
    assert await text_of(model, "loop[0].draft") == "A first draft."
    pieces: list[str] = []
    await model.complete(call("loop[1].draft"), pieces.append)
    assert pieces == ["A bet", "ter d", "raft."]
    critiques = [await text_of(model, "critique") for _ in range(4)]
    assert critiques == ["Too short.", "Too long.", "Just right.", "I have nothing to say about that."]
    assert json.loads(await text_of(model, "outer[1].inner[0].judge"))["branch"] == "done"
    assert json.loads(await text_of(model, "outer[1].inner[1].judge"))["branch"] == "continue"
    for _ in range(2):
        with pytest.raises(ModelError, match="Too many requests"):
            await text_of(model, "ask", "What is the Weather like?")
    assert await text_of(model, "ask", "What is the Weather like?") == "Rain."
    assert (await error_of(model, "flaky")).partial == "The answer is"
    counted = await model.complete(call("counted"))
    price = await model.price()
    assert price
    assert price.cost_usd(counted.usage) == pytest.approx(0.0019)


def test_documentation_names_every_key_and_error_kind() -> None:
    page = PAGE.read_text(encoding="utf-8")
    schema = Script.model_json_schema()
    keys = {key for part in (schema, *schema["$defs"].values()) for key in part.get("properties", {})}
    names = keys | {kind.value for kind in ModelErrorKind}
    assert [name for name in sorted(names) if f"`{name}`" not in page and f'"{name}"' not in page] == []
