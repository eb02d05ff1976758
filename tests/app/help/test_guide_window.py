"""The window of the user guide."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QTimer, QUrl
from PySide6.QtGui import QFont, QTextCursor, QTextDocument
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractSlider, QApplication, QMessageBox
from pytestqt.qtbot import QtBot

from app.help.guide import Guide
from app.help.guide_window import RESIZE_DELAY_MS, GuideWindow
from app.theme.style import style
from app.theme.tokens import DARK, LIGHT, Theme
from app.workbench import Workbench
from engine.bundled import docs_folder
from tests.app.window.conftest import answers, make_window, preferences, question, script, workbench

__all__ = ["answers", "make_window", "preferences", "script", "workbench"]

LEFT = Qt.MouseButton.LeftButton
ALT = Qt.KeyboardModifier.AltModifier


@pytest.fixture(scope="module")
def guide() -> Guide:
    return Guide.read(docs_folder())


@pytest.fixture
def window(qtbot: QtBot, guide: Guide) -> Iterator[GuideWindow]:
    window = GuideWindow(guide=guide)
    qtbot.addWidget(window)
    window.resize(1000, 700)
    with qtbot.waitExposed(window):
        window.show()
    qtbot.waitUntil(lambda: bool(window.view.name))
    yield window
    style().choose("dark", 1.0)


def heading_at_top(window: GuideWindow) -> str:
    """The last heading that begins above the second visible line."""
    view = window.view
    top = view.cursorForPosition(view.viewport().rect().topLeft()).block()
    following = top.next()
    return following.text() if following.blockFormat().headingLevel() else top.text()


def follow(window: GuideWindow, link: str) -> None:
    window.view.anchorClicked.emit(QUrl(link))


def test_guide_opens_with_the_page_about_the_window(window: GuideWindow) -> None:
    assert window.view.name == "window.md"
    assert window.contents.currentItem().text(0) == "Window"
    assert "Click Run (F5)" in window.view.toPlainText()
    assert not window.back.isEnabled()


def test_pictures_are_shown_in_the_theme_and_fit_the_page(window: GuideWindow, qtbot: QtBot) -> None:
    view = window.view

    def loaded(name: str) -> bool:
        image = view.document().resource(QTextDocument.ResourceType.ImageResource, QUrl(f"images/gallery-{name}.png"))
        return image is not None and image.width() > 100

    qtbot.waitUntil(lambda: loaded("dark"))
    assert max(picture_widths(window)) <= view.viewport().width()
    assert min(picture_widths(window)) > 200
    style().choose("light")
    qtbot.waitUntil(lambda: loaded("light"))
    wide = view.viewport().width()
    window.resize(700, 600)
    qtbot.waitUntil(lambda: max(picture_widths(window)) <= view.viewport().width() < wide)


@pytest.fixture
def described(window: GuideWindow, qtbot: QtBot, tmp_path: Path) -> GuideWindow:
    """The guide of an installed package, which has no pictures."""
    pages = {"README.md": "**Use it**\n\n- [Window](window.md)\n", "window.md": PAGE}
    for name, text in pages.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    shown = GuideWindow(guide=Guide.read(tmp_path))
    qtbot.addWidget(shown)
    shown.show()
    qtbot.waitUntil(lambda: bool(shown.view.name))
    return shown


PAGE = (
    "# Window\n\nText.\n\n![A zebra, *left* of it](images/zebra-light.png)\n\n"
    "1. Step.\n\n   ![Its list](images/list.png)\n"
)


@pytest.mark.parametrize("theme", [DARK, LIGHT])
def test_missing_pictures_are_described_in_their_places(described: GuideWindow, theme: Theme) -> None:
    style().choose(theme.name)
    view = described.view
    lines = [line for line in view.toPlainText().splitlines() if line.strip()]
    (zebra, in_list) = (number for number, line in enumerate(lines) if line.startswith("Picture: "))

    assert ["zebra" in lines[zebra], "list" in lines[in_list]] == [True, True]
    assert (lines[zebra - 1], lines[in_list - 1]) == ("Text.", "Step.")
    assert picture_widths(described) == []
    cursor = view.document().find("zebra")
    assert cursor.charFormat().foreground().color().name() == theme.dim


def test_description_of_a_missing_picture_is_found_and_highlighted(described: GuideWindow, qtbot: QtBot) -> None:
    QTest.keyClicks(described.search, "zebra")
    qtbot.waitUntil(lambda: described.hits.count() == 1)
    described.hits.activated.emit(described.hits.model().index(0, 0))

    ((start, end),) = described.view.marked
    assert described.view.toPlainText()[start:end] == "zebra"


def picture_widths(window: GuideWindow) -> list[float]:
    document = window.view.document()
    blocks = (document.findBlockByNumber(number) for number in range(document.blockCount()))
    formats = [piece.format.toImageFormat() for block in blocks for piece in block.textFormats()]
    return [image.width() for image in formats if image.isValid()]


def test_resized_page_stays_at_its_place(window: GuideWindow, qtbot: QtBot) -> None:
    follow(window, "#subflows")
    window.resize(720, 700)
    qtbot.waitUntil(lambda: not window.view.is_loading)
    assert max(picture_widths(window)) <= window.view.viewport().width()
    assert heading_at_top(window) == "Subflows"


def test_page_stays_at_its_place_when_a_scroll_bar_too_short_moves_it(window: GuideWindow, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: not window.view.is_loading)
    follow(window, "#subflows")
    window.view.verticalScrollBar().setMaximum(3000)  # as Qt does when it estimates the length of the page
    assert heading_at_top(window) != "Subflows"
    for width in (900, 720):
        window.resize(width, 700)
    qtbot.waitUntil(lambda: not window.view.is_loading)
    assert heading_at_top(window) == "Subflows"


def test_page_stays_where_the_user_scrolled_right_after_a_resize(window: GuideWindow, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: not window.view.is_loading)
    follow(window, "#subflows")
    window.resize(720, 700)
    window.view.verticalScrollBar().triggerAction(QAbstractSlider.SliderAction.SliderToMinimum)
    qtbot.waitUntil(lambda: not window.view.is_loading)
    assert window.view.verticalScrollBar().value() == 0

    window.resize(1000, 700)
    qtbot.waitUntil(lambda: not window.view.is_loading)
    assert window.view.verticalScrollBar().value() == 0


def test_page_stays_at_a_link_that_got_the_focus(window: GuideWindow, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: not window.view.is_loading)
    window.view.setFocus()
    QTest.keyClick(window.view, Qt.Key.Key_Backtab, Qt.KeyboardModifier.ShiftModifier)  # the last link of the page
    at_link = window.view.cursorForPosition(window.view.viewport().rect().topLeft()).blockNumber()
    assert at_link > 0
    window.resize(720, 700)
    qtbot.waitUntil(lambda: not window.view.is_loading)
    assert window.view.cursorForPosition(window.view.viewport().rect().topLeft()).blockNumber() == at_link


def test_strong_words_have_a_weight_that_the_bundled_font_has(window: GuideWindow) -> None:
    document = window.view.document()
    blocks = (document.findBlockByNumber(number) for number in range(document.blockCount()))
    weights = {piece.format.fontWeight() for block in blocks for piece in block.textFormats()}
    assert weights == {QFont.Weight.Normal, QFont.Weight.DemiBold}


def test_page_stays_at_its_place_in_another_theme_and_size(window: GuideWindow, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: not window.view.is_loading)
    follow(window, "#subflows")
    for theme, scale in (("light", 1.0), ("dark", 1.5), ("dark", 1.0)):
        style().choose(theme, scale)
        qtbot.waitUntil(lambda: not window.view.is_loading)
        assert heading_at_top(window) == "Subflows"


def test_contents_follow_the_text_size(window: GuideWindow, qtbot: QtBot) -> None:
    group = window.contents.topLevelItem(0)
    assert group is not None
    width, pixels = window.left.width(), group.font(0).pixelSize()
    style().choose("dark", 1.5)
    assert group.font(0).pixelSize() == round(1.5 * pixels)
    qtbot.waitUntil(lambda: window.left.width() > 1.4 * width)


def test_entry_of_the_contents_opens_its_page(window: GuideWindow) -> None:
    (item,) = window.contents.findItems(
        "Approvals and questions", Qt.MatchFlag.MatchExactly | Qt.MatchFlag.MatchRecursive
    )
    window.contents.scrollToItem(item)
    QTest.mouseClick(window.contents.viewport(), LEFT, pos=window.contents.visualItemRect(item).center())

    assert window.view.name == "people.md"
    assert window.title.full_text == "Approvals and questions"


def test_link_to_another_page_scrolls_to_its_heading_and_back_returns(window: GuideWindow) -> None:
    bar = window.view.verticalScrollBar()
    bar.setValue(300)
    follow(window, "workflow-file.md#templates")

    assert window.view.name == "workflow-file.md"
    assert heading_at_top(window) == "Templates"
    assert window.contents.currentItem().text(0) == "Workflow files"

    QTest.keyClick(window, Qt.Key.Key_Left, ALT)
    assert (window.view.name, bar.value()) == ("window.md", 300)
    QTest.keyClick(window, Qt.Key.Key_Right, ALT)
    assert (window.view.name, heading_at_top(window)) == ("workflow-file.md", "Templates")
    assert not window.forward.isEnabled()


def test_link_within_a_page_scrolls(window: GuideWindow) -> None:
    follow(window, "#undo-autosave-and-recovery")

    assert heading_at_top(window) == "Undo, autosave and recovery"


def test_link_scrolls_if_the_pictures_were_fitted_before_qt_has_laid_out_the_page(window: GuideWindow) -> None:
    (resized,) = (timer for timer in window.view.findChildren(QTimer) if timer.interval() == RESIZE_DELAY_MS)
    resized.timeout.emit()  # no event was processed since the window is shown, as on a busy machine
    follow(window, "#undo-autosave-and-recovery")

    assert heading_at_top(window) == "Undo, autosave and recovery"


def test_external_link_is_shown_before_it_is_opened(window: GuideWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("PySide6.QtGui.QDesktopServices.openUrl", lambda url: opened.append(url.toString()))

    follow(window, "https://cel.dev")
    (box,) = window.findChildren(QMessageBox)
    assert "https://cel.dev" in box.informativeText()
    assert opened == []
    box.close()


def test_search_lists_sections_and_highlights_the_words(window: GuideWindow) -> None:
    QTest.keyClick(window, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClicks(window.search, "never pay")
    QTest.keyClick(window.search, Qt.Key.Key_Return)

    assert window.left.currentWidget() is window.hits
    assert window.count.text() == "1 section"
    assert window.hits.item(0).text().startswith("Fork from here · Window\n")
    assert window.view.name == "window.md"
    text = window.view.document().toRawText()
    assert {text[start:end].casefold() for start, end in window.view.marked} == {"never", "pay"}
    assert marked_colors(window) == {DARK.warning_soft}
    section = text.index("\u2029Fork from here\u2029")
    start = next(start for start, end in window.view.marked if text[start:end] == "pay" and start > section)
    cursor = QTextCursor(window.view.document())
    cursor.setPosition(start)
    assert window.view.viewport().rect().intersects(window.view.cursorRect(cursor))

    style().choose("light")
    assert marked_colors(window) == {LIGHT.warning_soft}


def marked_colors(window: GuideWindow) -> set[str]:
    return {each.format.background().color().name() for each in window.view.extraSelections()}


def test_search_result_is_opened_by_mouse(window: GuideWindow) -> None:
    window.show_hits("drop rows spreadsheet")
    QTest.mouseClick(window.hits.viewport(), LEFT, pos=window.hits.visualItemRect(window.hits.item(0)).center())

    assert heading_at_top(window) == "Batch runs"


def test_search_without_results_says_so_and_an_empty_one_shows_the_contents(window: GuideWindow, qtbot: QtBot) -> None:
    QTest.keyClicks(window.search, "zebra")
    qtbot.waitUntil(lambda: window.count.text() == "No results")

    window.search.clear()
    qtbot.waitUntil(lambda: window.left.currentWidget() is window.contents)
    assert not window.count.isVisible()


def test_page_loads_nothing_from_outside_the_guide(window: GuideWindow, tmp_path: Path) -> None:
    image = window.view.loadResource(QTextDocument.ResourceType.ImageResource.value, QUrl("https://example.org/x.png"))

    assert (image.width(), image.pixelColor(0, 0).alpha()) == (1, 0)


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_pages_are_as_wide_as_the_window(window: GuideWindow, qtbot: QtBot, scale: float) -> None:
    style().choose("dark", scale)
    window.resize(1080, 720)
    for page in ("window.md", "reference/tools.md"):  # pictures in a list; tables
        window.open_page(page)
        qtbot.waitUntil(lambda: not window.view.is_loading)
        window.view.document().pageCount()  # lays out the whole page
        qtbot.waitUntil(lambda: not window.view.horizontalScrollBar().isVisible())


def test_a_page_that_is_too_wide_can_be_scrolled(window: GuideWindow, qtbot: QtBot) -> None:
    window.open_page("reference/settings.md")
    window.resize(window.minimumSizeHint())
    window.view.setFixedWidth(120)
    qtbot.waitUntil(window.view.horizontalScrollBar().isVisible)


@pytest.mark.parametrize(("theme", "scale"), [("light", 1.0), ("dark", 1.5)])
def test_guide_fits_a_small_screen(window: GuideWindow, theme: str, scale: float) -> None:
    style().choose(theme, scale)
    assert window.minimumSizeHint().width() <= 1280
    assert window.minimumSizeHint().height() <= 720


def test_page_that_was_opened_first_stays(guide: Guide, qtbot: QtBot) -> None:
    window = GuideWindow(guide=guide)
    qtbot.addWidget(window)
    window.open_page("history.md")
    window.show()
    window.search.setText("budget")
    qtbot.waitUntil(lambda: window.hits.count() > 0)
    assert window.view.name == "history.md"
    assert not window.back.isEnabled()


def test_hidden_guide_has_the_theme_when_it_is_shown(window: GuideWindow, qtbot: QtBot) -> None:
    def link_color() -> str:
        document = window.view.document()
        blocks = (document.findBlockByNumber(number) for number in range(document.blockCount()))
        return next(
            piece.format.foreground().color().name()
            for block in blocks
            for piece in block.textFormats()
            if piece.format.isAnchor()
        )

    window.hide()
    style().choose("light")
    window.show()
    assert link_color() == LIGHT.accent
    assert window.view.name == "window.md"


def test_f1_opens_the_guide_once(workbench: Workbench) -> None:
    QTest.keyClick(workbench.window, Qt.Key.Key_F1)
    guide = workbench.help.guide
    assert guide is not None
    assert guide.isVisible()
    workbench.actions_by_name["guide"].trigger()

    assert workbench.window.findChildren(GuideWindow) == [guide]
    guide.close()


def test_link_to_a_template_opens_it(workbench: Workbench) -> None:
    workbench.help.show_guide()
    assert workbench.help.guide is not None
    workbench.help.guide.open_page("workflow-file.md")
    follow(workbench.help.guide, "../templates/refine-or-exit.loop.json")

    assert [document.session.name for document in workbench.documents.all] == ["Refine or Exit"]
    workbench.help.guide.close()


def test_missing_guide_is_reported(workbench: Workbench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("engine.bundled._PACKAGE", tmp_path / "engine" / "bundled")
    workbench.help.show_guide()

    assert "cannot be opened" in question(workbench.window).text()
    assert "docs" in question(workbench.window).informativeText()
    QApplication.processEvents()
