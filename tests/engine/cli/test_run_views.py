from __future__ import annotations

import io
import json
from typing import Any

import pytest

from engine.cli.output import Screen
from engine.cli.run_monitor import EventView, LineView, LiveView, live_display, loop_bars
from engine.document.model import Workflow
from engine.models.protocol import Usage
from engine.run_state.reducer import apply, reduce_events
from engine.run_state.state import RunState, active_nodes
from tests.engine.cli.kit import Events
from tests.wording import mentions

TINY = {"embedded:smollm2-135m": "tiny"}


def note_of(name: str) -> str:
    return TINY.get(name, "")


def two_iterations_of_three() -> list[Any]:
    make = Events()
    return [
        make("RunStarted", workflow="Sample", inputs={}, models=("embedded:smollm2-135m",)),
        make("NodeStarted", "loop", node_type="loop", inputs={}),
        make("LoopIterationStarted", "loop", index=0, total=3, input_preview=""),
        make("NodeStarted", "loop[0].draft", node_type="llm", inputs={}),
        make.node("loop[0].draft", Usage(10, 20)),
        make.iteration("loop", 0, "First\nresult \x1b[2J", branch="continue", similarity=0.5, score=3.0),
        make("LoopIterationStarted", "loop", index=1, total=3, input_preview=""),
        make("NodeStarted", "loop[1].draft", node_type="llm", inputs={}),
        make("NodeStreaming", "loop[1].draft", text="The moon ", tokens=2),
        make("NodeStreaming", "loop[1].draft", text="pulls\x1b[2J", tokens=3),
    ]


def drawn(state: RunState, width: int = 100, **console: Any) -> str:
    from rich.console import Console

    screen = Console(file=io.StringIO(), width=width, markup=False, emoji=False, highlight=False, **console)
    with screen.capture() as captured:
        screen.print(live_display(state, note_of, 1012.0, width))
    return captured.get()


def lines(events: list[Any]) -> list[str]:
    stream = io.StringIO()
    state = RunState()
    view = LineView(Screen(stream), state, Workflow(), note_of)
    for event in events:
        apply(state, event)
        view.take(event)
    return stream.getvalue().splitlines()


def test_live_display_shows_loop_node_text_and_figures():
    rows = drawn(reduce_events(two_iterations_of_three())).splitlines()
    assert rows[0].split() == ["loop", "━" * 8, "2/3"]
    assert [row.rstrip() for row in rows[1:]] == [
        "loop[1].draft  The moon pulls\\x1b[2J",
        "12.0 s   30 tokens   $0",
        "embedded:smollm2-135m (tiny)",
    ]


def test_bar_counts_completed_iterations():
    events = two_iterations_of_three()
    assert [bar.completed for bar in loop_bars(reduce_events(events[:5]))] == [0]
    assert [bar.completed for bar in loop_bars(reduce_events(events))] == [1]
    bar = drawn(reduce_events(events), legacy_windows=True)
    assert "2/3" in bar


def test_cost_is_unknown_after_an_unknown_price():
    make = Events()
    state = reduce_events([make.node("a", Usage(1, 1), None), make.node("b", Usage(1, 1), 0.5)])
    assert state.cost_usd is None
    assert "4 tokens   $?" in drawn(state)


def test_live_row_shows_the_end_of_a_long_stream():
    make = Events()
    state = reduce_events(
        [
            make("NodeStarted", "draft", node_type="llm", inputs={}),
            make("NodeStreaming", "draft", text="beginning " + "界" * 300 + " the very end", tokens=1),
        ]
    )
    row = drawn(state, width=40).splitlines()[0]
    assert row.startswith("draft ")
    assert row.rstrip().endswith("the very end")
    assert "beginning" not in row


def test_a_retry_is_shown_in_place_of_the_stream():
    make = Events()
    state = reduce_events(
        [
            make("NodeStarted", "draft", node_type="llm", inputs={}),
            make("NodeStreaming", "draft", text="half", tokens=1),
            make("NodeRetrying", "draft", attempt=2, delay_s=3.0, error="Too many requests."),
        ]
    )
    assert "draft  attempt 2 in 3.0 s: Too many requests." in drawn(state)


def test_nodes_that_do_not_fit_are_counted():
    make = Events()
    state = reduce_events([make("NodeStarted", f"n{i}", node_type="llm", inputs={}) for i in range(9)])
    assert "and 3 more running" in drawn(state)


def test_ended_nodes_are_not_active():
    make = Events()
    started = [make("NodeStarted", name, node_type="llm", inputs={}) for name in "abc"]
    ended = [
        make.node("a"),
        make("NodeFailed", "b", node_type="llm", error="x", remedy="", duration_s=1.0, usage=Usage(2, 3)),
        make("NodeSkipped", "c", node_type="llm", reason="dead"),
    ]
    state = reduce_events([*started, *ended])
    assert active_nodes(state) == {}
    assert state.usage == Usage(2, 3)


def test_nested_loop_has_one_bar_until_it_ends():
    make = Events()
    started = [
        make("LoopIterationStarted", "outer", index=1, total=2, input_preview=""),
        make("LoopIterationStarted", "outer[1].inner", index=0, total=4, input_preview=""),
    ]
    assert [bar.name for bar in loop_bars(reduce_events(started))] == ["outer", "outer.inner"]
    ended = make(
        "LoopCompleted",
        "outer[1].inner",
        iterations_run=1,
        exit_reason="until",
        converged=True,
        returned=0,
        cost_usd=0.0,
        duration_s=1.0,
    )
    assert [bar.name for bar in loop_bars(reduce_events([*started, ended]))] == ["outer"]


def test_loop_that_ended_early_is_marked():
    make = Events()
    ended = make(
        "LoopCompleted", "loop", iterations_run=2, exit_reason="until", converged=True, returned=1,
        cost_usd=0.0, duration_s=1.0,
    )  # fmt: skip
    assert "2/3 ended" in drawn(reduce_events([*two_iterations_of_three(), ended]))


def test_a_line_for_each_finished_node_and_each_iteration():
    assert lines(two_iterations_of_three()) == [
        "Running Sample with embedded:smollm2-135m (tiny).",
        "loop[0].draft: done (1.5 s, 30 tokens, $0)",
        "loop 1/3 (1.0 s, branch continue, similarity 50%, score 3): First result \\x1b[2J",
    ]


@pytest.mark.parametrize(
    ("before", "result", "shown"),
    [
        ("", "One.", "One."),
        ("One.", "Two.", "Two."),
        ("One.", "One.", "unchanged"),
        ("", "", ""),
        (f"{'word ' * 30}old", f"{'word ' * 30}new end", "... word word word word word new end"),
        (f"{'word ' * 30}old", "word " * 30, "... word word word word word"),
    ],
)
def test_iteration_line_shows_the_difference(before: str, result: str, shown: str):
    make = Events()
    started = [make("LoopIterationStarted", "loop", index=0, total=2, input_preview="")]
    written = lines([*started, make.iteration("loop", 0, before), make.iteration("loop", 1, result)])
    assert written[-1].partition("): ")[2] == shown


def test_a_loop_that_runs_again_is_not_compared_with_its_last_run():
    make = Events()
    started = [make("LoopIterationStarted", "loop", index=0, total=2, input_preview="")]
    written = lines([*started, make.iteration("loop", 0, "x" * 100), *started, make.iteration("loop", 0, "x" * 100)])
    assert written[-1].endswith("): " + "x" * 100)


def test_lines_for_warnings():
    make = Events()
    events = [
        make("LoopIterationStarted", "loop", index=0, total=1, input_preview=""),
        make.iteration("loop", 0, {"b": 1, "a": 2}, warnings=("The branch could not be read.",)),
        make(
            "LoopCompleted", "loop", iterations_run=1, exit_reason="max_iterations", converged=False, returned=0,
            cost_usd=0.0, duration_s=1.0, warnings=("Not converged.",),
        ),
        make.node("a", error="It broke.", warnings=("Careful.",)),
        make("NodeFailed", "b", node_type="llm", error="Down.", remedy="Up.", duration_s=1.0),
        make("NodeRetrying", "c", attempt=2, delay_s=2.0, error="Busy."),
        make("BudgetWarning", "", unit="usd", spent=0.9, limit=1.0),
        make("BudgetWarning", "loop", unit="tokens", spent=900.0, limit=1000.0),
    ]  # fmt: skip
    *written, of_run, of_loop = lines(events)
    assert written == [
        'loop 1/1 (1.0 s): {"a":2,"b":1}',
        "loop: The branch could not be read.",
        "loop: Stopped after 1 of 1: max iterations reached.",
        "loop: Not converged.",
        "a: done (1.5 s)",
        "a: It broke.",
        "a: Careful.",
        "b: failed: Down.",
        "c: attempt 2 in 2.0 s: Busy.",
    ]
    assert mentions(of_run, "The run: … budget … $0.90 of $1.00"), of_run
    assert mentions(of_loop, "loop: … budget … 900 of 1,000 tokens"), of_loop


def test_each_event_is_one_line_of_json_at_once(capsys: pytest.CaptureFixture[str]):
    for event in two_iterations_of_three()[:2]:
        EventView().take(event)
        assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(event.to_json()))


async def test_live_view_draws_and_clears_the_bar(monkeypatch: pytest.MonkeyPatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    state = RunState()
    async with LiveView(Screen(stream), state, Workflow(), note_of) as view:
        for event in two_iterations_of_three():
            apply(state, event)
            view.take(event)
    written = stream.getvalue()
    assert "2/3" in written
    assert "loop 1/3 (1.0 s, branch continue, similarity 50%, score 3): First result \\x1b[2J" in written
    assert written.rindex("\x1b[?25h") > written.rindex("2/3")
    assert "\x1b[2J" not in written
