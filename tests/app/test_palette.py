from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QDrag
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import palette as palette_module
from app.gallery.gallery import bundled_templates
from app.palette import (
    CATEGORY_TITLES,
    NODE_MIME,
    TEMPLATE_MIME,
    EntryKind,
    Palette,
    PaletteEntry,
    drag_pixmap,
    help_lines,
    palette_entries,
)
from app.search import match_score
from app.theme.style import style
from app.theme.tokens import DARK, LIGHT, Theme
from engine.bundled import templates_folder
from engine.nodes.node_registry import Registry, builtin_registry
from engine.nodes.spec import Category


@pytest.fixture
def palette(qtbot: QtBot) -> Iterator[Palette]:
    made = Palette(builtin_registry())
    qtbot.addWidget(made)
    made.resize(made.sizeHint().width(), 900)
    made.show()
    made.activateWindow()
    qtbot.waitExposed(made)
    yield made
    style().choose("dark", 1.0)


def titles(palette: Palette) -> list[str]:
    model = palette.list.model()
    return [model.data(model.index(at, 0)) for at in range(model.rowCount())]


def middle_of(palette: Palette, title: str) -> QPoint:
    index = palette.list.model().index(titles(palette).index(title), 0)
    return palette.list.visualRect(index).center()


def test_typing_filters_the_palette_and_escape_clears_it(palette: Palette) -> None:
    everything = titles(palette)
    palette.filter.setFocus()
    QTest.keyClicks(palette.filter, "transf")
    assert titles(palette) == ["Transform"]
    QTest.keyClick(palette.filter, Qt.Key.Key_Escape)
    assert titles(palette) == everything


def test_palette_without_matches_says_so(palette: Palette) -> None:
    QTest.keyClicks(palette.filter, "qqqq")
    visible = [label.text() for label in palette.findChildren(type(palette._nothing)) if label.isVisible()]
    assert len(visible) == 1
    assert visible[0].startswith("No matches")
    assert not palette.list.isVisible()


def test_node_is_added_by_keyboard(qtbot: QtBot, palette: Palette) -> None:
    palette.filter.setFocus()
    QTest.keyClicks(palette.filter, "route")
    QTest.keyClick(palette.filter, Qt.Key.Key_Down)
    qtbot.waitUntil(palette.list.hasFocus)
    with qtbot.waitSignal(palette.node_chosen) as chosen:
        QTest.keyClick(palette.list, Qt.Key.Key_Return)
    assert chosen.args == ["router"]


def test_enter_in_the_filter_adds_the_best_match(qtbot: QtBot, palette: Palette) -> None:
    QTest.keyClicks(palette.filter, "loop")
    with qtbot.waitSignal(palette.node_chosen) as chosen:
        QTest.keyClick(palette.filter, Qt.Key.Key_Return)
    assert chosen.args == ["loop"]


def test_enter_in_an_empty_filter_adds_nothing(qtbot: QtBot, palette: Palette) -> None:
    with qtbot.assertNotEmitted(palette.node_chosen):
        QTest.keyClick(palette.filter, Qt.Key.Key_Return)


def test_arrow_keys_skip_headers_and_return_to_the_filter(qtbot: QtBot, palette: Palette) -> None:
    palette.filter.setFocus()
    QTest.keyClick(palette.filter, Qt.Key.Key_Down)
    visited = [palette.list.currentIndex().data()]
    for _step in range(3):
        QTest.keyClick(palette.list, Qt.Key.Key_Down)
        visited.append(palette.list.currentIndex().data())
    assert visited == ["Input", "Output", "Subflow", "LLM"]
    for _step in range(4):
        QTest.keyClick(palette.list, Qt.Key.Key_Up)
    qtbot.waitUntil(palette.filter.hasFocus)


def double_click(palette: Palette, title: str) -> None:
    place = middle_of(palette, title)
    QTest.mouseClick(palette.list.viewport(), Qt.MouseButton.LeftButton, pos=place)
    QTest.mouseDClick(palette.list.viewport(), Qt.MouseButton.LeftButton, pos=place)


def test_double_click_adds_a_node(qtbot: QtBot, palette: Palette) -> None:
    with qtbot.waitSignal(palette.node_chosen) as chosen:
        double_click(palette, "Transform")
    assert chosen.args == ["transform"]


def test_double_click_on_a_header_does_nothing(qtbot: QtBot, palette: Palette) -> None:
    with qtbot.assertNotEmitted(palette.node_chosen), qtbot.assertNotEmitted(palette.template_chosen):
        double_click(palette, "Logic")


def test_double_click_on_a_template_opens_it(qtbot: QtBot, palette: Palette) -> None:
    with qtbot.waitSignal(palette.template_chosen) as chosen:
        double_click(palette, "Self-Refine")
    assert chosen.args == [templates_folder() / "self-refine.loop.json"]


def dragged(palette: Palette, title: str) -> list[tuple[list[str], dict[str, str], int]]:
    """Press on a row, move, and say what was carried: formats, texts, width of the picture."""
    carried: list[tuple[list[str], dict[str, str], int]] = []

    def run_drag(drag: QDrag) -> None:
        data = drag.mimeData()
        texts = {name: data.data(name).toStdString() for name in data.formats()}
        carried.append((data.formats(), texts, drag.pixmap().deviceIndependentSize().toSize().width()))

    palette.list.run_drag = run_drag
    start = middle_of(palette, title)
    viewport = palette.list.viewport()
    QTest.mousePress(viewport, Qt.MouseButton.LeftButton, pos=start)
    for step in (8, 16, 24, 32):
        QTest.mouseMove(viewport, start + QPoint(step, step // 4))
    QTest.mouseRelease(viewport, Qt.MouseButton.LeftButton, pos=start + QPoint(32, 8))
    return carried


def test_dragged_node_carries_its_type_and_a_picture(palette: Palette) -> None:
    [(formats, texts, width), *_more] = dragged(palette, "LLM")
    assert formats == [NODE_MIME]
    assert texts == {"application/x-loopwright-node": "llm"}
    assert width == 220


def test_dragged_template_carries_its_path(palette: Palette) -> None:
    [(formats, texts, _width), *_more] = dragged(palette, "Agentic Search")
    assert formats == [TEMPLATE_MIME]
    assert Path(texts["application/x-loopwright-template"]) == templates_folder() / "agentic-search.loop.json"


def test_header_cannot_be_dragged(palette: Palette) -> None:
    assert dragged(palette, "Logic") == []


@pytest.mark.parametrize(("name", "theme"), [("dark", DARK), ("light", LIGHT)])
def test_dragged_card_has_the_color_of_its_category(qapp: QApplication, name: str, theme: Theme) -> None:
    style().choose(name, 1.0)
    image = drag_pixmap(PaletteEntry(EntryKind.NODE, "LLM", "llm", "", "mdi6.creation", Category.AI), 2.0).toImage()
    style().choose("dark", 1.0)
    assert (image.width(), image.height()) == (440, 96)
    assert image.pixelColor(4, 48).name() == theme.category[Category.AI]
    assert image.pixelColor(400, 48).name() == theme.card


def test_entry_shows_its_description_as_tooltip_and_to_screen_readers(palette: Palette) -> None:
    index = palette.list.model().index(titles(palette).index("LLM"), 0)
    assert "Calls a language model once." in index.data(Qt.ItemDataRole.ToolTipRole)
    assert index.data(Qt.ItemDataRole.AccessibleTextRole) == "LLM: Calls a language model once."


def test_description_has_at_most_two_lines(palette: Palette, qtbot: QtBot) -> None:
    row = PaletteEntry(EntryKind.NODE, "Input", "input", "A value that is given to the workflow when it starts.")
    [first, second] = help_lines(row, 180)
    assert f"{first} {second}" == row.help
    assert help_lines(row, 600) == [row.help]
    assert help_lines(row, 90)[1].endswith("…")
    assert help_lines(PaletteEntry(EntryKind.NODE, "Input"), 180) == []

    def height(title: str) -> int:
        return palette.list.visualRect(palette.list.model().index(titles(palette).index(title), 0)).height()

    for _ in range(2):
        palette.resize(216, 900)
        qtbot.waitUntil(lambda: height("Input") > height("Output"))
        palette.resize(700, 900)
        qtbot.waitUntil(lambda: height("Input") == height("Output"))


def test_list_has_no_frame(palette: Palette) -> None:
    image = palette.list.grab().toImage()
    assert image.pixelColor(0, image.height() // 2) == image.pixelColor(4, image.height() // 2)


def test_down_in_a_filter_without_matches_keeps_the_focus(qtbot: QtBot, palette: Palette) -> None:
    palette.filter.setFocus()
    qtbot.waitUntil(palette.filter.hasFocus)
    QTest.keyClicks(palette.filter, "qqqq")
    QTest.keyClick(palette.filter, Qt.Key.Key_Down)
    assert palette.filter.hasFocus()


def test_focusable_widgets_have_names(palette: Palette) -> None:
    assert palette.filter.accessibleName() == "Filter nodes and templates"
    assert palette.list.accessibleName() == "Nodes and templates"


def test_entries_follow_theme_and_text_size(palette: Palette) -> None:
    index = palette.list.model().index(titles(palette).index("LLM"), 0)
    before = palette.list.visualRect(index).height()

    def colors() -> set[str]:
        image = palette.list.viewport().grab(palette.list.visualRect(index)).toImage()
        return {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}

    assert DARK.category[Category.AI] in colors()
    style().choose("light", 1.5)
    assert LIGHT.category[Category.AI] in colors()
    assert palette.list.visualRect(index).height() > before


def test_entries_are_measured_once(palette: Palette, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []
    real = palette_module.elide_two_lines
    monkeypatch.setattr(palette_module, "elide_two_lines", lambda *args: measured.append(args[1]) or real(*args))

    def type_some() -> int:
        measured.clear()
        style().choose("dark", 1.37)
        for text in ("t", "e", ""):
            palette.filter.setText(text)
            QApplication.processEvents()
            palette.grab()
        return len(measured)

    assert type_some() > 10
    assert type_some() == 0


def listed(typed: str = "") -> list[PaletteEntry]:
    return palette_entries(builtin_registry(), bundled_templates()[0], typed)


def keys(typed: str) -> list[str]:
    return [row.key for row in listed(typed) if row.kind is EntryKind.NODE]


def test_start_of_a_name_scores_higher_than_start_of_a_word() -> None:
    scores = [match_score("exi", (name,)) for name in ("Exit", "Loop and Exit", "Flexible")]
    assert scores == sorted(set(scores), reverse=True)
    assert scores[-1] == 0


def test_a_synonym_scores_lower_than_a_name_and_higher_than_the_description() -> None:
    name, synonym = match_score("chat", ("Chat",)), match_score("chat", ("LLM",), "", ("chat",))
    assert name > synonym > match_score("chat", ("LLM",), "For a chat") > 0


def test_each_typed_word_matches_the_start_of_a_word() -> None:
    assert match_score("exit lo", ("Loop and Exit",)) > 0
    assert match_score("exit xx", ("Loop and Exit",)) == 0


@pytest.mark.parametrize(
    ("typed", "node_type"),
    [
        ("prompt", "llm"),
        ("chat", "llm"),
        ("gpt", "llm"),
        ("if", "router"),
        ("repeat", "loop"),
        ("while", "loop"),
        ("http", "tool"),
        ("map", "iterator"),
        ("for each", "iterator"),
        ("human", "approval"),
    ],
)
def test_node_types_are_found_by_terms_of_other_programs(typed: str, node_type: str) -> None:
    assert keys(typed)[0] == node_type


def test_description_matches_from_three_letters_and_scores_lower_than_a_name() -> None:
    help_line = "Calls a language model once."
    assert match_score("la", ("LLM",), help_line) == 0
    assert 0 < match_score("lang", ("LLM",), help_line) < match_score("lang", ("Languages",), "")


def test_empty_query_matches_everything() -> None:
    assert match_score(" ", ("Loop",)) > 0


def test_case_and_surrounding_spaces_do_not_matter() -> None:
    assert match_score("  LOOP  and ", ("Loop and Exit",)) == match_score("loop and", ("Loop and Exit",))


def test_entries_are_grouped_by_category_before_templates() -> None:
    headers = [row.title for row in listed() if row.kind is EntryKind.HEADER]
    assert headers == [CATEGORY_TITLES[category] for category in Category] + ["Templates"]
    registry = builtin_registry()
    offered = {row.key for row in listed() if row.kind is EntryKind.NODE}
    assert offered == {spec.type for spec in registry} - {"exit", "aggregator"}


def test_every_entry_has_an_icon_and_a_description() -> None:
    assert [row.title for row in listed() if row.kind is not EntryKind.HEADER and not (row.icon and row.help)] == []


def test_exit_is_listed_only_in_search_results() -> None:
    assert "exit" not in {row.key for row in listed()}
    assert keys("exit")[0] == "exit"
    assert "loop" in keys("exit")


def test_type_is_found_by_its_document_name_and_description() -> None:
    assert keys("loop")[0] == "loop"
    assert "llm" in keys("language")


def test_query_without_matches_lists_nothing() -> None:
    assert listed("qqqq") == []


def test_category_without_types_has_no_header() -> None:
    registry = Registry(spec for spec in builtin_registry() if spec.category is Category.AI)
    assert [row.title for row in palette_entries(registry, []) if row.kind is EntryKind.HEADER] == ["AI"]
