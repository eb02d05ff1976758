"""The file of the user's extensions, and their activation."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.extensions import (
    Extensions,
    ExtensionsError,
    activate_extensions,
    listings_path,
    read_extensions,
    withdraw_server,
    write_extensions,
)
from engine.tools.mcp_settings import McpServer
from engine.tools.mcp_tools import ListedTool, Listing, write_listings
from engine.tools.registry import all_tools
from tests.wording import mentions

RAW = Path(__file__).parents[1] / "tools" / "mcp_raw_server.py"
SERVER = McpServer(command=sys.executable, args=[str(RAW), "chatty"])


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The path of the file of extensions, which does not exist yet."""
    path = tmp_path / "config" / "extensions.json"
    monkeypatch.setenv("LOOPWRIGHT_EXTENSIONS", str(path))
    yield path
    withdraw_server("sample")


def test_written_extensions_are_read_unchanged(file: Path) -> None:
    assert read_extensions(file) == Extensions()
    extensions = Extensions(plugins=("example",), servers={"sample": SERVER, "far": McpServer(url="https://a.example")})
    write_extensions(file, extensions)
    assert read_extensions(file) == extensions
    written = json.loads(file.read_text())
    assert written["mcpServers"]["far"] == {"url": "https://a.example"}
    assert [one.name for one in file.parent.iterdir()] == ["extensions.json"]


def test_files_of_other_programs_are_read(file: Path) -> None:
    file.parent.mkdir()
    file.write_text('{"mcpServers": {"files": {"type": "stdio", "command": "npx", "args": ["-y", "files"]}}, "x": 1}')
    assert read_extensions(file).servers["files"].summary == "npx -y files"


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("{", "cannot be used: Invalid JSON"),
        ('{"mcpServers": {"a": {}}}', "at mcpServers.a: … either a command or"),
        ('{"mcpServers": {"A/b": {"command": "x"}}}', 'A server cannot be called "A/b"'),
        ('{"mcpServers": {"a": {"command": "x", "env": {"API_KEY": "1234"}}}}', '"API_KEY" looks like a secret.'),
        ('{"plugins": "example"}', "at plugins"),
    ],
)
def test_an_invalid_file_is_an_error_with_a_sentence(file: Path, content: str, parts: str) -> None:
    file.parent.mkdir()
    file.write_text(content)
    with pytest.raises(ExtensionsError) as caught:
        read_extensions(file)
    assert mentions(caught.value.message, parts), caught.value.message
    assert "1234" not in str(caught.value)


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "settings").write_text("no folder")
    with pytest.raises(ExtensionsError, match="cannot be written") as caught:
        write_extensions(tmp_path / "settings" / "extensions.json", Extensions())
    assert caught.value.remedy == "Check the folder."


def test_tools_of_a_server_are_offered_after_it_was_asked_until_its_settings_change(file: Path) -> None:
    extensions = Extensions(servers={"sample": SERVER})
    (remark,) = activate_extensions(extensions, file)
    assert mentions(remark.message, '"sample" … not known yet')
    assert remark.fix == "ask_server:sample"
    listing = Listing(fingerprint=SERVER.fingerprint, tools=(ListedTool(name="work"),))
    write_listings(listings_path(file), {"sample": listing})
    assert activate_extensions(extensions, file) == []
    assert "sample/work" in all_tools()
    other = McpServer(command=sys.executable, args=["other"])
    assert len(activate_extensions(Extensions(servers={"sample": other}), file)) == 1
    assert "sample/work" not in all_tools()


def test_the_command_line_asks_a_server_lists_its_tools_and_runs_one(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mcp")
    write_extensions(file, Extensions(servers={"sample": SERVER}))
    document = {
        "format": "loopwright.workflow",
        "version": 1,
        "name": "Sample",
        "nodes": [
            {"id": "work", "type": "tool", "config": {"tool": "sample/work"}},
            {"id": "out", "type": "output", "config": {}},
        ],
        "edges": [{"from": "work.output", "to": "out.value"}],
    }
    flow = tmp_path / "sample.loop.json"
    flow.write_text(json.dumps(document))
    assert main(["validate", str(flow)]) == 2
    output = capsys.readouterr()
    assert "There is no tool" in output.out + output.err

    assert main(["tools", "--refresh", "sample"]) == 0
    output = capsys.readouterr()
    assert "sample offers 1 tool." in output.err
    assert "sample/work" in output.out
    assert main(["tools", "sample/work"]) == 0
    assert "Works." in capsys.readouterr().out
    assert main(["validate", str(flow)]) == 0
    capsys.readouterr()
    assert main(["run", str(flow), "--json", "--no-store", "--allow"]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"]["out"].startswith("done\n")

    assert main(["tools", "--refresh", "absent"]) == 2
    assert 'no MCP server "absent"' in capsys.readouterr().err
