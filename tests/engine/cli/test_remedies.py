"""The options and commands that the command line adds to remedies."""

from __future__ import annotations

import re
import shlex
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from engine.cli.remedies import (
    command_of,
    error_with_command,
    install_command,
    quote_argument,
    remedy_with_command,
)
from engine.errors import EngineError, Fix


@pytest.mark.parametrize("fix", list(Fix))
def test_every_fix_has_an_option_or_a_command(fix: Fix):
    for written in (str(fix), fix.of("subject"), fix.of("host:localhost:80")):
        command = command_of(written)
        assert re.search(r"--[a-z]|loopwright|pip install|_KEY", command), written
        assert command.endswith(".")
        assert "{" not in command


@pytest.mark.parametrize(
    ("fix", "parts"),
    [
        ("add_key:openai", ("OPENAI_API_KEY", "loopwright models set-key openai")),
        ("add_key:host:localhost:8080", ("LOOPWRIGHT_KEY_LOCALHOST_8080", "set-key host:localhost:8080")),
        ("use_session_key:openai", ("OPENAI_API_KEY",)),
        ("allow_code", ("--allow-code",)),
        ("choose_folder", ("--folder",)),
        ("install:mcp", ("loopwright[mcp]",)),
        ("get_model:demo", ("loopwright models get demo",)),
        ("list_nodes:llm", ("loopwright nodes llm",)),
        ("ask_server:files", ("loopwright tools --refresh files",)),
        ("raise_budget:outer[1].loop.budget_usd", ("--set loop.budget_usd",)),
        ("raise_budget:budget_tokens", ("--budget-tokens",)),
        ("allow_unknown_price:budget_usd", ("--allow-unknown-price",)),
    ],
)
def test_subject_is_part_of_the_command(fix: str, parts: tuple[str, ...]):
    assert all(part in command_of(fix) for part in parts)


def test_key_that_cannot_be_stored_is_not_stored_by_a_command():
    assert "set-key" not in command_of("use_session_key:openai")


def test_unknown_and_missing_fixes_add_nothing():
    assert command_of("") == ""
    assert command_of("of_a_newer_version:x") == ""
    assert remedy_with_command("Do it.", "") == "Do it."
    assert error_with_command(EngineError("Wrong.")) == "Wrong."
    assert error_with_command(EngineError("Wrong.", fix=Fix.ALLOW_CODE)) == f"Wrong. {command_of('allow_code')}"


@pytest.mark.parametrize("python", ["/usr/bin/python3", "/opt of mine/bin/python"])
@pytest.mark.parametrize("has_pip", [True, False])
def test_command_installs_into_the_python_that_runs(monkeypatch: pytest.MonkeyPatch, python: str, has_pip: bool):
    pip = ModuleType("pip")
    pip.__spec__ = ModuleSpec("pip", None)
    monkeypatch.setitem(sys.modules, "pip", pip if has_pip else None)
    monkeypatch.setattr(sys, "executable", python)
    client = [python, "-m", "pip", "install"] if has_pip else ["uv", "pip", "install", "--python", python]
    assert shlex.split(install_command("mcp")) == [*client, "loopwright[mcp]"]


@pytest.mark.parametrize(
    ("text", "on_windows", "quoted"),
    [
        ("yes", True, "yes"),
        ("loop[0].ask", True, '"loop[0].ask"'),
        ('a="b"', True, r'"a=\"b\""'),
        ("", True, '""'),
        ("loop[0].ask", False, "'loop[0].ask'"),
        ("D:\\my files\\", True, r'"D:\my files\\"'),
        (r'say \"no"', True, r'"say \\\"no\""'),
    ],
)
def test_arguments_are_quoted_for_the_shell_of_the_system(text: str, on_windows: bool, quoted: str):
    assert quote_argument(text, on_windows=on_windows) == quoted
