"""Values formatted: Markdown that fetches nothing, JSON as a tree, and the window with a search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QEvent, QModelIndex, QPoint, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QFont, QGuiApplication, QKeySequence, QTextDocument
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMessageBox
from pytestqt.qtbot import QtBot

from app.inspector.json_tree import JsonTree
from app.inspector.markdown_view import MAX_FORMATTED, MarkdownView, confirm_link, formatted_document, has_markdown
from app.inspector.result_page import ResultSectionView
from app.inspector.result_text import ResultSection, json_container
from app.inspector.text_widgets import INITIAL_CHARACTERS, LongTextView
from app.inspector.value_view import ValueView, ValueViewer
from app.theme.style import reading_mode, style
from app.theme.tokens import DARK, LIGHT
from engine.values import Value

CTRL = Qt.KeyboardModifier.ControlModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture(autouse=True)
def formatted() -> Iterator[None]:
    reading_mode().choose(is_formatted=True)
    yield
    reading_mode().choose(is_formatted=True)


@pytest.mark.parametrize(
    "text",
    ["# Title", "- one", "1. one", "a **b** c", "`x`", "```\nx\n```", "> said", "[a](b)", "|a|b|", "so *very* so"],
)
def test_markdown_is_recognized(text: str) -> None:
    assert has_markdown(text)


@pytest.mark.parametrize(
    "text",
    ["", "Just words.", "3 * 4 * 5", "#hashtag", "snake_case_name", "a - b", "x" * MAX_FORMATTED + " **b**", "|" * 500],
)
def test_other_texts_stay_plain(text: str) -> None:
    assert not has_markdown(text)


def test_markdown_is_rendered_and_html_stays_text(qapp: QApplication) -> None:
    document = formatted_document("# Title\n\na **bold** word <b>x</b> <img src='/etc/passwd'>")
    assert document.toPlainText() == "Title\na bold word <b>x</b> <img src='/etc/passwd'>"
    assert document.firstBlock().blockFormat().headingLevel() == 1


def test_strong_words_have_a_weight_that_the_bundled_font_has(qapp: QApplication) -> None:
    document = formatted_document("a **b** ***c***\n\n| **d** | e |\n|-|-|\n| **f** | g |\n\n# h **i**")
    weights = {}
    for number in range(document.blockCount()):
        block = document.findBlockByNumber(number)
        for piece in block.textFormats():
            text = block.text()[piece.start : piece.start + piece.length].strip()
            weights[text] = piece.format.fontWeight(), piece.format.fontItalic()
    normal, strong = QFont.Weight.Normal, QFont.Weight.DemiBold
    assert weights == {
        "a": (normal, False),
        "b": (strong, False),
        "c": (QFont.Weight.Bold, True),  # the font's only italic is of normal weight
        "": (normal, False),
        **dict.fromkeys("bdefhi", (strong, False)),
        "g": (normal, False),
    }


def test_line_breaks_of_a_paragraph_stay_and_lists_are_not_split(qapp: QApplication) -> None:
    assert formatted_document("Roses are red,\nviolets are *blue*.").toPlainText() == (
        "Roses are red,\nviolets are blue."
    )
    assert formatted_document("1. one\n   and more\n2. two").toPlainText() == "one and more\ntwo"
    assert formatted_document("```\na\nb\n```").toPlainText() == "a\nb"


def test_links_are_told_by_more_than_color(qapp: QApplication) -> None:
    document = formatted_document("see [here](https://e.org) now")
    pieces = document.firstBlock().textFormats()
    assert [piece.format.fontUnderline() for piece in pieces] == [False, True, False]


def test_front_matter_is_not_hidden(qapp: QApplication) -> None:
    assert "title: x" in formatted_document("---\ntitle: x\n---\n# H").toPlainText()


def test_images_become_links_and_nothing_is_loaded(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = tmp_path / "secret.png"
    loaded: list[object] = []
    monkeypatch.setattr(QTextDocument, "loadResource", lambda *args: loaded.append(args))
    monkeypatch.setattr(MarkdownView, "loadResource", lambda *args: loaded.append(args))
    view = MarkdownView("Reply")
    qtbot.addWidget(view)
    view.show_text(f"![a cat]({picture}) ![b][1] **x**\n\n[1]: https://example.org/x.png")
    view.show()
    qtbot.waitExposed(view)
    view.grab()
    assert view.toPlainText() == "[Image: a cat] [Image: b] x"
    assert [piece.format.anchorHref() for piece in view.document().firstBlock().textFormats()][:1] == [str(picture)]
    assert loaded == []


PIECES = st.sampled_from(
    [
        "|",
        "|-|-|\n",
        "# ",
        "> ",
        "- ",
        "1. ",
        "    ",
        *["```", "`", "[", "](", "x)", "![", "<b>", "&amp;", "**", "~~", "_", "\\", "a", "😀"],
    ]
)
TEXTS = st.lists(PIECES | st.sampled_from(["\n", "\n\n", "  \n", "---\n", "\x00", "\ud800"]), max_size=40).map("".join)


@given(TEXTS)
def test_any_text_can_be_formatted(qapp: QApplication, text: str) -> None:
    document = formatted_document(text)
    assert all(
        not piece.format.isImageFormat()
        for number in range(document.blockCount())
        for piece in document.findBlockByNumber(number).textFormats()
    )


def button(box: QMessageBox, text: str) -> object:
    return next(button for button in box.buttons() if button.text() == text)


def test_link_shows_its_target_and_opens_only_on_request(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toString()))
    view = MarkdownView("Reply")
    qtbot.addWidget(view)
    view.resize(400, 200)
    view.show_text("[here](https://evil.example/x) **x**")
    view.show()
    qtbot.waitExposed(view)
    QTest.mouseClick(view.viewport(), LEFT, pos=QPoint(15, 15))
    (box,) = view.findChildren(QMessageBox)
    assert box.informativeText() == "https://evil.example/x"
    assert box.defaultButton().text() == "Cancel"
    assert opened == []
    button(box, "Open").click()  # type: ignore[attr-defined]
    assert opened == ["https://evil.example/x"]


@pytest.mark.parametrize("target", ["file:///etc/passwd", "javascript:alert(1)", "x.html", "ftp://e.org"])
def test_other_targets_are_not_opened(qtbot: QtBot, target: str) -> None:
    view = MarkdownView("Reply")
    qtbot.addWidget(view)
    box = confirm_link(view, QUrl(target))
    assert sorted(one.text() for one in box.buttons()) == ["Cancel", "Copy"]
    box.close()


def test_json_is_recognized_in_values_and_texts() -> None:
    assert json_container({"a": 1}) == {"a": 1}
    assert json_container(" [1, 2]") == [1, 2]
    none: list[Value] = ["{x", "text", 3, True, None, {}, [], "[]", '"text"']
    assert [json_container(value) for value in none] == [None] * len(none)


NESTED: Value = {"done": False, "items": [{"name": "a"}, {"odd key": "find me"}], "text": "two\nlines"}


@pytest.fixture
def tree(qtbot: QtBot) -> JsonTree:
    tree = JsonTree("Output")
    qtbot.addWidget(tree)
    tree.show_value(NESTED)
    tree.show()
    qtbot.waitExposed(tree)
    return tree


def rows(tree: JsonTree) -> list[tuple[str, str]]:
    """The visible rows."""
    found: list[tuple[str, str]] = []
    index = tree.json.index(0, 0)
    while index.isValid():
        found.append((index.data(), index.siblingAtColumn(1).data()))
        index = tree.indexBelow(index)
    return found


def test_json_is_a_tree_that_is_expanded_as_far_as_there_is_room(tree: JsonTree) -> None:
    assert rows(tree) == [
        ("done", "false"),
        ("items", "2 items"),
        ("0", "1 entry"),
        ("name", "a"),
        ("1", "1 entry"),
        ("odd key", "find me"),
        ("text", "two lines"),
    ]


def test_value_and_path_are_copied_by_key(tree: JsonTree) -> None:
    tree.setFocus()
    tree.go_to((1, 1, 0))
    QTest.keyClick(tree, Qt.Key.Key_C, CTRL)
    assert QGuiApplication.clipboard().text() == "find me"
    QTest.keyClick(tree, Qt.Key.Key_C, CTRL | SHIFT)
    assert QGuiApplication.clipboard().text() == 'items[1]["odd key"]'
    tree.go_to((2,))
    QTest.keyClick(tree, Qt.Key.Key_C, CTRL)
    assert QGuiApplication.clipboard().text() == "two\nlines"
    assert [action.text() for action in tree.actions()] == ["Copy value", "Copy path"]


def test_model_text_is_not_markup_in_the_tree(tree: JsonTree) -> None:
    tree.show_value({"a": "<b>x</b>"})
    tip = tree.json.index(0, 1).data(Qt.ItemDataRole.ToolTipRole)
    assert "&lt;b&gt;x&lt;/b&gt;" in tip


def test_a_large_list_is_added_in_pieces_and_its_end_can_be_reached(tree: JsonTree) -> None:
    tree.show_value([{"number": number} for number in range(20_000)])
    assert tree.json.rowCount() < 2_000
    (place,) = tree.occurrences("19999")[-1:]
    tree.go_to(place)
    assert tree.currentIndex().data() in {"number", "19999"}
    assert tree.json.rowCount(QModelIndex()) == 20_000


def section(qtbot: QtBot, value: Value, *, is_exact: bool = False) -> ResultSectionView:
    view = ResultSectionView()
    qtbot.addWidget(view)
    view.show_section(ResultSection("a", "Reply", value, is_exact=is_exact))
    view.show()
    qtbot.waitExposed(view)
    return view


def test_plain_text_is_one_click_away_for_all_sections(qtbot: QtBot) -> None:
    one, other = section(qtbot, "a **b**"), section(qtbot, {"a": 1})
    assert (one.value.shown, other.value.shown) == (one.value.markdown, other.value.tree)
    assert not one.content.isVisible()
    QTest.mouseClick(one.format, LEFT)
    assert one.content.isVisible()
    assert one.content.view.text() == "a **b**"
    assert not one.value.markdown.isVisible()
    assert other.value.shown is other.value.plain
    assert section(qtbot, "a **b**").value.shown.isVisible()
    QTest.mouseClick(other.format, LEFT)
    assert one.value.markdown.isVisible()


def test_what_cannot_be_formatted_has_no_button(qtbot: QtBot) -> None:
    assert not section(qtbot, "words").format.isVisible()
    assert not section(qtbot, "a **b**", is_exact=True).format.isVisible()
    assert section(qtbot, "a **b**", is_exact=True).content.isVisible()


def test_sent_messages_and_growing_texts_are_never_formatted(qtbot: QtBot) -> None:
    view = ValueView("Prompt")
    qtbot.addWidget(view)
    view.show_value('{"a": 1}', is_exact=True)
    assert view.shown is view.plain


Open = Callable[[Value], ValueViewer]


@pytest.fixture
def viewer(qtbot: QtBot) -> Iterator[Open]:
    """Opens a value in a window, as the button of its section does."""
    openers: list[ResultSectionView] = []

    def make(value: Value) -> ValueViewer:
        openers.append(section(qtbot, value))
        QTest.mouseClick(openers[-1].open, LEFT)
        (made,) = openers[-1].findChildren(ValueViewer)
        with qtbot.waitActive(made):
            made.activateWindow()
        return made

    yield make
    openers.clear()


def test_viewer_searches_with_the_keyboard_and_counts(viewer: Open, qtbot: QtBot) -> None:
    made = viewer("One two.\n**Two** and two.")
    QTest.keySequence(made, QKeySequence(QKeySequence.StandardKey.Find))
    assert made.search.hasFocus()
    QTest.keyClicks(made.search, "two")
    assert (made.hits, made.count.text()) == (3, "1 of 3")
    QTest.keyClick(made.search, Qt.Key.Key_Return)
    assert made.count.text() == "2 of 3"
    QTest.keyClick(made, Qt.Key.Key_F3)
    QTest.keyClick(made, Qt.Key.Key_F3)
    assert made.count.text() == "1 of 3"
    QTest.keyClick(made, Qt.Key.Key_F3, SHIFT)
    assert made.count.text() == "3 of 3"
    marked = [one.cursor.selectedText() for one in made.view.markdown.extraSelections()]
    assert marked == ["two", "Two", "two"]
    QTest.keyClicks(made.search, "!")
    assert (made.hits, made.count.text(), made.next.isEnabled()) == (0, "No matches", False)


@pytest.mark.parametrize("text", ["One two.\n**Two** and two.", "One two. Two."])
def test_hits_in_the_viewer_follow_the_theme_and_stay_in_place(viewer: Open, text: str) -> None:
    made = viewer(text + "\n\nThe end." * 200)
    made.search.setText("two")
    shown = made.view.shown
    edit = shown.view if isinstance(shown, LongTextView) else made.view.markdown
    edit.verticalScrollBar().setValue(40)
    theme = LIGHT if style().theme is DARK else DARK
    before = style().theme
    style().choose(theme.name)
    grounds = [one.format.background().color().name() for one in edit.extraSelections()]
    style().choose(before.name)
    assert grounds == [theme.accent, *[theme.warning_soft] * (made.hits - 1)]
    assert edit.verticalScrollBar().value() == 40


def test_search_field_of_the_viewer_follows_the_text_size(viewer: Open) -> None:
    made = viewer("One two.")
    width = made.search.minimumWidth()
    style().choose(style().theme.name, 1.5)
    widened = made.search.minimumWidth()
    style().choose(style().theme.name, 1.0)
    assert (widened, made.search.minimumWidth()) == (1.5 * width, width)


def test_viewer_finds_what_follows_the_beginning_of_a_long_text(viewer: Open, qtbot: QtBot) -> None:
    made = viewer("word\n" * INITIAL_CHARACTERS + "needle")
    made.search.setText("needle")
    qtbot.waitUntil(lambda: made.count.text() == "1 of 1")
    assert made.view.plain.view.textCursor().block().text() == "needle"


def test_viewer_searches_in_json_and_in_its_plain_text(viewer: Open, qtbot: QtBot) -> None:
    made = viewer(NESTED)
    made.search.setText("find me")
    assert made.count.text() == "1 of 1"
    assert made.view.tree.currentIndex().data() == "odd key"
    reading_mode().choose(is_formatted=False)
    assert made.count.text() == "1 of 1"
    assert made.view.plain.view.textCursor().block().text().strip() == '"odd key": "find me"'
    made.copy.click()
    assert QGuiApplication.clipboard().text() == made.view.plain.text


def test_escape_closes_the_viewer(viewer: Open, qtbot: QtBot) -> None:
    made = viewer("words")
    closed: list[int] = []
    made.finished.connect(closed.append)
    QTest.keyClick(made, Qt.Key.Key_Escape)
    assert closed == [0]
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
