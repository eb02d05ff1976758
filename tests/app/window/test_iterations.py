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


def test_last_iteration_and_exit_reason_are_shown_after_a_run(ran: DocumentPage) -> None:
    panel = ran.iterations

    assert panel.detail.title.text() == "Iteration 3"
    assert not panel.detail.returned.isHidden()
    assert panel.why.text() == "Stopped after 3 of 3: max iterations reached."
    assert panel.detail.text.content.view.text() == "draft 2"
    assert not panel.latest.isEnabled()


def test_click_on_an_iteration_selects_it_everywhere(ran: DocumentPage) -> None:
    slider = ran.iterations.slider
    place = QPoint(round(slider._x(0)), slider.height() // 2)

    QTest.mouseClick(slider, Qt.MouseButton.LeftButton, pos=place)

    assert ran.session.shown.chosen == {"loop": 0}
    assert ran.iterations.detail.text.content.view.text() == "draft 0"
    assert ran.iterations.detail.title.text() == "Iteration 1"


def test_dragging_over_iterations_selects_them(ran: DocumentPage) -> None:
    slider = ran.iterations.slider
    middle = slider.height() // 2
    QTest.mousePress(slider, Qt.MouseButton.LeftButton, pos=QPoint(round(slider._x(0)), middle))
    QTest.mouseMove(slider, QPoint(round(slider._x(1)), middle))
    QTest.mouseRelease(slider, Qt.MouseButton.LeftButton, pos=QPoint(round(slider._x(1)), middle))

    assert ran.session.shown.chosen == {"loop": 1}


def test_slider_keys_step_through_iterations(ran: DocumentPage) -> None:
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


def test_canvas_arrow_keys_step_while_an_iteration_is_selected(ran: DocumentPage) -> None:
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


def test_stepping_past_the_last_iteration_follows_the_run(workbench: Workbench, ran: DocumentPage) -> None:
    QTest.keyClick(workbench.window, Qt.Key.Key_Left, Qt.KeyboardModifier.AltModifier)
    assert ran.session.shown.chosen == {"loop": 1}

    QTest.keyClick(workbench.window, Qt.Key.Key_Right, Qt.KeyboardModifier.AltModifier)
    QTest.keyClick(workbench.window, Qt.Key.Key_Right, Qt.KeyboardModifier.AltModifier)

    assert ran.session.shown.chosen == {}


def test_latest_follows_the_run(ran: DocumentPage) -> None:
    ran.session.shown.look_at("loop", 0)

    press(ran.iterations, "Latest")

    assert ran.session.shown.chosen == {}


def test_iterations_panel_without_a_run_explains_itself(self_refine: DocumentPage) -> None:
    assert not self_refine.iterations.empty.isHidden()
    assert not self_refine.iterations.slider.isVisible()
    assert not self_refine.iterations.step(1)


def test_run_that_is_not_stored_cannot_be_exported(workbench: Workbench, ran: DocumentPage) -> None:
    ran.iterations.export_wanted.emit()

    assert workbench.status_bar.refusal.full_text.startswith("Only a stored run")


def test_nothing_is_exported_before_a_run(workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot) -> None:
    with qtbot.waitSignal(workbench.history.access.opened):
        workbench.history.access.open()

    self_refine.iterations.export_wanted.emit()

    qtbot.waitUntil(lambda: workbench.status_bar.refusal.full_text != "")
    assert workbench.status_bar.refusal.full_text.startswith("Only a stored run")
    workbench.history.access.close()
