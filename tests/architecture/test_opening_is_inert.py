"""Opening and checking a document only reads it, whatever it contains."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.project import in_a_new_process

_WATCHED = """
import json, os, sys, threading

seen = []
ACTS = ("socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system", "pty.", "urllib.",
        "os.remove", "os.rename", "os.mkdir", "os.chmod", "os.link", "os.symlink", "os.truncate",
        "shutil.", "tempfile.", "webbrowser.", "sqlite3.", "ftplib.", "http.")
PATHS = ("/etc/passwd", "evil.json", "evil_plugin" + os.sep)

def watch(event, arguments):
    if event == "open":
        path, mode, flags = arguments
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) or any(part in str(path) for part in PATHS):
            seen.append([event, str(path)])
    elif event == "import" and arguments[0].startswith("evil"):
        seen.append([event, arguments[0]])
    elif event.startswith(ACTS):
        seen.append([event, ""])

start_thread = threading.Thread.start

def watched_start(thread):
    seen.append(["thread", thread.name])
    start_thread(thread)

threading.Thread.start = watched_start  # not every Python tells its audit hooks of threads
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
sys.addaudithook(watch)
"""

_OPEN_AND_CHECK = """
from engine import load, validate
problems = validate(load(sys.argv[2]))
print(json.dumps([seen, len(problems)]))
"""

_COMMAND = """
from engine.cli.main import main
code = main([sys.argv[3], sys.argv[2]])
print()
print(json.dumps([seen, code]))
"""


def _node(node_id: str, node_type: str, **config: Any) -> dict[str, Any]:
    return {"id": node_id, "type": node_type, "title": "", "config": config}


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A document that uses everything, beside a plugin that reports its import."""
    package = tmp_path / "evil_plugin"
    package.mkdir()
    (package / "__init__.py").write_text("open('evil-was-here', 'w')\n")
    about = tmp_path / "evil_plugin-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: evil_plugin\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[loopwright.nodes]\nevil = evil_plugin\n[engine.nodes]\nevil = evil_plugin\n"
    )
    remote = "http://127.0.0.1:9/evil.json"
    nodes = [
        _node("start", "input", name="start", default="{{ evil }}"),
        _node("plugin", "evil_plugin"),
        _node("asks", "llm", model="scripted:/etc/passwd", api_base=remote, prompt="{{input.__class__.__mro__}}"),
        _node("calls", "llm", model="openai/evil", api_base=remote, prompt="{{ __import__('evil_plugin') }}"),
        _node("fetches", "tool", tool="http_get", arguments={"url": remote}),
        _node("writes", "tool", tool="write_file", arguments={"path": "../evil", "text": "x", "mode": "overwrite"}),
        _node("reads", "tool", tool="read_file", arguments={"path": "/etc/passwd"}),
        _node("finds", "tool", tool="search_files", arguments={"folder": "/etc/passwd", "query": "root"}),
        _node("schema", "validator", json_schema={"$ref": remote}),
        _node("file_schema", "validator", json_schema={"$ref": "file:///etc/passwd"}),
        _node("reply_schema", "llm", prompt="{{input}}", reply_schema={"$ref": remote}),
        _node("counts", "transform", mode="expression", expression="9999999 * 9999999 * size(input)"),
        _node("grows", "transform", mode="expression", expression="input.matches('(a+)+$') ? input : input"),
        _node("end", "output"),
    ]
    chain = [node["id"] for node in nodes]
    edges = [{"from": f"{a}.output", "to": f"{b}.input"} for a, b in pairwise(chain)]
    settings = {"model": "evil/evil", "plugins": ["evil_plugin"]}
    path = tmp_path / "hostile.loop.json"
    path.write_text(
        json.dumps(
            {"format": "loopwright.workflow", "version": 1, "name": "x", "description": "", "settings": settings,
             "nodes": nodes, "edges": edges, "layout": {"picture": "/etc/passwd", "icon": remote}}
        )
    )  # fmt: skip
    return path


def test_opening_and_checking_a_hostile_document_only_reads_it(hostile: Path):
    output = in_a_new_process(_WATCHED + _OPEN_AND_CHECK, str(hostile.parent), str(hostile), cwd=hostile.parent)
    seen, problems = json.loads(output)
    assert seen == []
    assert problems > 0


@pytest.mark.parametrize("command", ["validate", "graph"])
def test_read_only_commands_do_nothing_else(hostile: Path, command: str):
    output = in_a_new_process(_WATCHED + _COMMAND, str(hostile.parent), str(hostile), command, cwd=hostile.parent)
    seen, code = json.loads(output.splitlines()[-1])
    assert seen == []
    assert code == {"validate": 2, "graph": 0}[command]


@pytest.mark.parametrize(
    ("act", "event"),
    [
        ("import socket; socket.socket()", "socket.__new__"),
        ("import subprocess; subprocess.run([sys.executable, '-c', ''])", "subprocess.Popen"),
        ("t = threading.Thread(target=int); t.start(); t.join()", "thread"),
        ("open('written', 'w').close()", "open"),
        ("import evil_plugin", "import"),
    ],
)
def test_the_monitor_detects_side_effects(hostile: Path, act: str, event: str):
    program = f"{_WATCHED}\n{act}\nprint(json.dumps(seen))"
    output = in_a_new_process(program, str(hostile.parent), cwd=hostile.parent)
    assert event in {name for name, _ in json.loads(output)}
