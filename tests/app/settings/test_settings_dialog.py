"""The Settings dialog by mouse and keyboard: changes apply immediately and are saved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QComboBox,
    QLineEdit,
    QScrollArea,
    QSlider,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.engine_thread import EngineThread
from app.inspector.model_list import ModelSource
from app.settings.preferences import FIXED_NOTE, Preferences, apply_appearance
from app.settings.providers_section import ProvidersSection
from app.settings.servers_section import ServersSection
from app.settings.settings_dialog import PAGES, SettingsDialog
from app.theme.style import style
from app.theme.tokens import DARK, LIGHT, Theme
from engine.settings import Source, UserSettings, load_settings
from tests.app.window.conftest import answer
from tests.wording import mentions

Key = Qt.Key


def _retype(field: QWidget, text: str) -> None:
    field.setFocus()
    QTest.keyClick(field, Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClick(field, Key.Key_Delete)
    QTest.keyClicks(field, text)


def test_settings_pages_are_reached_by_keyboard(dialog: SettingsDialog) -> None:
    dialog.navigation.setFocus()
    assert dialog.pages.currentIndex() == 0

    QTest.keyClick(dialog.navigation, Key.Key_Down)
    assert dialog.forms["runs"].isVisible()
    QTest.keyClick(dialog.navigation, Key.Key_Down)
    assert dialog.forms["history"].isVisible()
    QTest.keyClick(dialog.navigation, Key.Key_Down)
    assert dialog.mcp is not None
    assert dialog.mcp.isVisible()
    QTest.keyClick(dialog.navigation, Key.Key_Down)
    assert dialog.plugins is not None
    assert dialog.plugins.isVisible()
    QTest.keyClick(dialog.navigation, Key.Key_Down)
    assert dialog.forms["appearance"].isVisible()

    dialog.show_page("runs")
    assert dialog.forms["runs"].isVisible()
    assert not dialog.isModal()


def test_models_page_is_completed_once_the_dialog_is_visible(
    preferences: Preferences, engine_thread: EngineThread, models: ModelSource, qtbot: QtBot
) -> None:
    dialog = SettingsDialog(preferences, engine_thread, models)
    qtbot.addWidget(dialog)
    dialog.show()
    qtbot.waitUntil(dialog.isActiveWindow)
    qtbot.waitUntil(lambda: all(dialog.findChildren(kind) for kind in (ProvidersSection, ServersSection)))
    qtbot.waitUntil(lambda: dialog.providers.isVisible() and dialog.servers.isVisible())
    qtbot.waitUntil(lambda: dialog.providers.table.rowCount() > 0)
    assert dialog.isActiveWindow()  # no part of it was shown as a window of its own


def test_sections_of_the_models_page_are_never_squeezed_when_one_is_added(
    preferences: Preferences, engine_thread: EngineThread, models: ModelSource, qtbot: QtBot
) -> None:
    rooms: list[int] = []

    class Watch(QObject):
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            if event.type() is QEvent.Type.Paint:
                assert isinstance(watched, QWidget)
                rooms.extend(
                    section.height() - section.minimumSizeHint().height()
                    for section in watched.findChildren(ProvidersSection)
                )
            return False

    dialog, watch = SettingsDialog(preferences, engine_thread, models), Watch()
    qtbot.addWidget(dialog)
    dialog.installEventFilter(watch)
    dialog.show()
    qtbot.waitUntil(lambda: any(section.isVisible() for section in dialog.findChildren(ServersSection)))
    qtbot.waitUntil(lambda: dialog.providers.table.rowCount() > 0)
    assert rooms
    assert min(rooms) >= 0


@pytest.mark.parametrize("setting", ["gguf_gpu_layers", "notify_when_done", "keep_megabytes"])
def test_a_setting_is_shown_where_the_dialog_is_small(dialog: SettingsDialog, qtbot: QtBot, setting: str) -> None:
    dialog.resize(700, 380)
    dialog.close()
    dialog.show_setting(setting)
    (row,) = (form.rows[setting] for form in dialog.forms.values() if setting in form.rows)
    field = row.editor.widget
    qtbot.waitUntil(lambda: field.visibleRegion().boundingRect() == field.rect())
    qtbot.waitUntil(field.hasFocus)


@pytest.mark.parametrize("page", ["models", "runs"])
def test_tab_moves_through_a_page_before_the_close_button(dialog: SettingsDialog, qtbot: QtBot, page: str) -> None:
    dialog.show_page(page)
    qtbot.waitUntil(lambda: dialog.servers.isVisible() or page != "models")
    dialog.navigation.setFocus()
    qtbot.waitUntil(dialog.navigation.hasFocus)
    QTest.keyClick(dialog.navigation, Key.Key_Tab)
    area = dialog.pages.currentWidget()
    assert isinstance(area, QScrollArea)
    middles: list[int] = []
    while (focused := dialog.focusWidget()) is not dialog.close_button:
        middles.append(focused.mapTo(area.widget(), focused.rect().center()).y())
        QTest.keyClick(focused, Key.Key_Tab)
        assert len(middles) < 50
    assert len(middles) > 3
    assert middles == sorted(middles)


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
def test_navigation_has_rounded_corners(
    dialog: SettingsDialog, theme: Theme, preferences: Preferences, qtbot: QtBot
) -> None:
    preferences.set(theme=theme.name)
    qtbot.waitUntil(lambda: style().theme is theme)
    dialog.navigation.setFocus()
    qtbot.waitUntil(dialog.navigation.hasFocus)
    picture = dialog.navigation.grab().toImage()

    assert picture.pixelColor(picture.width() // 2, 0).name() == theme.accent
    assert picture.pixelColor(0, picture.height() // 2).name() == theme.accent
    corners = [(0, 0), (picture.width() - 1, 0), (0, picture.height() - 1)]
    assert all(picture.pixelColor(*corner).name() != theme.accent for corner in corners)


def test_numbers_apply_while_typing_and_invalid_ones_are_reported(
    dialog: SettingsDialog, preferences: Preferences
) -> None:
    dialog.show_page("runs")
    cap, budget, tokens = (
        dialog.forms["runs"].rows[name] for name in ("max_iterations_cap", "budget_usd", "budget_tokens")
    )

    _retype(cap.editor.widget, "120")
    _retype(budget.editor.widget, "0.050")
    _retype(tokens.editor.widget, "90000")
    assert (preferences.max_iterations_cap, preferences.budget_usd, preferences.budget_tokens) == (120, 0.05, 90000)
    assert isinstance(budget.editor.widget, QLineEdit)
    assert budget.editor.widget.text() == "0.050"

    _retype(cap.editor.widget, "20000")
    assert cap.error.text() == "Must be at most 10000."
    assert cap.error.isVisible()
    assert cap.editor.widget.property("invalid")
    assert preferences.max_iterations_cap == 2000

    _retype(budget.editor.widget, "much")
    assert "valid number" in budget.error.text()
    _retype(budget.editor.widget, "nan")
    assert "finite" in budget.error.text()
    _retype(budget.editor.widget, "")
    assert not budget.error.isVisible()
    assert preferences.budget_usd is None

    _retype(cap.editor.widget, "")
    assert "valid integer" in cap.error.text()
    _retype(cap.editor.widget, "7")
    assert not cap.error.isVisible()
    assert preferences.max_iterations_cap == 7


def test_space_bar_toggles_a_preference(dialog: SettingsDialog, preferences: Preferences) -> None:
    dialog.show_page("runs")
    switch = dialog.forms["runs"].rows["notify_when_done"].editor.widget
    switch.setFocus()
    QTest.keyClick(switch, Key.Key_Space)
    assert preferences.notify_when_done is False


def test_chosen_theme_is_applied(dialog: SettingsDialog, preferences: Preferences, qtbot: QtBot) -> None:
    dialog.show_page("appearance")
    combo = dialog.forms["appearance"].rows["theme"].editor.widget
    assert isinstance(combo, QComboBox)
    assert [combo.itemText(index) for index in range(3)] == ["System", "Dark", "Light"]
    assert style().theme is DARK

    combo.setFocus()
    QTest.keyClick(combo, Key.Key_Down)

    assert preferences.theme == "light"
    qtbot.waitUntil(lambda: style().theme is LIGHT)


def test_text_size_slider_steps_by_ten_percent(dialog: SettingsDialog, preferences: Preferences, qtbot: QtBot) -> None:
    dialog.show_page("appearance")
    slider = dialog.forms["appearance"].rows["text_scale"].editor.widget
    assert isinstance(slider, QSlider)
    slider.setFocus()
    for _ in range(5):
        QTest.keyClick(slider, Key.Key_Right)

    assert preferences.text_scale == 1.5
    qtbot.waitUntil(lambda: style().scale == 1.5)
    slider.setValue(173)
    assert preferences.text_scale == 1.7
    assert slider.value() == 170


def test_preferences_changed_elsewhere_are_shown(dialog: SettingsDialog, preferences: Preferences) -> None:
    dialog.show_page("runs")
    preferences.set(max_iterations_cap=99, theme="light", default_model="openai/gpt-5", notify_when_done=False)

    cap = dialog.forms["runs"].rows["max_iterations_cap"].editor.widget
    assert isinstance(cap, QLineEdit)
    assert cap.text() == "99"
    assert dialog.default_model.box.currentText() == "openai/gpt-5"


def test_appearance_is_applied_once_per_change(preferences: Preferences, qtbot: QtBot) -> None:
    apply_appearance(preferences)
    worn: list[str] = []
    style().changed.connect(lambda: worn.append(style().theme.name))

    preferences.set(theme="light")
    preferences.set(text_scale=1.2)
    preferences.set(budget_usd=1.0)

    qtbot.waitUntil(lambda: style().scale == 1.2)
    assert worn == ["light"]


def test_relative_path_of_the_default_model_is_stored_as_an_absolute_one(
    dialog: SettingsDialog, preferences: Preferences, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    line = dialog.default_model.box.line
    _retype(line, "gguf:./x.gguf")
    assert line.text() == "gguf:./x.gguf"
    assert preferences.default_model == f"gguf:{tmp_path}/x.gguf"
    QTest.keyClick(line, Key.Key_Return)
    assert line.text() == preferences.recent_models[0] == f"gguf:{tmp_path}/x.gguf"


def test_default_model_is_typed_validated_and_cleared(dialog: SettingsDialog, preferences: Preferences) -> None:
    chooser = dialog.default_model
    line = chooser.box.lineEdit()
    assert mentions(chooser.note.text(), "(135M): … not reliable")

    _retype(line, "gpt-4o")
    assert "Did you mean openai/gpt-4o?" in chooser.note.text()
    assert preferences.default_model is None

    _retype(line, "openai/gpt-4o")
    assert preferences.default_model == "openai/gpt-4o"
    assert not chooser.note.isVisible()
    assert line.text() == "openai/gpt-4o"

    _retype(line, "")
    assert preferences.default_model is None
    assert chooser.note.isVisible()


def test_chosen_model_becomes_a_recent_model(dialog: SettingsDialog, preferences: Preferences) -> None:
    chooser = dialog.default_model
    line = chooser.box.lineEdit()
    _retype(line, "openai/gpt-4o")
    assert preferences.recent_models == (), "somebody may still be typing"
    QTest.keyClick(line, Key.Key_Return)
    assert preferences.recent_models == ("openai/gpt-4o",)

    _retype(line, "gpt-4o")
    QTest.keyClick(line, Key.Key_Return)
    assert preferences.recent_models == ("openai/gpt-4o",), "there is no such model"
    chooser.box.model_chosen.emit("groq/x")
    assert preferences.recent_models == ("groq/x", "openai/gpt-4o")


def test_model_list_follows_the_preferences_and_offers_no_settings(
    dialog: SettingsDialog, preferences: Preferences
) -> None:
    box = dialog.default_model.box
    preferences.set(local_models=("ollama_chat/llama3.2",))
    box.showPopup()
    assert box.list is not None
    assert not box.list.setup.isVisible()
    QTest.keyClicks(box.list.filter, "llama3.2")
    QTest.keyClick(box.list.filter, Key.Key_Return)
    assert preferences.default_model == "ollama_chat/llama3.2"


def test_closing_the_dialog_saves_the_preferences(
    dialog: SettingsDialog, preferences: Preferences, qtbot: QtBot
) -> None:
    preferences.set(budget_usd=3.0)
    qtbot.mouseClick(dialog.close_button, Qt.MouseButton.LeftButton)
    assert not dialog.isVisible()
    assert Preferences(preferences.path).budget_usd == 3.0


def test_damaged_file_is_reported_above_the_pages(engine_thread: EngineThread, tmp_path: Path, qtbot: QtBot) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{")
    preferences = Preferences(path)
    dialog = SettingsDialog(preferences, engine_thread, ModelSource())
    qtbot.addWidget(dialog)
    with qtbot.waitSignal(dialog.providers.refreshed):
        dialog.show()
    assert dialog.notice.isVisible()
    assert str(path) in dialog.notice.text
    preferences.set(theme="light")

    qtbot.mouseClick(dialog.reset, Qt.MouseButton.LeftButton)
    answer(dialog, "Cancel")
    assert dialog.notice.isVisible()
    assert path.read_text() == "{"
    qtbot.mouseClick(dialog.reset, Qt.MouseButton.LeftButton)
    answer(dialog, "Reset settings")

    assert not dialog.notice.isVisible()
    assert path.with_name("settings.broken.json").read_text() == "{"
    assert json.loads(path.read_text())["theme"] == "light"
    assert not preferences.is_unreadable

    path.write_text("{")
    preferences.load()
    assert dialog.notice.isVisible()
    assert dialog.reset.isVisible()
    path.write_text("{}")
    preferences.load()
    assert not dialog.notice.isVisible()


def test_settings_from_the_environment_are_shown_and_cannot_be_changed(
    engine_thread: EngineThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    for name, value in (("MODEL", "openai/gpt-5"), ("BUDGET_USD", "0.25"), ("SEARCH_LOCAL_SERVERS", "false")):
        monkeypatch.setenv(f"LOOPWRIGHT_{name}", value)
    preferences = Preferences(tmp_path / "settings.json")
    dialog = SettingsDialog(preferences, engine_thread, ModelSource())
    qtbot.addWidget(dialog)
    with qtbot.waitSignal(dialog.providers.refreshed):
        dialog.show_page("models")

    assert dialog.default_model.box.currentText() == "openai/gpt-5"
    assert dialog.default_model.note.text() == FIXED_NOTE
    fixed = (dialog.default_model.box, dialog.providers.use, dialog.servers.use, dialog.servers.consent)
    assert [widget.isEnabled() for widget in fixed] == [False] * 4
    dialog.show_page("runs")
    rows = dialog.forms["runs"].rows
    assert {name: row.editor.widget.isEnabled() for name, row in rows.items()} == {
        "max_iterations_cap": True,
        "budget_usd": False,
        "budget_tokens": True,
        "notify_when_done": True,
    }
    budget = rows["budget_usd"].editor.widget
    assert isinstance(budget, QLineEdit)
    assert budget.text() == "0.25"
    assert rows["budget_usd"].error.text() == FIXED_NOTE


@pytest.mark.parametrize(
    ("page", "name", "change", "stored"),
    [
        ("local models", "gguf_threads", "2", 2),
        ("runs", "max_iterations_cap", "120", 120),
        ("runs", "budget_usd", "0.5", 0.5),
        ("runs", "budget_tokens", "9000", 9000),
        ("history", "keep_megabytes", "", None),
        ("history", "keep_runs", "7", 7),
        ("runs", "notify_when_done", None, False),
        ("appearance", "formatted_results", None, False),
    ],
)
def test_what_a_form_changes_is_what_other_programs_read(
    dialog: SettingsDialog, preferences: Preferences, page: str, name: str, change: str | None, stored: object
) -> None:
    dialog.show_page("models" if page == "local models" else page)
    dialog.local_options.button.setChecked(True)
    editor = dialog.forms[page].rows[name].editor.widget
    if change is None:
        QTest.keyClick(editor, Key.Key_Space)
    else:
        _retype(editor, change)
        QTest.keyClick(editor, Key.Key_Return)
    dialog.close()

    loaded = load_settings(UserSettings, preferences.path)
    assert (getattr(loaded.values, name), loaded.source(name)) == (stored, Source.FILE)


def test_save_failure_is_reported_above_the_pages(dialog: SettingsDialog, preferences: Preferences) -> None:
    preferences.save()
    preferences.path.unlink()
    preferences.path.mkdir()
    preferences.set(budget_usd=1.0)
    preferences.save()
    assert dialog.notice.isVisible()
    assert str(preferences.path) in dialog.notice.text
    assert dialog.reset.isVisible()
    preferences.path.rmdir()


@pytest.mark.parametrize("page", ["models", "runs", "appearance"])
def test_every_settings_control_has_a_name_and_keyboard_access(dialog: SettingsDialog, page: str) -> None:
    dialog.servers.fold.button.setChecked(True)
    dialog.show_page(page)
    kinds = (QAbstractButton, QLineEdit, QComboBox, QSlider, QAbstractItemView)
    controls = [widget for widget in dialog.findChildren(QWidget) if isinstance(widget, kinds) and widget.isVisible()]
    for control in controls:
        named = control.accessibleName() or (control.text() if isinstance(control, QAbstractButton) else "")
        assert named, f"no name: {control} in {control.parent()}"

    wanted = {
        control for control in controls if control.focusPolicy() & Qt.FocusPolicy.TabFocus and control.isEnabled()
    }
    reached, at = set(), dialog.navigation
    at.setFocus()
    for _ in range(80):
        QTest.keyClick(dialog.focusWidget(), Key.Key_Tab)
        reached.add(dialog.focusWidget())
    missed = {widget for widget in wanted - reached if not any(parent in reached for parent in _parents(widget))}
    assert not missed


def _parents(widget: QWidget) -> list[QWidget]:
    found = []
    parent = widget.parentWidget()
    while parent is not None:
        found.append(parent)
        parent = parent.parentWidget()
    return found


@pytest.mark.parametrize(("theme", "scale"), [("dark", 1.0), ("light", 1.0), ("light", 1.5)])
def test_no_settings_page_is_wider_than_the_dialog(
    dialog: SettingsDialog, preferences: Preferences, qtbot: QtBot, theme: str, scale: float
) -> None:
    preferences.set(theme=theme, text_scale=scale)
    qtbot.waitUntil(lambda: (style().theme.name, style().scale) == (theme, scale))
    dialog.servers.fold.button.setChecked(True)
    for index, name in enumerate(PAGES):
        dialog.show_page(name)
        qtbot.waitExposed(dialog)
        area = dialog.pages.widget(index)
        assert not area.horizontalScrollBar().isVisible()
        assert not dialog.grab().isNull()


def test_history_limit_applies_only_after_editing(dialog: SettingsDialog, preferences: Preferences) -> None:
    dialog.show_page("history")
    runs, megabytes = (dialog.forms["history"].rows[name] for name in ("keep_runs", "keep_megabytes"))
    heard: list[object] = []
    preferences.changed.connect(lambda _names: heard.append((preferences.keep_runs, preferences.keep_megabytes)))
    _retype(runs.editor.widget, "100")
    _retype(megabytes.editor.widget, "5000")  # the other field has lost the keyboard
    assert heard == [(100, 2000)]
    QTest.keyClick(megabytes.editor.widget, Key.Key_Return)
    assert heard == [(100, 2000), (100, 5000)]
    _retype(runs.editor.widget, "50")
    dialog.close()
    assert heard[2:] == [(50, 5000)]


def test_completed_model_name_is_used(dialog: SettingsDialog, preferences: Preferences, qtbot: QtBot) -> None:
    preferences.set(local_models=("ollama_chat/llama3",))
    line = dialog.default_model.box.line
    _retype(line, "llama")
    popup = line.completer().popup()
    qtbot.waitUntil(popup.isVisible)
    QTest.keyClick(popup, Key.Key_Down)
    QTest.keyClick(popup, Key.Key_Return)
    assert line.text() == "ollama_chat/llama3"
    assert preferences.default_model == "ollama_chat/llama3"


@pytest.mark.parametrize("page", ["models", "appearance"])
def test_mouse_wheel_scrolls_a_settings_page_without_changes(
    dialog: SettingsDialog, preferences: Preferences, page: str
) -> None:
    preferences.set(default_model="openai/gpt-4o", recent_models=("openai/a", "openai/gpt-4o", "openai/b"))
    dialog.default_model.box.showPopup()
    dialog.default_model.box.hidePopup()
    dialog.show_page(page)
    dialog.navigation.setFocus()
    before = preferences.values
    looked_at = [*dialog.pages.currentWidget().findChildren(QComboBox)]
    looked_at += dialog.pages.currentWidget().findChildren(QSlider)
    assert looked_at
    for widget in looked_at:
        for turn in (-120, 120):
            _turn_wheel(widget, turn)
    assert preferences.values == before


def _turn_wheel(widget: QWidget, angle: int) -> None:
    center = QPointF(widget.rect().center())
    buttons, keys = Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier
    turned = QWheelEvent(
        center,
        widget.mapToGlobal(center),
        QPoint(),
        QPoint(0, angle),
        buttons,
        keys,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(widget, turned)
