from __future__ import annotations

from pytestqt.qtbot import QtBot

from engine.document.files import load
from engine.document.operations import RemoveNodes
from tests.app.conftest import MakeSession
from tests.app.window.conftest import SELF_REFINE


def test_change_is_analyzed(make_session: MakeSession, qtbot: QtBot) -> None:
    session = make_session(load(SELF_REFINE))

    with qtbot.waitSignal(session.analyzed):
        session.do(RemoveNodes(("exit",)))

    assert "missing-exit" in {problem.code for problem in session.problems}
