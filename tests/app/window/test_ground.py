from __future__ import annotations

from pathlib import Path

from engine.document.files import load
from tests.app.conftest import MakeSession

SELF_REFINE = Path("templates/self-refine.loop.json")


def test_a_change_is_analysed(make_session: MakeSession, qtbot) -> None:
    from engine.document.node_operations import RemoveNode

    session = make_session(load(SELF_REFINE))
    with qtbot.waitSignal(session.analysed):
        session.do(RemoveNode("exit"))
    assert "missing-exit" in {problem.code for problem in session.problems}
