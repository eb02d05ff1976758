"""Tool calls in flight when a run stopped: repeated only with consent, or if the tool is idempotent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import BaseModel

from engine import Batch, BatchOptions, EngineError, Run, RunOptions, Workflow, run_batch
from engine.document.files import dumps
from engine.events import NodeToolCalled, NodeToolCalling, NodeWaiting
from engine.nodes.context import Answer
from engine.runner.run_storage import RunHead
from engine.store.resume import resume, resume_with, unknown_calls
from engine.tools.registry import set_tools
from engine.tools.tool import Tool, ToolContext, ToolError
from tests.engine.semantics.agents import agent, script, wants
from tests.engine.semantics.documents import each, entry, flow, gather, leave, loop, part, result
from tests.engine.semantics.kit import begin, finish, options
from tests.engine.semantics.models import FunctionModel
from tests.engine.store.memory_store import MemoryStore


class _Text(BaseModel):
    text: str = ""


@dataclass
class Post:
    """The tools `send` and `look`. Only `look` is idempotent. Both hang while their text is in `hangs`.

    Attributes:
        calls: Name and text of each call.
        hangs: The texts for which a call hangs.
        fails: The number of calls that fail first.
        last: The text at which the run is killed.
        reached: Set when a call hangs with that text.
    """

    calls: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    hangs: set[str] = field(default_factory=set[str])
    fails: int = 0
    last: str = ""
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, given: _Text, _context: ToolContext) -> str:
        return await self._work("send", given.text)

    async def look(self, given: _Text, _context: ToolContext) -> str:
        return await self._work("look", given.text)

    async def _work(self, name: str, text: str) -> str:
        self.calls.append((name, text))
        if self.fails:
            self.fails -= 1
            raise ToolError("Busy.", retryable=True)
        if text in self.hangs:
            if text == self.last:
                self.reached.set()
            await asyncio.Event().wait()
        return f"{name} {text}"


@pytest.fixture(name="post")
def post_fixture() -> Iterator[Post]:
    post = Post()
    set_tools(
        "test",
        [
            Tool("send", "Send", "Sends a text.", _Text, "text", post.send),
            Tool("look", "Look", "Looks at a text.", _Text, "text", post.look, idempotent=True),
        ],
    )
    yield post
    set_tools("test", ())


def tool(node_id: str, name: str = "send", **config: Any) -> Any:
    return part(node_id, "tool", tool=name, **config)


PLAIN = flow(entry(), tool("post"), result(), edges="text -> post.text\npost -> out")
EDGES_OF_LOOP = "text -> loop\nloop -> post.text\npost -> exit -> out"
IN_LOOP = flow(
    entry(), loop(max_iterations=2, feedback_mode="append"), tool("post"), leave(), result(), edges=EDGES_OF_LOOP
)
IN_ITEMS = flow(
    entry(type="list", default=["a", "b", "seed"]),
    each(),
    tool("post"),
    gather(),
    result(),
    edges="text -> each\neach -> post.text\npost -> gather -> out",
)
IN_SUBFLOW = flow(
    entry(),
    part("part", "subflow", file="part.loop.json", workflow=PLAIN.to_json()),
    result(),
    edges="text -> part.text\npart.out -> out",
)
BY_AGENT = flow(entry(), agent(tools=["send", "look"]), result(), edges="text -> agent -> out")


async def interrupted(post: Post, workflow: Workflow, *hangs: str, replies: Any = "") -> tuple[MemoryStore, str]:
    """A run that is killed while a tool hangs at the last of these texts."""
    post.hangs, post.last = set(hangs), hangs[-1]
    post.reached.clear()
    store = MemoryStore()
    run, models = begin(workflow, replies, None if workflow is not IN_ITEMS else {}, store=store)
    async with asyncio.timeout(30):
        await post.reached.wait()
    events, given = list(store.events(run.run_id)), store.options(run.run_id)
    run.cancel()
    await finish(run, models)
    post.hangs, post.calls = set(), []
    killed = MemoryStore()
    return killed, killed.import_run(RunHead(run.run_id, dumps(workflow), given), events)


async def resumed(store: MemoryStore, run_id: str, replies: Any = "", **more: Any) -> Any:
    ended = await resume(store, run_id, options(FunctionModel(replies)), **more).result()
    assert ended.status == "completed"
    return ended.outputs["out"]


CALLS_SEND = script(wants(("send", {"text": "one"})), wants(("send", {"text": "two"})), "done")
CALLS_LOOK = script(wants(("send", {"text": "one"})), wants(("look", {"text": "two"})), "done")


@pytest.mark.parametrize(
    ("workflow", "hangs", "replies", "place", "out"),
    [
        (PLAIN, "seed", "", "post", "send seed"),
        (
            IN_LOOP,
            "seed\n---\nsend seed",
            "",
            "loop[1].post",
            "send seed\n---\nsend seed",
        ),
        (IN_ITEMS, "b", "", "each[1].post", ["send a", "send b", "send seed"]),
        (IN_SUBFLOW, "seed", "", "part.post", "send seed"),
        (BY_AGENT, "two", CALLS_SEND, "agent", "done"),
    ],
    ids=["node", "loop", "items", "subflow", "agent"],
)
async def test_a_tool_call_in_flight_is_repeated_only_with_consent(
    post: Post, workflow: Workflow, hangs: str, replies: Any, place: str, out: Any
) -> None:
    store, run_id = await interrupted(post, workflow, hangs, replies=replies)

    (call,) = unknown_calls(store, run_id)
    assert (call.path, call.model, call.tool) == (place, "", "send")

    def resume_another_document(store: MemoryStore, run_id: str, options: RunOptions) -> Run:
        return resume_with(store, run_id, workflow, options)

    for begin_again in (resume, resume_another_document):
        with pytest.raises(EngineError) as refused:
            begin_again(store, run_id, options(FunctionModel(replies)))
        assert f'{place} (tool "send" with {{"text":"' in refused.value.message
        assert refused.value.fix == "repeat_calls"
    assert post.calls == []

    again = await resumed(store, run_id, replies, retry_in_flight=True)
    assert post.calls[0] == ("send", hangs)
    assert again == out
    assert unknown_calls(store, run_id) == ()


@pytest.mark.parametrize("workflow", [PLAIN, BY_AGENT], ids=["node", "agent"])
async def test_an_idempotent_call_is_repeated_without_consent(post: Post, workflow: Workflow) -> None:
    if workflow is PLAIN:
        workflow = flow(entry(), tool("post", "look"), result(), edges="text -> post.text\npost -> out")
    store, run_id = await interrupted(post, workflow, "seed" if workflow is not BY_AGENT else "two", replies=CALLS_LOOK)

    assert unknown_calls(store, run_id) == ()
    await resumed(store, run_id, CALLS_LOOK)
    assert [name for name, _ in post.calls] == ["look"]


async def test_finished_and_abandoned_calls_are_not_in_flight(post: Post) -> None:
    """A failed attempt, a finished call and a call abandoned by a finished loop are not calls in flight."""
    timed_out = flow(
        entry(),
        loop(max_iterations=3, timeout_s=0.2, on_error="continue", error_value="late"),
        tool("post"),
        leave(),
        tool("after", "look"),
        result(),
        edges=f"{EDGES_OF_LOOP.rpartition(' -> ')[0]}\nexit -> after.text\nafter -> out",
    )
    retried = flow(
        entry(),
        tool("post", retries=1, retry_delay_s=0.01),
        tool("after"),
        result(),
        edges="text -> post.text\npost -> after.text\nafter -> out",
    )
    post.fails = 1
    store, run_id = await interrupted(post, retried, "send seed")
    assert [call.path for call in unknown_calls(store, run_id)] == ["after"]

    store, run_id = await interrupted(post, timed_out, "seed", "late")
    assert unknown_calls(store, run_id) == ()


async def test_a_call_is_in_the_history_before_it_is_made(post: Post) -> None:
    store, run_id = await interrupted(post, PLAIN, "seed")
    (event,) = store.events(run_id, kinds={NodeToolCalling})
    assert isinstance(event, NodeToolCalling)
    assert (event.path, event.tool, event.arguments) == ("post", "send", '{"text":"seed"}')


async def test_long_arguments_are_stored_truncated(post: Post) -> None:
    text = "x" * 5_000
    workflow = flow(entry(), tool("post", arguments={"text": text}), result(), edges="post -> out")
    store, run_id = await interrupted(post, workflow, text)
    (call,) = unknown_calls(store, run_id)
    assert call.arguments.startswith('{"text":"xxx')
    assert len(call.arguments) < 300


async def test_nothing_is_in_flight_while_a_person_is_asked(post: Post) -> None:
    asking = flow(entry(), agent(tools=["send"], require_approval=["send"]), result(), edges="text -> agent -> out")
    store = MemoryStore()
    run, models = begin(asking, CALLS_SEND, store=store)
    async for event in run.events():
        if isinstance(event, NodeWaiting):
            assert unknown_calls(store, run.run_id) == ()
            run.answer(event.path, Answer("approve"))
    assert (await finish(run, models)).out == "done"
    types = [type(event) for event in store.events(run.run_id, kinds={NodeToolCalling, NodeToolCalled})]
    assert types == [NodeToolCalling, NodeToolCalled] * 2


async def test_a_batch_also_needs_consent_to_repeat_a_tool_call(post: Post) -> None:
    post.hangs, post.last = {"b"}, "b"
    store = MemoryStore()
    batch = Batch(PLAIN, [{"text": "a"}, {"text": "b"}], BatchOptions(store=store))
    running = asyncio.create_task(batch.run())
    await post.reached.wait()
    killed, row = MemoryStore(), batch.rows[1].run_id
    killed.import_run(RunHead(row, dumps(PLAIN), store.options(row)), list(store.events(row)))
    batch.stop()
    await running
    post.hangs, post.calls = set(), []

    again = await run_batch(PLAIN, [{"text": "b"}, {"text": "a"}], BatchOptions(store=killed))
    assert [row.status for row in again.rows] == ["failed", "completed"]
    assert f"The run {row} stopped during a call" in again.rows[0].error
    assert " --" not in again.rows[0].error, "the window shows it, too"
    assert post.calls == [("send", "a")]
    again = await run_batch(PLAIN, [{"text": "b"}], BatchOptions(store=killed, retry_in_flight=True))
    assert [row.outputs for row in again.rows] == [{"out": "send b"}]


async def test_which_tools_are_idempotent() -> None:
    from engine.tools.registry import builtin_tools

    assert {name for name, each in builtin_tools().items() if each.idempotent} == {
        "http_get",
        "read_file",
        "search_files",
        "web_search",
    }
