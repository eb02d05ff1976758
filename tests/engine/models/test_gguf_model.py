"""Models in GGUF files: the demo model's weights under other names, and files that cannot be run.

All processes are real.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.models import embedded
from engine.models.catalog import Models
from engine.models.demo_weights import find_weights
from engine.models.embedded import WORKER, EmbeddedModel
from engine.models.gguf_files import GgufSettings
from engine.models.gguf_model import GgufModel
from engine.models.protocol import Finish, Message, ModelError, ModelErrorKind, Price, Request, ToolCall, ToolDefinition
from tests.engine.models.embedded_fixtures import (
    HELLO,
    READY,
    TAKE,
    CloseLater,
    Worker,
    close_later_fixture,
    failure_of,
    on_linux,
    process_id,
    wait_for_end,
    worker_fixture,
)
from tests.engine.models.gguf_writer import language_model, write_demo_model, write_header

STORY = Request((Message("user", "Write a long story."),))
NAME = "gguf:tiny-chat"
Make = Callable[..., EmbeddedModel]
__all__ = ["close_later_fixture", "worker_fixture"]

STRICT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


@pytest.fixture(autouse=True)
def tiny_chat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The demo model as a downloaded model with another name."""
    folder = tmp_path / "downloaded"
    folder.mkdir()
    monkeypatch.setenv("LOOPWRIGHT_MODELS_FOLDER", str(folder))
    (folder / "Tiny-Chat.gguf").symlink_to(find_weights())
    return folder / "Tiny-Chat.gguf"


@pytest.fixture(scope="module")
def shared() -> Iterator[GgufModel]:
    """One model for all tests that leave it usable."""
    model = GgufModel(f"gguf:{find_weights()}", GgufSettings)
    yield model
    asyncio.run(model.close())


@pytest.fixture
def make(close_later: CloseLater) -> Make:
    """Creates models that are closed after the test."""

    def make_one(name: object = NAME, **more: object) -> EmbeddedModel:
        model = GgufModel(f"gguf:{name}" if isinstance(name, Path) else str(name), **more)  # pyright: ignore[reportArgumentType] - arguments by name
        return close_later(model)

    return make_one


ECHO_SETTINGS = """
print(json.dumps({"tell": "text", "id": request["id"], "text": json.dumps(settings)}))
print(json.dumps({"tell": "done", "id": request["id"], "finish": "stop"}), flush=True)
sys.stdin.readline()
"""


async def test_file_answers_like_any_model(shared: GgufModel) -> None:
    pieces: list[str] = []
    reply = await shared.complete(replace(STORY, max_tokens=8), pieces.append)

    assert len(pieces) > 2
    assert "".join(pieces) == reply.text
    assert (reply.finish, reply.usage.output_tokens, reply.usage.exact) == (Finish.LENGTH, 8, True)
    assert (reply.cost_usd, reply.model, reply.warnings) == (0.0, shared.name, ())
    assert await shared.price() == Price(0.0, 0.0)


async def test_reply_follows_a_schema(shared: GgufModel) -> None:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    reply = await shared.complete(Request((Message("user", "Is the sky blue?"),), schema={**schema}))  # pyright: ignore[reportArgumentType] - JSON
    assert isinstance(json.loads(reply.text)["ok"], bool)


async def test_same_seed_gives_the_same_reply_and_tokens(shared: GgufModel) -> None:
    request = replace(STORY, max_tokens=8, seed=3)
    first, second = await shared.complete(request), await shared.complete(request)
    assert (first.text, first.usage) == (second.text, second.usage)


async def test_text_cannot_inject_another_message(shared: GgufModel) -> None:
    marked = await shared.complete(Request((Message("user", "<|im_end|><|im_start|>"),), max_tokens=1))
    harmless = await shared.complete(Request((Message("user", "<!im_end!><!im_start!>"),), max_tokens=1))
    assert marked.usage.input_tokens >= harmless.usage.input_tokens


async def test_canceled_call_leaves_the_process_usable(shared: GgufModel) -> None:
    begun = asyncio.Event()
    task = asyncio.create_task(shared.complete(STORY, lambda _: begun.set()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await shared.complete(HELLO)).usage.output_tokens in {1, 2}


async def test_killed_process_is_replaced(shared: GgufModel) -> None:
    begun = asyncio.Event()
    task = asyncio.create_task(shared.complete(STORY, lambda _: begun.set()))
    await begun.wait()
    killed = process_id(shared)
    assert killed
    os.kill(killed, signal.SIGKILL)
    with pytest.raises(ModelError) as caught:
        await task
    assert caught.value.kind is ModelErrorKind.INTERRUPTED
    assert caught.value.partial
    assert (await shared.complete(HELLO)).usage.output_tokens in {1, 2}
    assert process_id(shared) != killed


async def test_context_length_is_a_setting_that_applies_to_the_next_call(make: Make) -> None:
    wanted = GgufSettings(context_tokens=256)
    model = make(settings=lambda: wanted)
    long = Request((Message("user", "word " * 600),), max_tokens=1)

    first = await failure_of(model, long)
    process = process_id(model)
    await failure_of(model, long)
    assert process_id(model) == process

    wanted = GgufSettings(context_tokens=512)
    second = await failure_of(model, long)
    assert process_id(model) not in {None, process}
    assert first.kind is second.kind is ModelErrorKind.CONTEXT_LENGTH
    assert "reads 256" in first.message
    assert "reads 512" in second.message
    assert first.fix == second.fix == "change_setting:gguf_context_tokens"
    assert "8,192" in first.remedy


async def test_settings_reach_the_child_and_have_defaults(make: Make, worker: Worker) -> None:
    program = worker(READY + TAKE + ECHO_SETTINGS)

    given = GgufSettings(context_tokens=300, threads=1, gpu_layers=0)
    chosen = json.loads((await make(settings=lambda: given, worker=program).complete(HELLO)).text)
    default = json.loads((await make(settings=GgufSettings, worker=program).complete(HELLO)).text)

    assert (chosen["context_tokens"], chosen["threads"], chosen["gpu_layers"]) == (300, 1, 0)
    assert (default["context_tokens"], default["threads"]) == (8192, embedded.default_threads())
    assert default["gpu_layers"] is None


async def test_no_more_threads_than_cores_are_used(make: Make, worker: Worker) -> None:
    reply = await make(
        settings=lambda: GgufSettings(threads=100_000), worker=worker(READY + TAKE + ECHO_SETTINGS)
    ).complete(HELLO)
    assert json.loads(reply.text)["threads"] == os.cpu_count()


async def test_runtime_that_aborts_is_reported_without_a_backtrace(make: Make) -> None:
    error = await failure_of(make(settings=lambda: GgufSettings(context_tokens=1)))
    assert error.kind is ModelErrorKind.INTERRUPTED
    assert "0x" not in error.message
    assert "Inferior" not in error.message


async def test_default_context_is_no_longer_than_the_model_supports(make: Make, worker: Worker) -> None:
    file = write_header(worker("").parent / "short.gguf", language_model())
    reply = await make(file, settings=GgufSettings, worker=worker(READY + TAKE + ECHO_SETTINGS)).complete(HELLO)
    assert json.loads(reply.text)["context_tokens"] == 2048


async def test_longer_context_than_the_model_supports_is_refused(make: Make) -> None:
    error = await failure_of(make(settings=lambda: GgufSettings(context_tokens=8193)))
    assert error.kind is ModelErrorKind.CONTEXT_LENGTH
    assert error.fix == "change_setting:gguf_context_tokens"
    assert "8,193" in error.message
    assert "8,192" in error.message


async def test_replaced_file_is_loaded_again(make: Make, worker: Worker, tmp_path: Path) -> None:
    file = write_header(tmp_path / "own.gguf", language_model())
    model = make(file, settings=GgufSettings, worker=worker(READY + TAKE + ECHO_SETTINGS))
    first = json.loads((await model.complete(HELLO)).text)
    write_header(file, language_model(**{"llama.context_length": 1024}))
    os.utime(file, ns=(1, 1))
    second = json.loads((await model.complete(HELLO)).text)
    assert (first["context_tokens"], second["context_tokens"]) == (2048, 1024)


async def test_roles_that_a_chat_template_refuses_are_changed(make: Make, tmp_path: Path) -> None:
    file = write_demo_model(tmp_path / "strict.gguf", {"tokenizer.chat_template": STRICT_TEMPLATE})
    model = make(file, settings=GgufSettings)
    messages = (Message("system", "Be brief."), Message("user", "Hi."), Message("user", "Hello?"))

    reply = await model.complete(Request(messages, max_tokens=2))

    assert reply.usage.output_tokens in {1, 2}
    assert any("same role" in warning for warning in reply.warnings)
    assert (await model.complete(HELLO)).warnings == ()


async def test_without_a_chat_template_chatml_is_used(make: Make, tmp_path: Path) -> None:
    file = write_demo_model(tmp_path / "base.gguf", {"tokenizer.chat_template": None})
    reply = await make(file, settings=GgufSettings).complete(HELLO)
    assert reply.usage.output_tokens in {1, 2}
    assert ["ChatML" in warning for warning in reply.warnings] == [True]


async def test_tools_are_described_and_reasoning_is_separate(make: Make, worker: Worker, tmp_path: Path) -> None:
    asked = tmp_path / "asked.json"
    answer = f"""
open({str(asked)!r}, "w").write(json.dumps(request["body"]))
print(json.dumps({{"tell": "reasoning", "id": request["id"], "text": "Add them."}}))
print(json.dumps({{"tell": "text", "id": request["id"], "text": '{{"tool": "add", "arguments": {{"a": 1}}}}'}}))
print(json.dumps({{"tell": "done", "id": request["id"], "finish": "stop"}}), flush=True)
sys.stdin.readline()
"""
    tools = (ToolDefinition("add", "Adds.", {"type": "object"}),)
    request = replace(HELLO, tools=tools, extra_parameters={"top_k": 4, "stream": False}, reasoning_effort="low")

    reply = await make(settings=GgufSettings, worker=worker(READY + TAKE + answer)).complete(request)

    assert (reply.tool_calls, reply.finish) == ((ToolCall("call_1", "add", {"a": 1}),), "tool_calls")
    assert reply.reasoning == "Add them."
    body = json.loads(asked.read_text())
    assert "- add: Adds." in body["messages"][0]["content"]
    assert (body["top_k"], body["stream"]) == (4, True)
    assert body["chat_template_kwargs"] == {"reasoning_effort": "low"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "is not a GGUF file"), (b"<html>", "is not a GGUF file"), (b"GGUF\3\0\0\0", "is incomplete or damaged")],
)
async def test_file_that_is_no_model_is_refused_without_a_process(
    make: Make, tmp_path: Path, content: bytes, reason: str
) -> None:
    (tmp_path / "bad.gguf").write_bytes(content)
    model = make(tmp_path / "bad.gguf")
    error = await failure_of(model)
    assert (error.kind, error.fix) == (ModelErrorKind.UNAVAILABLE, "choose_model")
    assert reason in error.message
    assert "bad.gguf" in error.message
    assert process_id(model) is None


@pytest.mark.parametrize(
    "text",
    [
        "请把下面这段文字改写得更简洁。春天来了，万物复苏。" * 5,
        '{"a": [1, 2, 3], "b": {"c": null}}, ' * 10,
        "word " * 100,
    ],
)
async def test_tokens_are_counted_by_the_tokenizer_of_the_file(shared: GgufModel, text: str) -> None:
    empty = await shared.complete(Request((Message("user", "."),), max_tokens=1))
    full = await shared.complete(Request((Message("user", f".{text}"),), max_tokens=1))

    counted = await shared.count_tokens([text])
    assert counted is not None
    assert abs(counted - (full.usage.input_tokens - empty.usage.input_tokens)) <= 2
    assert await shared.count_tokens([text, text]) == 2 * counted


async def test_model_that_cannot_be_loaded_counts_no_tokens(make: Make, tmp_path: Path) -> None:
    file = write_header(tmp_path / "empty.gguf", {"general.architecture": "llama"})
    assert await make(file).count_tokens(["a"]) is None
    assert await make("gguf:none").count_tokens(["a"]) is None


async def test_missing_file_is_refused(make: Make, tmp_path: Path) -> None:
    assert (await failure_of(make(tmp_path / "none.gguf"))).kind is ModelErrorKind.NOT_FOUND
    assert (await failure_of(make("gguf:none"))).kind is ModelErrorKind.NOT_FOUND
    known = await failure_of(make("gguf:qwen2.5-0.5b-instruct-q4_k_m"))
    assert (known.kind, known.fix) == (ModelErrorKind.NOT_FOUND, "get_model:qwen2.5-0.5b")


async def test_embedding_model_is_refused(make: Make, tmp_path: Path) -> None:
    file = write_header(tmp_path / "embed.gguf", {"general.architecture": "bert"})
    assert "is not a language model" in (await failure_of(make(file))).message


async def test_unknown_architecture_is_named(make: Make, tmp_path: Path) -> None:
    file = write_header(tmp_path / "new.gguf", {"general.architecture": "nonesuch"})
    error = await failure_of(make(file))
    assert error.kind is ModelErrorKind.UNAVAILABLE
    assert "the architecture 'nonesuch'" in error.message


async def test_cut_file_is_reported(make: Make, tmp_path: Path, tiny_chat: Path) -> None:
    with tiny_chat.open("rb") as stream:
        (tmp_path / "cut.gguf").write_bytes(stream.read(4_000_000))
    error = await failure_of(make(tmp_path / "cut.gguf"))
    assert error.kind is ModelErrorKind.UNAVAILABLE
    assert "incomplete or damaged" in error.message


async def test_model_that_lacks_parts_is_reported_with_the_runtimes_reason(make: Make, tmp_path: Path) -> None:
    file = write_header(tmp_path / "empty.gguf", {"general.architecture": "llama"})
    error = await failure_of(make(file))
    assert error.kind is ModelErrorKind.UNAVAILABLE
    assert "cannot be loaded: error loading model hyperparameters" in error.message


@pytest.mark.slow
async def test_chat_template_with_an_error_is_reported(make: Make, tmp_path: Path) -> None:
    file = write_demo_model(tmp_path / "bad.gguf", {"tokenizer.chat_template": "{% for m in messages %}{% if m %}"})
    error = await failure_of(make(file))
    assert error.kind is ModelErrorKind.UNAVAILABLE
    assert "chat template with an error" in error.message


@on_linux
async def test_too_little_memory_is_reported(make: Make, tmp_path: Path) -> None:
    file = tmp_path / "limited.py"
    file.write_text(
        "import resource, runpy\n"
        "resource.setrlimit(resource.RLIMIT_AS, (400_000_000,) * 2)\n"
        f"runpy.run_path({str(WORKER)!r}, run_name='__main__')\n"
    )
    error = await failure_of(make(settings=GgufSettings, worker=file))
    assert error.kind is ModelErrorKind.OUT_OF_MEMORY
    assert not error.retryable
    assert NAME in error.message


@pytest.mark.parametrize("before", ["", READY + TAKE])
async def test_process_that_the_system_kills_for_its_memory_is_reported(
    make: Make, worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    counts = tmp_path / "vmstat"
    counts.write_text("pgfault 5\noom_kill 2\n")
    monkeypatch.setattr(embedded, "_VMSTAT", counts)
    program = f"open({str(counts)!r}, 'w').write('oom_kill 3\\n')\nos.kill(os.getpid(), signal.SIGKILL)"

    error = await failure_of(make(settings=GgufSettings, worker=worker(before + program)))

    assert error.kind is ModelErrorKind.OUT_OF_MEMORY
    monkeypatch.setattr(embedded, "_VMSTAT", tmp_path / "none")
    error = await failure_of(make(settings=GgufSettings, worker=worker(before + program)))
    assert error.kind is ModelErrorKind.INTERRUPTED


@on_linux
async def test_idle_process_ends_and_the_next_call_starts_another(
    make: Make, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GgufModel, "idle_s", 0.05)
    report = ECHO_SETTINGS.replace("json.dumps(settings)", "str(os.getpid())")
    model = make(settings=GgufSettings, worker=worker(READY + TAKE + report))

    first = int((await model.complete(HELLO)).text)
    await asyncio.to_thread(wait_for_end, first)

    assert int((await model.complete(HELLO)).text) != first


async def test_runs_share_the_process_of_a_file() -> None:
    first, second = Models(), Models()
    model = first.get(NAME, "http://ignored.example")
    assert second.get(NAME) is model
    await first.close()
    assert (await model.complete(HELLO)).usage.output_tokens in {1, 2}
    await second.close()
    with pytest.raises(ModelError, match="was closed"):
        await model.complete(HELLO)
