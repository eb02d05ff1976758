"""Turn events of a run into log lines. No Qt."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from app.runs.loop_status import sentence, unit_of
from app.runs.run_view_model import RunViewModel, node_of, steps_of
from engine.document.model import Workflow
from engine.events import (
    AnyEvent,
    BudgetWarning,
    LoopCompleted,
    LoopIterationCompleted,
    LoopIterationStarted,
    NodeAnswered,
    NodeCompleted,
    NodeFailed,
    NodeNoted,
    NodeRetrying,
    NodeSkipped,
    NodeToolCalled,
    NodeWaiting,
    NotePosted,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunPaused,
    RunResumed,
    RunStarted,
)
from engine.formatting import (
    format_duration,
    format_money,
    format_percent,
    format_retry,
    format_score,
    format_spending,
    format_tokens,
)
from engine.nodes.spec import ITERATOR
from engine.store.exit_explanation import loop_config
from engine.text_sanitizing import one_line
from engine.values import to_text

MOST_LINES: Final = 10_000
"""Maximum number of lines; the oldest are dropped."""
PREVIEW: Final = 120
_LOOPS: Final = re.compile(r"(\w+)\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line.

    Attributes:
        time: When, in seconds since the epoch.
        node: The node that it is about; empty for the run as a whole.
        level: `info`, `warning` or `error`.
        text: What happened, on one line.
    """

    time: float
    node: str
    level: str
    text: str

    @property
    def written(self) -> str:
        """The line as it is read and copied."""
        clock = datetime.fromtimestamp(self.time).astimezone().strftime("%H:%M:%S")
        return f"{clock}  {self.text}"


class LogWriter:
    """Makes lines of the events of one run, in their order.

    Args:
        workflow: The document that runs; None where it is not known.
    """

    def __init__(self, workflow: Workflow | None = None) -> None:
        self._workflow = workflow or Workflow()
        self._titles, self._iterators = titles_of(workflow), iterators_of(workflow)
        # Of loops only.
        self._loops = RunViewModel({})

    def lines(self, event: AnyEvent) -> Iterator[LogLine]:
        """The lines of one event; none for most that only say that something goes on."""
        node = node_of(event.path)
        if isinstance(event, LoopIterationStarted | LoopIterationCompleted | LoopCompleted):
            self._loops.apply(event)
        for level, text in self._told(event):
            where = f"{place(event.path, self._titles, self._iterators)}: " if event.path else ""
            yield LogLine(event.time, node, level, where + " ".join(text.split()))

    def _told(self, event: AnyEvent) -> Iterator[tuple[str, str]]:
        match event:
            case RunStarted():
                models = f" with {', '.join(event.models)}" if event.models else ""
                yield "info", f"Running {event.workflow or 'the workflow'}{models}."
            case NodeCompleted():
                yield from _completed(event)
            case NodeFailed():
                yield "error", f"failed: {event.error} {event.remedy}"
            case NodeSkipped():
                yield "info", f"skipped: {event.reason}"
            case NodeWaiting() | NodeAnswered() | NotePosted() | NodeNoted():
                yield from _said(event)
            case NodeToolCalled():
                yield from _tool_called(event)
            case NodeRetrying():
                yield "warning", format_retry(event.error, event.attempt, event.delay_s, event.fallback)
            case LoopIterationCompleted():
                unit = unit_of(self._workflow, event.path)
                yield "info", iteration_line(event, self._loops.loops[event.path].total, unit)
                yield from (("warning", warning) for warning in event.warnings)
            case LoopCompleted():
                loop = self._loops.loops[event.path]
                unit = unit_of(self._workflow, event.path)
                yield "info", sentence(loop, loop_config(self._workflow, event.path), unit=unit)
                yield from (("warning", warning) for warning in event.warnings)
            case BudgetWarning():
                yield "warning", f"most of the budget is used: {format_spending(event.spent, event.limit, event.unit)}"
            case _:
                yield from _about_run(event, self._titles)


def written(workflow: Workflow, events: Iterable[AnyEvent]) -> list[LogLine]:
    """The log of a run of that document that is over, as far as it is shown."""
    writer = LogWriter(workflow)
    return list(deque((line for event in events for line in writer.lines(event)), maxlen=MOST_LINES))


def _said(event: NodeWaiting | NodeAnswered | NotePosted | NodeNoted) -> Iterator[tuple[str, str]]:
    """What nodes and people say to each other."""
    match event:
        case NodeWaiting():
            yield "warning", f"waits for you: {one_line(event.message, PREVIEW)}"
        case NodeAnswered():
            yield "info", f"answered: {one_line(event.choice or to_text(event.value), PREVIEW)}"
            if event.comment:
                yield "info", f"comment: {one_line(event.comment, PREVIEW)}"
        case NotePosted():
            yield "info", f"note to {event.to}: {one_line(event.text, PREVIEW)}"
        case NodeNoted():
            yield "info", f"received the note: {one_line(event.text, PREVIEW)}"


def _tool_called(event: NodeToolCalled) -> Iterator[tuple[str, str]]:
    call = f"{one_line(event.tool, 60)}({one_line(to_text(event.used_arguments), PREVIEW)})"
    if event.error:
        yield "warning", f"called {call}: {one_line(event.error, PREVIEW)}"
    else:
        gave = one_line(to_text(event.result), PREVIEW)
        yield "info", f"called {call} → {gave}" if gave else f"called {call}"


def _completed(event: NodeCompleted) -> Iterator[tuple[str, str]]:
    figures = [format_duration(event.duration_s)]
    if event.usage is not None:
        figures += [format_tokens(event.usage), format_money(event.cost_usd)]
    yield "info", f"{'cache hit' if event.cached else 'done'} ({', '.join(figures)})"
    yield from (("warning", warning) for warning in (event.error, *event.warnings) if warning)


def _about_run(event: AnyEvent, titles: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    match event:
        case RunPaused():
            yield "info", "Paused."
        case RunResumed():
            yield "info", "Resumed."
        case RunCompleted():
            figures = (format_duration(event.duration_s), format_tokens(event.usage), format_money(event.cost_usd))
            yield "info", f"Done in {', '.join(figures)}."
            yield from (("warning", warning) for warning in event.warnings)
        case RunCancelled():
            yield "warning", f"Stopped after {format_duration(event.duration_s)}, {format_money(event.cost_usd)}."
        case RunFailed():
            where = f"“{place(event.node, titles)}”: " if event.node else ""
            yield "error", f"The run failed. {where}{event.error} {event.remedy}"
        case _:
            pass


def titles_of(workflow: Workflow | None) -> dict[str, str]:
    """What to call each node of a document, by its id: its title, where it has one."""
    return {node.id: node.title for node in workflow.nodes if node.title} if workflow is not None else {}


def iterators_of(workflow: Workflow | None) -> frozenset[str]:
    """The ids of a document's iterators."""
    nodes = workflow.nodes if workflow is not None else ()
    return frozenset(node.id for node in nodes if node.type == ITERATOR.start)


def place(path: str, titles: Mapping[str, str] | None = None, iterators: Collection[str] = ()) -> str:
    """A place in a run for people: `loop[2].draft` is `Draft (iteration 3)`, in an iterator `Draft (item 3)`."""
    node, inside = steps_of(path)
    node = " › ".join([(titles or {}).get(node, node), *([inside] if inside else [])])
    loops = _LOOPS.findall(path)
    numbers = ".".join(str(int(index) + 1) for _, index in loops)
    unit = "item" if all(loop in iterators for loop, _ in loops) else "iteration"
    return f"{node} ({unit} {numbers})" if numbers else node


def iteration_line(event: LoopIterationCompleted, total: int | None, unit: str = "iteration") -> str:
    """One iteration on one line: `iteration 2 of 3 · continue · similarity 0.81 · $0.0012 · its first words`."""
    parts = [f"{unit} {event.index + 1}" + (f" of {total}" if total else ""), *iteration_facts(event)]
    return " · ".join([*parts, one_line(to_text(event.result), PREVIEW)])


def iteration_facts(event: LoopIterationCompleted) -> list[str]:
    """What is to be known of an iteration, in short."""
    facts: list[str] = []
    if event.branch is not None:
        facts.append(event.branch)
    if event.score is not None:
        facts.append(f"score {format_score(event.score)}")
    if event.similarity is not None:
        facts.append(f"similarity {format_percent(event.similarity)}")
    return [*facts, format_money(event.cost_usd), format_duration(event.duration_s)]
