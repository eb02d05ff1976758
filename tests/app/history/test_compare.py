"""The Compare window: highlights, matching positions, and responsiveness."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import Qt
from PySide6.QtGui import QTextCursor
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.history.compare_pane import Change, ComparePane, Comparison, compare, shown, split_into_words, summary
from app.history.compare_window import CompareWindow, SideContent, live_compared_run
from app.history.store_client import StoreClient
from app.theme.style import style
from app.worker import Worker
from engine.document.files import dumps
from engine.errors import EngineError
from engine.events import AnyEvent, LoopIterationStarted, RunStarted
from engine.plan.structure import analyse
from engine.runner.run_storage import RunHead
from engine.store import Store
from tests.app.history.loop_samples import iteration, loop_model, nested_loops, one_loop, start_iteration
from tests.app.history.stored_runs import refine, refine_script, run_and_store


def test_changes_are_highlighted_in_their_text() -> None:
    found = compare("The sea is wide.", "The sea is deep and wide.")
    assert found.changes == (Change((11, 11), (11, 20)),)
    assert found.marks(is_left=True) == []
    assert found.marks(is_left=False) == [(11, 20)]
    assert summary(found) == "1 place differs: 0 words removed, 2 words added."


def test_equal_and_empty_texts_are_reported() -> None:
    assert summary(compare("a", "a")) == "The texts are identical."
    assert summary(compare("", "")) == "Both texts are empty."


def test_ranges_count_utf16_units() -> None:
    found = compare("😀 one", "😀 two")
    assert found.changes == (Change((3, 6), (3, 6)),)


def test_unsupported_characters_are_replaced() -> None:
    assert shown("a\r\nb\rc\u2029d\x00\ud800") == "a\nb\nc\nd\ufffd\ufffd"


def test_position_maps_to_the_other_text() -> None:
    found = compare("one two three", "one 2 three")
    assert found.matching_position(0, is_left=True) == 0
    assert found.matching_position(8, is_left=True) == 6
    assert found.matching_position(6, is_left=False) == 8


texts = st.lists(st.sampled_from(["word ", "😀", "line\n", "x" * 5000, "é", "\u2029"]), max_size=8).map("".join)


@given(texts, texts)
def test_unmarked_text_is_equal_on_both_sides(left: str, right: str) -> None:
    found = compare(left, right)
    rests: list[bytes] = []
    for text, is_left in ((found.left, True), (found.right, False)):
        units = text.encode("utf-16-le")
        for start, end in reversed(found.marks(is_left=is_left)):
            units = units[: 2 * start] + units[2 * end :]
        rests.append(units.replace(b"\n\x00", b""))
    assert rests[0] == rests[1]
    assert max((len(line) for line in (found.left + "\n" + found.right).split("\n")), default=0) <= 2001


@pytest.fixture
def pane(qtbot: QtBot) -> ComparePane:
    pane = ComparePane("Left text", is_left=True)
    qtbot.addWidget(pane)
    pane.resize(300, 200)
    pane.show()
    return pane


def marked(pane: ComparePane) -> list[str]:
    """The highlighted pieces of the text."""
    found: list[str] = []
    block = pane.document().begin()
    while block.isValid():
        for piece in block.layout().formats():
            assert piece.format.fontStrikeOut() or piece.format.fontUnderline()
            assert piece.format.background().color().name() in {style().theme.bad_soft, style().theme.good_soft}
            found.append(block.text()[piece.start : piece.start + piece.length])
        block = block.next()
    return found


def test_highlights_span_lines_and_follow_the_theme(pane: ComparePane, qtbot: QtBot) -> None:
    pane.show_text("one two\nthree four\nfive", [(4, 13)])
    assert marked(pane) == ["two", "three"]
    style().choose("light")
    assert marked(pane) == ["two", "three"]
    style().choose("dark")
    assert pane.isReadOnly()


def test_megabyte_is_inserted_in_chunks(pane: ComparePane, qtbot: QtBot) -> None:
    text = "some words that stand in a line of their own\n" * 23_000
    ranges = [(start, start + 4) for start in range(0, len(text), 900)]
    pane.show_text(text, ranges)
    assert pane.document().characterCount() < 50_000
    with qtbot.waitSignal(pane.filled):
        pass
    assert pane.document().characterCount() == len(text) + 1
    assert len(marked(pane)) == len(ranges)


@pytest.fixture
def compared(access: StoreClient, qtbot: QtBot) -> Iterator[CompareWindow]:
    window = CompareWindow(access)
    window.resize(900, 600)
    yield window
    window.hide()
    qtbot.waitUntil(lambda: not any(worker.is_busy for worker in window.findChildren(Worker)))
    window.deleteLater()


def show(window: CompareWindow, qtbot: QtBot, left: SideContent, right: SideContent) -> None:
    with qtbot.waitSignal(window.compared):
        window.show_pair(left, right)


def choose(window: CompareWindow, qtbot: QtBot, box: object, text: str) -> None:
    """Choose an entry with the keyboard."""
    box.setFocus()  # type: ignore[attr-defined]
    with qtbot.waitSignal(window.compared):
        at = box.findText(text)  # type: ignore[attr-defined]
        assert at >= 0, [box.itemText(row) for row in range(box.count())]  # type: ignore[attr-defined]
        box.setCurrentIndex(at)  # type: ignore[attr-defined]
        box.activated.emit(at)  # type: ignore[attr-defined]


def test_two_iterations_of_a_run_are_compared(
    store: Store, compared: CompareWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    run_id = run_and_store(store, refine(), refine_script(tmp_path / "s.json"))
    show(compared, qtbot, SideContent(run_id, "loop[0]"), SideContent(run_id, "loop[2]"))
    assert [pane.toPlainText() for pane in compared.panes] == [
        "The sea is wide, draft 1.",
        "The sea is wide, draft 3.",
    ]
    assert [marked(pane) for pane in compared.panes] == [["1"], ["3"]]
    assert compared.line.text() == "1 place differs: 1 word removed, 1 word added."
    choose(compared, qtbot, compared.left.what, "Feedback")
    assert compared.right.what.currentText() == "Feedback"
    assert [pane.toPlainText() for pane in compared.panes] == ["Say more, advice 1.", "Say more, advice 3."]
    choose(compared, qtbot, compared.left.what, "Draft · prompt")
    assert [pane.toPlainText() for pane in compared.panes] == [
        "user:\nWrite: the sea",
        "user:\nWrite: Say more, advice 2.",
    ]
    choose(compared, qtbot, compared.right.place, "Iteration 2")
    assert compared.panes[1].toPlainText() == "user:\nWrite: Say more, advice 1."
    choose(compared, qtbot, compared.right.place, "Whole run")
    assert compared.panes[1].toPlainText() == "The sea is wide, draft 3."


def test_iterations_of_several_loops_have_the_titles_of_the_loops() -> None:
    def labels(*places: str) -> list[str]:
        view_model = loop_model(path="outer")
        for path in places:
            start_iteration(view_model, 0, path=path)
        return [label for _, label in live_compared_run("Nested", analyse(nested_loops()), view_model).places()]

    assert labels("outer", "outer[0].inner")[:2] == ["Iteration 1", "Outer 1, Inner 1"]
    assert labels("outer", "inner")[:2] == ["Outer: iteration 1", "Inner: iteration 1"]


def test_another_run_keeps_iteration_and_text_kind(
    store: Store, compared: CompareWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    first = run_and_store(store, refine(name="One"), refine_script(tmp_path / "s.json"))
    run_and_store(store, refine(name="Two"), refine_script(tmp_path / "t.json", count=1))
    show(
        compared,
        qtbot,
        SideContent(first, "loop[1]", ("draft", "output")),
        SideContent(first, "loop[1]", ("draft", "output")),
    )
    other = next(text for at in range(compared.right.run.count()) if "Two" in (text := compared.right.run.itemText(at)))
    choose(compared, qtbot, compared.right.run, other)
    assert compared.right.place.currentText() == "Iteration 2"
    assert compared.right.what.currentText() == "Draft · output"
    assert compared.panes[1].toPlainText() == "Something else entirely."


def test_two_runs_are_compared_at_their_last_iterations_whatever_was_compared_before(
    store: Store, compared: CompareWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    first, second = (run_and_store(store, refine(name=name), refine_script(tmp_path / name)) for name in ("One", "Two"))
    show(compared, qtbot, SideContent(first, "loop[0]"), SideContent(first, "loop[1]"))
    show(compared, qtbot, SideContent(first), SideContent(second))
    assert compared.left.place.currentText() == compared.right.place.currentText() == "Iteration 3"


def test_run_chosen_last_is_shown_although_another_is_still_being_read(
    store: Store, compared: CompareWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    first = run_and_store(store, refine(name="One"), refine_script(tmp_path / "s.json"))
    other = run_and_store(store, refine(name="Two"), refine_script(tmp_path / "t.json", count=1))
    show(compared, qtbot, SideContent(first), SideContent(first))
    compared.left.run_chosen.emit(other)
    compared.left.run_chosen.emit(first)
    qtbot.waitUntil(lambda: not compared.left.reader.is_busy)
    assert compared.left.source is not None
    assert compared.left.source.run_id == first


def test_f7_goes_to_the_next_and_shift_f7_to_the_previous_change(compared: CompareWindow, qtbot: QtBot) -> None:
    comparison = compare("one two three four five", "one 2 three 4 five")
    compared.show()
    compared._show(comparison)
    compared.activateWindow()
    qtbot.waitUntil(compared.isActiveWindow)
    for number in (1, 2, 1):
        QTest.keyClick(compared, Qt.Key.Key_F7)
        assert compared.line.text().startswith(f"Change {number} of 2.")
        place = comparison.changes[number - 1]
        assert [pane.textCursor().position() for pane in compared.panes] == [place.left[0], place.right[0]]
    QTest.keyClick(compared, Qt.Key.Key_F7, Qt.KeyboardModifier.ShiftModifier)
    assert compared.line.text().startswith("Change 2 of 2.")


def test_both_sides_scroll_together(compared: CompareWindow, qtbot: QtBot) -> None:
    lines = [f"line {number}\n" for number in range(200)]
    comparison = compare("".join(lines), "".join(["new\n"] * 50 + lines))
    compared.show()
    compared._show(comparison)
    left, right = compared.panes
    qtbot.waitUntil(lambda: left.verticalScrollBar().maximum() > 100)
    left.verticalScrollBar().setValue(100)
    assert right.firstVisibleBlock().text() == "line 100"
    right.verticalScrollBar().setValue(70)
    assert left.firstVisibleBlock().text() == "line 20"


def test_sides_are_swapped(store: Store, compared: CompareWindow, tmp_path: Path, qtbot: QtBot) -> None:
    run_id = run_and_store(store, refine(), refine_script(tmp_path / "s.json"))
    show(compared, qtbot, SideContent(run_id, "loop[0]"), SideContent(run_id, "loop[1]", ("draft", "input")))
    before = [pane.toPlainText() for pane in compared.panes]
    with qtbot.waitSignal(compared.compared):
        QTest.mouseClick(compared.swap, Qt.MouseButton.LeftButton)
    assert [pane.toPlainText() for pane in compared.panes] == before[::-1]
    assert compared.left.chosen_place == "loop[1]"


def test_deleted_run_is_reported(store: Store, compared: CompareWindow, qtbot: QtBot) -> None:
    compared.show_pair(SideContent("nobody"), SideContent("nobody"))
    qtbot.waitUntil(lambda: "There is no run" in compared.line.text())


def test_deleted_run_is_not_named_above_texts_of_another(
    store: Store, compared: CompareWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    first = run_and_store(store, refine(name="One"), refine_script(tmp_path / "s.json"))
    other = run_and_store(store, refine(name="Two"), refine_script(tmp_path / "t.json", count=1))
    show(compared, qtbot, SideContent(first, "loop[0]"), SideContent(first, "loop[1]"))
    store.delete([other])
    box = compared.right.run
    box.setCurrentIndex(box.findData(other))
    box.activated.emit(box.currentIndex())
    qtbot.waitUntil(lambda: "There is no run" in compared.line.text())
    assert box.currentData() == first


def test_unstored_run_can_be_selected_again(
    store: Store, compared: CompareWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    run_and_store(store, refine(name="Kept"), refine_script(tmp_path / "s.json"))
    unkept = live_compared_run("Not kept", analyse(one_loop()), loop_model("the sea", "a sea"))
    show(compared, qtbot, SideContent(unkept, "loop[0]"), SideContent(unkept, "loop[1]"))
    qtbot.waitUntil(lambda: compared.left.run.count() == 2)
    stored = next(text for at in range(2) if "Kept" in (text := compared.left.run.itemText(at)))
    for side in (compared.left, compared.right):
        choose(compared, qtbot, side.run, stored)
    assert compared.panes[0].toPlainText() == "The sea is wide, draft 1."
    choose(compared, qtbot, compared.left.run, "Not kept")
    assert compared.panes[0].toPlainText() == "the sea"
    assert compared.left.run.currentText() == "Not kept"


def test_text_is_selected_and_copied_by_keyboard(pane: ComparePane, qtbot: QtBot) -> None:
    pane.show_text("one two", [])
    pane.setFocus()
    QTest.keyClick(pane, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    cursor: QTextCursor = pane.textCursor()
    assert cursor.selectedText() == "one two"


def noise(seed: int, words: int) -> str:
    """Unique words in one line."""
    return " ".join(f"{number * 7919 % 100_003:x}{seed}" for number in range(words))


def test_new_selection_cancels_the_comparison_and_the_window_stays_responsive(
    compared: CompareWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes: list[str] = []
    begun = threading.Event()

    def watched(left: str, right: str, check: Callable[[], None]) -> Comparison:
        try:
            begun.set()
            found = compare(left, right, check)
        except EngineError:
            outcomes.append("ended")
            raise
        outcomes.append("compared")
        return found

    monkeypatch.setattr("app.history.compare_window.compare", watched)
    view_model = loop_model(noise(1, 50_000), noise(2, 50_000), "the sea", "a sea")
    source = live_compared_run("Noise", analyse(one_loop()), view_model)
    compared.show_pair(SideContent(source, "loop[0]"), SideContent(source, "loop[1]"))
    qtbot.waitUntil(begun.is_set)  # the window's thread continues during the comparison
    assert outcomes == []
    with qtbot.waitSignal(compared.compared):
        compared.show_pair(SideContent(source, "loop[2]"), SideContent(source, "loop[3]"))
    assert outcomes == ["ended", "compared"]
    assert [pane.toPlainText() for pane in compared.panes] == ["the sea", "a sea"]
    assert compared.line.text() == "1 place differs: 1 word removed, 1 word added."


def test_two_texts_of_a_megabyte_are_compared() -> None:
    left = "".join(f"word{number % 997} " + ("\n" if number % 11 == 0 else "") for number in range(130_000))
    right = left.replace("word500 ", "other ")
    assert len(compare(left, right).changes) == 130


def test_changed_run_is_read_again(store: Store, compared: CompareWindow, qtbot: QtBot) -> None:
    journal = store.begin(RunHead("aaaa", dumps(refine()), {}, "", "", ""))
    told_so_far: list[AnyEvent] = []

    def tell(*events: AnyEvent) -> None:
        for event in events:
            told_so_far.append(replace(event, run_id="aaaa", seq=len(told_so_far)))
            journal.write(told_so_far[-1])
        qtbot.waitUntil(lambda: len(list(store.events("aaaa"))) == len(told_so_far))

    def iterate(index: int) -> None:
        tell(LoopIterationStarted("", 0, 1.0, "loop", index, 3, "in"), iteration(index, f"draft {index + 1}"))

    try:
        tell(RunStarted("", 0, 1.0, "", "Refine", {}, ("scripted:x",), "", ""))
        iterate(0)
        iterate(1)
        show(compared, qtbot, SideContent("aaaa", "loop[0]"), SideContent("aaaa", "loop[1]"))
        assert [pane.toPlainText() for pane in compared.panes] == ["draft 1", "draft 2"]
        iterate(2)
        show(compared, qtbot, SideContent("aaaa", "loop[1]"), SideContent("aaaa", "loop[2]"))
        assert [pane.toPlainText() for pane in compared.panes] == ["draft 2", "draft 3"]
        assert compared.right.chosen_place == "loop[2]"
    finally:
        journal.close()


def test_long_sentence_does_not_widen_the_window(compared: CompareWindow, qtbot: QtBot) -> None:
    compared.show()
    compared._fail(EngineError("The history cannot be read. " * 10, "Look whether its disk is there."))
    compared.layout().activate()
    assert compared.minimumSizeHint().width() <= 640
    assert compared.width() == 900


def test_distant_change_is_shown_during_insertion_and_kept_with_a_new_theme(
    compared: CompareWindow, qtbot: QtBot, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(lambda: style().choose("dark"))
    lines = [f"line {number} of it\n" for number in range(3000)]
    comparison = compare("".join(lines), "".join([*lines[:2900], "a new one\n", *lines[2901:]]))
    compared.show()
    compared._show(comparison)
    compared.step(1)

    def stand_there() -> bool:
        chosen = [[mark.cursor.selectedText() for mark in pane.extraSelections()] for pane in compared.panes]
        first, second = (pane.firstVisibleBlock().blockNumber() for pane in compared.panes)
        return chosen == [["line 2900 of it"], ["a new one"]] and 2800 < first <= 2900 and 2800 < second <= 2900

    qtbot.waitUntil(stand_there)
    style().choose("light")
    qtbot.waitUntil(lambda: all(pane.is_filled for pane in compared.panes))
    assert stand_there()


@pytest.mark.parametrize(
    ("left", "right", "removed", "added"),
    [
        ("我喜欢红色的苹果。", "我喜欢绿色的苹果。", "红", "绿"),
        ("これは良い文章です。", "これは悪い文章です。", "良", "悪"),
        ("A red apple 红.", "A red apple 绿.", "红", "绿"),
    ],
)
def test_scripts_without_spaces_are_compared_by_words(left: str, right: str, removed: str, added: str) -> None:
    comparison = compare(left, right)
    [change] = comparison.changes
    assert removed[0] in left[slice(*change.left)]
    assert len(left[slice(*change.left)]) <= len(removed) + 1
    assert added[0] in right[slice(*change.right)]
    assert (comparison.words_left, comparison.words_right) == (1, 1)


def test_thai_is_compared_by_words() -> None:
    left, right = "ฉันชอบสีแดง", "ฉันชอบสีเขียว"
    [change] = compare(left, right).changes
    assert (left[slice(*change.left)], right[slice(*change.right)]) == ("แดง", "เขียว")


@given(st.text(max_size=60))
def test_words_joined_are_the_text(text: str) -> None:
    shown_text = shown(text)
    assert "".join(split_into_words(shown_text)) == shown_text
