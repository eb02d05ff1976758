"""The pages for MCP servers and plugins, with a real server and an installed plugin."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit
from pytestqt.qtbot import QtBot

from app.engine_thread import EngineThread
from app.inspector.model_list import ModelSource
from app.palette import palette_entries
from app.settings import extensions_controller
from app.settings.extensions_controller import ExtensionsController
from app.settings.extensions_section import McpServersSection, PluginsSection, split_command
from app.settings.install_dialog import InstallDialog
from app.settings.preferences import Preferences
from app.settings.settings_dialog import SettingsDialog
from engine.extensions import Extensions, read_extensions, withdraw_server, write_extensions
from engine.nodes.node_registry import builtin_registry
from engine.tools.mcp_settings import McpServer, SecretVariables
from engine.tools.mcp_tools import Listing
from engine.tools.registry import all_tools, set_tools
from tests.app.settings.conftest import CANARY
from tests.engine.extensions.installed import write_plugin
from tests.engine.models.test_keys import MemoryKeyring
from tests.engine.wheels import use_stub_client
from tests.wording import mentions

LEFT = Qt.MouseButton.LeftButton
RAW = Path(__file__).parents[2] / "engine" / "tools" / "mcp_raw_server.py"
PLUGIN = """
from dataclasses import replace
from engine.extensions import Plugin
from engine.tools.file_tools import READ_FILE
PLUGIN = Plugin(title="Sample", help="Adds a tool.", tools=(replace(READ_FILE, name="sampled", title="Sampled"),))
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of the extensions; there is none yet."""
    path = tmp_path / "config" / "extensions.json"
    monkeypatch.setenv("LOOPWRIGHT_EXTENSIONS", str(path))
    yield path
    withdraw_server("sample")
    set_tools("the plugin windowed", ())


@pytest.fixture
def dialog(file: Path, preferences: Preferences, engine_thread: EngineThread, qtbot: QtBot) -> SettingsDialog:
    dialog = SettingsDialog(preferences, engine_thread, ModelSource())
    qtbot.addWidget(dialog)
    return dialog


def texts(section: McpServersSection) -> list[str]:
    return [section.list.item(index).text() for index in range(section.list.count())]


def servers(dialog: SettingsDialog) -> McpServersSection:
    dialog.show_page("tools")
    assert dialog.mcp is not None
    dialog.mcp.fold.button.setChecked(True)
    return dialog.mcp


def fill(section: McpServersSection, name: str, where: str, variables: str = "") -> None:
    form = section.form
    for field, text in ((form.name, name), (form.where, where), (form.variables, variables)):
        field.clear()
        QTest.keyClicks(field, text)


def test_mcp_server_can_be_added_checked_and_removed(dialog: SettingsDialog, file: Path, qtbot: QtBot) -> None:
    pytest.importorskip("mcp")
    section = servers(dialog)
    assert not section.list.isVisible()
    fill(section, "sample", f"{sys.executable} {RAW} chatty", "MODE='two words'")
    qtbot.mouseClick(section.form.add, LEFT)
    assert not section.form.add.isEnabled()
    qtbot.waitUntil(section.list.isVisible)

    assert texts(section) == [f"sample   ·   1 tool   ·   {sys.executable} {RAW} chatty"]
    assert mentions(section.form.note.text(), "Added. … sample/…")
    assert section.form.name.text() == ""
    assert read_extensions(file).servers["sample"].env == {"MODE": "two words"}
    assert "sample/work" in all_tools()
    (row,) = [row for row in palette_entries(builtin_registry(), []) if row.key == "tool:sample/work"]
    assert (row.title, row.help) == ("Work (sample)", "Works.")

    qtbot.mouseClick(section.list_tools, LEFT)
    assert section.note.text() == "Connecting to sample…"
    qtbot.waitUntil(section.list_tools.isEnabled)
    assert section.note.text() == ""

    qtbot.mouseClick(section.remove, LEFT)
    qtbot.waitUntil(lambda: not section.list.isVisible())
    assert read_extensions(file).servers == {}
    assert "sample/work" not in all_tools()


def test_offer_to_install_ends_with_the_server_that_needed_it(
    dialog: SettingsDialog, file: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.parent.mkdir()
    file.write_text(json.dumps({"mcpServers": {name: {"command": "none"} for name in ("sample", "other")}}))
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.delitem(sys.modules, "engine.tools.mcp_connection", raising=False)
    section = servers(dialog)
    qtbot.waitUntil(lambda: len(texts(section)) == 2)
    qtbot.mouseClick(section.list_tools, LEFT)
    qtbot.waitUntil(section.install.isVisible)
    qtbot.mouseClick(section.remove, LEFT)
    qtbot.waitUntil(lambda: len(texts(section)) == 1)

    assert not section.install.isVisible()


@pytest.mark.parametrize("where", ["new server", "list"])
def test_missing_client_of_mcp_servers_is_installed_and_the_tools_are_listed(
    dialog: SettingsDialog, file: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: str
) -> None:
    pytest.importorskip("mcp")
    if where == "list":
        file.parent.mkdir()
        server = {"command": sys.executable, "args": [str(RAW), "chatty"]}
        file.write_text(json.dumps({"mcpServers": {"sample": server}}))
    with monkeypatch.context() as lacking:
        lacking.setitem(sys.modules, "mcp", None)
        lacking.delitem(sys.modules, "engine.tools.mcp_connection", raising=False)
        section = servers(dialog)
        if where == "list":
            qtbot.waitUntil(lambda: bool(texts(section)))
            button, start = section.install, section.list_tools
        else:
            fill(section, "sample", f"{sys.executable} {RAW} chatty")
            button, start = section.form.install, section.form.add
        assert not button.isVisible()
        qtbot.mouseClick(start, LEFT)
        qtbot.waitUntil(button.isVisible)
    use_stub_client(monkeypatch, tmp_path / "bin", "")
    qtbot.mouseClick(button, LEFT)
    (installer,) = dialog.findChildren(InstallDialog)
    assert installer.requirements.text().startswith("mcp<3")
    qtbot.mouseClick(installer.start, LEFT)
    qtbot.waitUntil(lambda: any("tools not listed" not in text for text in texts(section)))

    assert not button.isVisible()


def test_secret_is_in_the_keyring_and_in_no_file(
    dialog: SettingsDialog, file: Path, qtbot: QtBot, ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mcp")
    monkeypatch.setattr(extensions_controller, "VARIABLES", variables := SecretVariables({}))
    monkeypatch.setattr("engine.tools.mcp_connection.VARIABLES", variables)
    section = servers(dialog)
    fill(section, "sample", f"{sys.executable} {RAW} chatty", "API_TOKEN=${SAMPLE_SECRET} MODE=${SAMPLE_MODE}")
    assert list(section.form.secrets) == ["SAMPLE_SECRET", "SAMPLE_MODE"]
    assert section.form.secrets["SAMPLE_SECRET"].echoMode() is QLineEdit.EchoMode.Password
    QTest.keyClicks(section.form.secrets["SAMPLE_SECRET"], CANARY)
    qtbot.mouseClick(section.form.add, LEFT)
    qtbot.waitUntil(section.form.add.isEnabled)
    assert '"sample" needs SAMPLE_MODE' in section.form.note.text()
    assert ring.kept == {}

    QTest.keyClicks(section.form.secrets["SAMPLE_MODE"], "quiet")
    qtbot.mouseClick(section.form.add, LEFT)
    qtbot.waitUntil(section.list.isVisible)
    assert SecretVariables({}).values(["SAMPLE_SECRET", "SAMPLE_MODE"]) == {
        "SAMPLE_SECRET": CANARY,
        "SAMPLE_MODE": "quiet",
    }
    assert section.form.secrets == {}
    assert [path.name for path in file.parent.iterdir() if CANARY in path.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize(
    ("name", "where", "variables", "faulty", "sentence"),
    [
        ("My Server", "npx x", "", "name", 'A server cannot be called "My Server"'),
        ("sample", "", "", "where", "either a command or"),
        ("sample", "ftp://example.org", "", "where", "This is not an address"),
        ("sample", "npx x", "API_KEY=1234", "variables", "looks like a secret"),
        ("sample", "npx x --api-key 1234", "", "where", '"--api-key" looks like a secret'),
        ("sample", "https://example.org/mcp?key=1234", "", "where", '"key" looks like a secret'),
        ("sample", "npx x", "KEY", "variables", "Use the form NAME=VALUE"),
    ],
)
def test_invalid_input_is_reported_at_its_field(
    dialog: SettingsDialog, name: str, where: str, variables: str, faulty: str, sentence: str
) -> None:
    section = servers(dialog)
    fill(section, name, where, variables)
    section.form.add.click()
    assert sentence in section.form.note.text()
    assert getattr(section.form, faulty).property("invalid")
    assert section.form.add.isEnabled()


def test_unreachable_server_is_reported_and_not_stored(dialog: SettingsDialog, file: Path, qtbot: QtBot) -> None:
    pytest.importorskip("mcp")
    section = servers(dialog)
    fill(section, "sample", "no-such-program")
    section.form.where.setFocus()
    QTest.keyClick(section.form.where, Qt.Key.Key_Return)
    qtbot.waitUntil(section.form.add.isEnabled)
    assert 'there is no program "no-such-program"' in section.form.note.text()
    assert not file.exists()


def test_what_changes_while_a_server_starts_is_not_lost(
    file: Path, engine_thread: EngineThread, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    async def start(_name: str, _server: McpServer, _listings: Path) -> Listing:
        write_extensions(file, Extensions(plugins=("other",)))
        return Listing(fingerprint="")

    monkeypatch.setattr(extensions_controller, "refresh_server", start)
    controller = ExtensionsController(engine_thread)
    with qtbot.waitSignal(controller.changed):
        controller.put_server("sample", McpServer(command="none"), {}, lambda _error: None)
    assert read_extensions(file).plugins == ("other",)
    assert list(read_extensions(file).servers) == ["sample"]


def test_plugin_is_enabled_and_a_broken_one_shows_its_error(
    file: Path,
    preferences: Preferences,
    engine_thread: EngineThread,
    qtbot: QtBot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = write_plugin(write_plugin(tmp_path / "site", "windowed", PLUGIN), "broken", "1 / 0")
    monkeypatch.syspath_prepend(str(site))
    dialog = SettingsDialog(preferences, engine_thread, ModelSource())
    qtbot.addWidget(dialog)
    dialog.show_page("plugins")
    section = dialog.plugins
    assert isinstance(section, PluginsSection)
    qtbot.waitUntil(lambda: "windowed" in section.boxes)
    assert section.boxes["windowed"].text() == "windowed   ·   windowed 1.0"
    assert not section.boxes["windowed"].isChecked()
    assert "windowed_module" not in sys.modules

    section.boxes["windowed"].click()
    section._additions.changed.emit()
    assert section.boxes["windowed"].isChecked(), "the state from before the click does not return meanwhile"
    qtbot.waitUntil(section.boxes["windowed"].isEnabled)
    assert "sampled" in all_tools()
    assert json.loads(file.read_text())["plugins"] == ["windowed"]

    section.boxes["broken"].click()
    qtbot.waitUntil(section.boxes["broken"].isEnabled)
    assert section.note.text().startswith('The plugin "broken" cannot be loaded (ZeroDivisionError')
    assert not section.boxes["broken"].isChecked()

    section.boxes["windowed"].click()
    qtbot.waitUntil(section.boxes["windowed"].isEnabled)
    assert section.note.text() == "Restart Loopwright to unload windowed."
    assert read_extensions(file).plugins == ()


def test_unparsable_command_is_reported_at_its_field(dialog: SettingsDialog) -> None:
    dialog.show_page("tools")
    assert dialog.mcp is not None
    form = dialog.mcp.form
    form.name.setText("sample")
    form.where.setText('npx "unclosed')
    form.add.click()
    assert form.where.property("invalid") is True
    assert not form.variables.property("invalid")
    assert "quot" in form.note.text()


@pytest.mark.parametrize(
    ("text", "on_windows", "words"),
    [
        (r'"D:\My tools\server.exe" --root D:\data', True, [r"D:\My tools\server.exe", "--root", r"D:\data"]),
        (r"tools/my\ server '--name=a b' #1", False, ["tools/my server", "--name=a b", "#1"]),
        ("", False, []),
    ],
)
def test_command_is_split_as_in_the_shell_of_the_system(text: str, on_windows: bool, words: list[str]):
    assert split_command(text, on_windows=on_windows) == words
