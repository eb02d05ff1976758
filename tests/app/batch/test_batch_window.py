from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter
from PySide6.QtCore import QCoreApplication, QEvent, QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QWidget
from pytestqt.qtbot import QtBot

from app.batch.batch_results import SCORE, STATE, WARNINGS, BatchResultsModel
from app.batch.batch_window import BatchRunner, BatchWindow, BudgetField
from app.engine_thread import EngineThread
from app.settings.install_dialog import InstallDialog
from app.theme.style import style
from app.workbench import Workbench
from engine import RunOptions, Store, Workflow, read_table
from engine.batch.batch import BatchOptions
from engine.batch.rows import RowResult
from engine.document.builder import Builder
from engine.models.catalog import Models
from engine.values import Value
from tests.app.drag_and_drop import drag_and_drop
from tests.app.history.conftest import access, make_window, store, store_path, workbench
from tests.app.window.conftest import Answers, answers, open_file, preferences, saved, script
from tests.app.window.web_search import NoSearch, no_search, searching
from tests.engine.semantics.documents import around, llm
from tests.engine.store.memory_store import MemoryStore

__all__ = ["access", "answers", "make_window", "preferences", "script", "store", "store_path", "workbench"]
__all__ += ["no_search"]


def refine() -> Workflow:
    return around(llm("draft"), edges="loop -> draft -> exit", max_iterations=2)


@pytest.fixture
def batch_store() -> Store:
    return MemoryStore()


@pytest.fixture
def open_batch(
    engine_thread: EngineThread, answers: Answers, batch_store: Store, tmp_path: Path, qtbot: QtBot
) -> Iterator[Callable[..., BatchWindow]]:
    made: list[BatchWindow] = []

    def make(script: Any, workflow: Workflow | None = None) -> BatchWindow:
        file = tmp_path / "script.json"
        file.write_text(json.dumps(script), encoding="utf-8")
        run = RunOptions(model=f"scripted:{file}")
        window = BatchWindow(
            engine_thread,
            workflow or refine(),
            "Untitled",
            lambda: BatchOptions(run=run, store=batch_store, models=Models),
            answers,
            tmp_path,
        )
        window.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
        made.append(window)
        window.show()
        return window

    yield make
    for shown in made:
        shown.close()
        qtbot.waitUntil(lambda shown=shown: shown.batch is None and not shown._worker.is_busy)
        shown.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def table(folder: Path, text: str = "text,id\nsun,1\nrain,2\nsnow,3\n") -> Path:
    file = folder / "table.csv"
    file.write_text(text, encoding="utf-8")
    return file


def load(window: BatchWindow, file: Path, qtbot: QtBot) -> None:
    window.show_table(file)
    qtbot.waitUntil(lambda: not window._worker.is_busy)


def states(window: BatchWindow) -> list[str]:
    model = window.model
    return [model.index(row, STATE).data() for row in range(model.rowCount())]


def cells(window: BatchWindow, row: int) -> list[str]:
    return [window.model.index(row, column).data() for column in range(window.model.columnCount())]


def run(window: BatchWindow, qtbot: QtBot) -> None:
    with qtbot.waitSignal(window.run_ended):
        window.start.click()


def test_batch_runs_rows_and_shows_a_summary(open_batch: Any, tmp_path: Path, batch_store: Store, qtbot: QtBot):
    window = open_batch({"default": "Fine."})
    assert not window.start.isEnabled()
    load(window, table(tmp_path), qtbot)
    assert window.source.label.full_text == "table.csv · 3 rows"
    assert window.form.columns == {"text": "text"}
    assert states(window) == ["Waiting"] * 3
    window.write_to(tmp_path / "out.csv")
    run(window, qtbot)
    assert states(window) == ["Done"] * 3
    assert cells(window, 1)[:4] == ["2", "rain", "Done", "Fine."]
    assert cells(window, 1)[5:8] == ["2", "Max iterations reached", "$0"]
    assert window.summary.text().startswith("3 of 3 rows done · ")
    assert "2 iterations: 3 rows, $0 each" in window.summary.text()
    assert (window.bar.value(), window.progress.text()) == (3, "3 of 3 rows completed")
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 4
    assert len(batch_store.runs()) == 3
    run(window, qtbot)
    assert states(window) == ["Reused"] * 3
    assert len(batch_store.runs()) == 3


def test_results_file_chosen_after_the_run_is_written_by_another_one(open_batch: Any, tmp_path: Path, qtbot: QtBot):
    window = open_batch({"default": "Fine."})
    load(window, table(tmp_path), qtbot)
    run(window, qtbot)
    window.write_to(tmp_path / "out.csv")
    assert "Run" in window.progress.text()
    assert "reused" in window.progress.text()
    run(window, qtbot)
    assert states(window) == ["Reused"] * 3
    assert window.progress.text() == "3 of 3 rows completed"
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 4


def test_run_is_opened_from_its_row(open_batch: Any, tmp_path: Path, batch_store: Store, qtbot: QtBot):
    window = open_batch({"default": "Fine."})
    load(window, table(tmp_path), qtbot)
    window.view.selectRow(1)
    assert not window.open_button.isEnabled()
    run(window, qtbot)
    with qtbot.waitSignal(window.open_wanted) as wanted:
        window.open_button.click()
    assert batch_store.find(wanted.args[0]).workflow == "test"
    with qtbot.waitSignal(window.open_wanted):
        window.view.activated.emit(window.model.index(0, 0))


def test_columns_can_be_mapped_by_hand(open_batch: Any, tmp_path: Path, qtbot: QtBot):
    window = open_batch({"default": "Fine."})
    load(window, table(tmp_path, "subject,id\nsun,1\n"), qtbot)
    assert window.form.missing == ["text"]
    assert not window.start.isEnabled()
    window.form.boxes["text"].setCurrentIndex(1)
    assert window.form.columns == {"text": "subject"}
    assert window.start.isEnabled()
    run(window, qtbot)
    assert cells(window, 0)[1:4] == ["sun", "Done", "Fine."]


def test_input_can_use_its_default_despite_a_matching_column(open_batch: Any, tmp_path: Path, qtbot: QtBot):
    flow = Builder("Styled")
    text = flow.add("input", id="text", config={"name": "text", "type": "text"})
    style = flow.add("input", id="style", config={"name": "style", "type": "text", "default": "plain"})
    join = flow.add("transform", id="join", config={"mode": "template", "template": "{{input}} {{style}}"})
    out = flow.add("output", id="styled", config={"name": "styled"})
    flow.connect(text["value"], join["input"])
    flow.connect(style["value"], join["style"])
    flow.connect(join["output"], out["value"])
    window = open_batch({"default": "Fine."}, flow.build())
    load(window, table(tmp_path, "text,style\nsun,bold\n"), qtbot)
    assert window.form.columns == {"text": "text", "style": "style"}
    assert window.others.isHidden()
    window.form.boxes["style"].setCurrentIndex(0)
    assert not window.form.missing
    assert not window.others.isHidden(), "the column is another one now"
    run(window, qtbot)
    assert cells(window, 0)[3] == "sun plain"


def test_failed_row_shows_its_error(open_batch: Any, tmp_path: Path, qtbot: QtBot):
    error = {"error": {"kind": "authentication", "message": "The key is wrong."}}
    window = open_batch({"rules": [{"pattern": "rain", "reply": error}], "default": "Fine."})
    load(window, table(tmp_path), qtbot)
    run(window, qtbot)
    assert states(window) == ["Done", "Failed", "Done"]
    assert "The key is wrong." in cells(window, 1)[3]
    assert "1 failed" in window.summary.text()


def test_rows_that_lack_a_part_install_it_and_run_again(
    open_batch: Any, tmp_path: Path, qtbot: QtBot, no_search: NoSearch
):
    window = open_batch({"default": "unused"}, searching())
    load(window, table(tmp_path), qtbot)
    with no_search():
        run(window, qtbot)
    assert states(window) == ["Failed"] * 3
    assert "Install it." in cells(window, 0)[3]
    qtbot.mouseClick(window.install, Qt.MouseButton.LeftButton)
    (dialog,) = window.findChildren(InstallDialog)
    with qtbot.waitSignal(window.run_ended):
        qtbot.mouseClick(dialog.start, Qt.MouseButton.LeftButton)
    assert states(window) == ["Done"] * 3
    assert not window.install.isVisible()


def test_stop_keeps_completed_rows(open_batch: Any, tmp_path: Path, batch_store: Store, qtbot: QtBot):
    stuck = {"pattern": "rain", "reply": {"text": "never", "delay_s": 3600}}
    window = open_batch({"rules": [stuck], "default": "Fine."})
    load(window, table(tmp_path), qtbot)
    window.concurrency.setValue(1)
    window.start.click()
    qtbot.waitUntil(lambda: states(window)[:2] == ["Done", "Running"])
    assert not window.form.isEnabled()
    with qtbot.waitSignal(window.run_ended):
        window.stop.click()
    assert states(window) == ["Done", "Stopped", "Waiting"]
    assert "2 not run" in window.summary.text()
    assert window.start.isEnabled()


def test_closing_stops_running_rows_first(open_batch: Any, tmp_path: Path, batch_store: Store, qtbot: QtBot):
    window = open_batch({"default": {"text": "never", "delay_s": 3600}})
    load(window, table(tmp_path), qtbot)
    window.start.click()
    qtbot.waitUntil(lambda: "Running" in states(window))
    window.close()
    assert window.isVisible()
    qtbot.waitUntil(lambda: not window.isVisible())
    assert {run.status for run in batch_store.runs()} == {"cancelled"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", "The table is empty."), ("text\n", "The table has no rows."), ('text\n"x', "not valid CSV")],
)
def test_unreadable_table_is_reported(open_batch: Any, tmp_path: Path, qtbot: QtBot, text: str, expected: str):
    window = open_batch({"default": "Fine."})
    load(window, table(tmp_path, text), qtbot)
    assert window.notice.isVisible()
    assert expected in window.notice.text
    assert not window.start.isEnabled()


def test_results_file_of_another_batch_is_reported_and_preserved(open_batch: Any, tmp_path: Path, qtbot: QtBot):
    out = tmp_path / "out.csv"
    out.write_text("a,b\n1,2\n", encoding="utf-8")
    window = open_batch({"default": "Fine."})
    load(window, table(tmp_path), qtbot)
    window.write_to(out)
    window.start.click()
    qtbot.waitUntil(window.notice.isVisible)
    assert "not a results file" in window.notice.text
    assert window.start.isEnabled()
    assert out.read_text(encoding="utf-8") == "a,b\n1,2\n"


def test_every_batch_control_has_a_name(open_batch: Any):
    window = open_batch({"default": "Fine."})
    controls = [window.source.choose, window.source.paste, window.source.sheet, window.source.encoding]
    controls += [window.others, window.choose_target, window.concurrency, window.bar, window.view, window.start]
    controls += [window.stop, window.open_button, *window.form.boxes.values()]
    assert all(control.accessibleName() or getattr(control, "text", str)() for control in controls)


def test_menu_opens_the_batch_window_and_a_row_opens_its_run(
    workbench: Workbench, tmp_path: Path, script: Any, qtbot: QtBot
):
    from tests.architecture.project import ROOT

    workbench.documents.open_template(ROOT / "templates" / "self-refine.loop.json")
    assert workbench.actions_by_name["run_batch"].isEnabled()
    workbench.actions_by_name["run_batch"].trigger()
    (shown,) = [child for child in workbench.window.findChildren(QWidget) if isinstance(child, BatchWindow)]
    assert shown.windowTitle() == "Batch run · Self-Refine"
    assert list(shown.form.boxes) == ["task"]
    shown.close()


def test_batch_window_names_a_document_like_its_tab(workbench: Workbench, qtbot: QtBot):
    workbench.documents.new()
    assert workbench.current is not None
    workbench.current.canvas.commands.add_node("input", QPointF(0, 0))
    workbench.runs.run_batch(workbench.current)
    (shown,) = workbench.window.findChildren(BatchWindow)
    assert shown.windowTitle() == "Batch run · Untitled"
    shown.close()


def test_run_of_a_row_comes_to_the_front(
    workbench: Workbench, tmp_path: Path, script: Any, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
):
    workbench.store_access.open()
    qtbot.waitUntil(lambda: workbench.store_access.store is not None)
    document = open_file(workbench, saved(tmp_path))
    workbench.runs.run_batch(document)
    (shown,) = workbench.window.findChildren(BatchWindow)
    load(shown, table(tmp_path), qtbot)
    run(shown, qtbot)
    shown.activateWindow()
    qtbot.waitUntil(shown.isActiveWindow)
    assert shown.windowType() is Qt.WindowType.Window, "a dialog stays in front of its parent"
    workbench.window.showMinimized()

    shown.view.selectRow(0)
    shown.open_button.click()

    qtbot.waitUntil(lambda: workbench.current is not None and workbench.current.session.is_past)
    qtbot.waitUntil(workbench.window.isActiveWindow)
    assert not workbench.window.isMinimized()
    shown.close()


def test_batch_stops_at_its_budget_and_continues_when_raised(open_batch: Any, tmp_path: Path, qtbot: QtBot):
    price = {"input_usd_per_million_tokens": 0, "output_usd_per_million_tokens": 1e6}
    workflow = around(llm("draft", max_tokens=2), edges="loop -> draft -> exit", max_iterations=1)
    window = open_batch({"default": "Fine.", "price": price}, workflow)
    assert (window.budget.usd, window.budget.text()) == (None, "No limit")
    load(window, table(tmp_path), qtbot)
    window.concurrency.setValue(1)
    window.budget.setValue(1000)
    run(window, qtbot)
    each = window.model.result_at(window.model.index(0, 0)).cost_usd
    assert states(window) == ["Done"] * 3
    load(window, table(tmp_path, "text\nhail\nfog\ndew\n"), qtbot)
    window.budget.setValue(each * 1.1)
    run(window, qtbot)
    assert "not run (budget used up)" in window.summary.text()
    assert window.notice.isVisible()
    assert "Raise it and run again" in window.notice.accessibleName()
    window.budget.setValue(1000)
    run(window, qtbot)
    assert sorted(states(window)) == ["Done", "Done", "Reused"], "the second row did not fit any more"
    assert not window.notice.isVisible()


def test_second_press_of_run_starts_nothing(open_batch: Any, tmp_path: Path, qtbot: QtBot):
    window = open_batch({"default": {"text": "never", "delay_s": 3600}})
    load(window, table(tmp_path), qtbot)
    window.start.click()
    window.start.click()  # before the table has become inputs
    qtbot.waitUntil(lambda: window.batch is not None and not window._worker.is_busy)
    assert len(window.findChildren(BatchRunner)) == 1
    with qtbot.waitSignal(window.run_ended):
        window.stop.click()
    assert set(states(window)) <= {"Stopped", "Waiting"}


def test_nothing_starts_while_a_table_is_read(open_batch: Any, tmp_path: Path, batch_store: Store, qtbot: QtBot):
    window = open_batch({"default": "Fine."})
    load(window, table(tmp_path), qtbot)
    other = tmp_path / "other.csv"
    other.write_text("text\nfog\n", encoding="utf-8")
    window.show_table(other)
    window.start.click()
    qtbot.waitUntil(lambda: not window._worker.is_busy)
    assert (window.batch, batch_store.runs()) == (None, [])
    assert cells(window, 0)[1] == "fog"
    assert window.start.isEnabled()


@pytest.fixture
def budget(qtbot: QtBot) -> BudgetField:
    field = BudgetField()
    qtbot.addWidget(field)
    with qtbot.waitActive(field):
        field.show()
        field.activateWindow()
    return field


@pytest.mark.parametrize("x", [12, 30, 60])
def test_budget_can_be_typed_anywhere_in_no_limit(budget: BudgetField, x: int):
    line = budget.lineEdit()
    QTest.mouseClick(line, Qt.MouseButton.LeftButton, pos=QPoint(x, line.height() // 2))
    QTest.keyClicks(line, "2.5")
    assert budget.usd == 2.5
    QTest.keyClick(line, Qt.Key.Key_Return)
    assert budget.text() == "$ 2.50"


def test_budget_below_a_cent_is_a_limit(budget: BudgetField):
    budget.selectAll()
    QTest.keyClicks(budget.lineEdit(), "0.005")
    assert budget.usd == 0.005
    QTest.keyClick(budget.lineEdit(), Qt.Key.Key_Return)
    assert budget.text() == "$ 0.005"
    budget.stepBy(1)
    assert budget.text() == "$ 0.01"
    budget.stepBy(-1)
    assert (budget.text(), budget.usd) == ("No limit", None)
    budget.stepBy(1)
    assert budget.usd == 0.01


def test_only_visible_rows_are_formatted(qapp: QApplication):
    class Row(dict[str, Value]):
        looked_at = 0

        def values(self) -> Any:
            Row.looked_at += 1
            return super().values()

    model = BatchResultsModel()
    model.show_rows([Row(text=f"words {number}") for number in range(1000)])
    assert Row.looked_at == 0
    for _ in range(2):
        assert model.index(7, 1).data() == "words 7"
    assert Row.looked_at == 1


def test_result_text_is_formatted_once(qapp: QApplication, monkeypatch: pytest.MonkeyPatch):
    written: list[Value] = []
    monkeypatch.setattr("app.batch.batch_results.to_text", lambda value: written.append(value) or "text")
    model = BatchResultsModel()
    model.show_rows([{}])
    model.set_results([RowResult(1, "key", "run", "completed", outputs={"out": {"large": [1]}})])
    assert [model.index(0, 3).data() for _ in range(5)] == ["text"] * 5
    assert written == [{"large": [1]}]
    model.set_results([RowResult(1, "key", "run", "failed", error="It broke.")])
    assert model.index(0, 3).data() == "It broke."


def test_many_inputs_and_large_text_keep_the_buttons_visible(
    open_batch: Any, tmp_path: Path, qtbot: QtBot, request: pytest.FixtureRequest
):
    flow = Builder("Many")
    for number in range(30):
        flow.add("input", id=f"input_{number}", name=f"input {number}")
    window = open_batch({"default": "Fine."}, flow.build())
    available = window.screen().availableSize()
    assert window.minimumSizeHint().height() <= 640
    assert (window.width() <= available.width(), window.height() <= available.height()) == (True, True)
    request.addfinalizer(lambda: style().choose("dark", 1.0))
    style().choose("dark", 2.0)
    assert window.view.verticalHeader().defaultSectionSize() >= window.view.fontMetrics().height()


def workbook(folder: Path) -> Path:
    book = xlsxwriter.Workbook(str(folder / "table.xlsx"))
    for title, lines in {
        "Tasks": [["text", "id"], ["sun", 7]],
        "More": [["text"], ["rain"], ["snow"]],
        "Empty": [],
    }.items():
        page = book.add_worksheet(title)
        for place, line in enumerate(lines):
            page.write_row(place, 0, line)
    book.close()
    return folder / "table.xlsx"


def choose(window: BatchWindow, box: QComboBox, text: str, qtbot: QtBot) -> None:
    box.setCurrentText(text)
    box.activated.emit(box.currentIndex())
    qtbot.waitUntil(lambda: not window._worker.is_busy)


def test_sheet_of_a_workbook_can_be_chosen(open_batch: Any, tmp_path: Path, qtbot: QtBot):
    window = open_batch({"default": "Fine."})
    load(window, table(tmp_path), qtbot)
    assert not window.source.sheet.isVisible()
    load(window, workbook(tmp_path), qtbot)
    assert window.source.sheet.isVisible()
    assert window.source.label.full_text == "table.xlsx · 1 row"
    choose(window, window.source.sheet, "More", qtbot)
    assert window.source.label.full_text == "table.xlsx · 2 rows"
    assert cells(window, 1)[1] == "snow"
    choose(window, window.source.sheet, "Empty", qtbot)
    assert ("is empty" in window.notice.text, window.start.isEnabled(), window.source.sheet.isVisible()) == (
        True,
        False,
        True,
    )
    choose(window, window.source.sheet, "Tasks", qtbot)
    assert not window.notice.isVisible()
    window.write_to(tmp_path / "out.xlsx")
    run(window, qtbot)
    (row,) = read_table(tmp_path / "out.xlsx").rows
    assert (row["id"], row["input.text"], row["output.out"]) == (7, "sun", "Fine.")


def test_encoding_is_shown_and_can_be_chosen(open_batch: Any, tmp_path: Path, qtbot: QtBot):
    window = open_batch({"default": "Fine."})
    file = tmp_path / "table.csv"
    file.write_bytes("text\nRené\n".encode("cp1252"))
    load(window, file, qtbot)
    assert window.source.label.full_text == "table.csv · 1 row · Windows-1252"
    assert window.source.encoding.isVisible()
    choose(window, window.source.encoding, "Windows-1251", qtbot)
    assert cells(window, 0)[1] == "Renй"
    choose(window, window.source.encoding, "UTF-8", qtbot)
    assert "Choose another encoding" in window.notice.text
    file.write_bytes("text\nЖук\n".encode("cp1251"))
    load(window, file, qtbot)
    assert ("Choose the encoding" in window.notice.text, window.source.encoding.isVisible()) == (True, True)
    assert window.source.encoding.currentText() == "Automatic"
    choose(window, window.source.encoding, "Windows-1251", qtbot)
    assert (cells(window, 0)[1], window.notice.isVisible()) == ("Жук", False)
    load(window, table(tmp_path), qtbot)
    assert not window.source.encoding.isVisible()


def test_table_can_be_pasted_from_a_spreadsheet(open_batch: Any, tmp_path: Path, qtbot: QtBot):
    window = open_batch({"default": "Fine."})
    clipboard = QApplication.clipboard()
    clipboard.setText('text\tid\r\n"two\nlines; é"\t1\r\nrain\t2\r\n')
    assert window.source.paste.isEnabled()
    QTest.keySequence(window, QKeySequence.StandardKey.Paste)
    qtbot.waitUntil(lambda: not window._worker.is_busy)
    assert window.source.label.full_text == "Pasted table · 2 rows"
    assert cells(window, 0)[1] == "two lines; é · 1"
    clipboard.setText("text")
    window.source.paste.click()
    qtbot.waitUntil(window.notice.isVisible)
    assert "no rows" in window.notice.text
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(workbook(tmp_path)))])
    clipboard.setMimeData(data)
    window.source.paste.click()
    qtbot.waitUntil(lambda: window.table is not None)
    assert window.table.name == "table.xlsx"
    clipboard.clear()
    assert not window.source.paste.isEnabled()


def test_table_can_be_dropped_on_the_batch_window(open_batch: Any, tmp_path: Path, qtbot: QtBot):
    window = open_batch({"default": "Fine."})
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(workbook(tmp_path)))])
    assert drag_and_drop(window, data, QPoint(10, 10))
    qtbot.waitUntil(lambda: window.table is not None)
    assert window.table.sheet == "Tasks"


def test_other_columns_can_be_excluded_from_results(open_batch: Any, tmp_path: Path, qtbot: QtBot):
    window = open_batch({"default": "Fine."})
    load(window, table(tmp_path, "text\nsun\n"), qtbot)
    assert not window.others.isVisible()
    load(window, table(tmp_path), qtbot)
    assert (window.others.isVisible(), window.others.isChecked()) == (True, True)
    window.write_to(tmp_path / "out.csv")
    run(window, qtbot)
    assert [row["id"] for row in read_table(tmp_path / "out.csv").rows] == ["1", "2", "3"]
    window.others.setChecked(False)
    run(window, qtbot)
    assert "id" not in read_table(tmp_path / "out.csv").columns
    assert states(window) == ["Reused"] * 3


def test_row_that_does_not_fit_fails_and_others_run(open_batch: Any, tmp_path: Path, qtbot: QtBot):
    window = open_batch({"default": "Fine."})
    load(window, table(tmp_path, "id,text\n1,sun\n2\n3,snow\n"), qtbot)
    run(window, qtbot)
    assert states(window) == ["Done", "Failed", "Done"]
    assert 'line 3, column "text"' in cells(window, 1)[3]


def test_truncated_text_is_noted(open_batch: Any, tmp_path: Path, qtbot: QtBot):
    window = open_batch({"default": "x" * 40_000})
    load(window, table(tmp_path, "text\nsun\n"), qtbot)
    window.write_to(tmp_path / "out.xlsx")
    run(window, qtbot)
    assert window.notice.isVisible()
    assert "out.xlsx: 1 text was too long" in window.notice.text


@pytest.mark.parametrize("scale", [1.0, 1.5, 2.0])
def test_inputs_label_is_aligned_with_the_first_input(
    open_batch: Any, scale: float, qtbot: QtBot, request: pytest.FixtureRequest
):
    request.addfinalizer(lambda: style().choose("dark", 1.0))
    window = open_batch({"default": "Fine."})
    style().choose("light", scale)
    QCoreApplication.processEvents()
    label, box = window._inputs_label, window.form.boxes["text"]
    middles = [widget.mapToGlobal(widget.rect().center()).y() for widget in (label, box)]
    assert abs(middles[0] - middles[1]) <= 1
    assert window.form.height() <= box.height() + 2, "no gap below the inputs"


def test_table_dropped_on_the_main_window_opens_a_batch(
    workbench: Workbench, tmp_path: Path, script: Any, qtbot: QtBot
):
    from tests.architecture.project import ROOT

    workbench.open_dropped([workbook(tmp_path)])
    assert "Open a workflow first" in workbench.status_bar.refusal.full_text
    document = workbench.documents.open_template(ROOT / "templates" / "self-refine.loop.json")
    document.canvas.files_dropped.emit([workbook(tmp_path)])
    (shown,) = [child for child in workbench.window.findChildren(QWidget) if isinstance(child, BatchWindow)]
    qtbot.waitUntil(lambda: shown.table is not None)
    assert shown.table.name == "table.xlsx"
    shown.close()


def test_columns_of_scores_and_warnings_are_shown_when_a_row_has_some(open_batch: Any, tmp_path: Path, qtbot: QtBot):
    window = open_batch({"default": "Fine."})
    load(window, table(tmp_path), qtbot)
    window.model.show_rows([{"text": "sun"}, {"text": "rain"}])
    hidden = [window.view.isColumnHidden(column) for column in (SCORE, WARNINGS)]
    window.model.set_results([RowResult(1, "a", "r1", "completed", score=0.5)])
    hidden += [window.view.isColumnHidden(column) for column in (SCORE, WARNINGS)]
    window.model.set_results([RowResult(2, "b", "r2", "completed", warnings=("Short.",))])
    hidden += [window.view.isColumnHidden(column) for column in (SCORE, WARNINGS)]
    window.model.show_rows([{"text": "snow"}])
    hidden += [window.view.isColumnHidden(column) for column in (SCORE, WARNINGS)]
    assert hidden == [True, True, False, True, False, False, True, True]
