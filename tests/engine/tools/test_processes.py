"""Child processes of tools; `test_code_tools` and `test_mcp_stdio` run real ones."""

from __future__ import annotations

import pytest

from engine.tools.processes import small_environment


@pytest.mark.parametrize(("on_windows", "name"), [(True, "PATH"), (False, "Path")])
def test_names_of_variables_ignore_case_on_windows(on_windows: bool, name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "inherited")
    added = small_environment({"Path": "added"}, on_windows=on_windows)
    assert added == small_environment(on_windows=on_windows) | {name: "added"}
