"""What a person is typing and has not ended yet: no step of the document so far, but work that a crash must not take.

Who offers the field says what the step would be with each letter; who keeps the work against a crash adds it.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from engine.document.model import Workflow
from engine.document.operation import Operation
from engine.errors import EngineError


class Draft(QObject):
    """The step that would be done if the typing ended now.

    Attributes:
        step: That step; None where nothing is typed, or what is typed changes nothing.

    Signals:
        changed: `step` is another one.
    """

    changed = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.step: Operation | None = None

    def put(self, step: Operation | None) -> None:
        """Take up what is typed now; None where it is over."""
        if step != self.step:
            self.step = step
            self.changed.emit()

    def added_to(self, workflow: Workflow) -> Workflow:
        """The document as it would be then; itself where nothing is typed."""
        if self.step is None:
            return workflow
        try:
            return self.step.apply(workflow)[0]
        except EngineError:  # the document has changed meanwhile, and it does not fit any more
            return workflow
