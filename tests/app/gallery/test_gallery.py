from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QPushButton, QScrollArea, QWidget
from pytestqt.qtbot import QtBot

from app.gallery.gallery import GROUPS, MAX_SHOWN, MODEL_LINE, OTHER_GROUP, Gallery, RecentFile, TemplateCard
from app.theme.style import style
from app.theme.tokens import DARK, LIGHT
from engine.bundled import templates_folder
from engine.nodes.spec import Category

SELF_REFINE = templates_folder() / "self-refine.loop.json"


@pytest.fixture
def gallery(qtbot: QtBot) -> Iterator[Gallery]:
    yield shown(qtbot, Gallery())
    style().choose("dark", 1.0)


def shown(qtbot: QtBot, gallery: Gallery) -> Gallery:
    qtbot.addWidget(gallery)
    gallery.resize(1100, 760)
    gallery.show()
    gallery.activateWindow()
    qtbot.waitExposed(gallery)
    return gallery


def card_of(gallery: Gallery, title: str) -> TemplateCard:
    return next(card for card in gallery.cards if card.template.title == title)


def button(gallery: Gallery, text: str) -> QPushButton:
    return next(found for found in gallery.findChildren(QPushButton) if found.text() == text)


def texts(widget: QWidget) -> list[str]:
    return [label.text() for label in widget.findChildren(QLabel) if label.isVisible()]


def files(gallery: Gallery) -> list[RecentFile]:
    return gallery.recent.files


def test_start_page_describes_the_program_and_its_model(gallery: Gallery) -> None:
    visible = texts(gallery)
    assert "Loopwright" in visible
    assert any(text.startswith("Build workflows") for text in visible)
    assert MODEL_LINE in visible


def test_template_card_has_title_description_and_diagram(qtbot: QtBot, gallery: Gallery) -> None:
    card = card_of(gallery, "Self-Refine")
    assert card.template.about
    assert card.template.when.startswith("For ")
    assert texts(card) == ["Self-Refine", card.template.about, card.template.when]

    def colors() -> set[str]:
        image = card.picture.grab().toImage()
        return {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}

    qtbot.waitUntil(lambda: DARK.category[Category.AI] in colors())
    style().choose("light")
    assert LIGHT.category[Category.AI] in colors()


def test_double_click_on_the_diagram_opens_a_template(qtbot: QtBot, gallery: Gallery) -> None:
    card = card_of(gallery, "Self-Refine")
    with qtbot.waitSignal(gallery.template_chosen) as chosen:
        QTest.mouseDClick(card.picture, Qt.MouseButton.LeftButton)
    assert chosen.args == [SELF_REFINE]


def test_single_click_and_right_double_click_open_nothing(qtbot: QtBot, gallery: Gallery) -> None:
    card = card_of(gallery, "Self-Refine")
    with qtbot.assertNotEmitted(gallery.template_chosen):
        QTest.mouseClick(card, Qt.MouseButton.LeftButton, pos=QPoint(20, 20))
        QTest.mouseDClick(card, Qt.MouseButton.RightButton, pos=QPoint(20, 20))
        # Its second press would count as held down in every test after this one, and a scene would never let go.
        QTest.mouseRelease(card, Qt.MouseButton.RightButton, pos=QPoint(20, 20))


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space])
def test_template_is_opened_by_keyboard(qtbot: QtBot, gallery: Gallery, key: Qt.Key) -> None:
    card = card_of(gallery, "Self-Refine")
    card.setFocus()
    qtbot.waitUntil(card.button.hasFocus)
    with qtbot.waitSignal(gallery.template_chosen) as chosen:
        QTest.keyClick(card.button, key)
    assert chosen.args == [SELF_REFINE]


def test_focus_does_not_move_the_contents_of_a_template_card(gallery: Gallery) -> None:
    card, other = gallery.cards[:2]
    card.setFocus()
    assert card.button.hasFocus()
    style().choose("light", 1.0)  # lays the cards out again
    QApplication.processEvents()
    assert card.picture.pos() == other.picture.pos()


def test_button_of_a_template_card_opens_it(qtbot: QtBot, gallery: Gallery) -> None:
    with qtbot.waitSignal(gallery.template_chosen) as chosen:
        QTest.mouseClick(card_of(gallery, "Self-Refine").button, Qt.MouseButton.LeftButton)
    assert chosen.args == [SELF_REFINE]


def test_arrow_keys_move_between_template_cards(qtbot: QtBot, gallery: Gallery) -> None:
    first, second = gallery.cards[:2]
    first.setFocus()
    qtbot.waitUntil(first.button.hasFocus)
    QTest.keyClick(first.button, Qt.Key.Key_Right)
    qtbot.waitUntil(second.button.hasFocus)
    QTest.keyClick(second.button, Qt.Key.Key_Left)
    qtbot.waitUntil(first.button.hasFocus)
    QTest.keyClick(first.button, Qt.Key.Key_Left)
    assert first.button.hasFocus()


def test_card_focused_with_an_arrow_key_is_scrolled_into_view(qtbot: QtBot, gallery: Gallery) -> None:
    gallery.resize(460, 400)
    first, second = gallery.cards[:2]
    first.setFocus()
    qtbot.waitUntil(lambda: first.button.hasFocus() and first.x() == second.x())
    area = gallery.findChild(QScrollArea)
    assert area is not None
    page = area.widget()
    end_of_cards = QPoint(0, second.height())
    qtbot.waitUntil(lambda: second.mapTo(page, end_of_cards).y() < page.height())
    QTest.keyClick(first.button, Qt.Key.Key_Down)
    qtbot.waitUntil(second.button.hasFocus)
    bottom = second.button.mapTo(area.viewport(), QPoint(0, second.button.height())).y()
    assert 0 < bottom <= area.viewport().height()


def test_cards_use_as_many_columns_as_fit(gallery: Gallery) -> None:
    first, second = gallery.cards[:2]
    assert first.y() == second.y()
    assert first.x() + first.width() < second.x()
    assert first.height() == second.height()
    gallery.resize(460, 760)
    assert first.x() == second.x()
    assert first.y() + first.height() < second.y()
    gallery.resize(1100, 760)
    assert first.y() == second.y()


@pytest.mark.parametrize(("width", "scale"), [(420, 1.0), (560, 1.0), (1100, 1.5), (700, 2.0)])
def test_texts_of_template_cards_are_not_clipped(qtbot: QtBot, gallery: Gallery, width: int, scale: float) -> None:
    style().choose("dark", scale)
    gallery.resize(width, 760)

    def cut() -> list[str]:
        return [
            label.text()
            for card in gallery.cards
            for label in card.findChildren(QLabel)
            if label.height() < label.heightForWidth(label.width()) or not card.rect().contains(label.geometry())
        ]

    qtbot.waitUntil(lambda: gallery.width() == width and cut() == [])


def test_start_page_has_no_horizontal_overflow(qtbot: QtBot, gallery: Gallery) -> None:
    gallery.set_recent([Path("/a/long/way/down" * 8) / ("name" * 40)])
    gallery.resize(420, 760)
    area = gallery.findChild(QScrollArea)
    assert area is not None
    qtbot.waitUntil(lambda: area.widget().width() == area.viewport().width() <= 420)
    assert "…" in files(gallery)[0].button.text()


@pytest.mark.parametrize(
    ("text", "signal"),
    [("New workflow", "new_requested"), ("Open…", "open_requested"), ("Set up models", "models_requested")],
)
def test_buttons_of_the_start_page_emit_their_signals(qtbot: QtBot, gallery: Gallery, text: str, signal: str) -> None:
    with qtbot.waitSignal(getattr(gallery, signal)):
        QTest.mouseClick(button(gallery, text), Qt.MouseButton.LeftButton)


def test_recent_files_are_unique_in_order_and_can_be_opened(qtbot: QtBot, gallery: Gallery, tmp_path: Path) -> None:
    assert "Recent" not in texts(gallery)
    paths = [tmp_path / name for name in ("one.loop.json", "two & <b>three.loop.json")]
    for path in paths:
        path.touch()
    gallery.set_recent([*paths, paths[0]])
    assert "Recent" in texts(gallery)
    assert [file.button.text() for file in files(gallery)] == ["one", "two && <b>three"]
    with qtbot.waitSignal(gallery.recent_chosen) as chosen:
        QTest.mouseClick(files(gallery)[0].button, Qt.MouseButton.LeftButton)
    assert chosen.args == [paths[0]]
    gallery.set_recent([])
    assert "Recent" not in texts(gallery)


def test_missing_recent_file_is_marked_and_disabled(qtbot: QtBot, gallery: Gallery, tmp_path: Path) -> None:
    there = tmp_path / "there.loop.json"
    there.touch()
    gallery.set_recent([there, tmp_path / "gone.loop.json", Path("impossible\0name")])
    qtbot.waitUntil(lambda: files(gallery)[1].is_missing)
    assert [file.is_missing for file in files(gallery)] == [False, True, True]
    assert "not found" in texts(files(gallery)[1])
    assert files(gallery)[1].button.accessibleDescription() == "This file was not found."
    with qtbot.assertNotEmitted(gallery.recent_chosen):
        QTest.mouseClick(files(gallery)[1].button, Qt.MouseButton.LeftButton)


def test_start_page_lists_the_latest_recent_files(gallery: Gallery, tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.loop.json" for number in range(12)]
    gallery.set_recent(paths)
    assert [file.path for file in files(gallery)] == paths[:MAX_SHOWN]


def test_bundled_templates_are_in_groups(gallery: Gallery) -> None:
    groups: dict[str, list[str]] = {}
    for card in gallery.cards:
        groups.setdefault(card.template.group, []).append(card.template.path.name.removesuffix(".loop.json"))
    assert {title: tuple(names) for title, names in groups.items()} == GROUPS
    assert [text for text in texts(gallery) if text in GROUPS] == list(GROUPS)
    assert gallery.cards[0].template.path == SELF_REFINE


def test_template_of_no_group_is_in_the_last_one(qtbot: QtBot, tmp_path: Path) -> None:
    for name in ("mine.loop.json", "classify.loop.json"):
        (tmp_path / name).write_bytes(SELF_REFINE.read_bytes())
    gallery = shown(qtbot, Gallery(folder=tmp_path))
    assert [card.template.group for card in gallery.cards] == ["Check and extract", OTHER_GROUP]


def test_arrow_keys_move_between_groups(qtbot: QtBot, gallery: Gallery) -> None:
    last = next(card for card in reversed(gallery.cards) if card.template.group == "Improve a text")
    first = next(card for card in gallery.cards if card.template.group == "Check and extract")
    last.setFocus()
    qtbot.waitUntil(last.button.hasFocus)
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Right):
        QTest.keyClick(last.button, key)
        qtbot.waitUntil(first.button.hasFocus)
        QTest.keyClick(first.button, Qt.Key.Key_Up)
        qtbot.waitUntil(last.button.hasFocus)
    gallery.cards[-1].setFocus()
    QTest.keyClick(gallery.cards[-1].button, Qt.Key.Key_Down)
    qtbot.waitUntil(gallery.cards[-1].button.hasFocus)


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_recent_files_and_models_are_visible_without_scrolling(
    qtbot: QtBot, gallery: Gallery, tmp_path: Path, scale: float
) -> None:
    style().choose("dark", scale)
    gallery.set_recent([tmp_path / f"{number}.loop.json" for number in range(12)])
    gallery.resize(1280, 528)  # what a window of 1280 × 720 leaves at 150 %
    area = gallery.findChild(QScrollArea)
    assert area is not None
    last = files(gallery)[-1].button

    def is_visible(widget: QWidget) -> bool:
        return area.viewport().rect().contains(QRect(widget.mapTo(area.viewport(), QPoint(0, 0)), widget.size()))

    qtbot.waitUntil(lambda: is_visible(last))
    assert is_visible(button(gallery, "Set up models"))
    assert files(gallery)[0].y() < gallery.cards[0].mapTo(gallery, QPoint(0, gallery.cards[0].height())).y()
    gallery.resize(700, 528)
    qtbot.waitUntil(lambda: last.mapTo(gallery, QPoint()).y() < gallery.cards[0].mapTo(gallery, QPoint()).y())


def test_unreadable_template_is_reported_on_the_start_page(qtbot: QtBot, tmp_path: Path) -> None:
    (tmp_path / "broken.loop.json").write_text("{", encoding="utf-8")
    (tmp_path / "good.loop.json").write_bytes(SELF_REFINE.read_bytes())
    gallery = shown(qtbot, Gallery(folder=tmp_path))
    assert [card.template.path.name for card in gallery.cards] == ["good.loop.json"]
    assert any("broken.loop.json" in text for text in texts(gallery))


def test_start_page_closed_at_once_leaves_no_thread(qtbot: QtBot) -> None:
    gallery = Gallery()
    with qtbot.waitSignal(gallery.destroyed):
        gallery.deleteLater()


def test_all_buttons_have_a_name_and_are_reached_with_tab(qtbot: QtBot, gallery: Gallery) -> None:
    gallery.set_recent([SELF_REFINE])
    pressed = {found for found in gallery.findChildren(QAbstractButton) if found.isVisible()}
    assert {found.accessibleName() or found.text() for found in pressed} == {
        "New workflow",
        "Open…",
        *(f"Open {card.template.title}" for card in gallery.cards),
        f"Open self-refine in {SELF_REFINE.parent}",
        "Set up models",
    }
    start = button(gallery, "New workflow")
    start.setFocus()
    qtbot.waitUntil(start.hasFocus)
    reached: set[QWidget] = set()
    for _step in range(len(pressed) + 2):
        focused = gallery.focusWidget()
        assert focused is not None
        reached.add(focused)
        QTest.keyClick(focused, Qt.Key.Key_Tab)
    assert reached == pressed
