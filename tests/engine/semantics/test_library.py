"""The engine as a library: from a script, inside a running loop, and as in a notebook."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from engine import Builder, RunError, load, run, run_blocking, save, start, validate
from engine.events import AnyEvent, RunCompleted
from tests.engine.semantics.documents import around, entry, flow, formula, llm, result
from tests.engine.semantics.kit import options
from tests.engine.semantics.models import FakeModels, FunctionModel, numbered

_LOOP = around(llm("draft"), edges="loop -> draft -> exit", max_iterations=2)
_INPUTS = {"text": "seed"}
_ROOT = Path(__file__).parents[3]


async def test_run_is_awaited_inside_a_running_loop() -> None:
    outcome = await run(_LOOP, _INPUTS, options(FunctionModel(numbered)))

    assert (outcome.status, outcome.outputs) == ("completed", {"out": "draft 1"})


def test_run_blocking_works_without_a_running_loop() -> None:
    assert run_blocking(_LOOP, _INPUTS, options(FunctionModel(numbered))).outputs == {"out": "draft 1"}


async def test_run_blocking_works_inside_a_running_loop_as_in_a_notebook() -> None:
    assert run_blocking(_LOOP, _INPUTS, options(FunctionModel(numbered))).outputs == {"out": "draft 1"}


def test_run_blocking_works_repeatedly() -> None:
    for _ in range(3):
        assert run_blocking(_LOOP, _INPUTS, options(FunctionModel(numbered))).status == "completed"


def test_run_blocking_works_from_several_threads_at_once() -> None:
    outcomes: list[object] = []
    threads = [
        threading.Thread(
            target=lambda: outcomes.append(run_blocking(_LOOP, _INPUTS, options(FunctionModel(numbered))).outputs)
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert outcomes == [{"out": "draft 1"}] * 4


def test_a_result_is_shown_in_a_line_without_its_iterations() -> None:
    outcome = run_blocking(_LOOP, _INPUTS, options(FunctionModel(numbered)))

    assert len(outcome.loops["loop"].iterations) == 2
    assert "draft 1" in repr(outcome)
    assert "draft 0" not in repr(outcome)


def test_run_blocking_raises_the_same_errors_as_run() -> None:
    workflow = flow(entry(), formula("bad", "1 / 0"), result(), edges="text -> bad.input\nbad -> out")

    with pytest.raises(RunError) as caught:
        run_blocking(workflow, _INPUTS, options(FunctionModel("")))

    assert caught.value.result.node == "bad"
    assert caught.value.remedy is not None


async def test_a_callback_gets_every_event_in_order() -> None:
    seen: list[AnyEvent] = []
    started = start(_LOOP, _INPUTS, options(FunctionModel(numbered)), on_event=seen.append)

    await started.result()
    await started.delivered()

    assert seen == [event async for event in started.events()]


async def test_run_returns_after_the_last_event_callback() -> None:
    seen: list[AnyEvent] = []

    await run(_LOOP, _INPUTS, options(FunctionModel(numbered)), on_event=seen.append)

    assert isinstance(seen[-1], RunCompleted)


async def test_a_callback_that_blocks_does_not_delay_the_run() -> None:
    run_is_over = threading.Event()
    seen: list[AnyEvent] = []

    def on_event(event: AnyEvent) -> None:
        assert run_is_over.wait(30)
        seen.append(event)

    started = start(_LOOP, _INPUTS, options(FunctionModel(numbered)), on_event=on_event)
    outcome = await asyncio.wait_for(started.result(), 30)
    assert seen == []
    run_is_over.set()
    await started.delivered()

    assert outcome.outputs == {"out": "draft 1"}
    assert len(seen) == len([event async for event in started.events()])


def test_a_workflow_built_in_python_saves_to_the_same_file_and_runs_from_it(tmp_path: Path) -> None:
    builder = Builder("Grow", description="Make a text longer.")
    text = builder.add("input", id="text")
    loop = builder.add("loop", max_iterations=3)
    grow = builder.add("transform", id="grow", template="{{input}}+")
    leave = builder.add("exit", loop=loop.id)
    out = builder.add("output", id="out")
    builder.connect(text["value"], loop["input"])
    builder.connect(loop["body"], grow["input"])
    builder.connect(grow["output"], leave["input"])
    builder.connect(leave["output"], out["value"])
    path = tmp_path / "grow.loop.json"

    save(builder.build(), path)
    workflow = load(path)

    assert workflow == builder.build()
    assert validate(workflow) == []
    assert run_blocking(workflow, {"text": "a"}, options(FunctionModel(""))).outputs == {"out": "a+++"}


_SCRIPT = """
    from engine import Builder, run_blocking, validate

    flow = Builder("Hello")
    name = flow.add("input", id="name")
    greet = flow.add("transform", id="greet", template="Hello, {{input}}!")
    out = flow.add("output", id="greeting")
    flow.connect(name["value"], greet["input"])
    flow.connect(greet["output"], out["value"])
    workflow = flow.build()
    assert validate(workflow) == []
    seen = []
    result = run_blocking(workflow, {"name": "world"}, on_event=seen.append)
    print(result.outputs["greeting"], result.status, seen[-1].type)
"""


def _script(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=_ROOT,
    )


def test_a_script_runs_a_workflow_and_ends() -> None:
    ended = _script(_SCRIPT)

    assert (ended.stdout, ended.stderr, ended.returncode) == ("Hello, world! completed run.completed\n", "", 0)


def test_all_public_names_exist() -> None:
    import engine

    for name in engine.__all__:
        assert getattr(engine, name) is not None
    with pytest.raises(AttributeError):
        _ = engine.nothing_of_the_kind  # type: ignore[attr-defined]


async def test_a_run_closes_the_models_it_created(monkeypatch: pytest.MonkeyPatch) -> None:
    made = FakeModels(FunctionModel(numbered))
    monkeypatch.setattr("engine.models.catalog.Models", lambda: made)

    outcome = await run(_LOOP, _INPUTS)

    assert outcome.outputs == {"out": "draft 1"}
    assert made.closed == 1


_INTERRUPTED = """
    import asyncio
    from engine import run_blocking
    from tests.engine.semantics.documents import entry, flow, llm, result
    from tests.engine.semantics.kit import options
    from tests.engine.semantics.models import FunctionModel

    async def answer(call):
        print("called", flush=True)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            print("cancelled", flush=True)
            raise

    workflow = flow(entry(), llm("draft"), result(), edges="text -> draft -> out")
    try:
        run_blocking(workflow, {"text": "seed"}, options(FunctionModel(answer)))
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
def test_an_interrupt_stops_a_blocking_run_and_the_call_in_flight() -> None:
    command = [sys.executable, "-c", textwrap.dedent(_INTERRUPTED)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=_ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "called\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)

    assert sorted(out.split()) == ["cancelled", "interrupted"]
    assert (err, process.returncode) == ("", 0)
