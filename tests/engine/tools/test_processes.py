"""Child processes of tools; `test_code_tools` and `test_mcp_stdio` run real ones."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from engine.tools.processes import ToolProcess, small_environment


@pytest.mark.parametrize(("on_windows", "name"), [(True, "PATH"), (False, "Path")])
def test_names_of_variables_ignore_case_on_windows(on_windows: bool, name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "inherited")
    added = small_environment({"Path": "added"}, on_windows=on_windows)
    assert added == small_environment(on_windows=on_windows) | {name: "added"}


def test_programs_in_the_current_folder_do_not_run_on_windows():
    assert small_environment(on_windows=True)["NODEFAULTCURRENTDIRECTORYINEXEPATH"]
    assert "NODEFAULTCURRENTDIRECTORYINEXEPATH" not in small_environment(on_windows=False)


async def test_what_a_process_left_behind_is_ended_once_it_has_exited():
    one, other = socket.socketpair()
    with one, other:
        exited: Any = SimpleNamespace(stdin=1, stdout=1, stderr=1, returncode=3)
        process = ToolProcess(exited, one)
        await process.exited()
        assert other.recv(1) == b""
