from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.window.document_page import DocumentPage
from app.workbench import Workbench
from tests.app.window.conftest import Script, ended, press


@pytest.fixture
def ran(workbench: Workbench, self_refine: DocumentPage, script: Script, qtbot: QtBot) -> DocumentPage:
    """Self-Refine after a run of three iterations, with its panel open."""
    script("words", *({"node": "draft", "iteration": turn, "reply": f"draft {turn}"} for turn in range(3)))
    workbench.actions_by_name["run"].trigger()
    ended(self_refine, qtbot)
    workbench.bottom_panel.unfold("iterations")
    return self_refine


def test_after_the_run_the_last_iteration_and_the_reason_are_shown(ran: DocumentPage) -> None:
    panel = ran.iterations

    assert panel.detail.title.text() == "Iteration 3"
    assert not panel.detail.returned.isHidden()
    assert panel.why.text() == "Stopped after 3 of 3: max iterations reached."
    assert panel.detail.text.content.view.text() == "draft 2"
    assert not panel.latest.isEnabled()


def test_a_click_on_a_dot_moves_the_whole_window(ran: DocumentPage) -> None:
    slider = ran.iterations.slider
    place = QPoint(round(slider._x(0)), slider.height() // 2)

    QTest.mouseClick(slider, Qt.MouseButton.LeftButton, pos=place)

    assert ran.session.shown.chosen == {"loop": 0}
    assert ran.iterations.detail.text.content.view.text() == "draft 0"
    assert ran.iterations.detail.title.text() == "Iteration 1"


def test_a_drag_over_the_dots_follows(ran: DocumentPage) -> None:
    slider = ran.iterations.slider
    middle = slider.height() // 2
    QTest.mousePress(slider, Qt.MouseButton.LeftButton, pos=QPoint(round(slider._x(0)), middle))
    QTest.mouseMove(slider, QPoint(round(slider._x(1)), middle))
    QTest.mouseRelease(slider, Qt.MouseButton.LeftButton, pos=QPoint(round(slider._x(1)), middle))

    assert ran.session.shown.chosen == {"loop": 1}


def test_the_keys_of_the_slider(ran: DocumentPage) -> None:
    slider = ran.iterations.slider
    slider.setFocus()

    QTest.keyClick(slider, Qt.Key.Key_Left)
    assert ran.session.shown.chosen == {"loop": 1}
    QTest.keyClick(slider, Qt.Key.Key_Home)
    assert ran.session.shown.chosen == {"loop": 0}
    QTest.keyClick(slider, Qt.Key.Key_Right)
    assert ran.session.shown.chosen == {"loop": 1}
    QTest.keyClick(slider, Qt.Key.Key_Escape)
    assert ran.session.shown.chosen == {}


def test_the_arrows_on_the_canvas_step_while_an_iteration_is_looked_at(ran: DocumentPage) -> None:
    ran.canvas.setFocus()
    viewer = ran.canvas.viewer
    ran.session.shown.look_at("loop", 1)

    QTest.keyClick(viewer, Qt.Key.Key_Left)
    assert ran.session.shown.chosen == {"loop": 0}
    QTest.keyClick(viewer, Qt.Key.Key_Left)
    assert ran.session.shown.chosen == {"loop": 0}
    QTest.keyClick(viewer, Qt.Key.Key_Right)
    assert ran.session.shown.chosen == {"loop": 1}
    QTest.keyClick(viewer, Qt.Key.Key_Escape)
    assert ran.session.shown.chosen == {}


def test_stepping_past_the_last_follows_the_run_again(workbench: Workbench, ran: DocumentPage) -> None:
    QTest.keyClick(workbench.window, Qt.Key.Key_Left, Qt.KeyboardModifier.AltModifier)
    assert ran.session.shown.chosen == {"loop": 1}

    QTest.keyClick(workbench.window, Qt.Key.Key_Right, Qt.KeyboardModifier.AltModifier)
    QTest.keyClick(workbench.window, Qt.Key.Key_Right, Qt.KeyboardModifier.AltModifier)

    assert ran.session.shown.chosen == {}


def test_latest_follows_the_run_again(ran: DocumentPage) -> None:
    ran.session.shown.look_at("loop", 0)

    press(ran.iterations, "Latest")

    assert ran.session.shown.chosen == {}


def test_without_a_run_the_panel_says_what_it_is_for(self_refine: DocumentPage) -> None:
    assert not self_refine.iterations.empty.isHidden()
    assert not self_refine.iterations.slider.isVisible()
    assert not self_refine.iterations.step(1)


def test_a_run_that_is_not_kept_is_not_exported_and_that_is_said(workbench: Workbench, ran: DocumentPage) -> None:
    ran.iterations.export_wanted.emit()

    assert workbench.status_bar.refusal.full_text.startswith("Only a stored run can be exported.")


def test_where_nothing_has_run_yet_nothing_is_exported(
    workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot
) -> None:
    with qtbot.waitSignal(workbench.history.access.opened):
        workbench.history.access.open()

    self_refine.iterations.export_wanted.emit()

    qtbot.waitUntil(lambda: workbench.status_bar.refusal.full_text != "")
    assert workbench.status_bar.refusal.full_text.startswith("Only a stored run can be exported.")
    workbench.history.access.close()
