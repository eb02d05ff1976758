"""Edges alone define a loop body: nodes move in and out of it by connecting them with the mouse."""

from __future__ import annotations

from PySide6.QtCore import Qt

from tests.app.whole.conftest import TEMPLATE, Whole


def body(whole: Whole) -> set[str]:
    whole.settle()
    parent = whole.document.session.structure.parent
    return {node for node, loop in parent.items() if loop == "loop"}


def test_nodes_are_moved_out_of_and_into_a_loop_by_edges(whole: Whole) -> None:
    whole.workbench.documents.open_template(TEMPLATE)
    whole.qtbot.waitUntil(lambda: not whole.document._needs_fit)
    hand, canvas = whole.hand, whole.document.canvas
    canvas.fit_to_view.fit_all()
    region = canvas.view.regions.items["loop"]
    assert body(whole) == {"draft", "critique", "merge"}
    assert region.rect.contains(hand.item("merge").card_rect)

    into_loop = [("draft.output", port) for port in ("critique.draft", "merge.draft")]
    into_loop.append(("critique.output", "merge.critique"))
    for edge in into_loop:
        pipe = canvas.view.edge_items[edge]
        hand.click(pipe.mapToScene(pipe.path().pointAtPercent(0.35)))
        whole.press(Qt.Key.Key_Delete)
        assert edge not in canvas.view.edge_items
    assert body(whole) == {"draft"}, "nothing of the loop reaches the others any more"
    whole.qtbot.waitUntil(lambda: not region.rect.intersects(hand.item("merge").card_rect))

    for start, end in into_loop:
        hand.connect(start, end)
    assert body(whole) == {"draft", "critique", "merge"}
    whole.qtbot.waitUntil(lambda: region.rect.contains(hand.item("merge").card_rect))
