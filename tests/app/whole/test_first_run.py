from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from engine.document.files import load
from tests.app.whole.conftest import CTRL, TEMPLATE, Whole, meaning


def test_first_run_takes_two_clicks(whole: Whole) -> None:
    card = next(card for card in whole.workbench.gallery.cards if card.template.title == "Self-Refine")
    QTest.mouseClick(card.button, Qt.MouseButton.LeftButton)
    session = whole.document.session
    with whole.qtbot.waitSignal(session.shown.ended):
        QTest.mouseClick(whole.workbench.run_bar.run, Qt.MouseButton.LeftButton)
    assert session.shown.view_model is not None
    assert session.shown.view_model.status == "completed"
    assert len(session.shown.view_model.loops["loop"].iterations) == 3
    assert whole.workbench.status_bar.state.text().startswith("Done")


def test_template_is_saved_by_keyboard_and_reopened_unchanged(whole: Whole) -> None:
    whole.workbench.documents.open_template(TEMPLATE)
    whole.answers.path = copy = whole.workbench.documents.data_folder / "copy.loop.json"
    copy.parent.mkdir(exist_ok=True)
    whole.press(Qt.Key.Key_S, CTRL)
    whole.qtbot.waitUntil(copy.exists)  # it appears complete
    assert meaning(load(copy)) == meaning(load(TEMPLATE))
    whole.qtbot.waitUntil(lambda: not whole.workbench.window.isWindowModified())
