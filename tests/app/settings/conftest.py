"""Fixtures of the settings tests: a clean environment, keyrings and a visible dialog."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backends import fail
from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from shiboken6 import delete

from app.engine_thread import EngineThread
from app.settings.available_models import AvailableModels
from app.settings.preferences import Preferences, apply_appearance
from app.settings.settings_dialog import SettingsDialog
from app.theme.style import style
from engine.models.providers import PROVIDERS
from tests.engine.conftest import pytest_configure
from tests.engine.models.test_keys import MemoryKeyring
from tests.engine.wire.fixtures import wire

__all__ = ["pytest_configure", "wire"]

CANARY = "sk-canary-0123456789"


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in PROVIDERS.values():
        for variable in (*provider.key_variables, *provider.address_variables):
            monkeypatch.delenv(variable, raising=False)
    monkeypatch.delenv("LOOPWRIGHT_MODEL", raising=False)
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture(autouse=True)
def ring() -> Iterator[MemoryKeyring]:
    """A working keyring that lives as long as the test."""
    before = keyring.get_keyring()
    ring = MemoryKeyring()
    keyring.set_keyring(ring)
    yield ring
    keyring.set_keyring(before)


@pytest.fixture
def no_ring(ring: MemoryKeyring) -> None:
    """A computer without a keyring."""
    keyring.set_keyring(fail.Keyring())


@pytest.fixture
def preferences(qtbot: QtBot, tmp_path: Path) -> Iterator[Preferences]:
    preferences = Preferences(tmp_path / "settings.json")
    preferences.set(theme="dark")
    yield preferences
    for dialog in QApplication.topLevelWidgets():
        if isinstance(dialog, SettingsDialog):  # which may still be creating sections that use the preferences
            for timer in dialog.findChildren(QTimer, options=Qt.FindChildOption.FindDirectChildrenOnly):
                timer.stop()
    preferences.save()
    delete(preferences)  # now, with its timers: the next test wears its own looks
    style().choose("dark", 1.0)


@pytest.fixture
def models(preferences: Preferences, engine_thread: EngineThread) -> AvailableModels:
    """The window's source of models."""
    return AvailableModels(preferences, engine_thread, preferences)


@pytest.fixture
def dialog(
    preferences: Preferences, engine_thread: EngineThread, models: AvailableModels, qtbot: QtBot
) -> SettingsDialog:
    """The visible dialog, after the list of keys is loaded."""
    apply_appearance(preferences)  # as when the program starts
    dialog = SettingsDialog(preferences, engine_thread, models)
    qtbot.addWidget(dialog)
    with qtbot.waitSignal(dialog.providers.refreshed):
        dialog.show_page("models")
    return dialog


@pytest.fixture
def nowhere() -> str:
    """An address without a server."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{held.getsockname()[1]}/v1"


@pytest.fixture
def script(tmp_path: Path) -> str:
    """The name of a model that replies `ready` with extra text."""
    file = tmp_path / "replies.json"
    file.write_text(json.dumps({"default": "<b>ready</b>\n\nnow"}))
    return f"scripted:{file}"
