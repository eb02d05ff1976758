"""Table model, computed similarities and the view model that they are read from."""

from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import QObject, Qt
from PySide6.QtTest import QAbstractItemModelTester
from pytestqt.qtbot import QtBot

from app.history.iteration_chart import BaseSeries, ChartData
from app.history.iteration_table import Column, IterationModel
from app.history.similarity_worker import Similarities
from app.runs.run_view_model import RunViewModel
from engine.errors import EngineError
from engine.events import NodeStarted
from engine.models.protocol import Usage
from engine.run_state.state import NodeState
from engine.values import Value
from tests.app.history.loop_samples import end, iteration, loop_model, one_loop, start_iteration


@pytest.fixture
def owner(qapp: object) -> QObject:
    return QObject()


@pytest.fixture
def similarities(owner: QObject) -> Similarities:
    return Similarities(owner)


@pytest.fixture
def model(similarities: Similarities, owner: QObject) -> IterationModel:
    model = IterationModel(similarities, owner)
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal, owner)
    return model


def column(model: IterationModel, which: Column) -> list[object]:
    return [model.index(row, which).data() for row in range(model.rowCount())]


def test_rows_appear_with_iterations(model: IterationModel, qtbot: QtBot) -> None:
    view_model = loop_model("one")
    loop = view_model.loops["loop"]
    model.show_loop(loop, is_over=False)
    assert column(model, Column.RESULT) == ["one"]

    start_iteration(view_model, 1)
    with qtbot.waitSignal(model.rowsInserted) as inserted:
        model.show_loop(loop, is_over=False)
    assert inserted.args[1:] == [1, 1]
    assert column(model, Column.RESULT) == ["one", "Running…"]
    assert model.is_running(1)

    view_model.apply(iteration(1, "two", branch="done", reason="good", score=9.0))
    with qtbot.waitSignal(model.dataChanged):
        model.show_loop(loop, is_over=False)
    assert column(model, Column.RESULT) == ["one", "two"]
    assert column(model, Column.VERDICT) == ["", "done · good"]
    assert column(model, Column.SCORE) == ["", "9"]
    assert column(model, Column.TIME) == ["0.5 s", "0.5 s"]

    end(view_model, returned=0)
    model.show_loop(loop, is_over=True)
    assert [model.is_returned(row) for row in range(2)] == [True, False]
    assert model.index(0, 0).data(Qt.ItemDataRole.AccessibleTextRole) == "Iteration: 1, returned"


def test_completed_item_is_shown_before_an_earlier_running_one(model: IterationModel, qtbot: QtBot) -> None:
    view_model = loop_model("one")
    for index in (1, 2, 3):
        start_iteration(view_model, index)
    loop = view_model.loops["loop"]
    model.show_loop(loop, is_over=False, unit="item")
    assert column(model, Column.RESULT) == ["one", "Running…", "Running…", "Running…"]

    view_model.apply(iteration(2, "three", reason="It failed.", cost_usd=0.25))
    with qtbot.waitSignal(model.dataChanged):
        model.show_loop(loop, is_over=False, unit="item")
    assert column(model, Column.RESULT) == ["one", "Running…", "three", "Running…"]
    assert [model.is_running(row) for row in range(4)] == [False, True, False, True]
    assert column(model, Column.SIMILAR) == ["–", "", "–", ""]
    assert model.longest[Column.VERDICT] == len("It failed.")
    assert model.index(2, 0).data(Qt.ItemDataRole.AccessibleTextRole) == "Item: 3"
    assert model.headerData(Column.VERDICT, Qt.Orientation.Horizontal) == "Outcome"

    view_model.apply(iteration(1, "two"))
    model.show_loop(loop, is_over=False, unit="item")
    assert column(model, Column.RESULT) == ["one", "two", "three", "Running…"]


def test_interrupted_iteration_is_labeled(model: IterationModel) -> None:
    view_model = loop_model("one")
    start_iteration(view_model, 1)
    model.show_loop(view_model.loops["loop"], is_over=True)
    assert column(model, Column.RESULT) == ["one", "Not completed"]


def test_another_loop_resets_the_table(model: IterationModel, qtbot: QtBot) -> None:
    model.show_loop(loop_model("one", "two").loops["loop"], is_over=True)
    with qtbot.waitSignal(model.modelReset):
        model.show_loop(loop_model("three").loops["loop"], is_over=True)
    assert column(model, Column.RESULT) == ["three"]


def test_empty_columns_are_known(model: IterationModel) -> None:
    usage = Usage(input_tokens=900, output_tokens=100, exact=True)
    model.show_loop(loop_model("one", "two", usage=usage, cost_usd=0.5).loops["loop"], is_over=True)
    assert {which for which, length in model.longest.items() if length} == {Column.TOKENS, Column.COST, Column.TIME}
    assert column(model, Column.TOKENS) == ["1,000", "1,000"]


def test_missing_similarities_are_computed(model: IterationModel, similarities: Similarities, qtbot: QtBot) -> None:
    loop = loop_model("abcd", "abcx", "abcx").loops["loop"]
    figures = ChartData(similarities)
    similarities.look_at("loop", loop)
    model.show_loop(loop, is_over=True)
    assert column(model, Column.SIMILAR) == ["–", "…", "…"]
    with qtbot.waitSignals([similarities.found, model.dataChanged]):
        pass
    assert column(model, Column.SIMILAR) == ["–", "75%", "100%"]
    figures.take(loop)
    assert figures.of(BaseSeries.SIMILARITY) == [None, 0.75, 1.0]
    assert not figures.has(BaseSeries.COST)


def test_recorded_similarities_are_used(similarities: Similarities) -> None:
    loop = loop_model("abcd", "abcx", similarity=0.4).loops["loop"]
    similarities.look_at("loop", loop)
    assert not similarities.is_busy
    assert similarities.of(loop, 1) == 0.4


def test_results_with_previews_are_read_completely(similarities: Similarities, qtbot: QtBot) -> None:
    asked: list[tuple[object, ...]] = []
    full = ["same beginning" + tail * 14 for tail in "aab"]

    def read(path: str, first: int, last: int) -> list[Value]:
        asked.append((path, first, last, threading.current_thread() is threading.main_thread()))
        return list[Value](full[first : last + 1])

    similarities.forget(read)
    loop = loop_model(*["same beginning…"] * 3).loops["loop"]
    with qtbot.waitSignal(similarities.found):
        similarities.look_at("loop", loop)
    assert asked == [("loop", 0, 2, False)]
    assert (similarities.of(loop, 1), similarities.of(loop, 2)) == (1.0, 0.5)


def test_unreadable_results_have_no_similarity(similarities: Similarities, qtbot: QtBot) -> None:
    def read(_path: str, _first: int, _last: int) -> list[Value]:
        raise EngineError("The history is gone.")

    similarities.forget(read)
    loop = loop_model("one", "two").loops["loop"]
    with qtbot.waitSignal(similarities.found):
        similarities.look_at("loop", loop)
    similarities.look_at("loop", loop)
    assert not similarities.is_busy
    assert similarities.of(loop, 1) is None


def test_missing_iteration_index_means_the_latest() -> None:
    view_model = RunViewModel({"inner": "outer", "add": "inner"})
    start_iteration(view_model, 0, path="outer")
    start_iteration(view_model, 0, path="outer[0].inner")
    start_iteration(view_model, 1, path="outer[0].inner")
    start_iteration(view_model, 1, path="outer")
    start_iteration(view_model, 0, path="outer[1].inner")
    assert view_model.path_of("add", {"outer": 0, "inner": 1}) == "outer[0].inner[1].add"
    assert view_model.path_of("add", {"outer": 1, "inner": 1}) == "outer[1].inner[0].add"
    assert view_model.index_of("inner", {"outer": 1, "inner": 1}) == 0
    assert view_model.path_of("add") == "outer[1].inner[0].add"


def test_restarted_loop_drops_its_iterations() -> None:
    view_model = RunViewModel({"add": "loop"})
    for index in range(2):
        start_iteration(view_model, index)
        view_model.apply(NodeStarted("run", 0, 0.0, f"loop[{index}].add", "transform", {}))
        view_model.apply(iteration(index))
    start_iteration(view_model, 0)
    assert view_model.loops["loop"].iterations == []
    assert view_model.node("add").state is NodeState.PENDING
    assert view_model.nodes == {}


def test_tooltip_of_warnings_names_nodes_by_their_titles(model: IterationModel) -> None:
    model.workflow = one_loop()
    model.show_loop(loop_model("one", warnings=("loop[0].add: No.",)).loops["loop"], is_over=True)
    tip = model.index(0, Column.WARNINGS).data(Qt.ItemDataRole.ToolTipRole)
    assert "Add" in tip
    assert "loop[0]" not in tip
