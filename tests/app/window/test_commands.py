from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from email.message import Message
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QGridLayout, QMessageBox
from pytestqt.qtbot import QtBot

from app.settings.settings_dialog import PAGES, SettingsDialog
from app.theme.style import style
from app.window.command_palette import CommandPalette, PaletteEntry, ShortcutsDialog, matching
from app.window.document_page import DocumentPage
from app.workbench import Workbench
from engine.document.operations import RemoveNodes, SetConfig
from engine.tools.file_tools import READ_FILE
from engine.tools.registry import set_tools
from tests.app.window.conftest import saved

CONTROL = Qt.KeyboardModifier.ControlModifier


def finder(workbench: Workbench) -> CommandPalette:
    (found,) = (dialog for dialog in workbench.window.findChildren(CommandPalette) if dialog.isVisible())
    return found


def shown(dialog: CommandPalette) -> list[str]:
    return [dialog.list.item(row).text() for row in range(dialog.list.count())]


def test_undo_and_redo_actions_name_the_step(workbench: Workbench, self_refine: DocumentPage) -> None:
    assert not workbench.actions_by_name["undo"].isEnabled()
    self_refine.session.do(RemoveNodes(("critique",)))
    assert workbench.actions_by_name["undo"].text() == "Undo Remove critique"

    QTest.keyClick(workbench.window, Qt.Key.Key_Z, CONTROL)
    assert "critique" in self_refine.session.workflow.nodes_by_id
    assert workbench.actions_by_name["redo"].text() == "Redo Remove critique"
    QTest.keyClick(workbench.window, Qt.Key.Key_Z, CONTROL | Qt.KeyboardModifier.ShiftModifier)
    assert "critique" not in self_refine.session.workflow.nodes_by_id
    QTest.keyClick(workbench.window, Qt.Key.Key_Z, CONTROL)
    QTest.keyClick(workbench.window, Qt.Key.Key_Y, CONTROL)
    assert "critique" not in self_refine.session.workflow.nodes_by_id


def test_command_palette_finds_an_action_and_enter_triggers_it(workbench: Workbench, self_refine: DocumentPage) -> None:
    QTest.keyClick(workbench.window, Qt.Key.Key_K, CONTROL)
    dialog = finder(workbench)
    QTest.keyClicks(dialog.field, "new")
    assert shown(dialog)[:2] == ["New", "New from template…"]
    QTest.keyClick(dialog.field, Qt.Key.Key_Return)

    assert len(workbench.documents.all) == 2


def test_command_palette_adds_a_node_type(workbench: Workbench, self_refine: DocumentPage) -> None:
    QTest.keyClick(workbench.window, Qt.Key.Key_K, CONTROL)
    dialog = finder(workbench)
    QTest.keyClicks(dialog.field, "add valid")
    QTest.keyClick(dialog.field, Qt.Key.Key_Return)

    assert "validator" in {node.type for node in self_refine.session.workflow.nodes}


@pytest.mark.parametrize(
    ("typed", "entry"),
    [
        *((word, "Add LLM") for word in ("prompt", "chat", "gpt")),
        *((word, "Add Loop") for word in ("repeat", "while")),
        *((("if", "Add Router"), ("http", "Add Tool"), ("map", "Add Iterator"))),
    ],
)
def test_command_palette_knows_words_of_other_programs(
    workbench: Workbench, self_refine: DocumentPage, typed: str, entry: str
) -> None:
    dialog = workbench.commands.open_command_palette()
    QTest.keyClicks(dialog.field, typed)
    assert entry in shown(dialog)[:3]
    dialog.close()


def test_command_palette_adds_an_mcp_tool(workbench: Workbench, self_refine: DocumentPage) -> None:
    set_tools("sample", [replace(READ_FILE, name="files/read", title="Read a file (files)")])
    try:
        QTest.keyClick(workbench.window, Qt.Key.Key_K, CONTROL)
        dialog = finder(workbench)
        QTest.keyClicks(dialog.field, "add read a file")
        QTest.keyClick(dialog.field, Qt.Key.Key_Return)
    finally:
        set_tools("sample", ())

    assert self_refine.session.workflow.node("read_a_file").config["tool"] == "files/read"


def test_command_palette_omits_disabled_actions(workbench: Workbench) -> None:
    dialog = workbench.commands.open_command_palette()

    assert "Open…" in shown(dialog)
    assert "Stop" not in shown(dialog)


def test_arrow_keys_select_in_the_command_palette(workbench: Workbench, self_refine: DocumentPage) -> None:
    QTest.keyClick(workbench.window, Qt.Key.Key_F, CONTROL)
    dialog = finder(workbench)
    assert shown(dialog) == [node.title for node in self_refine.session.workflow.nodes]

    QTest.keyClick(dialog.field, Qt.Key.Key_Down)
    QTest.keyClick(dialog.field, Qt.Key.Key_Down)
    QTest.keyClick(dialog.field, Qt.Key.Key_Up)
    assert dialog.list.currentRow() == 1
    QTest.keyClick(dialog.field, Qt.Key.Key_PageDown)
    assert dialog.list.currentRow() == dialog.list.count() - 1
    QTest.keyClick(dialog.field, Qt.Key.Key_Return)

    assert self_refine.session.selection == ("text",)


def test_node_search_result_can_be_clicked(workbench: Workbench, self_refine: DocumentPage) -> None:
    QTest.keyClick(workbench.window, Qt.Key.Key_F, CONTROL)
    dialog = finder(workbench)
    QTest.keyClicks(dialog.field, "crit")
    place = dialog.list.visualItemRect(dialog.list.item(0)).center()

    QTest.mouseClick(dialog.list.viewport(), Qt.MouseButton.LeftButton, pos=place)

    assert self_refine.session.selection == ("critique",)


def test_search_without_results_does_nothing(workbench: Workbench, self_refine: DocumentPage) -> None:
    dialog = workbench.commands.find_node()
    assert dialog is not None
    QTest.keyClicks(dialog.field, "zebra")
    QTest.keyClick(dialog.field, Qt.Key.Key_Return)

    assert dialog.isVisible()
    assert self_refine.session.selection == ()
    dialog.close()


def test_no_node_search_without_a_document(workbench: Workbench) -> None:
    assert workbench.commands.find_node() is None


def test_results_that_start_with_the_text_come_first() -> None:
    entries = [
        PaletteEntry("Save as", "", id),
        PaletteEntry("Close", "save", id),
        PaletteEntry("Resave", "", id),
        PaletteEntry("Open", "", id),
    ]

    assert [entry.text for entry in matching(entries, "save")] == ["Save as", "Close"]
    assert [entry.text for entry in matching(entries, "SAVE as")] == ["Save as"]
    assert matching(entries, "") == entries


def test_shortcuts_dialog_lists_window_and_canvas_shortcuts(workbench: Workbench, self_refine: DocumentPage) -> None:
    QTest.keyClick(workbench.window, Qt.Key.Key_F1, Qt.KeyboardModifier.ShiftModifier)

    (sheet,) = workbench.window.findChildren(ShortcutsDialog)
    from app.theme.widgets import PlainLabel

    texts = [label.text() for label in sheet.findChildren(PlainLabel)]
    assert texts[texts.index("Run with…") + 1] == "Shift+F5 or Ctrl+Shift+Return"
    assert texts[texts.index("Duplicate") + 1] == "Ctrl+D"
    sheet.close()


def test_keys_are_aligned_in_all_groups_at_each_text_size(workbench: Workbench) -> None:
    dialog = workbench.commands.show_shortcuts()

    def widths_of_keys() -> set[int]:
        QApplication.processEvents()
        return {grid.cellRect(1, 1).width() for grid in dialog.findChildren(QGridLayout)}

    try:
        (before,) = widths_of_keys()
        style().choose("dark", 1.5)
        dialog.resize(1152, 648)  # as on a screen of 1280 × 720
        (after,) = widths_of_keys()
        assert after > before > 0
    finally:
        style().choose("dark", 1.0)
    dialog.close()


def test_question_mark_opens_the_shortcuts_dialog(workbench: Workbench) -> None:
    QTest.keyClick(workbench.window, "?")

    assert workbench.window.findChildren(ShortcutsDialog)


def test_menus_file_and_help_have_what_a_person_looks_for_there(workbench: Workbench) -> None:
    found = {menu.text(): set(menu.menu().actions()) for menu in workbench.window.menuBar().actions()}
    exports = (f"export_{kind}" for kind in ("python", "langgraph", "png", "svg", "pdf"))
    for menu, names in (("&File", ("import", *exports)), ("&Help", ("guide", "tour", "shortcuts", "about"))):
        assert {workbench.actions_by_name[name] for name in names} <= found[menu]


def test_menus_contain_the_actions_of_the_current_canvas(workbench: Workbench, self_refine: DocumentPage) -> None:
    def texts() -> list[str]:
        menus = [action.menu() for action in workbench.window.menuBar().actions()]
        return [action.text() for menu in menus[1:3] for action in menu.actions()]

    assert "Duplicate" in texts()
    assert "Zoom to fit" in texts()
    workbench.tabs.show_start()
    assert "Duplicate" not in texts()
    workbench.tabs.show_document(self_refine)
    assert texts().count("Duplicate") == 1


def test_panels_open_and_collapse_by_keyboard(workbench: Workbench, self_refine: DocumentPage) -> None:
    alt = Qt.KeyboardModifier.AltModifier
    for key, name in ((Qt.Key.Key_3, "iterations"), (Qt.Key.Key_4, "log"), (Qt.Key.Key_5, "problems")):
        QTest.keyClick(workbench.window, key, alt)
        assert workbench.bottom_panel.open_panel == name
        assert self_refine.panels[name]().isVisible()
        assert workbench.actions_by_name[f"show_{name}"].isChecked()
    QTest.keyClick(workbench.window, Qt.Key.Key_5, alt)
    assert workbench.bottom_panel.open_panel == ""
    assert not self_refine.problems.isVisible()
    QTest.keyClick(workbench.window, Qt.Key.Key_2, alt)
    assert not self_refine.inspector.isVisible()


def test_panel_opens_and_collapses_by_mouse(workbench: Workbench, self_refine: DocumentPage) -> None:
    QTest.mouseClick(workbench.bottom_panel.buttons["log"], Qt.MouseButton.LeftButton)
    assert self_refine.log.isVisible()

    QTest.mouseClick(workbench.bottom_panel._fold, Qt.MouseButton.LeftButton)
    assert not self_refine.log.isVisible()


def test_palette_adds_a_node(workbench: Workbench, self_refine: DocumentPage) -> None:
    workbench.palette_panel.node_chosen.emit("validator")

    assert "validator" in {node.type for node in self_refine.session.workflow.nodes}


def test_palette_opens_a_template(workbench: Workbench, self_refine: DocumentPage, tmp_path: Path) -> None:
    workbench.palette_panel.template_chosen.emit(saved(tmp_path))

    assert [document.session.name for document in workbench.documents.all] == ["Self-Refine", "Small"]


def test_settings_dialog_opens_once(workbench: Workbench, self_refine: DocumentPage) -> None:
    QTest.mouseClick(workbench.run_bar.model, Qt.MouseButton.LeftButton)
    QTest.keyClick(workbench.window, Qt.Key.Key_Comma, CONTROL)

    (dialog,) = workbench.window.findChildren(SettingsDialog)
    assert dialog.isVisible()
    dialog.close()


@pytest.mark.parametrize(
    "set_up",
    [
        lambda workbench: workbench.gallery.models_requested.emit(),
        lambda workbench: workbench.models.setup_requested.emit(),
        lambda workbench: QTest.mouseClick(workbench.run_bar.model, Qt.MouseButton.LeftButton),
    ],
    ids=["start page", "list of models", "run bar"],
)
def test_models_are_set_up_at_their_page_whichever_was_shown_last(
    workbench: Workbench, self_refine: DocumentPage, set_up: Callable[[Workbench], object]
) -> None:
    dialog = workbench.commands.open_settings()
    dialog.show_page("appearance")
    dialog.close()
    set_up(workbench)
    assert dialog.isVisible()
    assert list(PAGES)[dialog.navigation.currentRow()] == "models"
    dialog.close()


def test_about_shows_the_version(workbench: Workbench) -> None:
    workbench.actions_by_name["about"].trigger()

    (box,) = workbench.window.findChildren(QMessageBox)
    assert box.text().startswith("Loopwright 0.")
    assert not box.iconPixmap().isNull()
    box.close()


@pytest.mark.parametrize("address", ["", "https://git.example/owner/flow/issues"])
def test_about_leads_to_where_problems_are_reported_if_the_package_names_it(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    package = Message()
    package["Project-URL"] = "Homepage, https://git.example/owner/flow"
    if address:
        package["Project-URL"] = f"Issues, {address}"
    monkeypatch.setattr("importlib.metadata.metadata", lambda _name: package)
    workbench.actions_by_name["about"].trigger()
    (about,) = workbench.window.findChildren(QMessageBox)
    assert about.defaultButton().text() == "Close"
    for button in about.buttons():
        if button.text() == "Report a problem…":
            button.click()

    questions = [box for box in workbench.window.findChildren(QMessageBox) if box is not about]
    assert [box.informativeText() for box in questions] == ([address] if address else [])
    for box in (about, *questions):
        box.close()


def test_refused_action_is_shown_in_the_status_bar_and_fades(
    workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    workbench.status_bar._shown.setInterval(0)
    workbench.status_bar._fading.setDuration(1)

    self_refine.session.do(SetConfig(("x",), {"nobody": 1}))
    assert 'no node "nobody"' in workbench.status_bar.refusal.full_text

    qtbot.waitUntil(lambda: workbench.status_bar.refusal.full_text == "")


def test_refusal_of_another_document_is_shown_with_its_name(workbench: Workbench, self_refine: DocumentPage) -> None:
    workbench.documents.new()

    self_refine.session.do(SetConfig(("x",), {"nobody": 1}))

    assert workbench.status_bar.refusal.full_text.startswith("“Self-Refine”: There is no node")


def test_the_edit_menu_is_short_and_has_the_rest_in_submenus(workbench: Workbench) -> None:
    workbench.documents.new()
    (edit,) = (action for action in workbench.window.menuBar().actions() if action.text() == "&Edit")
    entries = [action for action in edit.menu().actions() if not action.isSeparator() and action.isVisible()]
    assert len(entries) < 20
    submenus = [action.text() for action in entries if action.menu() is not None]
    assert submenus == ["Select", "Add", "Wrap", "Arrange"]
    assert "Wrap in a loop" in [action.text() for action in workbench.menus.canvas_actions]
