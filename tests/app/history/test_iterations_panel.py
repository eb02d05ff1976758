"""The Iterations panel on the screen, with mouse and keyboard, while workflows really run."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.engine_thread import EngineThread
from app.history.iteration_chart import BaseSeries
from app.history.iteration_table import Column
from app.history.iterations_panel import IterationsPanel
from app.history.store_client import StoreClient
from app.history.stored_session import StoredSession, read_outline
from app.runs.run_view_model import RunViewModel
from app.session import Session
from engine.document.model import Workflow
from engine.models.protocol import Usage
from engine.runner.options import RunOptions
from engine.store import Store
from tests.app.conftest import MakeSession
from tests.app.history.loop_samples import (
    end,
    item_loop,
    iteration,
    judged_loop,
    loop_model,
    nested_loops,
    one_loop,
    start_iteration,
)
from tests.app.history.stored_runs import refine, run_and_store, store_run
from tests.wording import mentions


@dataclass
class Bench:
    """A panel with its session."""

    qtbot: QtBot
    session: Session
    panel: IterationsPanel

    def run(self) -> None:
        with self.qtbot.waitSignal(self.session.shown.ended):
            self.session.start_run({}, RunOptions())
        self.settle()

    def settle(self) -> None:
        self.qtbot.waitUntil(lambda: not self.panel.similarities.is_busy)

    def show(self, view_model: Any, workflow: Workflow | None = None) -> None:
        """Show a hand-made run like one of the history."""
        self.session.shown.view_model, self.session.shown.workflow = view_model, workflow or self.session.workflow
        self.session.shown.started.emit()
        self.settle()

    def click_row(self, row: int) -> None:
        table = self.panel.table
        place = table.visualRect(table.model().index(row, Column.RESULT)).center()
        QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)

    def click_chart(self, index: int) -> None:
        chart = self.panel.chart
        place = QPoint(round(chart._current().place_of(index)), chart.height() // 2)
        QTest.mouseClick(chart, Qt.MouseButton.LeftButton, pos=place)

    @property
    def row(self) -> int:
        return self.panel.table.currentIndex().row()

    @property
    def text(self) -> str:
        return self.panel.detail.text.content.view.text()

    @property
    def shown_columns(self) -> set[Column]:
        return {which for which in Column if not self.panel.table.isColumnHidden(which)}

    def choose_part(self, title: str) -> None:
        parts = self.panel.detail.parts
        (item,) = [parts.item(row) for row in range(parts.count()) if parts.item(row).text() == title]
        QTest.mouseClick(parts.viewport(), Qt.MouseButton.LeftButton, pos=parts.visualItemRect(item).center())


OpenPanel = Callable[..., Bench]


@pytest.fixture
def open_panel(qtbot: QtBot, make_session: MakeSession) -> OpenPanel:
    def make(workflow: Workflow, width: int = 1100, height: int = 420) -> Bench:
        session = make_session(workflow)
        panel = IterationsPanel(session)
        qtbot.addWidget(panel)
        panel.resize(width, height)
        with qtbot.waitActive(panel):
            panel.show()
            panel.activateWindow()
        return Bench(qtbot, session, panel)

    return make


@pytest.fixture
def ran(open_panel: OpenPanel) -> Bench:
    """After four iterations of one loop: `a.`, `a..` and so on."""
    bench = open_panel(one_loop())
    bench.run()
    return bench


def test_each_iteration_has_a_row_and_the_last_is_selected(ran: Bench) -> None:
    model = ran.panel.model
    assert [model.index(row, Column.RESULT).data() for row in range(4)] == ["a.", "a..", "a...", "a...."]
    assert [model.index(row, Column.SIMILAR).data() for row in range(4)] == ["–", "66.6%", "75%", "80%"]
    assert ran.row == 3
    assert ran.text == "a...."
    assert ran.panel.why.text() == "Stopped after 4 of 4: max iterations reached."
    assert not ran.panel.detail.returned.isHidden()
    assert not ran.panel.latest.isEnabled()
    assert ran.shown_columns == {Column.NUMBER, Column.RESULT, Column.SIMILAR, Column.TIME}


def test_click_on_a_row_selects_in_the_whole_window(ran: Bench) -> None:
    ran.click_row(1)
    assert ran.session.shown.chosen == {"loop": 1}
    assert ran.text == "a.."
    assert ran.panel.detail.title.text() == "Iteration 2"
    assert ran.panel.detail.returned.isHidden()
    assert ran.panel.slider.value() == 1
    assert ran.panel.chart.readout(1) == "Iteration 2 · similarity 66.6%"


def test_selection_elsewhere_selects_in_the_panel(ran: Bench) -> None:
    ran.session.shown.look_at("loop", 0)
    assert ran.row == 0
    assert ran.panel.table.selectionModel().isRowSelected(0)
    ran.session.shown.look_at_latest()
    assert ran.row == 3


def test_table_keys(ran: Bench) -> None:
    table = ran.panel.table
    table.setFocus()
    for key, chosen in (
        (Qt.Key.Key_Up, {"loop": 2}),
        (Qt.Key.Key_Left, {"loop": 1}),
        (Qt.Key.Key_Down, {"loop": 2}),
        (Qt.Key.Key_Home, {"loop": 0}),
        (Qt.Key.Key_Left, {"loop": 0}),
        (Qt.Key.Key_Right, {"loop": 1}),
        (Qt.Key.Key_End, {"loop": 3}),
        (Qt.Key.Key_Right, {}),
        (Qt.Key.Key_Left, {"loop": 2}),
        (Qt.Key.Key_Escape, {}),
    ):
        QTest.keyClick(table, key)
        assert ran.session.shown.chosen == chosen, key
        assert ran.row == chosen.get("loop", 3), key


def test_chart_click_drag_and_step(ran: Bench) -> None:
    chart = ran.panel.chart
    ran.click_chart(1)
    assert ran.session.shown.chosen == {"loop": 1}
    middle = chart.height() // 2
    QTest.mousePress(chart, Qt.MouseButton.LeftButton, pos=QPoint(round(chart._current().place_of(1)), middle))
    QTest.mouseMove(chart, QPoint(round(chart._current().place_of(2)), middle))
    QTest.mouseRelease(chart, Qt.MouseButton.LeftButton, pos=QPoint(round(chart._current().place_of(2)), middle))
    assert ran.session.shown.chosen == {"loop": 2}
    chart.setFocus()
    for key, chosen in (
        (Qt.Key.Key_Left, {"loop": 1}),
        (Qt.Key.Key_Home, {"loop": 0}),
        (Qt.Key.Key_Right, {"loop": 1}),
        (Qt.Key.Key_End, {"loop": 3}),
        (Qt.Key.Key_Escape, {}),
    ):
        QTest.keyClick(chart, key)
        assert ran.session.shown.chosen == chosen


def test_chart_tooltip_shows_values(ran: Bench) -> None:
    ran.panel.resize(1400, 420)
    chart = ran.panel.chart
    ran.qtbot.waitUntil(lambda: ran.panel.readout.full_text == "Iteration 4 · similarity 80%")
    QTest.mouseMove(chart, QPoint(round(chart._current().place_of(2)), chart.height() // 2))
    assert ran.panel.readout.full_text == "Iteration 3 · similarity 75%"
    assert ran.session.shown.chosen == {}, "only a click chooses"
    QTest.mouseClick(ran.panel.legend.buttons[BaseSeries.TIME], Qt.MouseButton.LeftButton)
    assert ran.panel.readout.full_text.startswith("Iteration 3 · similarity 75% · time 0.")


def test_legend_offers_series_with_values(open_panel: OpenPanel) -> None:
    bench = open_panel(judged_loop())
    bench.run()
    offered = [kind for kind, button in bench.panel.legend.buttons.items() if button.isVisible()]
    assert offered == [BaseSeries.SIMILARITY, BaseSeries.SCORE, BaseSeries.TIME]
    assert bench.shown_columns >= {Column.VERDICT, Column.SCORE}
    model = bench.panel.model
    assert [model.index(row, Column.VERDICT).data().partition(" ")[0] for row in range(3)] == [
        "continue",
        "continue",
        "done",
    ]
    assert bench.panel.why.text().startswith("Stopped after 3 of 5: the evaluator chose 'done'")


def test_sections_of_an_iteration(ran: Bench) -> None:
    ran.click_row(1)
    assert ran.panel.detail.parts.titles == ["Result", "Input", "Exit conditions", "Nodes", "Add"]
    ran.choose_part("Input")
    assert ran.text == "a."
    ran.click_row(2)
    assert ran.text == "a..", "the same part of another iteration"
    ran.choose_part("Exit conditions")
    assert ran.text == "Iteration 3 of at most 4"


def test_node_input_and_output_of_an_iteration(ran: Bench) -> None:
    ran.click_row(1)
    ran.choose_part("Add")
    shown = {view.heading.text(): view.content.view.text() for view in ran.panel.detail.node.sections.values()}
    assert shown == {"Output: output": "a..", "Input: input": "a."}
    ran.click_row(0)
    shown = {view.heading.text(): view.content.view.text() for view in ran.panel.detail.node.sections.values()}
    assert shown == {"Output: output": "a.", "Input: input": "a"}


def test_compare_fork_and_export_signals_have_the_path(ran: Bench) -> None:
    detail = ran.panel.detail
    ran.click_row(2)
    with ran.qtbot.waitSignal(ran.panel.compare_wanted) as compare:
        QTest.mouseClick(detail.compare, Qt.MouseButton.LeftButton)
    assert compare.args == ["loop[2]"]
    ran.choose_part("Add")
    with ran.qtbot.waitSignal(ran.panel.fork_wanted) as fork:
        QTest.mouseClick(detail.fork, Qt.MouseButton.LeftButton)
    assert fork.args == ["loop[2].add"]
    with ran.qtbot.waitSignal(ran.panel.export_wanted):
        QTest.mouseClick(ran.panel.export, Qt.MouseButton.LeftButton)


def test_breadcrumb_enters_and_leaves_a_nested_loop(open_panel: OpenPanel) -> None:
    bench = open_panel(nested_loops())
    bench.run()
    panel = bench.panel
    bench.click_row(1)
    assert [button.text() for button in panel.breadcrumb.buttons] == ["Inner"]
    QTest.mouseClick(panel.breadcrumb.buttons[0], Qt.MouseButton.LeftButton)
    bench.settle()
    assert panel.loop_id == "inner"
    assert [button.text() for button in panel.breadcrumb.buttons] == ["Outer", "iteration 2"]
    assert [panel.model.index(row, Column.RESULT).data() for row in range(2)] == ["a...", "a...."]
    bench.click_row(0)
    assert bench.session.shown.chosen == {"outer": 1, "inner": 0}
    assert panel.detail.place == "outer[1].inner[0]"
    QTest.mouseClick(panel.breadcrumb.buttons[1], Qt.MouseButton.LeftButton)
    assert panel.loop_id == "outer"
    assert bench.row == 1


def test_loop_of_the_canvas_selection_is_shown(open_panel: OpenPanel) -> None:
    bench = open_panel(nested_loops())
    bench.run()
    assert bench.panel.loop_id == "outer"
    bench.session.select(["add"])
    assert bench.panel.loop_id == "inner"
    bench.session.select(["outer"])
    assert bench.panel.loop_id == "outer"
    bench.session.select(["out"])
    assert bench.panel.loop_id == "outer", "what is in no loop changes nothing"


def test_newest_iteration_is_shown_while_running_unless_one_is_selected(open_panel: OpenPanel) -> None:
    bench = open_panel(one_loop())
    view_model = loop_model("one")
    start_iteration(view_model, 1)
    bench.show(view_model)
    assert bench.row == 1
    assert bench.text.startswith("Still running.")
    view_model.apply(iteration(1, "two"))
    start_iteration(view_model, 2)
    bench.session.shown.updated.emit({"loop"})
    bench.qtbot.waitUntil(lambda: (bench.row, bench.panel.model.rowCount()) == (2, 3))
    bench.click_row(0)
    view_model.apply(iteration(2, "three"))
    start_iteration(view_model, 3)
    bench.session.shown.updated.emit({"loop"})
    bench.qtbot.waitUntil(lambda: (bench.row, bench.panel.model.rowCount()) == (0, 4))
    assert bench.text == "one"
    QTest.mouseClick(bench.panel.latest, Qt.MouseButton.LeftButton)
    assert bench.row == 3


def test_hidden_panel_updates_when_shown(ran: Bench) -> None:
    ran.panel.hide()
    view_model = loop_model("one", "two")
    ran.session.shown.view_model = view_model
    ran.session.shown.started.emit()
    assert ran.panel.model.rowCount() == 4
    assert ran.panel.detail.place == "loop[1]", "what is looked at is known all the same"
    ran.panel.show()
    assert ran.panel.model.rowCount() == 2
    ran.settle()


def test_panel_without_iterations_says_why(open_panel: OpenPanel) -> None:
    bench = open_panel(one_loop(condition="false"))
    empty: QWidget = bench.panel.empty
    assert empty.isVisible()
    assert "No iterations yet" in bench.panel.empty.text()
    assert not bench.panel.split.isVisible()
    assert not bench.panel.step(1)
    bench.run()
    assert bench.panel.empty.text() == "Ran no iteration: the condition “false” was not met."
    other = open_panel(Workflow())
    assert other.panel.empty.text().startswith("This workflow has no loop.")


def test_single_iteration_has_no_similarity(open_panel: OpenPanel) -> None:
    bench = open_panel(one_loop(max_iterations=1))
    bench.run()
    assert mentions(bench.panel.chart.nothing, "only one iteration … no similarity")
    bench.click_chart(0)
    assert bench.session.shown.chosen == {"loop": 0}
    bench.panel.grab()


def test_the_note_of_a_narrow_chart_is_not_cut_off(open_panel: OpenPanel) -> None:
    bench = open_panel(one_loop(max_iterations=1))
    bench.run()
    chart = bench.panel.chart
    chart.setFixedSize(300, 120)
    image, area = chart.grab().toImage(), chart._current().area.toRect()
    inside = range(area.top() + 2, area.bottom() - 2)

    def shades(columns: range) -> set[int]:
        return {image.pixel(x, y) for x in columns for y in inside}

    assert len(shades(range(area.left(), area.right()))) > 1, "there is a note"
    for edge in (range(area.left(), area.left() + 2), range(area.right() - 2, area.right())):
        assert len(shades(edge)) == 1


def test_narrow_panel_keeps_the_result_and_low_panel_the_table(open_panel: OpenPanel) -> None:
    bench = open_panel(one_loop())
    usage = Usage(input_tokens=1200, output_tokens=300, exact=True)
    view_model = loop_model("one", "two", usage=usage, cost_usd=0.01, branch="continue", reason="too short", score=3.0)
    end(view_model)
    bench.panel.resize(1600, 420)
    bench.show(view_model)
    assert bench.shown_columns == set(Column) - {Column.WARNINGS}
    bench.panel.resize(700, 420)
    assert Column.RESULT in bench.shown_columns
    assert Column.TOKENS not in bench.shown_columns
    assert bench.panel.table.columnWidth(Column.RESULT) >= 80


def test_columns_of_a_narrowing_table_give_way_in_the_order_of_the_guide(open_panel: OpenPanel) -> None:
    bench = open_panel(one_loop())
    usage = Usage(input_tokens=1200, output_tokens=300, exact=True)
    view_model = loop_model("one", "two", usage=usage, cost_usd=0.01, branch="continue", reason="too short")
    end(view_model)
    bench.show(view_model)
    table, hidden = bench.panel.table, list[Column]()
    for width in range(1000, 120, -4):
        table.setFixedWidth(width)
        table.fit()
        hidden += [column for column in Column if table.isColumnHidden(column) and column not in hidden]
    order = [Column.TOKENS, Column.TIME, Column.COST, Column.VERDICT, Column.SIMILAR]
    assert [column for column in hidden if column in order] == order
    assert Column.RESULT not in hidden


@pytest.mark.parametrize("width", [160, 200, 240, 320])
def test_very_narrow_table_keeps_result_and_warnings_visible(open_panel: OpenPanel, width: int) -> None:
    bench = open_panel(one_loop())
    view_model = loop_model("one", "two", branch="continue", reason="too short", warnings=("draft: cut off",))
    end(view_model)
    bench.show(view_model)
    table = bench.panel.table
    table.setFixedWidth(width)
    table.fit()
    assert {Column.RESULT, Column.WARNINGS} <= bench.shown_columns
    assert table.columnWidth(Column.RESULT) >= 40
    assert sum(table.columnWidth(which) for which in bench.shown_columns) <= table.viewport().width()
    assert bench.panel.chart.isVisible()
    bench.panel.resize(700, 190)
    assert not bench.panel.chart.isVisible()
    assert bench.panel.table.isVisible()


@pytest.mark.parametrize("height", [190, 236, 300])
def test_very_narrow_panel_scrolls_sideways_without_overlaps(ran: Bench, height: int) -> None:
    panel, detail = ran.panel, ran.panel.detail
    panel.resize(360, height)
    room = panel.scroll_area.horizontalScrollBar()
    ran.qtbot.waitUntil(lambda: room.maximum() > 0)
    for button in (panel.latest, panel.export, detail.compare, detail.fork):
        assert button.width() >= button.sizeHint().width(), button.text()

    def is_apart() -> bool:
        column = [part.geometry() for part in (panel.chart, panel.table, panel.why) if part.isVisible()]
        return all(above.bottom() < below.top() for above, below in pairwise(column))

    ran.qtbot.waitUntil(is_apart)
    assert panel.why.height() >= panel.why.heightForWidth(panel.why.width())
    assert detail.parts.geometry().right() < detail.pages.geometry().left()
    panel.resize(1000, height)
    ran.qtbot.waitUntil(lambda: room.maximum() == 0)


def test_layout_is_saved_and_restored(open_panel: OpenPanel) -> None:
    first = open_panel(one_loop())
    first.run()
    with first.qtbot.waitSignal(first.panel.layout_changed):
        QTest.mouseClick(first.panel.legend.buttons[BaseSeries.TIME], Qt.MouseButton.LeftButton)
    first.panel.split.setSizes([400, 600])
    state = first.panel.layout_state()
    second = open_panel(one_loop())
    second.panel.restore_layout(state)
    second.run()
    assert second.panel.chart.shown == [BaseSeries.SIMILARITY, BaseSeries.TIME]
    assert second.panel.split.sizes() == first.panel.split.sizes()
    second.panel.restore_layout({"split": ["a"], "series": 5})
    assert second.panel.chart.shown == [BaseSeries.SIMILARITY, BaseSeries.TIME]


def test_texts_are_never_markup(open_panel: OpenPanel) -> None:
    bench = open_panel(one_loop())
    view_model = loop_model("<b>bold</b> \ud800 \x00", "<img src=x>", branch="<i>", reason="<u>", score=1.0)
    bench.show(view_model)
    bench.panel.grab()
    assert bench.panel.model.index(1, Column.RESULT).data() == "<img src=x>"
    assert bench.text == "<img src=x>"
    tip = bench.panel.model.index(1, Column.VERDICT).data(Qt.ItemDataRole.ToolTipRole)
    assert "<u>" not in tip


def test_thousand_iterations_with_results_of_a_megabyte(open_panel: OpenPanel) -> None:
    bench = open_panel(one_loop())
    large = "word " * 200_000
    view_model = loop_model(*[f"{index} {large}" for index in range(3)], *["word"] * 997, total=1000, similarity=0.5)
    end(view_model)
    bench.show(view_model)
    bench.panel.grab()
    assert bench.panel.model.rowCount() == 1000
    bench.session.shown.look_at("loop", 1)
    bench.panel.grab()
    assert bench.text.startswith("1 word word")
    assert len(bench.text) < 30_000, "the rest is shown when it is asked for"
    bench.click_chart(500)
    assert bench.session.shown.chosen["loop"] == pytest.approx(500, abs=2)


def test_similarities_that_arrive_with_pending_updates_are_shown_together(
    ran: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel, shown = ran.panel, list[int]()
    monkeypatch.setattr(panel, "_show_explanations", lambda: shown.append(len(panel.figures)))
    panel.similarities.found.emit(1, 3)
    assert shown == [4]
    ran.session.shown.updated.emit({"loop"})
    panel.similarities.found.emit(1, 3)
    assert shown == [4]
    ran.qtbot.waitUntil(lambda: len(shown) == 2)


def test_stored_run_is_loaded_on_display_with_similarities_of_complete_results(
    engine_thread: EngineThread, access: StoreClient, store: Store, tmp_path: Path, qtbot: QtBot
) -> None:
    same = "The sea is wide. " * 40  # longer than what an outline has of it
    rules = [
        {"node": "draft", "iteration": turn, "reply": same + tail} for turn, tail in enumerate(("a", "a", "b" * 680))
    ]
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"rules": rules, "default": "Say more."}))
    run_id = run_and_store(store, refine(), f"scripted:{script}")
    session = StoredSession(engine_thread, access, refine(), "Refine")
    panel = IterationsPanel(session)
    qtbot.addWidget(panel)
    panel.resize(1200, 420)
    panel.show()
    session.loader.show(read_outline(store, run_id))
    bench = Bench(qtbot, session, panel)

    column = [panel.model.index(row, Column.SIMILAR) for row in range(3)]
    qtbot.waitUntil(lambda: [index.data() for index in column] == ["–", "100%", "50%"])
    bench.click_row(0)
    qtbot.waitUntil(lambda: bench.text == same + "a")
    bench.choose_part("Critique")
    parts = panel.detail.node.sections
    qtbot.waitUntil(lambda: "out:output" in parts or "call:1:reply" in parts)
    assert parts["call:1:reply"].content.view.text() == "Say more."
    session.deleteLater()


def test_iterator_shows_completed_items_without_loop_columns(open_panel: OpenPanel) -> None:
    bench = open_panel(item_loop())
    session, panel = bench.session, bench.panel
    view_model = RunViewModel(session.structure.parent)
    bench.show(view_model)
    assert panel.empty.text() == "No item has started yet."

    for index in range(3):
        start_iteration(view_model, index, 3, "each")
    view_model.apply(iteration(2, "z done", "each", input="z", feedback=None))
    session.shown.updated.emit({"each"})
    bench.qtbot.waitUntil(lambda: bench.panel.why.text() == "1 of 3 items done.")
    assert [panel.model.text(row, Column.RESULT) for row in range(3)] == ["Running…", "Running…", "z done"]

    bench.click_row(2)
    assert panel.detail.title.text() == "Item 3"
    assert panel.slider.accessibleDescription() == "Item 3 of 3"
    assert panel.detail.parts.titles == ["Result", "Item", "Nodes", "Mark"]
    assert bench.text == "z done"
    bench.choose_part("Item")
    assert bench.text == "z"
    assert Column.SIMILAR not in bench.shown_columns
    assert panel.legend.buttons[BaseSeries.SIMILARITY].isHidden()

    for index in range(2):
        view_model.apply(iteration(index, "done", "each", feedback=None))
    session.shown.updated.emit({"each"})
    bench.qtbot.waitUntil(lambda: bench.panel.why.text() == "3 of 3 items done.")
    assert panel.chart.shown == [BaseSeries.TIME]
    assert panel.chart.readout(1) == "Item 2 · time 0.5 s"


def test_another_loop_can_be_selected_while_similarities_are_computed(open_panel: OpenPanel, qtbot: QtBot) -> None:
    bench = open_panel(nested_loops())
    view_model = loop_model(*(f"{number} {'word ' * 300}" for number in range(6)), total=6, path="outer")
    view_model.parents = bench.session.structure.parent
    bench.session.shown.view_model, bench.session.shown.workflow = view_model, bench.session.workflow
    bench.session.shown.started.emit()
    assert bench.panel.similarities.is_busy
    bench.panel.show_loop("inner")  # which has not begun
    bench.settle()
    assert bench.panel.empty.isVisible()
    bench.panel.show_loop("outer")
    assert bench.panel.model.text(5, Column.SIMILAR).endswith("%")


def test_interrupted_run_has_nothing_running(open_panel: OpenPanel, store: Store) -> None:
    store_run(store, "aaaa", started=1.0, iterations=2, end=False)
    run = read_outline(store, "aaaa")
    start_iteration(run.view_model, 2)
    bench = open_panel(run.workflow)
    bench.show(run.view_model, run.workflow)
    assert [bench.panel.model.text(row, Column.RESULT) for row in range(3)] == ["r0", "r1", "Not completed"]
    assert bench.text.startswith("Not completed.")
