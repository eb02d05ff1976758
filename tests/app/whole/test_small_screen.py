"""Window and dialogs fit small screens, with large texts and with scaled pixels, and nothing in them is clipped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from pathlib import Path

import pytest
from PySide6.QtCore import QRect, QSize
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QDialog,
    QLabel,
    QLayout,
    QMessageBox,
    QPushButton,
    QScrollArea,
    QStackedLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.batch.batch_window import BatchWindow
from app.controllers.document_controller import ReportDialog
from app.controllers.history_controller import AnswerDialog
from app.dialogs import show_failure
from app.history.compare_window import CompareWindow
from app.history.fork_dialog import ForkDialog
from app.inspector.model_list import ModelList, ModelSource
from app.inspector.pin_dialog import PinDialog
from app.inspector.prompt_editor import PromptWindow
from app.inspector.template_variables import TextKind
from app.inspector.value_view import ValueViewer
from app.settings.install_dialog import InstallDialog
from app.settings.key_dialog import KeyDialog
from app.settings.model_download import ModelDownloadDialog
from app.theme.style import style
from app.theme.widgets import ElidedLabel
from app.window.bottom_panel import PANELS
from app.window.crash_reporter import CrashDialog
from app.window.document_page import DocumentPage
from app.window.run_dialog import PermissionDialog, PermissionFields, Permissions, ToolNeeds
from app.workbench import Workbench
from engine.events import NodeWaiting
from engine.importing.reader import import_text
from tests.app.history.conftest import make_window, store_path, workbench
from tests.app.window.conftest import SELF_REFINE, answers, ended, preferences, script
from tests.engine.importing.samples import DEV_CYCLE

__all__ = ["answers", "make_window", "preferences", "script", "store_path", "workbench"]

IS_SCALED = "QT_SCALE_FACTOR" in os.environ
"""Whether this is a process of `test_everything_fits_a_scaled_screen`, with a real screen instead of `SmallScreen`."""
SCREEN = QSize(1280, 720)
SCALE = 1.0 if IS_SCALED else 1.5
SENTENCE = "A sentence of ten words says what happened and where. "


class SmallScreen:
    """What dialogs ask of their screen."""

    def availableSize(self) -> QSize:
        return SCREEN

    def availableGeometry(self) -> QRect:
        return QRect(0, 0, SCREEN.width(), SCREEN.height())


def screen_size() -> QSize:
    return QApplication.primaryScreen().availableSize() if IS_SCALED else SCREEN


@pytest.fixture
def document(workbench: Workbench, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> Iterator[DocumentPage]:
    """A template with a stored run, in a small window with large texts."""
    if not IS_SCALED:
        monkeypatch.setattr(QWidget, "screen", lambda _widget: SmallScreen())
    style().choose("dark", SCALE)
    workbench.window.resize(screen_size())
    document = workbench.documents.open_template(SELF_REFINE)
    assert document is not None
    workbench.runs.run(document)
    ended(document, qtbot)
    yield document
    style().choose("dark", 1.0)


def clipped(root: QWidget) -> list[str]:
    """The texts of visible labels and buttons that have less room than they need, and areas wider than their view."""
    found: list[str] = []
    for label in root.findChildren(QLabel):
        if label.isVisible() and label.text() and not isinstance(label, ElidedLabel):
            height = label.heightForWidth(label.width()) if label.wordWrap() else label.fontMetrics().height()
            is_narrow = not label.wordWrap() and label.width() < label.sizeHint().width()
            found += [label.text()] if is_narrow or label.height() < height else []
    for button in root.findChildren(QAbstractButton):
        least = button.minimumSizeHint()
        has_text = button.isVisible() and bool(button.text()) and not button.property("row")
        if has_text and (button.width() < least.width() or button.height() < least.height()):
            found.append(button.text())
    for area in root.findChildren(QScrollArea):
        if area.isVisible() and area.widget() is not None and area.widget().width() > area.viewport().width():
            found.append(f"{area.accessibleName()} is {area.widget().width()} wide in {area.viewport().width()}")
    return found


def laid_out(layout: QLayout) -> Iterator[QWidget]:
    """The visible widgets of a layout and the layouts in it."""
    for place in range(layout.count()):
        item = layout.itemAt(place)
        widget, inner = item.widget(), item.layout()
        if widget is not None and widget.isVisible() and not widget.size().isEmpty():
            yield widget
        elif inner is not None:
            yield from laid_out(inner)


def overlapping(root: QWidget) -> list[str]:
    """Widgets of one layout that overlap or leave the widget that they are in."""
    found: list[str] = []
    for parent in [root, *root.findChildren(QWidget)]:
        layout = parent.layout()
        if layout is None or isinstance(layout, QStackedLayout) or not parent.isVisible():
            continue
        widgets = list(laid_out(layout))
        found += [f"{each} in {parent}" for each in widgets if not parent.rect().contains(each.geometry())]
        pairs = combinations(widgets, 2)
        found += [f"{one} and {other}" for one, other in pairs if one.geometry().intersects(other.geometry())]
    return found


def dialogs_of_the_program() -> set[type[QDialog]]:
    waiting, found = [QDialog], set[type[QDialog]]()
    while waiting:
        kinds = [kind for kind in waiting.pop().__subclasses__() if kind.__module__.startswith("app.")]
        waiting += kinds
        found |= set(kinds)
    return found


Opener = Callable[[Workbench, DocumentPage, QtBot], object]


def action(name: str) -> Opener:
    return lambda workbench, _document, _qtbot: workbench.actions_by_name[name].trigger()


def settings_page(page: str) -> Opener:
    def show(workbench: Workbench, _document: DocumentPage, _qtbot: QtBot) -> None:
        workbench.commands.open_settings()
        assert workbench.commands.settings is not None
        workbench.commands.settings.show_page(page)

    return show


def fork(workbench: Workbench, document: DocumentPage, qtbot: QtBot) -> None:
    workbench.history.resuming.fork_from(document, "loop[1]")
    qtbot.waitUntil(lambda: any(each.plan is not None for each in workbench.window.findChildren(ForkDialog)))


def compare(workbench: Workbench, document: DocumentPage, qtbot: QtBot) -> None:
    workbench.history.compare_from(document, "loop[1]")
    window = workbench.history.compare
    assert window is not None
    qtbot.waitUntil(lambda: window.comparison is not None)


def batch(workbench: Workbench, document: DocumentPage, _qtbot: QtBot) -> None:
    workbench.runs.run_batch(document)


def crash(workbench: Workbench, _document: DocumentPage, _qtbot: QtBot) -> None:
    dialog = CrashDialog(SENTENCE * 3, "Traceback\n" * 50, workbench.window)
    dialog.fold.button.setChecked(True)
    dialog.show()


def report(workbench: Workbench, _document: DocumentPage, _qtbot: QtBot) -> None:
    ReportDialog("a-file-with-a-long-name.yaml", import_text(DEV_CYCLE), workbench.window).show()


def permission(workbench: Workbench, _document: DocumentPage, _qtbot: QtBot) -> None:
    fields = PermissionFields(ToolNeeds(folder=True, code=True), Path("/a/folder"), Permissions(), workbench.window)
    PermissionDialog(SENTENCE * 3, fields, lambda _granted: None, workbench.window).show()


def question_of_a_run(workbench: Workbench, _document: DocumentPage, _qtbot: QtBot) -> None:
    asked = NodeWaiting("run", 1, 0.0, "ask", "approval", "approval", SENTENCE, "A note.", ("approve", "reject"))
    AnswerDialog(asked, "Approve the letter to all the neighbors", workbench.window).show()


def key(workbench: Workbench, _document: DocumentPage, _qtbot: QtBot) -> None:
    KeyDialog(workbench.engine, "openai", workbench.window).show()


def model_list(workbench: Workbench, _document: DocumentPage, _qtbot: QtBot) -> None:
    ModelList(ModelSource(["openai/gpt-4o-mini"]), lambda _name: None, workbench.window).show()


def download(workbench: Workbench, _document: DocumentPage, _qtbot: QtBot) -> None:
    ModelDownloadDialog(workbench.engine, workbench.preferences, workbench.window).show_for(None)


OPENERS: dict[str, tuple[type[QDialog], Opener]] = {
    **{
        f"settings, {page}": (QDialog, settings_page(page))
        for page in ("models", "runs", "history", "tools", "appearance")
    },
    "run with": (QDialog, action("run_with")),
    "command palette": (QDialog, action("command_palette")),
    "shortcuts": (QDialog, action("shortcuts")),
    "about": (QMessageBox, action("about")),
    "guide": (QDialog, action("guide")),
    "fork": (ForkDialog, fork),
    "compare": (CompareWindow, compare),
    "batch": (BatchWindow, batch),
    "internal error": (CrashDialog, crash),
    "failure": (QMessageBox, lambda workbench, *_: show_failure(workbench.window, SENTENCE * 2, SENTENCE * 20)),
    "import report": (ReportDialog, report),
    "permissions": (PermissionDialog, permission),
    "question of another program's run": (AnswerDialog, question_of_a_run),
    "API key": (KeyDialog, key),
    "download": (ModelDownloadDialog, download),
    "install": (InstallDialog, lambda workbench, *_: InstallDialog("web", workbench.window).show()),
    "models": (ModelList, model_list),
    "pin": (PinDialog, lambda workbench, document, _: PinDialog(document.session, "draft", workbench.window).show()),
    "prompt": (PromptWindow, lambda workbench, *_: PromptWindow("Prompt", TextKind.TEMPLATE, workbench.window).show()),
    "value": (ValueViewer, lambda workbench, *_: ValueViewer("Result", SENTENCE * 99, workbench.window).show()),
}


def check_contents(name: str, dialog: QDialog) -> None:
    assert (name, [*clipped(dialog), *overlapping(dialog)]) == (name, [])


def test_every_dialog_fits(workbench: Workbench, document: DocumentPage, qtbot: QtBot) -> None:
    seen: set[type[QDialog]] = set()
    wrong: dict[str, object] = {}
    for name, (kind, show) in OPENERS.items():
        show(workbench, document, qtbot)
        QApplication.processEvents()
        opened = [each for each in QApplication.topLevelWidgets() if isinstance(each, kind) and each.isVisible()]
        (dialog,) = opened
        QApplication.processEvents()
        seen.add(type(dialog))
        room = screen_size()
        if dialog.width() > room.width() or dialog.height() > room.height():
            wrong[f"{name}: size"] = dialog.size().toTuple()
        qtbot.waitUntil(partial(check_contents, name, dialog))  # which may have to be read first
        dialog.close()
        QApplication.processEvents()
    assert wrong == {}
    assert dialogs_of_the_program() - seen == set(), "a new dialog belongs in this test"


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_window_and_panels_fit(workbench: Workbench, document: DocumentPage, theme: str, qtbot: QtBot) -> None:
    style().choose(theme, SCALE)
    document.session.select(["draft"])
    document.inspector.show_result()
    for panel in PANELS:
        workbench.bottom_panel.unfold(panel)
        qtbot.waitUntil(lambda: [*clipped(workbench.window), *overlapping(workbench.window)] == [])
        assert workbench.window.size() == screen_size(), panel


@pytest.mark.slow
@pytest.mark.skipif(IS_SCALED, reason="already in such a process")
@pytest.mark.parametrize(("width", "height"), [(1920, 1080), (1280, 720)])
def test_everything_fits_a_scaled_screen(width: int, height: int, tmp_path: Path) -> None:
    """The tests above in a process of its own, on a screen with 1.5 pixels for each of Qt's."""
    screen = {"name": "small", "x": 0, "y": 0, "width": width, "height": height}
    screen |= {"logicalDpi": 96, "logicalBaseDpi": 96, "dpr": 1}
    (tmp_path / "screen.json").write_text(json.dumps({"screens": [screen]}))
    platform = f"offscreen:configfile={tmp_path / 'screen.json'}"
    names = [test_every_dialog_fits.__name__, test_window_and_panels_fit.__name__]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    tests = subprocess.run(
        [*command, *(f"{__file__}::{name}" for name in names)],
        env={**os.environ, "QT_SCALE_FACTOR": "1.5", "QT_QPA_PLATFORM": platform},
        capture_output=True,
        text=True,
        check=False,
    )
    assert tests.returncode == 0, tests.stdout


def test_detector_of_clipped_texts_sees_them(qtbot: QtBot) -> None:
    box = QWidget()
    qtbot.addWidget(box)
    box.resize(400, 300)
    texts = ("a label that is too narrow", "a label that is too low " * 9)
    for number, text in enumerate(texts):
        label = QLabel(text, box)
        label.setWordWrap(number == 1)
        label.setGeometry(0, 40 * number, 60, 20)
    QPushButton("a button", box).setGeometry(0, 100, 20, 20)
    box.show()

    assert clipped(box) == [*texts, "a button"]
