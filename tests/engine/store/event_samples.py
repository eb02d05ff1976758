"""Events for tests of the history: one of each type, with values of every kind."""

from __future__ import annotations

from typing import Any

from engine.events import AnyEvent
from engine.models.protocol import Finish, Message, ModelCall, Reply, Request, Usage
from engine.runner.run_storage import RunHead
from tests.engine.cli.kit import Events

VALUE: Any = {"text": "é \ud83d \0 \u2028 ```", "list": [1, 2.5, True, None, {"deep": list[Any]()}], "": ""}
CALL = ModelCall(
    "openai/x",
    Request(
        (Message("system", "Be brief."), Message("user", "é\ud83d")), 0.5, 100, {"type": "object"}, 7, "loop[0].draft"
    ),
    Reply("answer", Finish.LENGTH, Usage(3, 4, exact=False), "x-1", 0.25),
    None,
    1.5,
)


def one_of_each() -> list[AnyEvent]:
    """One event of each type, numbered with gaps, as where pieces of replies stood."""
    event = Events()
    usage: dict[str, Any] = {"usage": Usage(1, 2), "cost_usd": None, "duration_s": 1.5}
    ended: dict[str, Any] = {"outputs": {"answer": VALUE}, **usage}
    return [
        event("RunStarted", workflow="Sample", inputs={"task": VALUE}, models=("m",), parent="p", forked_at="loop[1]"),
        event("NodeStarted", "loop[0].draft", node_type="llm", inputs={"input": VALUE}),
        event("NodeStreaming", "loop[0].draft", text="a", tokens=1),
        event("NodeCalling", "loop[0].draft", number=0, model="openai/x", request=CALL.request),
        event("NodeToolCalling", "loop[0].tests", tool="shell", arguments='{"command":"ls"}'),
        event("NodeCalled", "loop[0].draft", number=0, call=CALL),
        event(
            "NodeWaiting",
            "ask",
            node_type="approval",
            kind="approval",
            message="?",
            value=VALUE,
            choices=("yes",),
        ),
        event("NodeAnswered", "ask", choice="yes", value=VALUE, comment="fine"),
        event("NodeRetrying", "loop[0].draft", attempt=1, delay_s=0.5, error="Busy."),
        event.node("loop[0].draft", Usage(1, 2), outputs={"output": VALUE}, calls=(CALL,), warnings=("careful",)),
        event("NodeSkipped", "loop[0].other", node_type="llm", reason="Nothing."),
        event("NodeFailed", "bad", node_type="tool", error="No.", remedy="Do.", duration_s=0.5, calls=(CALL,)),
        event("LoopIterationStarted", "loop", index=0, total=3, input_preview="é"),
        event.iteration("loop", 0, VALUE, branch="done", reason="r", score=0.5, similarity=0.25, warnings=("w",)),
        event(
            "LoopCompleted",
            "loop",
            iterations_run=1,
            exit_reason="x",
            converged=True,
            returned=0,
            cost_usd=0.5,
            duration_s=1,
        ),
        event("BudgetWarning", unit="usd", spent=0.9, limit=1.0),
        event("RunNotKept", error="The disk is full.", remedy="Make room."),
        event("RunPaused"),
        event("RunResumed"),
        event("RunFailed", error="No.", remedy="Do.", node="bad", **ended),
        event("RunCancelled", **ended),
        event("RunCompleted", **ended, warnings=("w",)),
    ]


def head(**fields: Any) -> RunHead:
    """The head of that run."""
    usual: dict[str, Any] = {
        "document": '{"é": "\ud83d"}\n',
        "options": {"budget_usd": 1.5, "model": None},
        "source": "/tmp/w.loop.json",
        "run_id": "r",
        "parent": "p",
        "forked_at": "loop[1]",
    }
    return RunHead(**(usual | fields))
