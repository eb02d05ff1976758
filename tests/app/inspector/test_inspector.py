"""The inspector as a whole: selection, accessible names, keyboard and themes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QTabBar,
    QWidget,
)

from app.inspector.inspector import PROPERTIES, RESULT
from app.inspector.properties_pages import NodePage, NodesPage, WorkflowPage
from app.session import ReplaceDocument
from app.theme.style import style
from engine.document.clipboard import copy_fragment
from engine.document.model import Node, Workflow
from engine.document.operations import (
    AddNodes,
    Batch,
    RemoveNodes,
    RenameNode,
    SetConfig,
    SetLayout,
    SetSettings,
    SetTitle,
)
from engine.nodes.node_registry import builtin_registry
from engine.runner.options import RunOptions
from tests.app.inspector.conftest import Bench, OpenInspector, refine
from tests.wording import mentions

Key = Qt.Key
CONTROLS = (QAbstractButton, QAbstractSpinBox, QAbstractItemView, QComboBox, QLineEdit, QPlainTextEdit, QTabBar)


@pytest.fixture
def every_type(open_inspector: OpenInspector) -> Bench:
    """A document with a node of each type, with advanced fields expanded."""
    nodes = tuple(Node(id=spec.type, type=spec.type) for spec in builtin_registry())
    bench = open_inspector(Workflow(nodes=nodes))
    bench.session.do(SetConfig(("tool",), {"tool": "search_files"}))
    bench.inspector._is_advanced_open = True
    return bench


def controls(bench: Bench) -> list[QWidget]:
    """All visible controls."""
    return [widget for widget in bench.inspector.findChildren(QWidget) if _is_control(widget)]


def _is_control(widget: QWidget) -> bool:
    if (
        not isinstance(widget, CONTROLS)
        or not widget.isVisible()
        or widget.window().windowType() != Qt.WindowType.Window
    ):
        return False
    inside = widget.parentWidget()
    return not (isinstance(inside, QAbstractSpinBox | QComboBox) or widget.objectName().startswith("qt_"))


def each_page(bench: Bench) -> Iterator[str]:
    """Show the page of each node type, and the workflow's."""
    for node in bench.session.workflow.nodes:
        bench.select(node.id)
        yield node.type
    bench.select()
    yield "workflow"


def test_page_follows_the_selection(open_inspector: OpenInspector) -> None:
    bench = open_inspector(refine())
    assert isinstance(bench.inspector.page, WorkflowPage)
    bench.select("draft")
    assert isinstance(bench.inspector.page, NodePage)
    assert bench.page.header.title.text() == "Draft"
    assert bench.editor("prompt").edit.text() == "Write: {{input}}"
    bench.select("critique")
    assert bench.editor("prompt").edit.text() == "Judge {{draft}}."
    bench.select("critique", "draft")
    assert isinstance(bench.inspector.page, NodesPage)
    assert bench.inspector.page.title.text() == "2 nodes selected"
    assert not bench.inspector.tabs.isTabEnabled(RESULT)
    bench.select()
    assert isinstance(bench.inspector.page, WorkflowPage)


def test_pages_are_created_while_idle(open_inspector: OpenInspector) -> None:
    bench = open_inspector(refine())
    types = {node.type for node in bench.session.workflow.nodes}
    bench.qtbot.waitUntil(lambda: set(bench.inspector._pages) == types)
    assert isinstance(bench.inspector.page, WorkflowPage)


def test_no_pages_are_created_during_a_run(open_inspector: OpenInspector, write_script: Callable[..., Path]) -> None:
    bench = open_inspector(refine())
    slow = {"text": "slowly it comes", "stream": 3, "chunk_delay_s": 30}
    bench.session.start_run({"task": "a note"}, RunOptions(model=f"scripted:{write_script(draft=slow)}"))
    before = set(bench.inspector._pages)
    for _ in range(3):
        bench.inspector._page_timer.timeout.emit()
    assert set(bench.inspector._pages) == before

    bench.session.shown.live.cancel()
    bench.qtbot.waitUntil(lambda: bench.session.shown.live is None)

    bench.qtbot.waitUntil(lambda: set(bench.inspector._pages) == {node.type for node in bench.session.workflow.nodes})


def test_pages_are_filled_while_idle(open_inspector: OpenInspector) -> None:
    bench = open_inspector(refine())
    pages = bench.inspector._pages
    bench.qtbot.waitUntil(lambda: len(pages) > 5 and all(page.binding.node_id for page in pages.values()))
    prompt = pages["llm"].form.row("prompt")
    assert prompt.editor.edit.text() == "Write: {{input}}"
    assert bench.session.selection == ()
    bench.select("critique")
    assert bench.editor("prompt").edit.text() == "Judge {{draft}}."


def test_nodes_of_one_type_share_a_form(open_inspector: OpenInspector) -> None:
    bench = open_inspector(refine())
    bench.select("draft")
    before = set(bench.page.findChildren(QWidget))
    bench.select("critique")
    bench.session.do(SetConfig(("temperature",), {"critique": 1}))
    bench.analyzed()
    assert set(bench.page.findChildren(QWidget)) == before
    assert bench.editor("temperature").number.text() == "1"


def test_typing_changes_the_displayed_node(open_inspector: OpenInspector) -> None:
    bench = open_inspector(refine())
    bench.select("draft")
    bench.select("critique")
    edit = bench.editor("prompt").edit
    edit.setFocus()
    QTest.keyClick(edit, Key.Key_End)
    QTest.keyClicks(edit, "!")
    assert bench.config("critique")["prompt"] == "Judge {{draft}}.!"
    assert bench.config("draft")["prompt"] == "Write: {{input}}"


def test_changes_of_other_nodes_and_layout_update_no_field(open_inspector: OpenInspector) -> None:
    bench = open_inspector(refine())
    bench.select("draft")
    shown = []
    bench.editor("prompt").show_value = shown.append
    bench.session.do(SetLayout(("nodes", "draft"), {"x": 1, "y": 2}))
    bench.session.do(SetConfig(("prompt",), {"critique": "other"}))
    assert shown == []
    bench.session.do(SetConfig(("temperature",), {"draft": 1}))
    assert shown == ["Write: {{input}}"]


def test_title_is_one_undo_step(open_inspector: OpenInspector) -> None:
    bench = open_inspector(refine())
    bench.select("draft")
    title = bench.page.header.title
    title.setFocus()
    title.selectAll()
    QTest.keyClicks(title, "Plan")
    assert bench.session.node("draft").title == "Plan"
    QTest.keyClick(title, Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert (bench.session.node("draft").title, title.text()) == ("Draft", "Draft")
    bench.session.do(SetTitle("draft", ""))
    assert title.placeholderText() == "LLM"


def test_id_is_validated_while_typing_and_renamed_on_enter(open_inspector: OpenInspector) -> None:
    bench = open_inspector(refine())
    bench.select("draft")
    bench.page.form.expand()
    line = bench.page.id_field.edit
    line.setFocus()
    line.selectAll()
    QTest.keyClicks(line, "Plan")
    (problem,) = bench.page.id_field.problems.texts
    assert mentions(problem, "Invalid ID"), problem
    QTest.keyClick(line, Key.Key_Return)
    assert bench.session.node("draft") is not None
    line.selectAll()
    QTest.keyClicks(line, "critique")
    (problem,) = bench.page.id_field.problems.texts
    assert mentions(problem, "“critique” is already in use"), problem
    line.selectAll()
    QTest.keyClicks(line, "plan")
    assert bench.page.id_field.problems.texts == []
    QTest.keyClick(line, Key.Key_Return)
    assert bench.session.node("draft") is None
    assert bench.session.selection == ("plan",)
    assert line.hasFocus()
    assert line.text() == "plan"
    edit = bench.editor("prompt").edit
    edit.setFocus()
    QTest.keyClicks(edit, "x")
    assert "x" in bench.config("plan")["prompt"]


def test_renamed_node_stays_selected_on_undo_and_redo(open_inspector: OpenInspector) -> None:
    bench = open_inspector(refine())
    bench.select("critique", "draft")
    bench.select("draft")
    assert bench.session.do(RenameNode("draft", "plan"))
    assert bench.session.selection == ("plan",)

    bench.session.undo()
    assert bench.session.selection == ("draft",)
    assert bench.page.id_field.edit.text() == "draft"
    bench.session.redo()
    assert bench.session.selection == ("plan",)
    assert bench.page.id_field.edit.text() == "plan"
    edit = bench.editor("prompt").edit
    edit.setFocus()
    QTest.keyClicks(edit, "x")
    assert "x" in bench.config("plan")["prompt"]


def test_selection_does_not_move_to_a_replacement_node(open_inspector: OpenInspector) -> None:
    bench = open_inspector(refine())
    bench.select("critique")
    nodes = bench.session.workflow.nodes_by_id
    other = nodes["critique"].model_copy(update={"id": "task", "type": "transform", "config": {}})
    renamed = bench.session.workflow.model_copy(
        update={"nodes": tuple(other if n.id == "critique" else n for n in nodes.values() if n.id != "task")}
    )
    assert bench.session.do(ReplaceDocument("Reload", renamed))
    assert bench.session.selection == ()


def test_id_is_renamed_on_focus_out_and_discarded_on_escape(open_inspector: OpenInspector) -> None:
    bench = open_inspector(refine())
    bench.select("draft")
    bench.page.form.expand()
    line = bench.page.id_field.edit
    line.setFocus()
    QTest.keyClick(line, Key.Key_End)
    QTest.keyClicks(line, "_a")
    QTest.keyClick(line, Key.Key_Escape)
    assert line.text() == "draft"
    QTest.keyClicks(line, "_b")
    bench.page.header.title.setFocus()
    assert bench.session.selection == ("draft_b",)
    line.setFocus()
    QTest.keyClicks(line, " not an id")
    bench.page.header.title.setFocus()
    assert (line.text(), bench.page.id_field.problems.texts) == ("draft_b", [])


def test_node_can_be_disabled_by_keyboard(open_inspector: OpenInspector) -> None:
    bench = open_inspector(refine())
    bench.select("draft")
    switch = bench.page.header.enabled
    switch.setFocus()
    QTest.keyClick(switch, Key.Key_Space)
    assert not bench.session.node("draft").enabled
    bench.session.undo()
    assert switch.isChecked()


def test_removed_node_is_not_shown(open_inspector: OpenInspector) -> None:
    bench = open_inspector(refine())
    bench.select("draft")
    bench.session.do(RemoveNodes(("draft",)))
    assert isinstance(bench.inspector.page, WorkflowPage)
    bench.session.undo()
    bench.select("draft")
    assert bench.page.header.title.text() == "Draft"


def test_reloaded_node_may_have_another_type(open_inspector: OpenInspector) -> None:
    bench = open_inspector(refine())
    bench.select("merge")
    node = bench.session.node("merge")
    assert node is not None
    other = Node(id="merge", type="llm", config={"prompt": "Now a model."})
    bench.session.do(Batch("Exchange", (RemoveNodes(("merge",)), AddNodes((other,)))))
    assert bench.editor("prompt").edit.text() == "Now a model."


def test_unknown_node_type_is_preserved_and_reported(open_inspector: OpenInspector) -> None:
    bench = open_inspector(Workflow(nodes=(Node(id="odd", type="teleport", config={"to": "moon"}),)))
    bench.select("odd")
    assert bench.page.form is None
    assert 'There is no node type "teleport".' in bench.page.header.problems.texts[0]
    bench.inspector.focus_field("odd", "to")
    assert bench.page.header.title.hasFocus()


def test_problems_of_the_node_are_shown_in_the_header(open_inspector: OpenInspector) -> None:
    bench = open_inspector(Workflow(nodes=(Node(id="it", type="output"),)))
    bench.select("it")
    assert "Nothing is connected" in bench.page.header.problems.texts[0]


def test_focus_field_finds_nested_and_advanced_fields(open_inspector: OpenInspector) -> None:
    bench = open_inspector(refine())
    bench.inspector.show_result()
    bench.inspector.focus_field("draft", "temperature")
    assert bench.session.selection == ("draft",)
    assert bench.inspector.tabs.currentIndex() == PROPERTIES
    assert bench.editor("temperature").number.hasFocus()
    assert not bench.page.form.advanced_button.isChecked()
    bench.inspector.focus_field("draft", "seed")
    assert bench.page.form.advanced_button.isChecked()
    assert bench.editor("seed").number.hasFocus()
    bench.page.form.advanced_button.click()
    bench.inspector.focus_field("critique", "id")
    assert bench.page.id_field.edit.hasFocus()
    bench.inspector.focus_field(None, "settings.budget_usd")
    assert bench.editor("budget_usd").number.hasFocus()
    bench.inspector.focus_field(None, "description")
    assert bench.inspector.workflow_page.description.hasFocus()


@pytest.mark.parametrize("node_type", [spec.type for spec in builtin_registry()])
def test_more_explains_each_of_its_fields_below_it_and_begins_with_the_id(
    one_node: Callable[..., Bench], node_type: str
) -> None:
    bench = one_node(node_type)
    form = bench.page.form
    assert not bench.page.id_field.isVisible()
    form.expand()
    assert bench.page.id_field.isVisible()
    rows = [form.row(name) for name, field in form.fields.items() if field.is_advanced]
    shown = [row for row in rows if row.isVisible()]
    assert shown
    assert bench.page.id_field.y() < min(row.mapTo(bench.page, QPoint()).y() for row in shown)
    unexplained = [row.field.name for row in shown if not (row._help.isVisible() and row._help.text())]
    assert [name for name in unexplained if not form.row(name).editor.explains_itself] == []


def test_advanced_fields_stay_expanded_across_nodes(open_inspector: OpenInspector) -> None:
    bench = open_inspector(refine())
    bench.select("draft")
    assert bench.page.form.row("seed") is None, "what is folded away is not made"
    bench.page.form.advanced_button.setFocus()
    QTest.keyClick(bench.page.form.advanced_button, Key.Key_Space)
    assert bench.page.form.row("seed").isVisible()
    bench.select("loop")
    assert bench.page.form.row("score").isVisible()
    bench.page.form.advanced_button.click()
    bench.select("draft")
    assert not bench.page.form.row("seed").isVisible()


def test_collapsed_advanced_button_counts_problems(open_inspector: OpenInspector) -> None:
    bench = open_inspector(Workflow(nodes=(Node(id="it", type="llm", config={"seed": "x", "retries": 99}),)))
    bench.select("it")
    assert bench.page.form.advanced_button.text() == "More · 2 problems"
    bench.page.form.advanced_button.click()
    assert bench.page.form.advanced_button.text() == "More"
    assert len(bench.problems("seed")) == 1


def test_an_empty_document_shows_no_problem(open_inspector: OpenInspector) -> None:
    bench = open_inspector(Workflow())
    bench.analyzed()
    page = bench.inspector.page
    assert isinstance(page, WorkflowPage)
    assert bench.session.problems == []
    assert page.problems.texts == []


def test_workflow_page_edits_name_description_and_settings(open_inspector: OpenInspector) -> None:
    bench = open_inspector()
    page = bench.inspector.workflow_page
    page.name.setFocus()
    QTest.keyClicks(page.name, "Flow")
    page.description.setFocus()
    QTest.keyClicks(page.description, "Does it")
    number = bench.editor("budget_usd").number
    number.setFocus()
    QTest.keyClicks(number, "0.5")
    workflow = bench.session.workflow
    assert (workflow.name, workflow.description, workflow.settings) == ("Flow", "Does it", {"budget_usd": 0.5})
    for expected in (("Flow", "Does it", ""), ("Flow", "", ""), ("", "", "")):
        bench.session.undo()
        assert (page.name.text(), page.description.text(), number.text()) == expected


def test_invalid_setting_is_marked(open_inspector: OpenInspector) -> None:
    bench = open_inspector()
    bench.session.do(SetSettings(("budget_usd",), -1))
    bench.qtbot.waitUntil(lambda: bench.problems("budget_usd") != [])
    bench.session.do(SetSettings(("colour",), "red"))
    bench.qtbot.waitUntil(lambda: bench.inspector.workflow_page.problems.texts != [])
    bench.qtbot.waitUntil(lambda: "colour" in " ".join(bench.inspector.workflow_page.problems.texts))


def test_no_widget_of_a_form_opens_as_a_window(every_type: Bench) -> None:
    class Watch(QObject):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[str] = []

        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            if event.type() == QEvent.Type.Show and isinstance(watched, QWidget) and watched.isWindow():
                self.seen.append(f"{type(watched).__name__} {watched.accessibleName()}")
            return False

    watch = Watch()
    QApplication.instance().installEventFilter(watch)
    for _ in each_page(every_type):
        every_type.analyzed()
    QApplication.instance().removeEventFilter(watch)
    assert watch.seen == []


def test_all_inspector_widgets_have_accessible_names(every_type: Bench) -> None:
    for name in each_page(every_type):
        nameless = [type(widget).__name__ for widget in controls(every_type) if not _name(widget)]
        assert nameless == [], name
    every_type.inspector.show_result()
    assert [widget for widget in controls(every_type) if not _name(widget)] == []


def _name(widget: QWidget) -> str:
    return widget.accessibleName() or (widget.text() if isinstance(widget, QAbstractButton) else "")


def walk(bench: Bench) -> list[QWidget]:
    """All widgets that the Tab key reaches, from the tab bar until it returns there."""
    bench.inspector.tabs.setFocus()
    reached: list[QWidget] = []
    while len(reached) < 200:
        QTest.keyClick(QApplication.focusWidget(), Key.Key_Tab)
        focused = QApplication.focusWidget()
        assert focused is not None
        if isinstance(focused, QTabBar):
            break
        outer = focused.parentWidget()
        reached.append(outer if isinstance(outer, QAbstractSpinBox | QComboBox) else focused)
    return reached


def check_walk(bench: Bench, name: str) -> None:
    """Check that Tab reaches every control once, from top to bottom."""
    wanted = {widget for widget in controls(bench) if widget.isEnabled() and not isinstance(widget, QTabBar)}
    reached = walk(bench)
    assert wanted == set(reached), name
    assert len(reached) == len(set(reached)), name
    page = bench.inspector._scrolls[bench.inspector.page].widget()
    heights = [widget.mapTo(page, widget.rect().topLeft()).y() for widget in reached]
    line = 2 * style().font().pixelSize()
    assert all(after > before - line for before, after in pairwise(heights)), name


def test_tab_key_goes_from_top_to_bottom(every_type: Bench) -> None:
    for name in each_page(every_type):
        check_walk(every_type, name)


def test_widgets_added_later_are_in_tab_order(every_type: Bench) -> None:
    every_type.select("router")
    every_type.editor("branches").add.click()
    check_walk(every_type, "a branch more")
    every_type.session.do(SetConfig(("tool",), {"tool": "http_get"}))
    every_type.select("tool")
    check_walk(every_type, "another tool")
    every_type.session.do(SetConfig(("tool",), {"tool": "write_file"}))
    check_walk(every_type, "and another")


def test_page_scrolls_to_the_focused_field(every_type: Bench) -> None:
    every_type.inspector.resize(340, 300)
    every_type.select("llm")
    every_type.inspector.focus_field("llm", "error_value")
    edit = every_type.editor("error_value").edit
    page = every_type.inspector._scrolls[every_type.page].viewport()
    every_type.qtbot.waitUntil(edit.hasFocus)
    place = edit.mapTo(page, edit.rect().center())
    assert page.rect().contains(place)


def test_inspector_fits_in_both_themes_and_large_text(every_type: Bench) -> None:
    seen = {}
    try:
        for theme in ("dark", "light"):
            for scale in (1.0, 1.5):
                style().choose(theme, scale)
                every_type.inspector.resize(round(340 * scale), 900)
                every_type.select("llm")
                image = every_type.inspector.grab().toImage()
                seen[theme, scale] = image
                assert QColor(image.pixel(2, image.height() - 3)) == QColor(style().theme.panel)
                page = every_type.page
                assert page.width() <= every_type.inspector.width(), "nothing is cut off at the right"
        assert seen["dark", 1.0] != seen["light", 1.0]
    finally:
        style().choose("dark", 1.0)


def test_pasted_node_shows_its_values(open_inspector: OpenInspector) -> None:
    bench = open_inspector(refine())
    bench.select("draft")
    assert "draft" in copy_fragment(bench.session.workflow, ["draft"])
    bench.session.do(AddNodes((Node(id="draft_2", type="llm", config={"prompt": "other"}),)))
    bench.select("draft_2")
    assert bench.editor("prompt").edit.text() == "other"
    assert bench.editor("temperature").number.text() == ""


def test_theme_and_text_size_do_not_change_the_document(open_inspector: OpenInspector) -> None:
    bench = open_inspector(refine())
    before = bench.session.workflow
    bench.select("draft")
    types = {node.type for node in before.nodes}
    bench.qtbot.waitUntil(lambda: types <= set(bench.inspector._pages))  # also those not shown yet

    for choice, scale in (("light", 1.0), ("dark", 1.5), ("dark", 1.0)):
        style().choose(choice, scale)
        QApplication.processEvents()

    assert bench.session.workflow is before
