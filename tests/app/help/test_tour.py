"""The tour of the window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QScrollArea, QWidget
from pytestqt.qtbot import QtBot

from app.help.tour import Tour, card_position
from app.main import open_at_start
from app.settings.preferences import Preferences
from app.theme.style import style
from app.workbench import Workbench
from engine.document.files import save
from engine.document.model import Workflow
from tests.app.window.conftest import MakeWindow, answers, await_files, make_window, preferences, script, workbench

__all__ = ["answers", "make_window", "preferences", "script", "workbench"]


@pytest.fixture
def tour(workbench: Workbench) -> Iterator[Tour]:
    workbench.window.resize(1280, 720)
    workbench.actions_by_name["tour"].trigger()
    tour = workbench.help.tour
    assert tour is not None
    yield tour
    style().choose("dark", 1.0)


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_five_steps_point_at_visible_widgets(workbench: Workbench, tour: Tour, scale: float) -> None:
    style().choose("dark", scale)
    window, targets = workbench.window, list[QWidget | None]()
    for number in range(1, 6):
        QApplication.processEvents()
        assert tour.number == number
        assert tour.target is not None
        targets.append(tour.target)
        marked = tour.ring.geometry()
        assert marked.contains(tour.target.mapTo(window, QPoint(tour.target.width() // 2, 20)))
        assert window.rect().contains(marked)
        assert window.rect().contains(tour.card.geometry())
        if number != 2:  # the canvas fills the middle
            assert not tour.card.geometry().intersects(marked)
        for label in tour.card.findChildren(QLabel):
            assert label.height() >= label.heightForWidth(label.width()), label.text()
        QTest.mouseClick(tour.card.next, Qt.MouseButton.LeftButton)

    document = workbench.current
    assert document is not None
    assert targets == [
        workbench.gallery.cards[0],
        document.canvas,
        document.inspector,
        workbench.run_bar.run,
        workbench.bottom_panel.buttons["iterations"],
    ]
    assert document.session.selection == ("draft",)
    assert workbench.help.tour is None


def test_ring_follows_the_widget_when_its_page_is_scrolled(workbench: Workbench, tour: Tour) -> None:
    assert tour.target is not None
    before = tour.ring.geometry()
    (area,) = (area for area in workbench.gallery.findChildren(QScrollArea) if area.isAncestorOf(tour.target))
    area.verticalScrollBar().setValue(40)
    QApplication.processEvents()
    assert tour.ring.y() == before.y() - 40


@pytest.mark.parametrize("steps", [0, 3])
def test_tour_can_be_left_at_any_step(workbench: Workbench, tour: Tour, steps: int, qtbot: QtBot) -> None:
    for _ in range(steps):
        tour.card.next.click()
    card = tour.card
    QTest.keyClick(card.next, Qt.Key.Key_Escape)

    assert workbench.help.tour is None
    assert not card.isVisible()


def test_tour_is_operated_by_keyboard(workbench: Workbench, tour: Tour) -> None:
    assert tour.card.next.hasFocus()
    QTest.keyClick(tour.card.next, Qt.Key.Key_Return)
    assert tour.number == 2
    QTest.keyClick(tour.card.next, Qt.Key.Key_Tab)
    assert tour.card.leave.hasFocus()
    QTest.keyClick(tour.card.leave, Qt.Key.Key_Tab)
    assert tour.card.back.hasFocus()
    QTest.keyClick(tour.card.back, Qt.Key.Key_Return)
    assert tour.number == 1
    assert workbench.current is None, "the start page is shown again"


def test_template_opened_by_the_user_goes_on_to_the_next_step(workbench: Workbench, tour: Tour) -> None:
    QTest.mouseClick(workbench.gallery.cards[2].button, Qt.MouseButton.LeftButton)

    assert tour.number == 2
    assert workbench.current is not None
    assert tour.target is workbench.current.canvas
    assert len(workbench.documents.all) == 1


def test_tour_uses_the_open_document(workbench: Workbench) -> None:
    document = workbench.documents.new()
    workbench.help.start_tour()
    assert workbench.help.tour is not None
    workbench.help.tour.card.next.click()

    assert workbench.documents.all == [document]
    assert workbench.current is document


def test_tour_is_offered_once(make_window: MakeWindow, preferences: Preferences) -> None:
    first = make_window()
    first.help.offer_tour()
    assert first.help.tour is not None

    second = make_window()
    second.help.offer_tour()
    assert second.help.tour is None
    second.actions_by_name["tour"].trigger()
    assert second.help.tour is not None


def test_tour_is_shown_at_the_first_start(workbench: Workbench, qtbot: QtBot) -> None:
    open_at_start(workbench, [], [])

    qtbot.waitUntil(lambda: workbench.help.tour is not None)


def test_first_start_with_a_file_shows_no_tour(workbench: Workbench, tmp_path: Path) -> None:
    save(Workflow(), tmp_path / "mine.loop.json")
    open_at_start(workbench, [tmp_path / "mine.loop.json"], [])
    await_files(workbench)

    assert workbench.current is not None
    assert workbench.help.tour is None


def test_tour_is_not_offered_over_a_document(workbench: Workbench, preferences: Preferences) -> None:
    workbench.documents.new()
    workbench.help.offer_tour()

    assert workbench.help.tour is None
    assert not preferences.has_learned("tour")


def test_card_follows_the_window(workbench: Workbench, tour: Tour, qtbot: QtBot) -> None:
    for _ in range(4):
        tour.card.next.click()
    workbench.window.resize(1000, 640)

    qtbot.waitUntil(lambda: workbench.window.rect().contains(tour.card.geometry()))
    assert tour.target is not None
    qtbot.waitUntil(lambda: tour.ring.geometry().contains(tour.target.mapTo(workbench.window, QPoint(0, 0))))


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (QRect(100, 100, 200, 100), QPoint(311, 100)),
        (QRect(700, 100, 200, 100), QPoint(388, 100)),
        (QRect(100, 20, 800, 40), QPoint(349, 71)),
        (QRect(100, 560, 800, 30), QPoint(349, 448)),
        (QRect(0, 0, 1000, 600), QPoint(349, 475)),
    ],
)
def test_card_is_placed_where_it_fits(target: QRect, expected: QPoint) -> None:
    assert card_position(target, QSize(300, 100), QSize(1000, 600)) == expected
