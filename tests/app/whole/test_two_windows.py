"""Nodes copied in one window are pasted in another as text, through the system clipboard."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from engine.document.files import loads
from engine.document.model import Workflow
from tests.app.whole.conftest import CTRL, TEMPLATE, MakeWhole, Whole

LOOP = {"loop", "draft", "critique", "merge", "exit"}


def copied_loop(whole: Whole) -> Workflow:
    """Open Self-Refine, and copy its loop by key; what is on the clipboard then."""
    whole.workbench.documents.open_template(TEMPLATE)
    whole.document.session.select(LOOP)
    whole.document.canvas.setFocus()
    whole.press(Qt.Key.Key_C, CTRL)
    return loads(QApplication.clipboard().text())


def pairs(workflow: Workflow) -> dict[str, str]:
    """Each loop's exit."""
    return {str(node.config["loop"]): node.id for node in workflow.nodes if node.type == "exit"}


def inner_edges(workflow: Workflow, ids: set[str]) -> set[tuple[str, str]]:
    ends = ((edge.from_, edge.to) for edge in workflow.edges)
    return {(start, end) for start, end in ends if {start.partition(".")[0], end.partition(".")[0]} <= ids}


def test_copied_nodes_are_a_valid_document(whole: Whole) -> None:
    copied = copied_loop(whole)

    assert set(copied.nodes_by_id) == LOOP
    assert inner_edges(copied, LOOP) == inner_edges(whole.workflow, LOOP) == {(e.from_, e.to) for e in copied.edges}


def test_loop_is_pasted_with_its_exit_into_another_window(make_whole: MakeWhole) -> None:
    first = make_whole()
    original = copied_loop(first) and first.workflow
    second = make_whole()
    second.press(Qt.Key.Key_N, CTRL)

    second.document.canvas.setFocus()
    second.press(Qt.Key.Key_V, CTRL)

    pasted = second.workflow
    assert set(pasted.nodes_by_id) == LOOP
    assert pairs(pasted) == {"loop": "exit"}
    assert {(e.from_, e.to) for e in pasted.edges} == inner_edges(original, LOOP)
    assert {node.id: node.config for node in pasted.nodes} == {
        node.id: node.config for node in original.nodes if node.id in LOOP
    }
    assert set(second.document.session.selection) == LOOP
    second.press(Qt.Key.Key_Z, CTRL)
    assert second.workflow.nodes == ()
    assert first.workflow == original


def test_pasted_loop_with_taken_ids_has_its_own_exit(make_whole: MakeWhole) -> None:
    copied_loop(make_whole())
    second = make_whole()
    second.workbench.documents.open_template(TEMPLATE)
    before = second.workflow

    second.document.canvas.setFocus()
    second.press(Qt.Key.Key_V, CTRL)

    after = second.workflow
    new = set(after.nodes_by_id) - set(before.nodes_by_id)
    assert len(new) == len(LOOP)
    assert [node for node in after.nodes if node.id not in new] == list(before.nodes)
    (loop, end), *others = [pair for pair in pairs(after).items() if pair[0] != "loop"]
    assert others == []
    assert {loop, end} <= new
    edges = inner_edges(after, new)
    assert len(edges) == len(inner_edges(before, LOOP))
    assert len(after.edges) == len(before.edges) + len(edges), "no edge leads from the copy to the old nodes"
    types = {node.id: node.type for node in after.nodes}

    def by_type(pairs: set[tuple[str, str]]) -> list[tuple[str, str, str, str]]:
        parts = [(*start.split("."), *end.split(".")) for start, end in pairs]
        return sorted((types[source], output, types[target], port) for source, output, target, port in parts)

    assert by_type(edges) == by_type(inner_edges(before, LOOP))
