"""Every template runs to its end from the gallery."""

from __future__ import annotations

from typing import Any, Final

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.window.run_dialog import RunDialog
from app.workbench import Workbench
from engine.bundled import templates_folder
from engine.run_state.state import NodeState
from tests.app.window.conftest import Script, ended

LEFT: Final = Qt.MouseButton.LeftButton
NAMES: Final = sorted(file.name.removesuffix(".loop.json") for file in templates_folder().glob("*.loop.json"))


def said(node: str, *replies: Any) -> dict[str, Any]:
    """The model's replies to a node, call by call."""
    return {"node": node, "replies": list(replies)}


def as_json(**value: Any) -> dict[str, Any]:
    return {"json": value}


def judged(**scores: float) -> dict[str, Any]:
    given = {"scores": scores} if scores else {"score": 9.0}
    return as_json(reason="good", done=True, **given)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


RECORD: Final = {
    "title": "Bookbinding",
    "date": "12 May",
    "place": "old print shop",
    "leader": "Mara Lind",
    "seats": 14,
    "price": 35,
}
SCRIPTS: Final[dict[str, list[dict[str, Any]]]] = {
    "agentic-search": [said("enough", as_json(branch="done", reason="enough"))],
    "best-of-several": [{"node": "judge", "reply": judged(fit=9, fresh=9)}],
    "calculator-agent": [said("calculator", call("finish", answer="12 boxes"))],
    "classify": [said("classify", as_json(reason="broken", kind="complaint"))],
    "code-review": [said("review", "LGTM"), {"node": "judge", "reply": judged()}],
    "document-improvement": [{"node": "judge", "reply": judged(clear=9, tone=9, complete=9)}],
    "multi-pass-extraction": [{"node": "extract", "reply": {"json": RECORD}}],
    "negotiation": [said("seller", "AGREED: 165.")],
    "refine-or-exit": [said("refiner", call("exit_loop"))],
    "valid-json": [said("write", as_json(name="Pancakes", minutes=20, ingredients=["flour"]))],
    "writer-and-critic": [said("critic", "APPROVED")],
}


@pytest.mark.parametrize("name", NAMES)
def test_template_runs_from_the_gallery(workbench: Workbench, script: Script, qtbot: QtBot, name: str) -> None:
    script("words", *SCRIPTS.get(name, []))
    card = next(card for card in workbench.gallery.cards if card.template.path.name == f"{name}.loop.json")
    assert card.picture.isVisible()
    QTest.mouseClick(card.button, LEFT)
    qtbot.waitUntil(lambda: workbench.current is not None)
    document = workbench.current
    assert document is not None
    QTest.mouseClick(workbench.run_bar.run, LEFT)
    dialogs = workbench.window.findChildren(RunDialog)
    if dialogs:  # a tool of it runs code, which is asked before
        dialogs[0].code.click()
        QTest.mouseClick(dialogs[0].run, LEFT)
    ended(document, qtbot)

    view_model = document.session.shown.view_model
    assert view_model is not None
    assert view_model.status == "completed", view_model.error
    outputs = [node.id for node in document.session.workflow.nodes if node.type == "output"]
    assert {view_model.node(node).state for node in outputs} <= {NodeState.COMPLETED, NodeState.SKIPPED}
    assert view_model.outputs
