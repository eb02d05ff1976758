"""Models on servers: found, added, tested, made the default and removed."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit
from pytestqt.qtbot import QtBot

from app.engine_thread import EngineThread
from app.settings.preferences import Preferences
from app.settings.servers_section import ServersSection
from app.settings.settings_dialog import SettingsDialog
from app.settings.settings_widgets import ModelTestResult
from engine.models.catalog import Models
from engine.settings import CustomServer
from tests.app.settings.conftest import CANARY
from tests.engine.models.test_keys import MemoryKeyring
from tests.engine.wire.server import WireServer
from tests.wording import mentions

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def section(dialog: SettingsDialog) -> ServersSection:
    return dialog.servers


def _texts(section: ServersSection) -> list[str]:
    return [section.list.item(index).text() for index in range(section.list.count())]


def _fill(section: ServersSection, address: str, model: str, key: str = "") -> None:
    section.fold.button.setChecked(True)
    for field, text in ((section.form.address, address), (section.form.model, model), (section.form.key, key)):
        field.clear()
        QTest.keyClicks(field, text)


def test_local_servers_are_queried_only_with_consent_which_can_be_withdrawn(
    section: ServersSection, preferences: Preferences, wire: WireServer, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("LM_STUDIO_API_BASE", "LLAMAFILE_API_BASE", "OLLAMA_API_BASE"):
        monkeypatch.setenv(variable, wire.base_url)
    assert wire.requests == []
    assert not section.list.isVisible()

    assert not section.find_servers.isVisible()
    qtbot.mouseClick(section.consent, LEFT)
    assert preferences.search_local_servers
    assert not section.find_servers.isEnabled()
    qtbot.waitUntil(section.find_servers.isEnabled)

    assert section.found.text().startswith("Found ")
    assert f"The server at {wire.base_url} is not Ollama." in section.found.text()
    assert "lm_studio/plain" in preferences.local_models
    assert "llamafile/plain" in preferences.local_models
    assert any(
        text.startswith("lm_studio/plain") and text.endswith("LM Studio on this computer") for text in _texts(section)
    )
    asked = len(wire.requests)

    qtbot.mouseClick(section.consent, LEFT)
    assert not preferences.search_local_servers
    assert preferences.local_models == ()
    assert section.found.text() == ""
    assert not section.find_servers.isVisible()
    assert len(wire.requests) == asked


def test_servers_that_do_not_run_are_listed(
    section: ServersSection, preferences: Preferences, nowhere: str, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("LM_STUDIO_API_BASE", "LLAMAFILE_API_BASE", "OLLAMA_API_BASE"):
        monkeypatch.setenv(variable, nowhere)
    preferences.set(local_models=("ollama_chat/a",), search_local_servers=True)

    QTest.keyClick(section.find_servers, Qt.Key.Key_Space)
    qtbot.waitUntil(section.find_servers.isEnabled)

    assert section.found.text() == "No models found. Not running: Ollama, LM Studio, llama.cpp."
    assert preferences.local_models == ()


def test_found_model_can_become_the_default(section: ServersSection, preferences: Preferences, qtbot: QtBot) -> None:
    preferences.set(local_models=("ollama_chat/a", "ollama_chat/b"))
    section.list.setFocus()
    QTest.keyClick(section.list, Qt.Key.Key_Down)
    assert not section.remove.isVisible()

    qtbot.mouseClick(section.use, LEFT)

    assert preferences.default_model == "ollama_chat/b"


def test_server_can_be_added_by_address_and_removed(
    section: ServersSection, preferences: Preferences, ring: MemoryKeyring, qtbot: QtBot
) -> None:
    preferences.set(local_models=("ollama_chat/a",))
    _fill(section, "http://localhost:8080/v1", "openai/gpt-oss-20b", CANARY)
    assert section.form.key.echoMode() is QLineEdit.EchoMode.Password
    with qtbot.waitSignal(section.form.added):
        qtbot.mouseClick(section.form.add, LEFT)

    server = CustomServer(model="openai/openai/gpt-oss-20b", address="http://localhost:8080/v1")
    assert preferences.servers == (server,)
    assert ring.kept == {("loopwright", "host:localhost:8080"): CANARY}
    assert section.form.key.text() == ""
    assert "Added as openai/openai/gpt-oss-20b." in section.form.note.text()
    assert "keyring" in section.form.note.text()
    assert section.chosen is not None
    assert section.chosen.model == server.model
    assert CANARY not in preferences.path.read_text() if preferences.path.exists() else True

    _fill(section, "http://localhost:9090/v1", "openai/gpt-oss-20b")
    with qtbot.waitSignal(section.form.added):
        qtbot.mouseClick(section.form.add, LEFT)
    assert [other.address for other in preferences.servers] == ["http://localhost:9090/v1"]

    qtbot.mouseClick(section.remove, LEFT)
    assert preferences.servers == ()
    assert _texts(section) == ["ollama_chat/a   ·   Ollama on this computer"]


@pytest.mark.usefixtures("no_ring")
def test_without_a_keyring_a_server_key_is_stored_for_the_session(
    section: ServersSection, engine_thread: EngineThread, qtbot: QtBot
) -> None:
    _fill(section, "http://localhost:8080/v1", "mine", CANARY)
    with qtbot.waitSignal(section.form.added):
        qtbot.mouseClick(section.form.add, LEFT)

    assert mentions(section.form.note.text(), "no keyring … this session only")
    assert engine_thread.models.keys.get("host:localhost:8080") == CANARY


@pytest.mark.parametrize(
    ("address", "model", "key", "wrong", "sentence"),
    [
        ("http://localhost:8080/v1", "", "", "model", "the name of the model"),
        ("localhost", "mine", "", "address", "is not the address"),
        (f"http://me:{CANARY}@host", "mine", "", "address", "is not the address"),
        ("http://localhost:8080/v1", "mine", "two words", "key", "characters that no key has"),
    ],
)
def test_invalid_server_form_is_marked_and_reported(
    section: ServersSection,
    preferences: Preferences,
    qtbot: QtBot,
    address: str,
    model: str,
    key: str,
    wrong: str,
    sentence: str,
) -> None:
    _fill(section, address, model, key)
    qtbot.mouseClick(section.form.add, LEFT)
    qtbot.mouseClick(section.form.model_test.button, LEFT)

    assert sentence in section.form.note.text()
    fields = {"address": section.form.address, "model": section.form.model, "key": section.form.key}
    assert [name for name, field in fields.items() if field.property("invalid")] == [wrong]
    assert not section.form.model_test.is_running
    assert preferences.servers == ()

    QTest.keyClicks(fields[wrong], "x")
    assert section.form.note.text() == ""


@pytest.mark.slow
def test_server_is_tested_with_the_typed_key_only(
    section: ServersSection, wire: WireServer, ring: MemoryKeyring, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    wire.reply = lambda _body: "ready"
    _fill(section, wire.base_url, "plain", CANARY)

    qtbot.mouseClick(section.form.model_test.button, LEFT)
    qtbot.waitUntil(lambda: not section.form.model_test.is_running, timeout=120_000)

    assert section.form.model_test.result.text().endswith("s: ready")
    assert [request.headers["authorization"] for request in wire.requests] == [f"Bearer {CANARY}"]
    assert wire.requests[0].body["max_tokens"] == 8
    assert ring.kept == {}


@pytest.mark.slow
def test_stored_server_is_tested_at_its_address(
    section: ServersSection, preferences: Preferences, wire: WireServer, qtbot: QtBot
) -> None:
    preferences.set(servers=(CustomServer(model="openai/unauthorized", address=wire.base_url),))
    qtbot.mouseClick(section.model_test.button, LEFT)
    qtbot.waitUntil(lambda: not section.model_test.is_running, timeout=120_000)

    assert section.model_test.result.text().startswith("✗ ")
    assert "key" in section.model_test.result.text()


def test_tested_key_does_not_replace_the_stored_key(
    section: ServersSection, engine_thread: EngineThread, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    key_store = engine_thread.models.keys
    key_store.set("host:localhost:8080", "the-good-one")
    tried: list[str | None] = []

    async def watched(models: Models, _name: str, _address: str) -> ModelTestResult:
        tried.append(models.keys.get("host:localhost:8080"))
        return ModelTestResult(0.1, "ready")

    monkeypatch.setattr("app.settings.servers_section.run_model_test", watched)
    for key, is_one in (("a-wrong-one", True), ("", False)):
        _fill(section, "http://localhost:8080/v1", "mine", key)
        section.form.model_test.button.click()
        qtbot.waitUntil(lambda: not section.form.model_test.is_running)
        assert section.form.model_test.result.text() == "✓ Replied in 0.1 s: ready"
        assert tried.pop() == (key if is_one else "the-good-one")
    assert key_store.get("host:localhost:8080") == "the-good-one"
