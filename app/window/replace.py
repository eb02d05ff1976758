"""The operation that puts one whole document in another's place: what a reload, a revert and a recovery are.

As an operation it can be taken back, so that both documents can be looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.document.model import Workflow
from engine.document.operation import Operation


@dataclass(frozen=True, slots=True)
class Replace:
    """Puts a document in the present one's place.

    Attributes:
        title: What that is called in the undo menu.
        workflow: The other document.
    """

    title: str
    workflow: Workflow

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Fits every document."""
        return self.workflow, Replace(self.title, workflow)
