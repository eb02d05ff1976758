from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QSize, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QLabel,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QStyleOptionComboBox,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.theme.style import Style, style
from app.theme.tokens import DARK, LIGHT
from app.theme.widgets import (
    LONGEST_TIP,
    SHARE_OF_SCREEN,
    Badge,
    CollapsibleSection,
    ElidedComboBox,
    ElidedLabel,
    MessageBar,
    PlainLabel,
    ProgressBar,
    ResponsiveRow,
    Switch,
    inset_number,
    plain_tool_tip,
    resize_on_screen,
)

MARKUP = "<b>bold</b> & {{name}}"


def shown(qtbot: QtBot, widget: QWidget) -> QWidget:
    qtbot.addWidget(widget)
    widget.show()
    qtbot.waitExposed(widget)
    return widget


def colors(widget: QWidget) -> set[str]:
    image = widget.grab().toImage()
    return {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}


def test_label_shows_markup_as_plain_text(qtbot: QtBot) -> None:
    label = PlainLabel(MARKUP, look="dim small", wrap=True, selectable=True)
    shown(qtbot, label)
    assert label.text() == MARKUP
    assert label.textFormat() is Qt.TextFormat.PlainText
    assert label.property("dim") is True
    assert label.wordWrap()
    assert label.textInteractionFlags() & Qt.TextInteractionFlag.TextSelectableByKeyboard


def test_list_of_a_combo_box_shows_all_entries_without_scrolling(qtbot: QtBot) -> None:
    combo = ElidedComboBox()
    combo.addItems(["One", "Two", "Three"])
    shown(qtbot, combo)
    combo.showPopup()
    assert combo.view().verticalScrollBar().maximum() == 0
    last = combo.view().visualRect(combo.model().index(2, 0))
    assert combo.view().viewport().rect().contains(last)
    combo.hidePopup()


def test_tooltip_shows_markup_as_plain_text() -> None:
    tip = plain_tool_tip(MARKUP)
    assert "&lt;b&gt;bold&lt;/b&gt; &amp; {{name}}" in tip
    assert "<b>" not in tip
    assert plain_tool_tip("") == ""


def test_long_line_is_elided_with_the_full_text_as_tooltip(qtbot: QtBot) -> None:
    text = "one two three four five six seven eight nine ten"
    label = ElidedLabel(text)
    label.resize(90, 20)
    shown(qtbot, label)
    assert label.text().endswith("…")
    assert text.startswith(label.text()[:-1].rstrip())
    assert text in label.toolTip()
    assert label.full_text == label.accessibleName() == text
    label.resize(label.sizeHint())
    assert label.text() == text
    assert label.toolTip() == ""


def test_line_is_elided_again_when_the_font_grows(qtbot: QtBot, style: Style) -> None:
    label = ElidedLabel("one two three four")
    label.resize(label.sizeHint())
    shown(qtbot, label)
    assert label.text() == "one two three four"
    style.choose("dark", 2.0)
    assert label.text().endswith("…")


def test_elided_label_joins_lines(qtbot: QtBot) -> None:
    label = ElidedLabel("first\nsecond")
    label.resize(300, 20)
    shown(qtbot, label)
    assert label.text() == "first second"


def test_badge_has_text_and_color(qtbot: QtBot, style: Style) -> None:
    for text, kind, color in (("running", "accent", DARK.selection), ("failed", "bad", DARK.bad_soft)):
        badge = Badge(text, kind)
        shown(qtbot, badge)
        assert badge.text() == text
        assert color in colors(badge)


def test_switch_toggles_by_mouse_and_keyboard(qtbot: QtBot) -> None:
    switch = Switch("Enabled")
    shown(qtbot, switch)
    switch.resize(300, 28)
    QTest.mouseClick(switch, Qt.MouseButton.LeftButton, pos=QPoint(290, 14))
    assert switch.isChecked()
    switch.setFocus()
    QTest.keyClick(switch, Qt.Key.Key_Space)
    assert not switch.isChecked()


def test_switch_is_an_accessible_check_box(qtbot: QtBot) -> None:
    switch = Switch("Enabled")
    shown(qtbot, switch)
    read = QAccessible.queryAccessibleInterface(switch)
    assert read.role() is QAccessible.Role.CheckBox
    assert not read.state().checked
    switch.setChecked(True)
    assert read.state().checked


@pytest.mark.parametrize(
    ("on", "enabled", "expected"), [(True, True, "accent"), (False, True, "outline"), (True, False, "faint")]
)
def test_switch_shows_its_state(qtbot: QtBot, style: Style, on: bool, enabled: bool, expected: str) -> None:
    switch = Switch("")
    switch.setChecked(on)
    switch.setEnabled(enabled)
    shown(qtbot, switch)
    assert getattr(DARK, expected) in colors(switch)
    style.choose("light")
    assert getattr(LIGHT, expected) in colors(switch)


def test_switch_shows_its_text(qtbot: QtBot, style: Style) -> None:
    bare, named = Switch(""), Switch("A long name of a setting")
    for switch in (bare, named):
        shown(qtbot, switch)
    words = named.fontMetrics().horizontalAdvance(named.text())
    assert named.minimumSizeHint().width() >= bare.minimumSizeHint().width() + words
    assert DARK.text in colors(named) - colors(bare)


def test_switch_shows_the_focus(qtbot: QtBot, style: Style) -> None:
    switch = Switch("")
    shown(qtbot, switch)
    without = colors(switch)
    switch.activateWindow()
    switch.setFocus()
    qtbot.waitUntil(switch.hasFocus)
    assert DARK.text in colors(switch) - without


def test_collapsible_section_toggles_by_mouse_and_keyboard(qtbot: QtBot) -> None:
    body = QLabel("inside")
    fold = CollapsibleSection("More", body)
    shown(qtbot, fold)
    reported: list[bool] = []
    fold.toggled.connect(reported.append)
    assert not body.isVisible()
    QTest.mouseClick(fold.button, Qt.MouseButton.LeftButton)
    assert body.isVisible()
    assert fold.is_open
    fold.button.setFocus()
    QTest.keyClick(fold.button, Qt.Key.Key_Space)
    assert not body.isVisible()
    assert reported == [True, False]


def test_collapsible_section_is_accessible(qtbot: QtBot) -> None:
    fold = CollapsibleSection("More", QLabel("inside"), is_open=True)
    shown(qtbot, fold)
    assert fold.body.isVisible()
    assert (fold.button.accessibleName(), fold.button.accessibleDescription()) == ("More", "Expanded")
    fold.button.setChecked(False)
    assert fold.button.accessibleDescription() == "Collapsed"


def test_message_bar_shows_message_and_buttons(qtbot: QtBot, style: Style) -> None:
    hint = MessageBar("The file has changed.", "warning")
    pressed: list[str] = []
    button = hint.add_button("Reload", lambda: pressed.append("reload"))
    shown(qtbot, hint)
    assert hint.accessibleName() == hint.text == "The file has changed."
    assert DARK.warning_soft in colors(hint)
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert pressed == ["reload"]
    hint.say(MARKUP, "bad")
    assert hint.text == MARKUP
    assert DARK.bad_soft in colors(hint)


def test_message_bar_can_be_closed(qtbot: QtBot) -> None:
    hint = MessageBar("Saved.")
    shown(qtbot, hint)
    close = next(child for child in hint.findChildren(QWidget) if child.accessibleName() == "Close message")
    with qtbot.waitSignal(hint.closed):
        QTest.mouseClick(close, Qt.MouseButton.LeftButton)
    assert not hint.isVisible()


def test_number_of_a_spin_box_is_indented(qtbot: QtBot) -> None:
    box = QSpinBox()
    inset_number(box)
    shown(qtbot, box)
    line = box.findChild(QLineEdit)
    assert line is not None
    assert line.textMargins().left() >= 4


def test_responsive_row_stacks_groups_without_room(qtbot: QtBot) -> None:
    buttons = [QPushButton(word) for word in ("Open", "Resume", "Compare", "Import")]
    groups = ResponsiveRow(buttons[:2], buttons[2:])
    around = QWidget()
    QVBoxLayout(around).addWidget(groups)
    qtbot.addWidget(around)
    around.show()
    around.resize(600, 100)
    QApplication.processEvents()
    assert not groups.is_stacked
    assert len({button.y() for button in buttons}) == 1

    around.resize(around.minimumSizeHint().width(), 100)

    assert groups.is_stacked
    QApplication.processEvents()
    assert [button.y() for button in buttons] == [0, 0, buttons[2].y(), buttons[2].y()]
    assert buttons[2].y() >= buttons[0].height()
    assert [button.width() for button in buttons[:2]] == [button.sizeHint().width() for button in buttons[:2]]
    assert all(groups.rect().contains(button.geometry()) for button in buttons)
    around.resize(600, 100)
    assert not groups.is_stacked
    for button in (buttons[0], buttons[2]):
        button.setText("Open each of the selected runs in a new tab")
    QApplication.processEvents()
    assert around.width() == 600
    assert groups.is_stacked, "a text that grows needs room too"


def test_responsive_row_leaves_room_for_the_texts_of_links(qtbot: QtBot) -> None:
    links = [QToolButton(), QToolButton()]
    for link in links:
        link.setProperty("link", True)
        link.setText("Edit as an expression")
    row = ResponsiveRow(links[:1], links[1:])
    qtbot.addWidget(row)
    row.resize(sum(link.sizeHint().width() for link in links) - 20, 60)
    row.show()
    QApplication.processEvents()
    assert row.is_stacked


def test_long_tooltip_is_truncated() -> None:
    """Qt takes half a minute to lay out a million characters."""
    tip = plain_tool_tip("<word> " * 200_000)
    assert tip.count("&lt;word&gt;") == LONGEST_TIP // len("<word> ")
    assert tip.endswith("…</p>")
    assert plain_tool_tip("word") == '<p style="white-space: pre-wrap">word</p>'


def test_elided_label_measures_only_the_start_of_a_long_text(qtbot: QtBot) -> None:
    text = "word " * 200_000
    label = ElidedLabel(text)
    qtbot.addWidget(label)
    label.resize(300, 20)
    assert label.sizeHint().width() < 20_000
    assert label.text().startswith("word word")
    assert label.text().endswith("…")
    assert label.full_text == label.accessibleName() == text


class Paintings(QObject):
    """Counts how often a widget is painted."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.number = 0
        widget.installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:  # Qt's name
        self.number += event.type() is QEvent.Type.Paint
        return False


def test_progress_bar_is_not_repainted_for_each_value(qtbot: QtBot) -> None:
    page = QWidget()
    column = QVBoxLayout(page)
    bar, beside = ProgressBar(), QLabel("beside")
    column.addWidget(bar)
    column.addWidget(beside)
    bar.setRange(0, 10)
    shown(qtbot, page)
    QApplication.processEvents()
    of_bar, of_beside = Paintings(bar), Paintings(beside)
    for value in range(1, 10):
        beside.update()
        bar.setValue(value)
    assert bar.value() == 9
    assert (of_bar.number, of_beside.number) == (0, 0)
    QApplication.processEvents()
    assert (of_bar.number, of_beside.number) == (1, 1)
    assert bar.updatesEnabled()


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_the_button_that_clears_a_field_is_inside_of_it(qtbot: QtBot, style: Style, scale: float) -> None:
    style.choose("light", scale)
    field = QLineEdit("text")
    field.setClearButtonEnabled(True)
    field.resize(200, 40)
    shown(qtbot, field)
    button = field.findChild(QToolButton)
    assert isinstance(button, QToolButton)
    assert field.rect().contains(button.geometry())
    assert abs(button.geometry().center().y() - field.rect().center().y()) <= 1


def test_buttons_of_a_message_are_below_its_text_where_there_is_too_little_room(qtbot: QtBot) -> None:
    bar = MessageBar("There is too little room beside a long text. " * 4, "bad")
    qtbot.addWidget(bar)
    buttons = [bar.add_button(title, lambda: None) for title in ("Open settings…", "Show it", "Resume")]
    label = bar.findChild(PlainLabel)
    bar.resize(1200, 100)
    bar.show()
    qtbot.waitUntil(lambda: buttons[0].x() > label.geometry().right())
    bar.resize(500, 400)
    qtbot.waitUntil(lambda: buttons[0].y() > label.geometry().bottom())
    assert label.width() > 350
    assert bar.heightForWidth(500) < 250


def test_a_window_keeps_its_size_in_proportion_to_the_text(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    most = window.screen().availableSize() * SHARE_OF_SCREEN
    try:
        resize_on_screen(window, QSize(400, 300))
        style().choose("dark", 1.5)
        assert window.size() == QSize(600, 450).boundedTo(most)
        style().choose("dark", 2.0)
        assert window.size() == QSize(800, 600).boundedTo(most)
        style().choose("dark", 1.0)
        assert window.size() == QSize(400, 300), "although the screen had no room for the larger one"
        window.resize(200, 100)
        style().choose("light", 1.0)
        assert window.size() == QSize(200, 100)
        style().choose("light", 1.5)
        assert window.size() == QSize(300, 150)
    finally:
        style().choose("dark", 1.0)


@pytest.mark.parametrize(("width", "is_elided"), [(120, True), (600, False)])
def test_combo_box_without_room_ends_in_an_ellipsis(qtbot: QtBot, width: int, is_elided: bool) -> None:
    box = ElidedComboBox()
    qtbot.addWidget(box)
    box.addItem("Self-Refine, today, 07:25")
    box.resize(width, 30)
    option = QStyleOptionComboBox()
    box.initStyleOption(option)
    assert option.currentText.endswith("…") == is_elided
    assert box.currentText() == "Self-Refine, today, 07:25"
