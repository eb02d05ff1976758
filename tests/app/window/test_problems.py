from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.theme.widgets import IconLabel
from app.window.document_page import DocumentPage
from app.window.problems_panel import MOST_ROWS, ProblemRow
from app.workbench import Workbench
from engine.document.builder import Builder
from engine.document.model import Node
from engine.document.operations import AddNodes, RemoveNodes, SetConfig, SetSettings
from engine.document.problems import Problem
from tests.app.conftest import MakeSession
from tests.app.window.conftest import press


def row(document: DocumentPage, code: str) -> ProblemRow:
    return next(row for row in document.problems.rows if row.problem.code == code)


def broken(workbench: Workbench, document: DocumentPage, qtbot: QtBot) -> None:
    """Remove the exit, and open the Problems panel."""
    with qtbot.waitSignal(document.session.analyzed):
        document.session.do(RemoveNodes(("exit",)))
    workbench.bottom_panel.unfold("problems")


def test_problems_are_counted_in_bottom_panel_and_status_bar(
    workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot
) -> None:
    assert workbench.status_bar.problems.text() == "No problems"
    broken(workbench, self_refine, qtbot)

    assert workbench.bottom_panel.buttons["problems"].text() == "Problems (3)"
    assert workbench.status_bar.problems.text() == "3 errors"
    QTest.mouseClick(workbench.status_bar.problems, Qt.MouseButton.LeftButton)
    assert workbench.bottom_panel.open_panel == ""


def test_quick_fix_is_a_button(workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot) -> None:
    broken(workbench, self_refine, qtbot)

    with qtbot.waitSignal(self_refine.session.analyzed):
        press(self_refine.problems, "Add the missing exit")

    assert self_refine.session.workflow.node("exit").config == {"loop": "loop"}
    assert "missing-exit" not in {row.problem.code for row in self_refine.problems.rows}
    assert workbench.actions_by_name["undo"].text() == "Undo Add exit"


def test_the_keyboard_stays_in_the_panel_when_a_fix_solves_a_problem(
    workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot
) -> None:
    broken(workbench, self_refine, qtbot)
    session, problems = self_refine.session, self_refine.problems
    button = row(self_refine, "missing-exit").findChild(QPushButton)
    assert isinstance(button, QPushButton)
    button.setFocus()
    with qtbot.waitSignal(session.analyzed):
        QTest.keyClick(button, Qt.Key.Key_Space)
    assert problems.isAncestorOf(workbench.window.focusWidget())
    for _ in range(2):  # the fix, and what broke the workflow
        with qtbot.waitSignal(session.analyzed):
            session.undo()
    assert problems.rows == []
    assert problems.isAncestorOf(workbench.window.focusWidget())


def test_click_on_a_problem_goes_to_node_and_field(
    workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot
) -> None:
    with qtbot.waitSignal(self_refine.session.analyzed):
        self_refine.session.do(SetConfig(("prompt",), {"draft": "{{loop.nothing}}"}))
    workbench.bottom_panel.unfold("problems")
    qtbot.waitUntil(lambda: row(self_refine, "unknown-name").isVisible())

    QTest.mouseClick(row(self_refine, "unknown-name"), Qt.MouseButton.LeftButton)

    assert self_refine.session.selection == ("draft",)
    focused = self_refine.inspector.focusWidget()
    assert focused is not None
    assert "rompt" in focused.accessibleName()


def test_enter_on_a_problem_goes_to_node_and_field(
    workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot
) -> None:
    broken(workbench, self_refine, qtbot)

    QTest.keyClick(row(self_refine, "missing-exit"), Qt.Key.Key_Return)

    assert self_refine.session.selection == ("loop",)


def test_problem_of_an_edge_goes_to_its_target(self_refine: DocumentPage) -> None:
    self_refine.go_to(Problem("x", "x", edge="draft.output -> critique.draft"))
    assert self_refine.session.selection == ("critique",)

    self_refine.go_to(Problem("x", "x", edge="draft.output -> ghost.draft"))
    assert self_refine.session.selection == ("draft",)


def test_a_collapsed_loop_expands_to_show_the_problem_of_a_node_in_it(self_refine: DocumentPage) -> None:
    canvas = self_refine.canvas
    canvas.commands.set_collapsed("loop", collapsed=True)
    assert "draft" not in canvas.view.nodes

    self_refine.go_to(Problem("x", "x", node="draft", field="prompt"))

    assert self_refine.session.selection == ("draft",)
    assert canvas.viewer.visible_rect.contains(canvas.view.nodes["draft"].card_rect)


def test_problem_of_the_workflow_clears_the_selection(self_refine: DocumentPage) -> None:
    self_refine.session.select(["draft"])

    self_refine.go_to(Problem("x", "x"))

    assert self_refine.session.selection == ()


def test_problem_of_a_workflow_setting_goes_to_its_field(
    workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot
) -> None:
    with qtbot.waitSignal(self_refine.session.analyzed):
        self_refine.session.do(SetSettings(("budget_usd",), "much"))
    workbench.bottom_panel.unfold("problems")
    (found,) = (row for row in self_refine.problems.rows if row.problem.field == "settings.budget_usd")
    qtbot.waitUntil(found.isVisible)
    self_refine.session.select(["draft"])

    QTest.mouseClick(found, Qt.MouseButton.LeftButton)

    assert self_refine.session.selection == ()
    focused = self_refine.inspector.focusWidget()
    assert focused is not None
    assert "udget" in focused.accessibleName()


def test_unchanged_problem_rows_are_not_rebuilt(workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot) -> None:
    broken(workbench, self_refine, qtbot)
    before = self_refine.problems.rows

    with qtbot.waitSignal(self_refine.session.analyzed):
        self_refine.session.do(SetConfig(("system",), {"draft": "Be brief."}))

    assert self_refine.problems.rows == before


def test_only_the_first_hundred_problems_are_shown(make_session: MakeSession, qtbot: QtBot) -> None:
    from app.window.problems_panel import ProblemsPanel

    flow = Builder()
    for number in range(MOST_ROWS + 20):
        flow.add("output", id=f"out_{number}")
    panel = ProblemsPanel(make_session(flow.build()))
    qtbot.addWidget(panel)

    assert len(panel.rows) == MOST_ROWS
    assert panel._rest.text() == f"Showing the first {MOST_ROWS} of {MOST_ROWS + 20} problems."


def test_errors_come_before_warnings_and_are_labeled(make_session: MakeSession, qtbot: QtBot) -> None:
    from app.window.problems_panel import ProblemsPanel

    flow = Builder()
    flow.add("transform", id="step", template="{{input}}", config={"colour": 1})
    session = make_session(flow.build())
    panel = ProblemsPanel(session)
    qtbot.addWidget(panel)

    assert [row.findChild(IconLabel).accessibleName() for row in panel.rows] == ["error", "warning", "warning"]
    assert session.problem_counts == (1, 2)


def test_a_problem_names_its_node_as_on_the_card(workbench: Workbench, qtbot: QtBot) -> None:
    document = workbench.documents.new()
    with qtbot.waitSignal(document.session.analyzed):
        document.session.do(AddNodes((Node(id="n1", type="llm", title="Draft"),)))
    workbench.bottom_panel.unfold("problems")
    document.session.reveal_problems()
    assert 'node "Draft", port "input"' in row(document, "unconnected-port").accessibleName()


def test_a_new_document_has_no_problems(workbench: Workbench) -> None:
    workbench.documents.new()
    document = workbench.current
    assert document is not None
    assert document.session.problems == []


def test_a_new_node_shows_no_problem_until_there_was_the_chance_to_solve_it(workbench: Workbench, qtbot: QtBot) -> None:
    document = workbench.documents.new()
    session = document.session
    for node_type in ("llm", "router"):
        with qtbot.waitSignal(session.analyzed):
            added = document.canvas.commands.add_node(node_type)
            session.select([added])
    codes = [problem.code for problem in session.visible_problems]
    assert codes == ["unconnected-port"], "the one of the first node, which is no longer selected"
    assert workbench.status_bar.problems.text() == "1 error"
    assert document.canvas.view.nodes["router"].problem_text == ""
    with qtbot.waitSignal(session.analyzed):
        session.do(SetConfig(("max_tokens",), {"router": -1}))
    assert {problem.field for problem in session.problems_of("router")} >= {"max_tokens"}
    session.select([])
    assert session.visible_problems == session.problems
    assert {"no-output", "unconnected-port"} <= {problem.code for problem in session.problems}


def test_running_shows_the_problems_of_new_nodes(workbench: Workbench, qtbot: QtBot) -> None:
    document = workbench.documents.new()
    with qtbot.waitSignal(document.session.analyzed):
        document.canvas.commands.add_node("llm")
    assert document.session.problem_counts == (0, 0)
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    assert workbench.bottom_panel.open_panel == "problems"
    assert row(document, "unconnected-port").isVisible()


def test_a_half_typed_placeholder_is_no_problem_anywhere_until_its_field_is_left(
    workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot
) -> None:
    self_refine.session.select(["draft"])
    edit = self_refine.inspector.page.form.row("prompt").editor.edit
    edit.setFocus()
    QTest.keyClicks(edit, "{{")
    qtbot.waitUntil(lambda: "bad-template" in {problem.code for problem in self_refine.session.problems})
    assert workbench.status_bar.problems.text() == "No problems"
    assert self_refine.canvas.view.nodes["draft"].problem_text == ""
    edit.clearFocus()
    assert "error" in workbench.status_bar.problems.text()
    assert self_refine.canvas.view.nodes["draft"].problem_text


def test_a_half_typed_placeholder_is_no_problem_while_the_larger_window_has_the_focus(
    workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot
) -> None:
    self_refine.session.select(["draft"])
    editor = self_refine.inspector.page.form.row("prompt").editor
    editor.expand.click()
    qtbot.waitUntil(editor.larger_window.isActiveWindow)
    QTest.keyClicks(editor.larger_window.edit, "{{")
    qtbot.waitUntil(lambda: "bad-template" in {problem.code for problem in self_refine.session.problems})
    assert workbench.status_bar.problems.text() == "No problems"
    editor.larger_window.close()
    qtbot.waitUntil(lambda: "error" in workbench.status_bar.problems.text())
