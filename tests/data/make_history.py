"""Create a small history in the layout of this version: `python -m tests.data.make_history`.

The file is named after the version of its layout. It is created once, when that version is released, and never again:
it represents the histories of users.
"""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from engine import events
from engine.events import AnyEvent
from engine.models.protocol import Finish, Message, ModelCall, Reply, Request, Usage
from engine.runner.run_storage import RunHead
from engine.store.sqlite import SqliteStore
from engine.store.sqlite.schema import STEPS

FOLDER = Path(__file__).parent
REPLY_KEY = "key of a reply"
_LONG = "A text long enough to lie in a place of its own, with é, שלום and 😀 in it. " * 12
_VALUE: Any = {"text": _LONG, "list": [1, 2.5, True, None, {"$": 17}], "\ud83d": "a lone surrogate \ud83d and \0"}
CALL = ModelCall(
    "openai/gpt-4o-mini",
    Request((Message("system", "Be brief."), Message("user", f"Improve:\n{_LONG}")), 0.5, 100, {"type": "object"}, 7),
    Reply(_LONG + " Improved.", Finish.LENGTH, Usage(300, 40, exact=False), "gpt-4o-mini-2024-07-18", 0.25),
    None,
    1.5,
)


def heads() -> list[RunHead]:
    """The heads of the runs."""
    document = '{"format": "loopwright.workflow", "version": 1, "nodes": [], "edges": []}\n'
    return [
        RunHead("0123456789ab", document, {"budget_usd": 1.5}, "workflows/refine.loop.json"),
        RunHead("fedcba987654", document, {}, "", "0123456789ab", "loop[1]"),
    ]


def events_of(run_id: str) -> list[AnyEvent]:
    """The events of a run: of the first run one of each type, of the second the first six."""
    steps: list[tuple[type[Any], str, tuple[Any, ...]]] = [
        (events.RunStarted, "", ("Refine", {"task": _VALUE}, ("openai/gpt-4o-mini",), "", "")),
        (events.NodeStarted, "loop[0].draft", ("llm", {"input": _VALUE})),
        (events.NodeCalling, "loop[0].draft", (0, "openai/gpt-4o-mini")),
        (events.NodeCalled, "loop[0].draft", (0, CALL)),
        (events.NodeRetrying, "loop[0].draft", (1, 0.5, "Busy.")),
        (
            events.NodeCompleted,
            "loop[0].draft",
            ("llm", {"output": _LONG}, Usage(1, 2), None, 1.5, False, (CALL,), ("Careful.",), ""),
        ),
        (events.NodeWaiting, "loop[0].ask", ("approval", "approval", "Good?", _LONG, ("approved", "rejected"))),
        (events.NodeAnswered, "loop[0].ask", ("approved", _LONG + " Edited.", "Fine.")),
        (events.NodeSkipped, "loop[0].other", ("llm", "Nothing reached it.")),
        (events.LoopIterationStarted, "loop", (0, 3, "A text")),
        (
            events.LoopIterationCompleted,
            "loop",
            (0, _LONG, _LONG + " Edited.", _VALUE, "done", "r", 0.5, 0.25, Usage(1, 2), None, 1.5, ("w",)),
        ),
        (events.LoopCompleted, "loop", (1, "evaluator_done", True, 0, 0.5, 1.5, ())),
        (events.BudgetWarning, "", ("usd", 0.9, 1.0)),
        (events.NodeFailed, "last", ("tool", "No.", "Do.", 0.5, None, 0.0, ())),
        (events.RunPaused, "", ()),
        (events.RunFailed, "", ("No.", "Do.", "last", {"answer": _VALUE}, Usage(3, 4), None, 2.0)),
        (events.RunResumed, "", ()),
        (events.RunCancelled, "", ({}, Usage(3, 4), None, 2.0)),
        (events.RunNotKept, "", ("The disk is full.", "Make room.")),
        (events.RunCompleted, "", ({"answer": _VALUE}, Usage(3, 4), 0.5, 2.0, ("w",))),
    ]
    made = [kind(run_id, 2 * seq, 1.8e9 + seq, path, *fields) for seq, (kind, path, fields) in enumerate(steps)]
    return made if run_id == "0123456789ab" else made[:6]


def main() -> None:
    """Create the file, unless it exists."""
    path = FOLDER / f"history-{len(STEPS)}.sqlite3"
    if path.exists():
        sys.exit(f"{path} already exists and represents the histories of that version.")
    with closing(SqliteStore(path)) as store:
        for head in heads():
            store.import_run(head, events_of(head.run_id))
        store.cache_reply(REPLY_KEY, heads()[0].run_id, CALL.reply)
        store.pin(heads()[0].run_id, pinned=True)


if __name__ == "__main__":
    main()
