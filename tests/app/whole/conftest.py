"""The whole window with a mouse and keys; only the file dialogs are replaced."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QWidget
from pytestqt.qtbot import QtBot

from app.engine_thread import EngineThread
from app.inspector.editor import Editor
from app.settings.preferences import Preferences
from app.window.document_page import DocumentPage
from app.window.main_window import DEFAULT_SIZE
from app.workbench import Workbench
from engine.document.model import Workflow
from engine.nodes.node_registry import builtin_registry
from engine.values import Value
from tests.app.canvas.conftest import Hand

TEMPLATE = Path("templates/self-refine.loop.json")
CTRL = Qt.KeyboardModifier.ControlModifier


class Answers:
    """Answers for a person where a file dialog would open."""

    def __init__(self) -> None:
        self.path: Path | None = None

    def open_files(self, parent: QWidget, chosen: Callable[[list[Path]], None]) -> None:
        if self.path is not None:
            chosen([self.path])

    def save_file(
        self, parent: QWidget, suggestion: Path, filters: str, chosen: Callable[[Path], None], **_how: bool
    ) -> None:
        if self.path is not None:
            chosen(self.path)

    def open_text(self, parent: QWidget, chosen: Callable[[Path], None], *_how: str) -> None:
        if self.path is not None:
            chosen(self.path)


@dataclass
class Whole:
    """The window and what one does in it."""

    qtbot: QtBot
    workbench: Workbench
    answers: Answers

    @property
    def document(self) -> DocumentPage:
        document = self.workbench.current
        assert document is not None
        return document

    @property
    def workflow(self) -> Workflow:
        return self.document.session.workflow

    @property
    def hand(self) -> Hand:
        return Hand(self.document.canvas)

    def come_to_front(self) -> None:
        """Make this the window that has the keyboard."""
        self.workbench.window.activateWindow()
        self.qtbot.waitUntil(self.workbench.window.isActiveWindow)

    def settle(self) -> None:
        """Wait until structure and problems fit the document."""
        session = self.document.session
        self.qtbot.waitUntil(lambda: session.structure.workflow is session.workflow)

    def press(self, key: Qt.Key, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        """Press a key, wherever the keyboard is."""
        QTest.keyClick(focus(), key, modifiers)
        QApplication.processEvents()

    def write(self, text: str) -> None:
        """Type, wherever the keyboard is."""
        for at, line in enumerate(text.split("\n")):
            if at:
                QTest.keyClick(focus(), Qt.Key.Key_Return)
            QTest.keyClicks(focus(), line)
        QApplication.processEvents()

    def editor(self, field: str, open_fold: Callable[[QWidget], None]) -> Editor:
        """The editor of a field of what is selected; the fold is opened for it if need be."""
        form = self.document.inspector.page.form
        row = form.row(field)
        if row is None or not row.isVisible():
            open_fold(form.advanced_button)
            QApplication.processEvents()
            row = form.row(field)
        assert row is not None, field
        return row.editor

    def fill(self, value: Value) -> None:
        """Write a value where the keyboard is, over what is there."""
        if isinstance(value, bool):
            self.press(Qt.Key.Key_Space)
            return
        box = focus()
        if isinstance(box, QComboBox) and not box.isEditable():
            for _ in range(box.count()):
                if box.currentData() == value:
                    return
                self.press(Qt.Key.Key_Down)
            raise AssertionError(f"{value} is not on offer")
        self.press(Qt.Key.Key_A, CTRL)
        self.write(str(value))


@dataclass
class Person:
    """Does things in the window, and counts them."""

    whole: Whole
    actions: int = 0

    def key(self, key: Qt.Key, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        self.actions += 1
        self.whole.press(key, modifiers)
        QApplication.processEvents()

    def add(self, title: str) -> str:
        """Double-click an entry of the palette, and return the new node's id."""
        self.actions += 1
        entries = self.whole.workbench.palette_panel.list
        model = entries.model()
        row = next(row for row in range(model.rowCount()) if model.index(row, 0).data() == title)
        entries.scrollTo(model.index(row, 0))
        place = entries.visualRect(model.index(row, 0)).center()
        QTest.mouseClick(entries.viewport(), Qt.MouseButton.LeftButton, pos=place)
        QTest.mouseDClick(entries.viewport(), Qt.MouseButton.LeftButton, pos=place)
        self.whole.settle()
        return self.whole.document.session.selection[0]

    def fill(self, field: str, text: str) -> None:
        """Click a field of the selected node and type."""
        self.actions += 2
        row = self.whole.document.inspector.page.form.row(field)
        assert row is not None
        widget = row.editor.main_widget
        QTest.mouseClick(widget.viewport(), Qt.MouseButton.LeftButton)
        self.whole.write(text)
        QApplication.processEvents()

    def select_around(self, *node_ids: str) -> None:
        """Draw a rubber band around nodes."""
        self.actions += 1
        hand = self.whole.hand
        rect = hand.item(node_ids[0]).card_rect
        for node_id in node_ids:
            rect = rect.united(hand.item(node_id).card_rect)
        hand.drag(rect.topLeft() - QPointF(16, 16), rect.bottomRight() + QPointF(16, 16))


def focus() -> QWidget:
    """What has the keyboard."""
    widget = QApplication.focusWidget()
    assert widget is not None, "nothing has the keyboard"
    return widget


def own_config(node_type: str, config: dict[str, Value]) -> dict[str, Value]:
    """The values that differ from those that a new node has."""
    spec = builtin_registry().find(node_type)
    assert spec is not None
    usual = spec.config().model_dump(mode="json")
    return {name: value for name, value in config.items() if usual[name] != value}


def meaning(workflow: Workflow) -> tuple[dict[str, Any], set[tuple[str, str]]]:
    """What a workflow does, whatever its nodes' ids are: settings by title, and edges between titles."""
    registry = builtin_registry()
    titles = {node.id: node.title or registry.find(node.type).title for node in workflow.nodes}
    assert len(set(titles.values())) == len(titles)
    nodes: dict[str, Any] = {}
    for node in workflow.nodes:
        config = registry.find(node.type).config(**node.config).model_dump()
        if node.type == "exit":
            config["loop"] = titles[config["loop"]]
        nodes[titles[node.id]] = (node.type, config, node.enabled)

    def end(text: str) -> str:
        node, _, port = text.partition(".")
        return f"{titles[node]}.{port}"

    return nodes, {(end(edge.from_), end(edge.to)) for edge in workflow.edges}


MakeWhole = Callable[[], Whole]


@pytest.fixture
def make_whole(
    engine_thread: EngineThread, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MakeWhole]:
    """Makes windows as at the first start, with a model that plays a script; each has the keyboard when it is made."""
    script = tmp_path / "replies.json"
    script.write_text(json.dumps({"default": "A friendly note."}))
    monkeypatch.setenv("LOOPWRIGHT_MODEL", f"scripted:{script}")
    made: list[Whole] = []

    def make() -> Whole:
        answers, folder = Answers(), tmp_path / f"home-{len(made)}"
        preferences = Preferences(folder / "settings.json")
        workbench = Workbench(engine_thread, preferences, dialogs=answers, data_folder=folder / "unsaved")
        with qtbot.waitExposed(workbench.window):
            workbench.show()
        workbench.window.resize(*DEFAULT_SIZE)  # the screen of Qt's offscreen platform is smaller
        made.append(Whole(qtbot, workbench, answers))
        made[-1].come_to_front()
        QTest.mouseMove(workbench.window.menuBar())  # not where an earlier test left it
        QApplication.processEvents()
        return made[-1]

    yield make
    for whole in made:
        _end(whole)
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    QApplication.processEvents()


def _end(whole: Whole) -> None:
    workbench = whole.workbench
    for document in list(workbench.documents.all):
        if document.session.shown.live is not None:
            document.session.shown.live.cancel()
            whole.qtbot.waitUntil(lambda document=document: document.session.shown.live is None)
        workbench.documents.drop(document)
    workbench.window.close()
    workbench.window.deleteLater()


@pytest.fixture
def whole(make_whole: MakeWhole) -> Whole:
    """One window at its first start."""
    return make_whole()


@pytest.fixture
def person(whole: Whole) -> Person:
    """Somebody in front of that window."""
    return Person(whole)
