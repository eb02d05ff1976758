"""Print the positions of widgets as JSON, from an offscreen window of the same look and size.

A program that is driven through the screen cannot be asked where its widgets are; this one can. The argument names what
is done in the window: `template`, `build`, or `wrap` with a workflow file.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

os.environ["QT_QPA_PLATFORM"] = "offscreen"

from PySide6.QtCore import QPoint, QPointF, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from app.engine_thread import EngineThread
from app.palette import EntryKind
from app.settings.preferences import Preferences
from app.theme.style import Style
from app.window.document_page import DocumentPage
from app.window.main_window import DEFAULT_SIZE
from app.workbench import Workbench

TEMPLATE = "Self-Refine"
BAR_HEIGHT = 24
AROUND = QPointF(16, 16)
EDGE = ("exit.output", "text.value")

Positions = dict[str, Sequence[int]]


def main(task: str, *arguments: str) -> None:
    application = QApplication(sys.argv)
    Style(application)
    engine = EngineThread()
    with tempfile.TemporaryDirectory() as folder:
        workbench = Workbench(engine, Preferences(Path(folder) / "settings.json"), data_folder=Path(folder))
        workbench.show()
        workbench.window.resize(*DEFAULT_SIZE)  # the screen of the offscreen platform is smaller
        QTest.qWait(300)
        positions = {"template": template, "build": build, "wrap": wrap}[task](workbench, *arguments)
        for document in list(workbench.documents.all):
            workbench.documents.drop(document)
        workbench.window.close()
    engine.stop()
    sys.stdout.write(json.dumps(positions))


def template(workbench: Workbench) -> Positions:
    """Open the template from the start page."""
    card = next(card for card in workbench.gallery.cards if card.template.title == TEMPLATE)
    positions: Positions = {"card": _middle(card.picture, workbench.window)}
    workbench.documents.open_template(card.template.path)
    document = _current(workbench)
    positions["palette_row"] = _palette_row(workbench, "llm")
    pipe = document.canvas.view.edge_items[EDGE]
    positions["edge"] = _on_canvas(workbench, pipe.mapToScene(pipe.path().pointAtPercent(0.5)))
    viewer = document.canvas.viewer
    corner = viewer.viewport().mapTo(workbench.window, QPoint(0, 0))
    positions["bar"] = (corner.x(), corner.y(), viewer.viewport().width(), BAR_HEIGHT)
    positions["run"] = _middle(workbench.run_bar.run, workbench.window)
    return {**positions, **_run_state(workbench)}


def build(workbench: Workbench) -> Positions:
    """Add an input, two model nodes and an output to an empty document."""
    workbench.documents.new()
    document = _current(workbench)
    positions = {node_type: _palette_row(workbench, node_type) for node_type in ("input", "llm", "output")}
    models: list[str] = []
    for node_type in ("input", "llm", "llm", "output"):
        rows = workbench.palette_panel.list
        place = rows.viewport().mapFrom(workbench.window, QPoint(*positions[node_type]))
        QTest.mouseClick(rows.viewport(), Qt.MouseButton.LeftButton, pos=place)
        QTest.mouseDClick(rows.viewport(), Qt.MouseButton.LeftButton, pos=place)
        QTest.qWait(300)
        if node_type == "llm":
            models.append(document.session.selection[0])
            row = document.inspector.page.form.row("prompt")
            assert row is not None
            positions["prompt"] = _middle(row.editor.main_widget, workbench.window)
    return {**positions, **_around(workbench, models)}


def wrap(workbench: Workbench, file: str) -> Positions:
    """Open a file with the model nodes `first` and `second`."""
    workbench.open_file(Path(file))
    while workbench.documents.is_reading:
        QTest.qWait(10)
    _current(workbench)
    return {**_around(workbench, ["first", "second"]), **_run_state(workbench)}


def _current(workbench: Workbench) -> DocumentPage:
    QTest.qWait(300)
    document = workbench.current
    assert document is not None
    return document


def _palette_row(workbench: Workbench, node_type: str) -> Sequence[int]:
    rows = workbench.palette_panel.list
    items = map(rows.item, range(rows.count()))
    wanted = next(
        item
        for item in items
        if (entry := item.data(Qt.ItemDataRole.UserRole)).kind is EntryKind.NODE and entry.key == node_type
    )
    row = rows.viewport().mapTo(workbench.window, rows.visualItemRect(wanted).center())
    return row.x(), row.y()


def _around(workbench: Workbench, node_ids: Sequence[str]) -> Positions:
    """Two corners of a rectangle around nodes."""
    items = _current(workbench).canvas.view.nodes
    rect = items[node_ids[0]].card_rect
    for node_id in node_ids:
        rect = rect.united(items[node_id].card_rect)
    return {
        "above": _on_canvas(workbench, rect.topLeft() - AROUND),
        "below": _on_canvas(workbench, rect.bottomRight() + AROUND),
    }


def _on_canvas(workbench: Workbench, place: QPointF) -> Sequence[int]:
    viewer = _current(workbench).canvas.viewer
    at = viewer.viewport().mapTo(workbench.window, viewer.mapFromScene(place))
    return at.x(), at.y()


def _run_state(workbench: Workbench) -> Positions:
    """Where the window shows whether a run is going on."""
    return {
        "run_button": _rect(workbench.run_bar.run, workbench.window),
        "status": _rect(workbench.status_bar.state, workbench.window),
    }


def _middle(widget: QWidget, window: QWidget) -> Sequence[int]:
    place = widget.mapTo(window, widget.rect().center())
    return place.x(), place.y()


def _rect(widget: QWidget, window: QWidget) -> Sequence[int]:
    return QRect(widget.mapTo(window, QPoint(0, 0)), widget.size()).getRect()


if __name__ == "__main__":
    main(*sys.argv[1:])
