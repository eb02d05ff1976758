"""API keys: their source, storing and removing them; they are never shown."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import keyring
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLabel, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from app.engine_thread import EngineThread
from app.inspector.model_list import ModelSource
from app.settings import providers_section
from app.settings.key_dialog import KeyDialog
from app.settings.preferences import Preferences
from app.settings.providers_section import ProviderRow, ProvidersSection, list_providers
from app.settings.settings_dialog import SettingsDialog
from engine.errors import EngineError
from engine.models.keys import Keys
from tests.app.settings.conftest import CANARY
from tests.engine.models.test_keys import BrokenKeyring, MemoryKeyring
from tests.wording import mentions

Key = Qt.Key
LEFT = Qt.MouseButton.LeftButton


def _choose(section: ProvidersSection, title: str) -> None:
    """Select the row of a provider."""
    table = section.table
    item = table.findItems(title, Qt.MatchFlag.MatchExactly)[0]
    table.scrollToItem(item)
    QTest.mouseClick(table.viewport(), LEFT, pos=table.visualItemRect(item).center())
    assert section.title.text() == title


def _key_of(section: ProvidersSection, title: str) -> str:
    item = section.table.findItems(title, Qt.MatchFlag.MatchExactly)[0]
    return section.table.item(item.row(), 1).text()


def _ask(section: ProvidersSection, qtbot: QtBot) -> KeyDialog:
    qtbot.mouseClick(section.set_key, LEFT)
    asking = section.key_dialog
    assert asking is not None
    assert asking.isVisible()
    return asking


def _shown(*widgets: QWidget) -> str:
    """Every text of the widgets and their children, including accessible texts."""
    inner = [child for widget in widgets for child in (widget, *widget.findChildren(QWidget))]
    texts = [child.text() for child in inner if isinstance(child, QLabel | QAbstractButton)]
    lines = [child.displayText() for child in inner if isinstance(child, QLineEdit)]
    descriptions = [child.toolTip() + child.accessibleName() + child.accessibleDescription() for child in inner]
    return "\n".join([*texts, *lines, *descriptions])


def test_provider_list_shows_the_source_of_each_key(
    ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ring.kept["loopwright", "anthropic"] = "sk-ring"
    ring.kept["loopwright", "mistral"] = "no key"
    keys = Keys({"GOOGLE_API_KEY": "sk-env", "XAI_API_KEY": "a b"})
    keys.set("groq", "sk-session", session_only=True)

    rows = {row.title: row for row in list_providers(keys)}

    assert rows["Built-in demo model (135M)"].key == "No key needed"
    assert rows["OpenAI"].key == "No key"
    assert rows["Anthropic"].key == "System keyring"
    assert rows["Gemini"].key == "Set outside of Loopwright"
    assert rows["Groq"].key == "This session only"
    assert (rows["Mistral"].key, rows["xAI"].key) == ("Invalid key", "Invalid key")
    assert "mistral" in rows["Mistral"].problem
    assert {title for title, row in rows.items() if row.removable} == {"Anthropic", "Groq", "Mistral"}
    assert {title for title, row in rows.items() if row.has_key} == {
        *("Built-in demo model (135M)", "Anthropic", "Gemini", "Groq")
    }
    assert not rows.keys() & {"Ollama", "LM Studio", "Scripted"}


def test_key_is_stored_in_the_keyring_and_removed(
    dialog: SettingsDialog, preferences: Preferences, ring: MemoryKeyring, qtbot: QtBot
) -> None:
    section = dialog.providers
    _choose(section, "Anthropic")
    assert _key_of(section, "Anthropic") == "No key"
    assert not section.remove_key.isEnabled()

    asking = _ask(section, qtbot)
    assert not asking.save.isEnabled()
    QTest.keyClicks(asking.field, CANARY)
    with qtbot.waitSignal(section.refreshed):
        QTest.keyClick(asking.field, Key.Key_Return)

    assert ring.kept == {("loopwright", "anthropic"): CANARY}
    assert not asking.isVisible()
    assert asking.field.text() == ""
    assert section.title.text() == "Anthropic"
    assert _key_of(section, "Anthropic") == "System keyring"
    assert section.status.text() == "Key: system keyring."
    assert section.set_key.text() == "Change key…"
    assert preferences.providers_with_key == ("anthropic",)

    with qtbot.waitSignal(section.refreshed):
        qtbot.mouseClick(section.remove_key, LEFT)
    assert ring.kept == {}
    assert _key_of(section, "Anthropic") == "No key"
    assert preferences.providers_with_key == ()


@pytest.mark.usefixtures("no_ring")
def test_without_a_keyring_a_key_is_stored_for_the_session(
    dialog: SettingsDialog, engine_thread: EngineThread, qtbot: QtBot
) -> None:
    section = dialog.providers
    _choose(section, "OpenAI")
    asking = _ask(section, qtbot)
    QTest.keyClicks(asking.field, CANARY)
    qtbot.mouseClick(asking.save, LEFT)
    qtbot.waitUntil(asking.save_for_session.isVisible)
    assert "This computer has no keyring" in asking.error.text()
    assert "this session only" in asking.error.text()
    assert asking.error.height() >= asking.error.heightForWidth(asking.error.width())

    with qtbot.waitSignal(section.refreshed):
        QTest.keyClick(asking.save_for_session, Key.Key_Space)

    assert _key_of(section, "OpenAI") == "This session only"
    assert engine_thread.models.keys.get("openai") == CANARY


def test_invalid_key_is_rejected_at_once(dialog: SettingsDialog, ring: MemoryKeyring, qtbot: QtBot) -> None:
    _choose(dialog.providers, "OpenAI")
    asking = _ask(dialog.providers, qtbot)
    QTest.keyClicks(asking.field, "two words")
    qtbot.mouseClick(asking.save, LEFT)

    assert "characters that no key has" in asking.error.text()
    assert not asking.save_for_session.isVisible()
    assert ring.kept == {}
    QTest.keyClick(asking.field, Key.Key_Escape)
    assert not asking.isVisible()
    assert asking.field.text() == ""


def test_environment_key_takes_precedence_and_cannot_be_removed(
    preferences: Preferences, engine_thread: EngineThread, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    dialog = SettingsDialog(preferences, engine_thread, ModelSource())
    qtbot.addWidget(dialog)
    with qtbot.waitSignal(dialog.providers.refreshed):
        dialog.show()
    _choose(dialog.providers, "OpenAI")

    assert _key_of(dialog.providers, "OpenAI") == "Set outside of Loopwright"
    assert not dialog.providers.remove_key.isEnabled()
    assert "outside of Loopwright" in dialog.providers.remove_key.toolTip()
    asking = _ask(dialog.providers, qtbot)
    assert "takes precedence" in _shown(asking)
    asking.reject()


def test_unusable_key_is_reported_and_can_be_removed(dialog: SettingsDialog, ring: MemoryKeyring, qtbot: QtBot) -> None:
    ring.kept["loopwright", "mistral"] = "no key"
    with qtbot.waitSignal(dialog.providers.refreshed):
        dialog.providers.refresh()
    _choose(dialog.providers, "Mistral")

    assert "The key for mistral in the keyring" in dialog.providers.status.text()
    assert dialog.providers.status.property("tone") == "bad"
    with qtbot.waitSignal(dialog.providers.refreshed):
        qtbot.mouseClick(dialog.providers.remove_key, LEFT)
    assert ring.kept == {}


def test_late_answer_does_not_replace_a_newer_one(
    dialog: SettingsDialog, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    section = dialog.providers
    may_answer = threading.Event()
    listed: list[list[str]] = []
    section.refreshed.connect(lambda: listed.append([row.name for row in section.rows]))
    rounds = iter(["old", "new"])

    def slow_list(_keys: Keys) -> list[ProviderRow]:
        name = next(rounds)
        if name == "old":
            may_answer.wait(60)
        return [ProviderRow(name, name, "")]

    monkeypatch.setattr(providers_section, "list_providers", slow_list)
    section.refresh()
    section.refresh()
    may_answer.set()
    qtbot.waitUntil(lambda: bool(listed))

    assert listed == [["new"]]


def test_keyring_failure_on_removal_is_reported(
    dialog: SettingsDialog, ring: MemoryKeyring, engine_thread: EngineThread, qtbot: QtBot
) -> None:
    engine_thread.models.keys.set("openai", CANARY)
    with qtbot.waitSignal(dialog.providers.refreshed):
        dialog.providers.refresh()
    _choose(dialog.providers, "OpenAI")
    keyring.set_keyring(BrokenKeyring())

    qtbot.mouseClick(dialog.providers.remove_key, LEFT)
    qtbot.waitUntil(lambda: "no keyring that can delete" in dialog.providers.status.text())

    assert dialog.providers.remove_key.isEnabled(), "it may be tried again"
    assert CANARY not in _shown(dialog)


def test_failure_of_a_removal_is_reported_though_the_list_was_refreshed_meanwhile(
    dialog: SettingsDialog, engine_thread: EngineThread, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    section = dialog.providers
    engine_thread.models.keys.set("openai", CANARY)
    with qtbot.waitSignal(section.refreshed):
        section.refresh()
    _choose(section, "OpenAI")
    may_fail = threading.Event()

    def delete(_name: str) -> None:
        may_fail.wait(60)
        raise EngineError("It is locked.")

    monkeypatch.setattr(engine_thread.models.keys, "delete", delete)
    qtbot.mouseClick(section.remove_key, LEFT)
    section.refresh()
    may_fail.set()
    qtbot.waitUntil(lambda: section.status.text() == "It is locked.")
    with qtbot.waitSignal(section.refreshed):
        section.refresh()
    assert section.status.text() == "It is locked.", "the state of the key does not replace it"


def test_key_is_in_no_file_text_or_log(
    dialog: SettingsDialog,
    preferences: Preferences,
    own_folders: Path,
    tmp_path: Path,
    qtbot: QtBot,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    for title in ("OpenAI", "Gemini"):
        _choose(dialog.providers, title)
        asking = _ask(dialog.providers, qtbot)
        QTest.keyClicks(asking.field, CANARY)
        assert CANARY not in _shown(dialog, asking)
        with qtbot.waitSignal(dialog.providers.refreshed):
            qtbot.mouseClick(asking.save, LEFT)
        assert CANARY not in _shown(dialog, asking)
    dialog.close()
    preferences.save()

    files = [file for folder in (own_folders, tmp_path) for file in folder.rglob("*") if file.is_file()]
    assert preferences.path in files
    assert not [file for file in files if CANARY.encode() in file.read_bytes()]
    assert CANARY not in caplog.text


def test_built_in_model_note_states_its_limits(dialog: SettingsDialog) -> None:
    _choose(dialog.providers, "Built-in demo model (135M)")
    assert mentions(dialog.providers.status.text(), "(135M): … not reliable")
    assert dialog.providers.model.text() == "embedded:smollm2-135m"
    assert not dialog.providers.set_key.isVisible()


def test_arrow_keys_move_in_the_provider_list(dialog: SettingsDialog) -> None:
    dialog.providers.table.setFocus()
    dialog.providers.table.selectRow(0)
    QTest.keyClick(dialog.providers.table, Key.Key_Down)
    assert dialog.providers.title.text() == "OpenAI"
    assert dialog.providers.model.text() == "openai/gpt-4o-mini"


def test_valid_model_can_become_the_default(dialog: SettingsDialog, preferences: Preferences, qtbot: QtBot) -> None:
    _choose(dialog.providers, "OpenRouter")
    qtbot.mouseClick(dialog.providers.use, LEFT)
    assert dialog.providers.status.text().startswith("Replace MODEL")
    assert preferences.default_model is None

    _choose(dialog.providers, "OpenAI")
    qtbot.mouseClick(dialog.providers.use, LEFT)
    assert preferences.default_model == "openai/gpt-4o-mini"

    QTest.keyClicks(dialog.providers.model, " nonsense/")
    dialog.providers.model.setText("nonsense")
    qtbot.mouseClick(dialog.providers.use, LEFT)
    assert "There is no model 'nonsense'" in dialog.providers.status.text()
    assert preferences.default_model == "openai/gpt-4o-mini"


def test_a_typed_model_name_stays_when_the_keys_are_checked_again(dialog: SettingsDialog, qtbot: QtBot) -> None:
    section = dialog.providers
    dialog.close()
    with qtbot.waitSignal(section.refreshed):
        dialog.show_page("models")
        section.model.selectAll()
        QTest.keyClicks(section.model, "openai/gpt-5")
    assert section.model.text() == "openai/gpt-5"
    _choose(section, "Groq")
    assert section.model.text().startswith("groq/")
