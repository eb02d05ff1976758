"""The list of models that a model field opens, and the completion of what is typed into the field."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.inspector.model_list import ModelChoice, ModelComboBox, ModelGroup, ModelList, ModelSource, _beside

Key = Qt.Key


class Source(ModelSource):
    """A source whose groups a test sets, and that records what was asked of it."""

    def __init__(self, *groups: ModelGroup) -> None:
        super().__init__()
        self.shown = list(groups)
        self.asked: list[str] = []

    def groups(self) -> list[ModelGroup]:
        return self.shown

    def refresh(self) -> None:
        self.asked.append("refresh")

    def allow_search(self) -> None:
        self.asked.append("allow")
        self.can_search = False
        self.changed.emit()


OPENAI = ModelGroup("OpenAI", (ModelChoice("openai/gpt-4o", hint="$2.50 / $10.00"), ModelChoice("openai/o3")))
OWN = ModelGroup("Built in", (ModelChoice("embedded:x", "Built-in demo model", "free"),))

OpenField = Callable[..., ModelComboBox]


@pytest.fixture
def open_field(qtbot: QtBot) -> OpenField:
    def make(source: ModelSource) -> ModelComboBox:
        combo = ModelComboBox(source, "Workflow default")
        qtbot.addWidget(combo)
        with qtbot.waitActive(combo):
            combo.show()
            combo.activateWindow()
        combo.setFocus()
        return combo

    return make


def rows(opened: ModelList | None) -> list[str]:
    assert opened is not None
    return [opened.list.item(row).text() for row in range(opened.list.count())]


def current(opened: ModelList | None) -> str:
    assert opened is not None
    item = opened.list.currentItem()
    return item.text() if item is not None else ""


def test_models_are_listed_under_their_groups_and_headings_are_skipped(open_field: OpenField) -> None:
    combo = open_field(Source(OWN, OPENAI))
    QTest.keyClick(combo, Key.Key_Down)
    assert combo.list is not None
    assert rows(combo.list) == ["Built in", "Built-in demo model", "OpenAI", "openai/gpt-4o", "openai/o3"]
    assert combo.list.filter.hasFocus()
    assert current(combo.list) == "Built-in demo model"
    for key, expected in (
        (Key.Key_Down, "openai/gpt-4o"),
        (Key.Key_PageDown, "openai/o3"),
        (Key.Key_Up, "openai/gpt-4o"),
    ):
        QTest.keyClick(combo.list.filter, key)
        assert current(combo.list) == expected
    assert combo.list.list.currentItem().data(Qt.ItemDataRole.AccessibleDescriptionRole) == "$2.50 / $10.00"


def test_chosen_model_is_reported_by_its_name(open_field: OpenField, qtbot: QtBot) -> None:
    combo = open_field(Source(OWN, OPENAI))
    combo.showPopup()
    with qtbot.waitSignal(combo.model_chosen) as chosen:
        QTest.keyClick(combo.list.filter, Key.Key_Return)
    assert chosen.args == ["embedded:x"]
    assert combo.line.text() == "embedded:x"
    assert not combo.list.isVisible()


def test_model_can_be_clicked(open_field: OpenField, qtbot: QtBot) -> None:
    combo = open_field(Source(OWN, OPENAI))
    combo.showPopup()
    view = combo.list.list
    with qtbot.waitSignal(combo.model_chosen) as chosen:
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=view.visualItemRect(view.item(4)).center())
    assert chosen.args == ["openai/o3"]


def test_filter_finds_words_of_names_and_groups(open_field: OpenField) -> None:
    combo = open_field(Source(ModelGroup("On this computer", note="Nothing is running."), OWN, OPENAI))
    combo.showPopup()
    assert rows(combo.list)[:2] == ["On this computer", "Nothing is running."]
    QTest.keyClicks(combo.list.filter, "4O open")
    assert rows(combo.list) == ["OpenAI", "openai/gpt-4o"]
    combo.list.filter.setText("no such model")
    assert len(rows(combo.list)) == 1
    QTest.keyClick(combo.list.filter, Key.Key_Return)
    QTest.keyClick(combo.list.filter, Key.Key_Down)
    assert combo.list.isVisible(), "there is nothing to choose"


def test_filter_finds_a_model_by_its_keywords(open_field: OpenField) -> None:
    named = ModelChoice("gguf:a", help="Made in 2024", keywords="LM Studio (GGUF file) SmolLM2")
    combo = open_field(Source(ModelGroup("Files", (named, ModelChoice("gguf:b")))))
    combo.showPopup()
    QTest.keyClicks(combo.list.filter, "smollm2 lm studio")
    assert rows(combo.list) == ["Files", "gguf:a"]
    combo.list.filter.setText("2024")
    assert "gguf:a" not in rows(combo.list)


def test_escape_closes_the_list_and_the_field_keeps_its_text(open_field: OpenField, qtbot: QtBot) -> None:
    combo = open_field(Source(OWN))
    combo.line.setText("a/b")
    combo.showPopup()
    QTest.keyClick(combo.list.filter, Key.Key_Escape)
    assert not combo.list.isVisible()
    assert combo.line.text() == "a/b"


def test_opening_looks_for_models_and_new_ones_appear_while_it_is_open(open_field: OpenField) -> None:
    source = Source(OWN, OPENAI)
    combo = open_field(source)
    assert source.asked == []
    combo.showPopup()
    assert source.asked == ["refresh"]
    QTest.keyClick(combo.list.filter, Key.Key_Down)
    source.shown = [ModelGroup("New", (ModelChoice("a/new"),)), OPENAI]
    source.changed.emit()
    assert rows(combo.list)[:2] == ["New", "a/new"]
    assert current(combo.list) == "openai/gpt-4o", "the choice stays"


def test_search_for_servers_is_offered_until_it_is_allowed(open_field: OpenField) -> None:
    source = Source(OWN)
    combo = open_field(source)
    combo.showPopup()
    assert not combo.list.search.isVisible()
    combo.list.close()
    source.can_search = True
    combo.showPopup()
    assert combo.list.search.isVisible()
    assert "Ollama" in combo.list.note.text()
    combo.list.search.click()
    assert source.asked == ["refresh", "refresh", "allow"]
    assert not combo.list.search.isVisible()
    assert not combo.list.note.isVisible()


def test_set_up_models_closes_the_list(open_field: OpenField, qtbot: QtBot) -> None:
    source = Source(OWN)
    combo = open_field(source)
    combo.showPopup()
    opened = combo.list
    with qtbot.waitSignal(source.setup_requested):
        opened.setup.click()
    assert not combo.list.isVisible()


def test_every_control_of_the_list_is_reached_by_tab(open_field: OpenField) -> None:
    source = Source(OWN)
    source.can_search = True
    combo = open_field(source)
    combo.showPopup()
    opened = combo.list
    reached = set()
    for _ in range(5):
        QTest.keyClick(QApplication.focusWidget(), Key.Key_Tab)
        reached.add(QApplication.focusWidget())
    assert {opened.filter, opened.search, opened.get, opened.setup} <= reached


def test_typed_text_is_completed_anywhere_in_a_name(open_field: OpenField, qtbot: QtBot) -> None:
    source = Source(OPENAI)
    combo = open_field(source)
    QTest.keyClicks(combo, "GPT")
    popup = combo.line.completer().popup()
    qtbot.waitUntil(popup.isVisible)
    with qtbot.waitSignal(combo.model_chosen) as chosen:
        QTest.keyClick(popup, Key.Key_Down)
        QTest.keyClick(popup, Key.Key_Return)
    assert chosen.args == ["openai/gpt-4o"]
    source.shown = [OWN]
    source.changed.emit()
    assert combo.line.text() == "openai/gpt-4o"
    assert combo.line.completer().model().rowCount() == 1


SCREEN = QRect(0, 0, 1280, 720)


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (QRect(100, 100, 200, 24), QRect(100, 124, 400, 440)),
        (QRect(100, 600, 200, 24), QRect(100, 160, 400, 440)),
        (QRect(1100, 100, 170, 24), QRect(880, 124, 400, 440)),
        (QRect(100, 350, 200, 24), QRect(100, 280, 400, 440)),
    ],
)
def test_the_list_stays_on_the_screen(field: QRect, expected: QRect) -> None:
    assert _beside(field, 400, 440, SCREEN) == expected
    assert SCREEN.contains(expected.topLeft() + QPoint(1, 1))
