"""The window whose screenshots are taken."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from PySide6.QtCore import QDeadlineTimer, QSize
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QWidget

from app.engine_thread import EngineThread
from app.settings.preferences import Preferences
from app.theme.style import Style
from app.window.document_page import DocumentPage
from app.workbench import Workbench
from benchmarks.processes import ROOT
from benchmarks.screenshots.pictures import write_png
from benchmarks.screenshots.workflows import script
from engine import dumps
from engine.document.model import FILE_SUFFIX, Workflow

TEMPLATE: Final = ROOT / "templates" / "self-refine.loop.json"
PATIENCE_MS: Final = 20_000
SETTLE_MS: Final = 400


@dataclass(frozen=True, slots=True)
class Look:
    """How the window looks in a screenshot.

    Attributes:
        theme: `dark` or `light`.
        percent: Size of text and widgets.
    """

    theme: str
    percent: int = 100

    @property
    def name(self) -> str:
        """The end of the file's name, such as `dark` or `dark-150`."""
        return self.theme if self.percent == 100 else f"{self.theme}-{self.percent}"


class Studio:
    """The window under the camera.

    Args:
        folder: Where settings and unsaved work of the window lie.
        images: Where the pictures go.
        looks: The looks in which each picture is drawn.
        size: Size of the window.
        wanted: Names of the pictures to write.
    """

    def __init__(self, folder: Path, images: Path, looks: Sequence[Look], size: QSize, wanted: Collection[str]) -> None:
        self._folder, self._images, self._looks, self._wanted = folder, images, looks, wanted
        self._style = Style(_application())
        self._engine = EngineThread()
        self.preferences = Preferences(folder / "settings.json")
        store = folder / "history.sqlite3"
        self.workbench = Workbench(self._engine, self.preferences, data_folder=folder / "unsaved", store=store)
        self.workbench.window.resize(size)
        self.workbench.show()
        self.workbench.history.access.open()
        self.play("quick", 0.0)

    def open_template(self) -> DocumentPage:
        """Open Self-Refine."""
        return self._fitted(self.workbench.documents.open_template(TEMPLATE))

    def open_workflow(self, workflow: Workflow) -> DocumentPage:
        """Open a document with automatic layout."""
        file = self._folder / f"large{FILE_SUFFIX}"
        file.write_text(dumps(workflow), encoding="utf-8")
        document = self._fitted(self.workbench.documents.open_template(file))
        document.canvas.commands.tidy()
        document.canvas.fit_to_view.fit_all()
        return document

    def play(self, name: str, pause_s: float) -> None:
        """Take the replies of runs from a script, streamed with a pause between chunks."""
        file = Path(f"{name}.json")
        file.write_text(json.dumps(script(pause_s)), encoding="utf-8")
        self.preferences.set(default_model=f"scripted:{file}")

    def run(self, document: DocumentPage) -> None:
        """Run a document to its end."""
        self.workbench.runs.run(document)
        until(lambda: document.session.shown.live is None and document.session.shown.view_model is not None)

    def take(self, name: str, widget: QWidget | None = None, is_ready: Callable[[], bool] = lambda: True) -> None:
        """Draw the window, or a part of it, in each look at its present size, when it is ready."""
        if name not in self._wanted:
            return
        shown = widget or self.workbench.window
        size = shown.size()
        for look in self._looks:
            self._style.choose(look.theme, look.percent / 100)
            if isinstance(shown, QDialog):
                shown.resize(size)  # which follows the scale
            settle(SETTLE_MS)
            until(is_ready)
            if self.workbench.current is not None:
                self.workbench.current.canvas.fit_to_view.fit_all()
                settle(SETTLE_MS)
            write_png(shown.grab().toImage(), self._images / f"{name}-{look.name}.png")
        self._style.choose("dark", 1.0)
        if isinstance(shown, QDialog):
            shown.resize(size)  # for the next picture of it

    def take_new(self, name: str, make: Callable[[], QWidget]) -> None:
        """Draw a dialog that is opened in each look, and close it."""
        if name not in self._wanted:
            return
        for look in self._looks:
            self._style.choose(look.theme, look.percent / 100)
            settle(SETTLE_MS)
            dialog = make()
            dialog.show()
            settle(SETTLE_MS)
            write_png(dialog.grab().toImage(), self._images / f"{name}-{look.name}.png")
            dialog.close()
            settle(0)
        self._style.choose("dark", 1.0)

    def clear(self) -> None:
        """Close all documents and panels."""
        self.workbench.bottom_panel.fold()
        for document in tuple(self.workbench.documents.all):
            self.workbench.documents.drop(document)
        self.play("quick", 0.0)
        settle(SETTLE_MS)

    def close(self) -> None:
        """Close the window and stop its threads."""
        self.workbench.window.hide()
        self.clear()
        self._engine.stop()
        self.workbench.history.access.close()
        settle(SETTLE_MS)

    def _fitted(self, document: DocumentPage | None) -> DocumentPage:
        assert document is not None, "a document of the project can be opened"
        settle(SETTLE_MS)
        document.canvas.fit_to_view.fit_all()
        return document


Scenes: TypeAlias = Mapping[tuple[str, ...], Callable[[Studio], None]]
"""Functions that draw pictures, by the names of the pictures."""


def settle(milliseconds: int) -> None:
    """Process events for that long."""
    QTest.qWait(milliseconds)


def until(is_so: Callable[[], bool]) -> None:
    """Process events until a condition holds.

    Raises:
        TimeoutError: It never was.
    """
    patience = QDeadlineTimer(PATIENCE_MS)
    while not is_so():
        if patience.hasExpired():
            raise TimeoutError("The run did not come to the place that is to be drawn.")
        QTest.qWait(10)


def _application() -> QApplication:
    application = QApplication.instance() or QApplication(["loopwright"])
    assert isinstance(application, QApplication)
    application.setApplicationName("loopwright")
    return application
