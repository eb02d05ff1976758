"""Print the positions of widgets as JSON, from an offscreen window of the same look and size.

A program that is driven through the screen cannot be asked where its widgets are; this one can.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

os.environ["QT_QPA_PLATFORM"] = "offscreen"

from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import QApplication, QWidget

from app.engine_thread import EngineThread
from app.palette import EntryKind
from app.settings.preferences import Preferences
from app.theme.style import Style
from app.workbench import Workbench

TEMPLATE = "Self-Refine"
NODE_TYPE = "llm"
BAR_HEIGHT = 24
EDGE = ("exit.output", "text.value")


def main() -> None:
    application = QApplication(sys.argv)
    Style(application)
    engine = EngineThread()
    with tempfile.TemporaryDirectory() as folder:
        workbench = Workbench(engine, Preferences(Path(folder) / "preferences.json"), data_folder=Path(folder))
        workbench.show()
        application.processEvents()
        card = next(card for card in workbench.gallery.cards if card.template.title == TEMPLATE)
        places: dict[str, tuple[int, ...]] = {"card": _middle(card.picture, workbench.window)}
        workbench.documents.open_template(card.template.path)
        application.processEvents()
        document = workbench.current
        assert document is not None
        rows = workbench.palette_panel.list
        model = rows.model()
        index = next(
            model.index(at, 0)
            for at in range(model.rowCount())
            if (entry := model.entry_at(model.index(at, 0))).kind is EntryKind.NODE and entry.key == NODE_TYPE
        )
        row = rows.viewport().mapTo(workbench.window, rows.visualRect(index).center())
        places["palette_row"] = (row.x(), row.y())
        viewer = document.canvas.viewer
        pipe = document.canvas.view.edge_items[EDGE]
        at = viewer.mapFromScene(pipe.mapToScene(pipe.path().pointAtPercent(0.5)))
        middle = viewer.viewport().mapTo(workbench.window, at)
        places["edge"] = (middle.x(), middle.y())
        corner = viewer.viewport().mapTo(workbench.window, QPoint(0, 0))
        places["bar"] = (corner.x(), corner.y(), viewer.viewport().width(), BAR_HEIGHT)
        places["run"] = _middle(workbench.run_bar.run, workbench.window)
        places["run_button"] = _rect(workbench.run_bar.run, workbench.window)
        places["status"] = _rect(workbench.status_bar.state, workbench.window)
        workbench.documents.drop(document)
        workbench.window.close()
    engine.stop()
    sys.stdout.write(json.dumps(places))


def _middle(widget: QWidget, window: QWidget) -> tuple[int, int]:
    place = widget.mapTo(window, widget.rect().center())
    return place.x(), place.y()


def _rect(widget: QWidget, window: QWidget) -> tuple[int, int, int, int]:
    rect = QRect(widget.mapTo(window, QPoint(0, 0)), widget.size())
    return rect.getRect()


if __name__ == "__main__":
    main()
