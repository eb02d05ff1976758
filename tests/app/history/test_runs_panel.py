"""The Runs panel: list, filters, delete, pin, export and import."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QModelIndex, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.history import runs_panel
from app.history.runs_model import COLUMNS, PAGE, SUMMARY_ROLE, Page
from app.history.runs_panel import RunsPanel
from app.history.store_client import StoreClient
from app.theme.style import style
from app.worker import wait_for_workers
from engine.errors import EngineError
from engine.plan.partial_run import Extent, Part
from engine.store import RunFilter, RunStatus, Store, StoreError, open_store
from tests.app.history.stored_runs import DAY, ids, store_run
from tests.app.window.conftest import Answers, answer, question

NOW = time.time()
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def panel(access: StoreClient, answers: Answers, qtbot: QtBot) -> Iterator[RunsPanel]:
    panel = RunsPanel(access, answers)
    panel.resize(1100, 400)
    yield panel
    panel.hide()
    qtbot.waitUntil(lambda: not panel._worker.is_busy and not access.is_busy)
    panel.deleteLater()


def shown(panel: RunsPanel, qtbot: QtBot) -> None:
    with qtbot.waitSignal(panel.listed):
        panel.show()


def lines(panel: RunsPanel, parent: QModelIndex | None = None) -> list[str]:
    """The workflow column from top to bottom, with forks indented."""
    model, above = panel.model, parent or QModelIndex()
    found: list[str] = []
    for row in range(model.rowCount(above)):
        found.append(model.index(row, 1, above).data())
        found += [f"  {line}" for line in lines(panel, model.index(row, 0, above))]
    return found


def cells(panel: RunsPanel, row: int) -> list[str]:
    return [panel.model.index(row, column).data() for column in range(panel.model.columnCount())]


def until_listed(panel: RunsPanel, qtbot: QtBot, act: Callable[[], object]) -> None:
    with qtbot.waitSignal(panel.listed):
        act()


def scroll_to_end(panel: RunsPanel, qtbot: QtBot, count: int) -> None:
    def is_there() -> bool:
        bar = panel.view.verticalScrollBar()
        bar.setValue(0)
        bar.setValue(bar.maximum())
        return panel.model.rowCount() == count

    qtbot.waitUntil(is_there)


def test_run_is_listed_with_its_summary(store: Store, panel: RunsPanel, qtbot: QtBot) -> None:
    store_run(store, "aaaa", started=NOW - 40 * DAY, iterations=2, cost=0.5)
    shown(panel, qtbot)
    when, *rest = cells(panel, 0)
    assert rest == ["Refine", "Done", "2", "–", "$0.50", "10", "9.0 s", "Scripted"]
    assert ", " in when
    assert panel.total.text() == "1 run · 10 tokens · $0.50"


def test_forks_are_listed_below_their_parents(store: Store, panel: RunsPanel, qtbot: QtBot) -> None:
    store_run(store, "aaaa", started=NOW - 50, name="First")
    store_run(store, "bbbb", started=NOW - 40, name="Other")
    store_run(store, "cccc", started=NOW - 30, name="First", parent="aaaa")
    store_run(store, "dddd", started=NOW - 20, name="First", parent="cccc")
    shown(panel, qtbot)
    assert lines(panel) == ["First", "  Fork of cccc, iteration 2", "  Fork from iteration 2", "Other"]


def test_partial_runs_stay_at_one_level_newest_first(store: Store, panel: RunsPanel, qtbot: QtBot) -> None:
    store_run(store, "root", started=NOW - 100, name="First")
    for number in range(12):
        parent = f"part{number - 1}" if number else "root"
        part = Part(Extent.ONLY, f"node_{number}")
        store_run(store, f"part{number}", started=NOW - 50 + number, name="First", parent=parent, part=part)
    shown(panel, qtbot)
    assert lines(panel) == ["First", *(f"  Only node_{number}" for number in reversed(range(12)))]
    newest = panel.model.index_of("part11")
    assert panel.model.index(0, 0, newest.parent()) == newest
    assert panel.view.visualRect(newest).top() == panel.view.visualRect(newest.parent()).bottom() + 1


def test_runs_of_later_pages_are_put_between_those_of_the_same_root(panel: RunsPanel, store: Store) -> None:
    for name, started, parent in (("root", 1, ""), ("a", 2, "root"), ("b", 3, "a"), ("c", 4, "b"), ("d", 5, "root")):
        store_run(store, name, started=started, parent=parent, iterations=3)
    runs = {run.run_id: run for run in store.runs()}
    panel.model.show(Page([runs["d"], runs["b"]], {"root": runs["root"], "a": runs["a"]}, is_last=False))
    panel.model.append(Page([runs["c"]], {}, is_last=True))
    above = panel.model.index_of("root")
    assert [panel.model.index(row, 0, above).data(SUMMARY_ROLE).run_id for row in range(4)] == ["d", "c", "b", "a"]
    assert [panel.model.index_of(name).row() for name in "dcba"] == [0, 1, 2, 3]


def test_partial_runs_say_which_part_ran(store: Store, panel: RunsPanel, qtbot: QtBot) -> None:
    store_run(store, "aaaaaaaa", started=NOW - 50, name="First", part=Part(Extent.UNTIL, "draft"))
    store_run(store, "cccccccc", started=NOW - 30, name="First", parent="aaaaaaaa", part=Part(Extent.ONLY, "draft"))
    shown(panel, qtbot)
    assert lines(panel) == ["First · up to Draft", "  Only Draft"]
    until_listed(panel, qtbot, lambda: QTest.keyClicks(panel.text, "first"))
    assert lines(panel) == ["First · only Draft, with outputs of aaaaaa", "First · up to Draft"]


def test_tooltip_of_a_partial_run_has_its_part_and_its_file(store: Store, panel: RunsPanel, qtbot: QtBot) -> None:
    source = "/texts/refine.loop.json"
    store_run(store, "aaaaaaaa", started=NOW - 50, part=Part(Extent.UNTIL, "draft"), source=source)
    part = Part(Extent.ONLY, "draft")
    store_run(store, "cccccccc", started=NOW - 30, parent="aaaaaaaa", part=part, source=source)
    shown(panel, qtbot)
    above = panel.model.index_of("aaaaaaaa")
    tips = [panel.model.index(0, 1, parent).data(Qt.ItemDataRole.ToolTipRole) for parent in (QModelIndex(), above)]
    assert "up to Draft" in tips[0]
    assert "Only Draft" in tips[1]
    assert all(source in tip for tip in tips)


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_columns_give_way_until_the_workflow_can_be_read(
    store: Store, panel: RunsPanel, qtbot: QtBot, scale: float
) -> None:
    order = ["Model", "Duration", "Tokens", "Iterations", "Cost", "Exit reason"]
    store_run(store, "aaaa", started=NOW - 50)
    shown(panel, qtbot)
    style().choose("dark", scale)
    try:
        for width in range(1800, 700, -50):
            panel.resize(width, 400)
            hidden = {COLUMNS[column] for column in range(len(COLUMNS)) if panel.view.isColumnHidden(column)}
            assert hidden == set(order[: len(hidden)])
            assert sum(map(panel.view.columnWidth, range(len(COLUMNS)))) <= panel.view.viewport().width()
            assert panel.view.columnWidth(1) >= 240 * scale
        assert hidden == set(order[:4] if scale == 1 else order)
        assert (panel.view.columnWidth(0) < 160 * scale) == (scale > 1)
        panel.resize(1800, 400)
        assert panel.view.columnWidth(0) == 160 * scale
    finally:
        style().choose("dark", 1.0)


def test_columns_keep_the_widths_that_the_user_chose(store: Store, panel: RunsPanel, qtbot: QtBot) -> None:
    store_run(store, "aaaa", started=NOW - 50)
    shown(panel, qtbot)
    panel.resize(1800, 400)
    header = panel.view.header()

    def drag_edge(column: int, by: int) -> int:
        edge = QPoint(header.sectionViewportPosition(column) + header.sectionSize(column) - 1, header.height() // 2)
        QTest.mousePress(header.viewport(), LEFT, pos=edge)
        QTest.mouseMove(header.viewport(), edge + QPoint(by, 0))
        QTest.mouseRelease(header.viewport(), LEFT, pos=edge + QPoint(by, 0))
        return header.sectionSize(column)

    before = [header.sectionSize(0), header.sectionSize(6)]
    chosen = [drag_edge(0, -60), drag_edge(6, -20)]
    assert chosen == [before[0] - 60, before[1] - 20]
    panel.resize(1700, 400)
    try:
        style().choose("light", 1.0)
        assert [header.sectionSize(0), header.sectionSize(6)] == chosen
    finally:
        style().choose("dark", 1.0)
    assert header.length() <= panel.view.viewport().width()


def test_filtered_list_says_what_a_fork_was_forked_from(store: Store, panel: RunsPanel, qtbot: QtBot) -> None:
    store_run(store, "aaaaaaaa", started=NOW - 50, name="First")
    store_run(store, "cccccccc", started=NOW - 30, name="First", parent="aaaaaaaa", error="No key.")
    shown(panel, qtbot)
    until_listed(panel, qtbot, lambda: panel.status.setCurrentIndex(panel.status.findData(RunStatus.FAILED.value)))
    assert lines(panel) == ["First · fork of aaaaaa, iteration 2"]
    assert cells(panel, 0)[4] == "No key."


def test_runs_are_filtered_by_workflow(store: Store, panel: RunsPanel, qtbot: QtBot) -> None:
    store_run(store, "aaaa", started=NOW - 50, name="Letters")
    store_run(store, "bbbb", started=NOW - 40, name="Poems")
    shown(panel, qtbot)
    until_listed(panel, qtbot, lambda: QTest.keyClicks(panel.text, "poe"))
    assert lines(panel) == ["Poems"]
    assert panel.total.text().startswith("1 run ·")
    until_listed(panel, qtbot, lambda: QTest.keyClicks(panel.text, "x"))
    assert lines(panel) == []
    assert panel.empty.text().startswith("No matching runs.")


def test_runs_are_filtered_by_date(store: Store, panel: RunsPanel, qtbot: QtBot) -> None:
    store_run(store, "aaaa", started=NOW - 40 * DAY, name="Old")
    store_run(store, "bbbb", started=NOW - 20 * DAY, name="Of this month")
    shown(panel, qtbot)
    until_listed(panel, qtbot, lambda: panel.since.setCurrentIndex(panel.since.findText("Last 30 days")))
    assert lines(panel) == ["Of this month"]
    until_listed(panel, qtbot, lambda: panel.since.setCurrentIndex(panel.since.findText("Today")))
    assert lines(panel) == []


def test_runs_are_loaded_in_pages_while_scrolling(store: Store, panel: RunsPanel, qtbot: QtBot) -> None:
    for number in range(450):
        store_run(store, f"{number:04}", started=NOW - number, iterations=0)
    shown(panel, qtbot)
    assert panel.model.rowCount() == 200
    assert panel.total.text().startswith("450 runs")
    scroll_to_end(panel, qtbot, 450)
    assert [run.run_id for run in panel.model.summaries()] == [f"{number:04}" for number in range(450)]


def test_page_that_was_asked_for_before_a_reload_leaves_no_gap(
    store: Store, panel: RunsPanel, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    monkeypatch.setattr(runs_panel, "MAX_RELOADED", PAGE)
    for number in range(4 * PAGE):
        store_run(store, f"{number:04}", started=NOW - number, iterations=0)
    shown(panel, qtbot)
    scroll_to_end(panel, qtbot, 2 * PAGE)
    qtbot.waitUntil(lambda: not panel._worker.is_busy)
    panel.reload()
    panel._read_more()
    qtbot.waitUntil(lambda: not panel._worker.is_busy)
    listed = [run.run_id for run in panel.model.summaries()]
    assert listed == [f"{number:04}" for number in range(len(listed))]


def test_older_parent_is_loaded_with_its_fork(store: Store, panel: RunsPanel, qtbot: QtBot) -> None:
    store_run(store, "old", started=NOW - 1000, name="Parent")
    for number in range(250):
        store_run(store, f"{number:04}", started=NOW - 10 - number, iterations=0, name="Other")
    store_run(store, "new", started=NOW, name="Parent", parent="old")
    shown(panel, qtbot)
    assert lines(panel)[:3] == ["Parent", "  Fork from iteration 2", "Other"]
    scroll_to_end(panel, qtbot, 251)
    assert lines(panel).count("Parent") == 1
    assert len(lines(panel)) == 252


def test_new_run_appears_and_the_selection_stays(store: Store, panel: RunsPanel, qtbot: QtBot) -> None:
    store_run(store, "aaaa", started=NOW - 50, name="First")
    shown(panel, qtbot)
    panel.view.select(["aaaa"])
    store_run(store, "bbbb", started=NOW, name="Second")
    until_listed(panel, qtbot, lambda: None)
    assert lines(panel) == ["Second", "First"]
    assert ids(panel.view.selected) == ["aaaa"]


def test_hidden_panel_does_not_poll(panel: RunsPanel, qtbot: QtBot) -> None:
    shown(panel, qtbot)
    assert panel._poll.isActive()
    panel.hide()
    assert not panel._poll.isActive()


def test_deletion_asks_first(store: Store, panel: RunsPanel, qtbot: QtBot) -> None:
    store_run(store, "aaaa", started=NOW - 50, name="First")
    store_run(store, "bbbb", started=NOW - 40, name="Second")
    shown(panel, qtbot)
    panel.view.select(["aaaa"])
    QTest.keyClick(panel.view, Qt.Key.Key_Delete)
    assert "cannot be undone" in question(panel).informativeText()
    assert question(panel).defaultButton().text() == "Cancel"
    QTest.keyClick(question(panel), Qt.Key.Key_Return)
    assert ids(store.runs()) == ["bbbb", "aaaa"]
    QTest.keyClick(panel.view, Qt.Key.Key_Delete)
    until_listed(panel, qtbot, lambda: answer(panel, "Delete"))
    assert lines(panel) == ["Second"]
    assert ids(store.runs()) == ["bbbb"]


def test_run_is_pinned_and_unpinned(store: Store, panel: RunsPanel, qtbot: QtBot) -> None:
    store_run(store, "aaaa", started=NOW - 50)
    shown(panel, qtbot)
    panel.view.select(["aaaa"])
    assert panel.actions_by_name["pin"].text() == "Pin"
    until_listed(panel, qtbot, panel.actions_by_name["pin"].trigger)
    assert store.find("aaaa").pinned
    assert panel.actions_by_name["pin"].text() == "Unpin"
    until_listed(panel, qtbot, lambda: panel.status.setCurrentIndex(panel.status.findData("pinned")))
    assert len(lines(panel)) == 1
    panel.view.select(["aaaa"])
    until_listed(panel, qtbot, panel.actions_by_name["pin"].trigger)
    assert lines(panel) == []


@pytest.mark.parametrize(("form", "ending"), [("markdown", "md"), ("json", "json"), ("csv", "csv")])
def test_run_is_exported_to_a_file(
    form: str, ending: str, store: Store, panel: RunsPanel, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    store_run(store, "aaaabbbb", started=NOW - 50, name="My letters")
    shown(panel, qtbot)
    panel.view.select(["aaaabbbb"])
    answers.to_save = tmp_path / f"out.{ending}"
    with qtbot.waitSignal(panel.run_actions.exported) as signal:
        panel.actions_by_name[f"export_{ending}"].trigger()
    assert str(answers.to_save) in signal.args[0]
    assert answers.suggested is not None
    assert answers.suggested.name == f"my-letters-aaaabb.{ending}"
    assert "r1" in answers.to_save.read_text()
    assert answers.to_save.read_bytes().startswith(b"\xef\xbb\xbf") == (form == "csv")


def test_exported_json_is_imported_again(
    store: Store, panel: RunsPanel, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    store_run(store, "aaaa", started=NOW - 50)
    shown(panel, qtbot)
    panel.view.select(["aaaa"])
    answers.to_save = answers.to_read = tmp_path / "run.json"
    before = list(store.events("aaaa"))
    with qtbot.waitSignal(panel.run_actions.exported):
        panel.actions_by_name["export_json"].trigger()
    store.delete(["aaaa"])
    until_listed(panel, qtbot, panel.reload)
    assert lines(panel) == []
    until_listed(panel, qtbot, panel.actions_by_name["import"].trigger)
    assert lines(panel) == ["Refine"]
    assert list(store.events("aaaa")) == before


def test_file_without_a_run_is_refused(panel: RunsPanel, answers: Answers, tmp_path: Path, qtbot: QtBot) -> None:
    shown(panel, qtbot)
    answers.to_read = tmp_path / "no-run.json"
    answers.to_read.write_text("{}")
    with qtbot.waitSignal(panel.run_actions.reported) as signal:
        panel.actions_by_name["import"].trigger()
    text, kind = signal.args
    assert kind == "bad"
    assert "not an exported run" in text
    assert panel.notice.text == text


def test_unwritable_file_is_reported_and_leaves_nothing(
    store: Store, panel: RunsPanel, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    store_run(store, "aaaa", started=NOW - 50)
    shown(panel, qtbot)
    panel.view.select(["aaaa"])
    answers.to_save = tmp_path / "nowhere" / "run.csv"
    with qtbot.waitSignal(panel.run_actions.export_failed) as signal:
        panel.actions_by_name["export_csv"].trigger()
    assert "Cannot write" in signal.args[0]


def test_enter_and_double_click_open_a_run(store: Store, panel: RunsPanel, qtbot: QtBot) -> None:
    store_run(store, "aaaa", started=NOW - 50)
    shown(panel, qtbot)
    panel.view.select(["aaaa"])
    with qtbot.waitSignal(panel.open_wanted) as wanted:
        QTest.keyClick(panel.view, Qt.Key.Key_Return)
    assert wanted.args == ["aaaa"]
    middle: QPoint = panel.view.visualRect(panel.model.index(0, 1)).center()
    with qtbot.waitSignal(panel.open_wanted) as wanted:
        QTest.mouseClick(panel.view.viewport(), Qt.MouseButton.LeftButton, pos=middle)
        QTest.mouseDClick(panel.view.viewport(), Qt.MouseButton.LeftButton, pos=middle)
    assert wanted.args == ["aaaa"]


def test_actions_match_the_selection(store: Store, panel: RunsPanel, qtbot: QtBot) -> None:
    store_run(store, "done", started=NOW - 50)
    store_run(store, "failed", started=NOW - 40, error="No key.")
    store_run(store, "broken", started=NOW - 30, end=False)
    shown(panel, qtbot)

    def possible() -> set[str]:
        return {name for name, action in panel.actions_by_name.items() if action.isEnabled()}

    exports = {"export_md", "export_json", "export_csv"}
    assert possible() == {"import"}
    panel.view.select(["done"])
    assert possible() == {"import", "open", "compare", "pin", "delete", *exports}
    for run_id in ("failed", "broken"):
        panel.view.select([run_id])
        assert "resume" in possible()
    panel.view.select(["done", "failed"])
    assert possible() == {"import", "compare", "pin", "delete"}


def test_two_runs_are_compared_with_the_older_on_the_left(store: Store, panel: RunsPanel, qtbot: QtBot) -> None:
    store_run(store, "aaaa", started=NOW - 50)
    store_run(store, "bbbb", started=NOW - 40)
    shown(panel, qtbot)
    panel.view.select(["bbbb", "aaaa"])
    with qtbot.waitSignal(panel.compare_wanted) as wanted:
        QTest.mouseClick(panel.buttons["compare"], Qt.MouseButton.LeftButton)
    assert wanted.args == ["aaaa", "bbbb"]


def test_unavailable_history_is_reported_in_the_panel(answers: Answers, tmp_path: Path, qtbot: QtBot) -> None:
    owner = QWidget()
    bad = tmp_path / "bad.sqlite3"
    bad.write_bytes(b"no database at all" * 100)
    access = StoreClient(bad, owner)
    panel = RunsPanel(access, answers)
    with qtbot.waitSignal(access.failed) as failed:
        access.open()
    assert failed.args[0] == access.failure
    panel.show()
    assert panel.empty.text() == f"Runs are not stored. {access.failure}"
    assert access.store is None
    assert not access.ask(lambda store: store.size())
    panel.hide()
    panel.deleteLater()
    owner.deleteLater()
    wait_for_workers(5)


def test_requests_during_opening_are_done_afterwards(tmp_path: Path, qtbot: QtBot) -> None:
    owner = QWidget()
    access = StoreClient(tmp_path / "x.sqlite3", owner, make=_no_store)
    signal: list[str] = []
    access.when_settled(lambda: signal.append("at once"))
    access.open()
    access.when_settled(lambda: signal.append(access.failure))
    assert signal == ["at once"]
    qtbot.waitUntil(lambda: len(signal) == 2)
    assert signal[1] == "It is away. Bring it back."
    owner.deleteLater()


def test_chosen_history_replaces_one_that_is_being_opened(tmp_path: Path, qtbot: QtBot) -> None:
    owner = QWidget()
    slow, chosen = tmp_path / "slow.sqlite3", tmp_path / "chosen.sqlite3"
    may_open, made = threading.Event(), dict[Path, Store]()

    def make(path: Path | None) -> Store:
        assert path is not None
        if path == slow:
            may_open.wait(60)
        return made.setdefault(path, open_store(path))

    access = StoreClient(slow, owner, make=make)
    opened: list[Store | None] = []
    access.opened.connect(lambda: opened.append(access.store))
    access.open()
    access.choose(chosen)
    may_open.set()
    qtbot.waitUntil(lambda: access.store is not None and not access.is_busy)

    assert access.path == chosen
    assert opened == [made[chosen]]
    qtbot.waitUntil(lambda: [thread.name for thread in threading.enumerate()].count("loopwright history") == 1)
    access.close()
    owner.deleteLater()
    wait_for_workers(5)


def test_failure_of_a_history_that_was_replaced_is_not_reported(tmp_path: Path, qtbot: QtBot) -> None:
    owner = QWidget()
    chosen = tmp_path / "chosen.sqlite3"
    access = StoreClient(
        tmp_path / "x", owner, make=lambda path: open_store(path) if path == chosen else _no_store(path)
    )
    failures: list[str] = []
    access.failed.connect(failures.append)
    access.open()
    access.choose(chosen)
    qtbot.waitUntil(lambda: access.store is not None)

    assert (failures, access.failure) == ([], "")
    access.close()
    owner.deleteLater()
    wait_for_workers(5)


def test_history_that_can_only_be_read_stays_open_until_another_is(tmp_path: Path, qtbot: QtBot) -> None:
    owner = QWidget()
    old, bad, good = (tmp_path / f"{name}.sqlite3" for name in ("old", "bad", "good"))
    open_store(old).close()
    bad.write_bytes(b"no database at all" * 100)

    def make(path: Path | None) -> Store:
        if path == old:
            raise StoreError("It cannot be written.")
        return open_store(path)

    access = StoreClient(old, owner, make=make)
    with qtbot.waitSignal(access.failed):
        access.open()
    kept = access.store
    assert kept is not None
    with qtbot.waitSignal(access.failed):
        access.choose(bad)
        assert access.writable is None, "while the other one is being opened"
    assert access.store is kept
    assert str(bad) in access.failure
    assert kept.runs(RunFilter(), limit=1) == []
    with qtbot.waitSignal(access.opened):
        access.choose(good)
    assert access.writable not in {None, kept}
    qtbot.waitUntil(lambda: not access.is_busy)
    with pytest.raises(StoreError):
        kept.runs(RunFilter(), limit=1)
    access.close()
    owner.deleteLater()
    wait_for_workers(5)


def _no_store(_path: Path | None) -> Store:
    raise EngineError("It is away.", "Bring it back.")


def test_circular_parents_are_listed(store: Store, panel: RunsPanel, qtbot: QtBot) -> None:
    store_run(store, "aaaa", started=NOW - 50, name="Own", parent="aaaa")
    store_run(store, "bbbb", started=NOW - 40, name="One", parent="cccc")
    store_run(store, "cccc", started=NOW - 30, name="Other", parent="bbbb")
    shown(panel, qtbot)
    assert {line.strip() for line in lines(panel)} >= {"Own · fork of aaaa, iteration 2"}
    assert len(lines(panel)) == 3


@pytest.mark.parametrize("started", [1e300, -1e300, 1e14])
def test_run_with_an_invalid_time_is_listed(store: Store, panel: RunsPanel, qtbot: QtBot, started: float) -> None:
    store_run(store, "aaaa", started=started, iterations=0)
    shown(panel, qtbot)
    assert cells(panel, 0)[:2] == ["Unknown", "Refine"]


def test_existing_file_is_not_overwritten_after_an_extension_was_added(
    store: Store, panel: RunsPanel, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    store_run(store, "aaaa", started=NOW)
    shown(panel, qtbot)
    (tmp_path / "notes v1.5.md").write_text("my own")
    answers.to_save = tmp_path / "notes v1.5"  # the dialog asked about this name alone
    panel.view.select(["aaaa"])
    panel.actions_by_name["export_md"].trigger()
    qtbot.waitUntil(lambda: not panel._access.is_busy)
    assert (tmp_path / "notes v1.5.md").read_text() == "my own"
    answer(panel, "Cancel")
    assert (tmp_path / "notes v1.5.md").read_text() == "my own"
    panel.actions_by_name["export_md"].trigger()
    answer(panel, "Replace")
    qtbot.waitUntil(lambda: (tmp_path / "notes v1.5.md").read_text().startswith("#"))
