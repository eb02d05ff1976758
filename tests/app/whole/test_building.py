"""Build Self-Refine from nothing, run, save and reopen it: by mouse, then by keyboard.

Unlike the template, it stops when the result stops changing, and each iteration gets all earlier results.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QPushButton, QTabBar, QWidget

from app.inspector.conditions_editor import ConditionsEditor
from app.palette import NODE_MIME
from engine.document.files import load
from engine.document.model import Node, Workflow
from engine.nodes.node_registry import builtin_registry
from engine.plan.structure import analyse
from engine.plan.validation import validate_structure
from tests.app.drag_and_drop import drag_and_drop
from tests.app.whole.conftest import CTRL, TEMPLATE, Whole, focus, meaning, own_config
from tests.app.window.conftest import await_files

pytestmark = pytest.mark.slow

SHIFT = Qt.KeyboardModifier.ShiftModifier
SPOTS = {"task": (40, 60), "loop": (320, 60), "draft": (40, 300), "critique": (320, 300), "merge": (600, 300)}
SPOTS["text"] = (600, 500)


LOOP = {"stop_when": [{"condition": "stable_output", "threshold": 0.9}], "feedback_mode": "append"}


def wanted_workflow() -> Workflow:
    """The template with another exit condition and another feedback."""
    workflow = load(TEMPLATE)
    nodes = [
        node.model_copy(update={"config": {**node.config, **LOOP}}) if node.type == "loop" else node
        for node in workflow.nodes
    ]
    return workflow.model_copy(update={"nodes": tuple(nodes)})


def made_by_hand(workflow: Workflow) -> list[Node]:
    """The nodes that a person adds: an exit comes with its loop."""
    return [node for node in workflow.nodes if node.type != "exit"]


def port_title(end: str, workflow: Workflow) -> tuple[str, str]:
    node, _, port = end.partition(".")
    return workflow.nodes_by_id[node].title, port


def check(whole: Whole) -> None:
    """The document is what was wanted, clean; all of it can be undone and done again."""
    whole.settle()
    built = whole.workflow
    assert validate_structure(analyse(built, builtin_registry())) == []
    assert meaning(built) == meaning(wanted_workflow())
    session = whole.document.session
    whole.document.canvas.setFocus()
    while session.undo_title is not None:
        whole.press(Qt.Key.Key_Z, CTRL)
    assert session.workflow.nodes == ()
    assert session.workflow == Workflow()
    assert whole.document.canvas.view.nodes == {}
    assert not session.is_modified
    while session.redo_title is not None:
        whole.press(Qt.Key.Key_Z, CTRL | SHIFT)
    assert session.workflow == built
    assert set(whole.document.canvas.view.nodes) == set(built.nodes_by_id)
    assert set(whole.document.canvas.view.edge_items) == {(edge.from_, edge.to) for edge in built.edges}


def drop(whole: Whole, node_type: str, place: tuple[int, int]) -> None:
    """Drag a type from the palette, with the events that the canvas gets."""
    data = QMimeData()
    data.setData(NODE_MIME, node_type.encode())
    assert drag_and_drop(whole.document.canvas.viewer.viewport(), data, QPoint(*place))
    QApplication.processEvents()


def click(widget: QWidget) -> None:
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton)


def choose_entry(whole: Whole, menu: str, entry: str) -> None:
    """Choose from the menu bar with the mouse."""
    bar = whole.workbench.window.menuBar()
    (title,) = (action for action in bar.actions() if action.text().replace("&", "") == menu)
    QTest.mouseClick(bar, Qt.MouseButton.LeftButton, pos=bar.actionGeometry(title).center())
    opened = title.menu()
    whole.qtbot.waitUntil(opened.isVisible)
    (action,) = (action for action in opened.actions() if action.text() == entry)
    QTest.mouseClick(opened, Qt.MouseButton.LeftButton, pos=opened.actionGeometry(action).center())
    QApplication.processEvents()


def choose_value(whole: Whole, combo: QComboBox, value: str) -> None:
    """Choose from a combo box with the mouse."""
    click(combo)
    entries = combo.view()
    whole.qtbot.waitUntil(entries.isVisible)
    place = entries.visualRect(entries.model().index(combo.findData(value), 0)).center()

    def chosen() -> bool:  # the list takes no click for a moment, lest the one that opened it choose
        QTest.mouseClick(entries.viewport(), Qt.MouseButton.LeftButton, pos=place)
        return not entries.isVisible()

    whole.qtbot.waitUntil(chosen)
    assert combo.currentData() == value


def check_run(whole: Whole) -> None:
    """The run that is under way ends by the exit condition that was chosen."""
    session = whole.document.session
    whole.qtbot.waitUntil(lambda: session.shown.live is None and session.shown.view_model is not None)
    assert session.shown.view_model is not None
    assert session.shown.view_model.status == "completed"
    (loop,) = session.shown.view_model.loops.values()
    assert (loop.exit_reason, len(loop.iterations)) == ("stable_output", 2)
    assert loop.iterations[0].feedback.startswith(loop.iterations[0].input), "append keeps the input"
    assert session.shown.view_model.outputs == {"text": "A friendly note."}


def check_reopened(whole: Whole, built: Workflow, path: Path) -> None:
    """What is open is what was built, from its file."""
    session = whole.document.session
    assert session.path == path
    assert (session.workflow.nodes, session.workflow.edges) == (built.nodes, built.edges)
    assert session.workflow.layout["nodes"].keys() == built.nodes_by_id.keys()
    assert not session.is_modified
    assert set(whole.document.canvas.view.nodes) == set(built.nodes_by_id)


def test_self_refine_is_built_with_the_mouse(whole: Whole, tmp_path: Path) -> None:
    wanted = wanted_workflow()
    click(
        next(button for button in whole.workbench.gallery.findChildren(QPushButton) if button.text() == "New workflow")
    )
    whole.qtbot.waitUntil(lambda: whole.document.canvas.viewer.viewport().width() > 800)
    QApplication.processEvents()
    new: dict[str, str] = {}
    for node in made_by_hand(wanted):
        drop(whole, node.type, SPOTS[node.id])
        new[node.id] = whole.document.session.selection[0]
    exits = [node.id for node in whole.workflow.nodes if node.type == "exit"]
    assert len(exits) == 1
    new["exit"] = exits[0]
    click(whole.document.canvas.controls.buttons["fit_all"])
    hand = whole.hand
    for node in made_by_hand(wanted):
        whole.settle()
        QApplication.processEvents()
        hand.click(hand.item(new[node.id]).card_rect.center())
        assert whole.document.session.selection == (new[node.id],)
        header = whole.document.inspector.page.header
        click(header.title)
        header.title.selectAll()
        whole.write(node.title)
        for name, value in own_config(node.type, node.config).items():
            editor = whole.editor(name, click)
            if isinstance(editor, ConditionsEditor):
                ((condition, *settings),) = (list(entry.items()) for entry in value)
                choose_value(whole, editor.main_widget, condition[1])
                for key, setting in settings:
                    click(editor.entries[0].rows.rows[key].editor.main_widget)
                    QApplication.processEvents()
                    whole.fill(setting)
                continue
            if isinstance(editor.main_widget, QComboBox):
                choose_value(whole, editor.main_widget, value)
                continue
            click(editor.main_widget)
            if not isinstance(value, bool):
                whole.fill(value)
    whole.settle()
    for edge in wanted.edges:
        start, end = (
            f"{new[node]}.{port}" for node, _, port in (text.partition(".") for text in (edge.from_, edge.to))
        )
        hand.connect(start, end)
        whole.settle()
        assert f"{start} -> {end}" in hand.edges()
    check(whole)

    click(whole.workbench.run_bar.run)
    check_run(whole)

    whole.answers.path = path = tmp_path / "mine.loop.json"
    choose_entry(whole, "File", "Save")
    built = whole.workflow
    tabs = whole.workbench.tabs.tabBar()
    click(tabs.tabButton(0, QTabBar.ButtonPosition.RightSide))
    whole.qtbot.waitUntil(lambda: whole.workbench.current is None)
    choose_entry(whole, "File", "Open…")
    await_files(whole.workbench)
    check_reopened(whole, built, path)


def walk(whole: Whole, target: QWidget, key: Qt.Key = Qt.Key.Key_Tab) -> None:
    """Press Tab, or with Shift, until a widget has the keyboard."""
    for _ in range(150):
        if focus() is target or target.isAncestorOf(focus()):
            return
        whole.press(key, SHIFT if key == Qt.Key.Key_Backtab else Qt.KeyboardModifier.NoModifier)
    raise AssertionError(f"Tab does not lead to {target.accessibleName() or target}")


def choose(whole: Whole, words: str, title: str) -> None:
    """Choose from the list that is open."""
    entries = whole.document.canvas.popups.list
    assert entries.isVisible()
    whole.write(words)
    titles = [entries.list.item(row).text() for row in range(entries.list.count())]
    for _ in range(titles.index(title)):
        whole.press(Qt.Key.Key_Down)
    whole.press(Qt.Key.Key_Return)
    assert not entries.isVisible()


def find(whole: Whole, title: str) -> None:
    """Select a node by its title."""
    whole.press(Qt.Key.Key_F, CTRL)
    whole.write(title)
    whole.press(Qt.Key.Key_Return)
    (selected,) = whole.document.session.selection
    assert whole.workflow.nodes_by_id[selected].title == title


def test_self_refine_is_built_with_the_keyboard(whole: Whole, tmp_path: Path) -> None:
    wanted = wanted_workflow()
    registry = builtin_registry()
    whole.press(Qt.Key.Key_N, CTRL)
    canvas = whole.document.canvas
    for node in made_by_hand(wanted):
        spec = registry.find(node.type)
        walk(whole, canvas.viewer, Qt.Key.Key_Backtab)
        whole.press(Qt.Key.Key_Escape)
        whole.press(Qt.Key.Key_A)
        title = "Loop and Exit" if node.type == "loop" else spec.title
        choose(whole, title, title)
        whole.press(Qt.Key.Key_F2)
        whole.press(Qt.Key.Key_A, CTRL)
        whole.write(node.title)
        whole.press(Qt.Key.Key_Return)
        assert whole.workflow.nodes_by_id[whole.document.session.selection[0]].title == node.title

        def unfold(fold: QWidget) -> None:
            walk(whole, fold, Qt.Key.Key_Backtab)
            whole.press(Qt.Key.Key_Space)

        for name, value in own_config(node.type, node.config).items():
            editor = whole.editor(name, unfold)
            walk(whole, editor.main_widget, Qt.Key.Key_Backtab)
            if isinstance(editor, ConditionsEditor):
                ((condition, *settings),) = (list(entry.items()) for entry in value)
                whole.fill(condition[1])
                for key, setting in settings:
                    walk(whole, editor.entries[0].rows.rows[key].editor.main_widget)
                    whole.fill(setting)
                continue
            whole.fill(value)
    walk(whole, canvas.viewer, Qt.Key.Key_Backtab)
    for edge in wanted.edges:
        whole.settle()
        (source, output), (target, port) = port_title(edge.from_, wanted), port_title(edge.to, wanted)
        find(whole, source)
        whole.settle()
        whole.qtbot.waitUntil(lambda: not canvas.viewer.typing_guard.is_active)  # C might be meant for the search
        whole.press(Qt.Key.Key_C)
        many = len(canvas.view.nodes[whole.document.session.selection[0]].outputs) > 1
        entry = f"{target} · {port}"
        choose(whole, entry, f"{output} → {entry}" if many else entry)
    check(whole)

    whole.press(Qt.Key.Key_F5)
    check_run(whole)

    whole.answers.path = path = tmp_path / "mine.loop.json"
    whole.press(Qt.Key.Key_S, CTRL)
    built = whole.workflow
    whole.press(Qt.Key.Key_W, CTRL)
    whole.qtbot.waitUntil(lambda: whole.workbench.current is None)
    whole.press(Qt.Key.Key_O, CTRL)
    await_files(whole.workbench)
    check_reopened(whole, built, path)
