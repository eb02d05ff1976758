"""A picture of the workflow in a subflow, as a part of the picture of the run. No Qt here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.runs.executions import NOTHING, NodePicture, NodeState
from app.runs.picture import RunPicture
from engine.models.base import Usage

_STATUS: Final = {
    NodeState.DONE: "completed",
    NodeState.CACHED: "completed",
    NodeState.FAILED: "failed",
    NodeState.SKIPPED: "cancelled",
    NodeState.STOPPED: "cancelled",
}


class PartPicture(RunPicture):
    """What a run has told of one execution of a subflow.

    Its executions, loops and questions are those of the run, under their paths there; the rest is about the subflow.

    Args:
        whole: The picture of the run, or of the subflow around this one.
        path: Where the subflow stands in the run: `part`, `loop[2].part`.
        parents: For each node in a loop's body of the workflow in the subflow, the innermost loop around it.
    """

    def __init__(self, whole: RunPicture, path: str, parents: Mapping[str, str]) -> None:
        super().__init__(parents, f"{path}.")
        self.whole, self.path = whole, path
        self.nodes, self.loops, self.questions = whole.nodes, whole.loops, whole.questions
        self.refresh()

    @property
    def execution(self) -> NodePicture:
        """The execution of the subflow itself."""
        return self.nodes.get(self.path, NOTHING)

    def refresh(self) -> None:
        """Take up what the run has told by now."""
        whole, execution = self.whole, self.execution
        unfinished = "cancelled" if whole.status == "completed" else whole.status
        self.status = _STATUS.get(execution.state, unfinished)
        self.outputs, self.duration_s, self.started = execution.outputs, execution.duration_s, execution.started
        self.usage, self.cost_usd = execution.usage or Usage(), execution.cost_usd
        self.error, self.remedy, self.failed_path = execution.error, execution.remedy, whole.failed_path
        self.budget, self.models = whole.budget, whole.models
