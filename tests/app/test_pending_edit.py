"""What is being typed, added to the document as it is by then."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.session import PendingEdit
from engine.document.model import Node, Workflow
from engine.document.operations import SetTitle


def test_what_is_typed_is_added_to_the_document() -> None:
    owner = QObject()
    draft = PendingEdit(owner)
    workflow = Workflow(nodes=(Node(id="draft", type="llm"),))

    assert draft.added_to(workflow) is workflow

    draft.put(SetTitle("draft", "Better"))

    assert draft.added_to(workflow).node("draft").title == "Better"


def test_what_is_typed_over_a_node_that_is_gone_by_then_leaves_the_document_as_it_is() -> None:
    owner = QObject()
    draft = PendingEdit(owner)
    draft.put(SetTitle("draft", "Better"))
    workflow = Workflow()

    assert draft.added_to(workflow) is workflow
