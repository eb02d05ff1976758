"""An edit that is being typed, applied to the current document."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.session import PendingEdit
from engine.document.model import Node, Workflow
from engine.document.operations import SetTitle


def test_pending_edit_is_applied_to_the_document() -> None:
    owner = QObject()
    draft = PendingEdit(owner)
    workflow = Workflow(nodes=(Node(id="draft", type="llm"),))

    assert draft.added_to(workflow) is workflow

    draft.put(SetTitle("draft", "Better"))

    assert draft.added_to(workflow).node("draft").title == "Better"


def test_pending_edit_of_a_removed_node_is_ignored() -> None:
    owner = QObject()
    draft = PendingEdit(owner)
    draft.put(SetTitle("draft", "Better"))
    workflow = Workflow()

    assert draft.added_to(workflow) is workflow
