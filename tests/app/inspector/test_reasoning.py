"""Reasoning, refusals and warnings in the window."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from app.batch.batch_results import COLUMNS, WARNINGS, BatchResultsModel
from app.inspector.result_page import ResultSectionView
from app.inspector.result_text import ResultSection, result_sections
from engine.batch.rows import RowResult
from engine.models.protocol import Message, ModelCall, Reply, Request
from engine.run_state.state import NodeExecution, NodeState


def execution(*replies: Reply) -> NodeExecution:
    calls = tuple(ModelCall("m", Request((Message("user", "Go."),)), reply, 0.0, 1.0) for reply in replies)
    return NodeExecution(state=NodeState.COMPLETED, calls=calls)


def test_reasoning_is_collapsed_before_the_reply() -> None:
    parts = result_sections(execution(Reply("Yes.", reasoning="Hm."), Reply("", refusal="No.")))

    rendered = [(part.heading.partition(",")[0], part.value, part.is_collapsible) for part in parts]
    assert rendered[1:3] == [("Reasoning", "Hm.", True), ("Reply", "Yes.", False)]
    assert ("Refusal", "No.", False) in rendered
    assert sum(part.is_collapsible for part in parts) == 1


def test_collapsed_section_shows_its_text_when_expanded(qtbot: QtBot) -> None:
    view = ResultSectionView()
    qtbot.addWidget(view)
    view.show_section(ResultSection("r", "Reasoning", "Hm.", is_collapsible=True))
    assert (view.expand.isHidden(), view.value.isHidden()) == (False, True)

    view.expand.click()
    assert not view.value.isHidden()
    view.show_section(ResultSection("r", "Reasoning", "Hm, hm.", is_collapsible=True))
    assert not view.value.isHidden()
    view.show_section(ResultSection("x", "Reply", "Yes."))
    assert (view.expand.isHidden(), view.value.isHidden()) == (True, False)


def test_batch_rows_count_their_warnings(qtbot: QtBot) -> None:
    model = BatchResultsModel()
    model.show_rows([{"a": 1}, {"a": 2}])
    model.set_results([RowResult(1, "k1", "r1", "completed", warnings=("a: cut off", "b: cut off"))])
    model.set_results([RowResult(2, "k2", "r2", "completed")])

    assert COLUMNS[WARNINGS] == "Warnings"
    assert [model.index(row, WARNINGS).data() for row in (0, 1)] == ["2", ""]
