"""Fixtures of a canvas, with a mouse and keys for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.canvas.canvas import Canvas
from app.canvas.node_item import NodeItem
from app.session import Session
from engine.document.model import Workflow
from tests.app.canvas.documents import refine
from tests.app.conftest import MakeSession


@dataclass
class Hand:
    """A person's mouse and keys on a canvas."""

    canvas: Canvas

    @property
    def session(self) -> Session:
        return self.canvas.session

    def item(self, node_id: str) -> NodeItem:
        return self.canvas.view.nodes[node_id]

    def title(self, node_id: str) -> QPointF:
        return self.item(node_id).pos() + QPointF(60, 20)

    def port(self, end: str) -> QPointF:
        node, _, name = end.partition(".")
        item = self.item(node)
        port = item.port(name, is_input=False) or item.port(name, is_input=True)
        assert port is not None, end
        return port.middle

    def at(self, place: QPointF) -> QPoint:
        return self.canvas.viewer.mapFromScene(place)

    def click(
        self,
        place: QPointF,
        modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier,
        button: Qt.MouseButton = Qt.MouseButton.LeftButton,
    ) -> None:
        QTest.mouseClick(self.canvas.viewer.viewport(), button, modifiers, self.at(place))

    def double_click(self, place: QPointF) -> None:
        QTest.mouseDClick(
            self.canvas.viewer.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, self.at(place)
        )

    def press(self, place: QPointF, button: Qt.MouseButton = Qt.MouseButton.LeftButton) -> None:
        QTest.mousePress(self.canvas.viewer.viewport(), button, Qt.KeyboardModifier.NoModifier, self.at(place))

    def move(self, place: QPointF) -> None:
        QTest.mouseMove(self.canvas.viewer.viewport(), self.at(place))
        QApplication.processEvents()

    def release(self, place: QPointF, button: Qt.MouseButton = Qt.MouseButton.LeftButton) -> None:
        QTest.mouseRelease(self.canvas.viewer.viewport(), button, Qt.KeyboardModifier.NoModifier, self.at(place))
        QApplication.processEvents()

    def drag(self, start: QPointF, end: QPointF, button: Qt.MouseButton = Qt.MouseButton.LeftButton) -> None:
        self.press(start, button)
        for share in (0.1, 0.4, 0.8, 1.0):
            self.move(start + (end - start) * share)
        self.release(end, button)

    def connect(self, source: str, target: str) -> None:
        self.drag(self.port(source), self.port(target))

    def key(self, key: Qt.Key, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        QTest.keyClick(self.canvas.viewer, key, modifiers)
        QApplication.processEvents()

    def edges(self) -> list[str]:
        return [str(edge) for edge in self.session.workflow.edges]

    def place(self, node_id: str) -> tuple[float, float]:
        place = self.session.workflow.layout["nodes"][node_id]
        return (place["x"], place["y"])


MakeCanvas = Callable[..., Hand]


@pytest.fixture
def make_canvas(make_session: MakeSession, qtbot: QtBot) -> Iterator[MakeCanvas]:
    """Makes canvases at 100 %, 1200 × 800, with the upper left card near the corner."""
    made: list[Canvas] = []

    def make(workflow: Workflow | None = None) -> Hand:
        canvas = Canvas(make_session(workflow if workflow is not None else refine()))
        made.append(canvas)
        canvas.resize(1200, 800)
        with qtbot.waitExposed(canvas):
            canvas.show()
        seen = canvas.view.content_rect
        canvas.viewer.center_at(QRectF(seen.x() - 40, seen.y() - 80, 1200, 800).center())
        canvas.activateWindow()
        canvas.setFocus()
        return Hand(canvas)

    yield make
    for canvas in made:
        canvas.hide()
        canvas.deleteLater()
    QApplication.processEvents()


@pytest.fixture
def hand(make_canvas: MakeCanvas) -> Hand:
    """A canvas with a small loop."""
    return make_canvas()


def settle(hand: Hand, qtbot: QtBot) -> None:
    """Wait until structure and problems fit the document."""
    qtbot.waitUntil(lambda: hand.session.structure.workflow is hand.session.workflow)
