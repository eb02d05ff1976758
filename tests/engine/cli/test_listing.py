"""`loopwright nodes`, `templates` and `models`."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keyring
import keyring.backend
import pytest

from engine.bundled import templates_folder
from engine.cli.catalog_commands import fields
from engine.models.gguf_files import models_folder
from engine.nodes.loop import LoopConfig
from engine.nodes.node_registry import builtin_registry
from tests.engine.cli.kit import Program
from tests.engine.wire.server import WireServer
from tests.wording import mentions

TYPES = [spec.type for spec in builtin_registry()]


def test_nodes_lists_every_type(program: Program):
    ended = program("nodes")
    assert ended.code == 0
    assert [line.split()[0] for line in ended.out.splitlines()[1:]] == TYPES


def test_nodes_as_json_has_ports_and_a_json_schema(program: Program):
    listed = {node["type"]: node for node in program("nodes", "--json").json["nodes"]}
    assert list(listed) == TYPES
    llm = listed["llm"]
    assert llm["inputs"] == [
        {
            "name": "input",
            "type": "any",
            "help": "What the prompt calls {{input}}.",
            "required": True,
            "many": True,
            "branch": False,
        }
    ]
    assert [port["name"] for port in llm["outputs"]] == ["output", "usage"]
    assert llm["config_schema"]["properties"]["temperature"]["title"] == "Temperature"


@pytest.mark.parametrize("node_type", TYPES)
def test_a_type_is_shown_with_all_its_settings(program: Program, node_type: str):
    described = program("nodes", node_type, "--json").json
    shown = program("nodes", node_type)
    assert shown.code == 0
    for name in described["config_schema"]["properties"]:
        assert f"\n{name} " in shown.out


def test_limits_and_defaults_of_a_setting_are_shown(program: Program):
    shown = program("nodes", "loop").out
    row = next(line for line in shown.splitlines() if line.startswith("stop_when[].threshold"))
    assert row.split("  ")[1:3] == ["number, at least 0, at most 1", " "] or "number, at least 0, at most 1" in row
    assert "0.95" in row


def test_choices_are_shown_with_their_labels_in_the_window(program: Program):
    described = {field.name: field.kind for field in fields(LoopConfig)}
    assert described["on_timeout"] == (
        'one of fail, return_last ("Return the last result"), return_best ("Return the best result")'
    )
    assert 'append ("Append: everything so far")' in " ".join(program("nodes", "loop").out.split())


def test_settings_of_list_entries_are_shown(program: Program):
    assert "\nbranches[].when " in program("nodes", "router").out


def test_an_unknown_type_gets_a_suggestion(program: Program):
    ended = program("nodes", "ruter")
    assert ended.code == 2
    assert ended.out == ""
    assert mentions(ended.err, 'no node type "ruter" … mean "router"? … : input, '), ended.err


def test_templates_are_listed_with_their_inputs(program: Program):
    listed = program("templates", "--json").json["templates"]
    assert [Path(template["file"]).name for template in listed] == sorted(
        file.name for file in templates_folder().glob("*.loop.json")
    )
    shown = program("templates")
    assert shown.code == 0
    for template in listed:
        assert template["description"]
        assert all(not declared["required"] for declared in template["inputs"])
        assert template["name"] in shown.out


class MemoryKeyring(keyring.backend.KeyringBackend):
    priority: Any = 1

    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.stored.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.stored[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.stored[service, username]


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryKeyring]:
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "LOOPWRIGHT_MODEL"):
        monkeypatch.delenv(variable, raising=False)
    before = keyring.get_keyring()
    ring = MemoryKeyring()
    keyring.set_keyring(ring)
    yield ring
    keyring.set_keyring(before)


def ready(program: Program, name: str) -> object:
    listed = [model for model in program("models", "--json").json["models"] if model["name"].startswith(name)]
    (available,) = {model["available"] for model in listed}
    return available


def test_models_shows_which_providers_have_a_key_but_never_the_key(
    program: Program, ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret-123")
    assert ready(program, "anthropic/") is True
    assert ready(program, "openai/gpt") is False
    assert ready(program, "ollama_chat/") is None
    for arguments in (["models"], ["models", "--json"]):
        ended = program(*arguments)
        assert ended.code == 0
        assert "sk-secret-123" not in ended.out + ended.err


def test_models_lists_the_built_in_model_as_default_with_a_note(program: Program, ring: MemoryKeyring):
    ended = program("models")
    assert "not for good answers" in ended.out
    assert ended.out.endswith("Default model: embedded:smollm2-135m\n")
    assert str(models_folder()) in ended.out
    assert program("models", "--json").json["default"] == "embedded:smollm2-135m"


def test_models_of_a_provider_with_a_key_have_prices_and_can_be_filtered(
    program: Program, ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret-123")
    listed = program("models", "--filter", "HAIKU anthropic", "--json").json["models"]
    assert len(listed) > 1
    assert all(model["name"].startswith("anthropic/") and "haiku" in model["name"] for model in listed)
    assert all(0 < model["input_usd_per_million_tokens"] < model["output_usd_per_million_tokens"] for model in listed)
    assert all(model["context_tokens"] >= 100_000 for model in listed)
    lines = program("models", "--filter", "haiku").out.splitlines()
    assert len(lines) == len(listed) + 4
    assert lines[0].split() == ["Model", "Provider", "Ready", "Price", "in", "/", "out", "Context", "Notes"]


def test_servers_on_this_machine_are_asked_only_with_local(
    program: Program, ring: MemoryKeyring, wire: WireServer, monkeypatch: pytest.MonkeyPatch
):
    for variable in ("OLLAMA_API_BASE", "LM_STUDIO_API_BASE", "LLAMAFILE_API_BASE"):
        monkeypatch.setenv(variable, wire.base_url)
    program("models")
    assert wire.requests == []
    listed = {model["name"]: model for model in program("models", "--local", "--json").json["models"]}
    assert len(wire.requests) == 3
    assert listed["lm_studio/plain"]["available"] is True
    assert listed["lm_studio/plain"]["input_usd_per_million_tokens"] == 0
    assert listed["ollama_chat/MODEL"]["available"] is False
    assert wire.base_url in listed["ollama_chat/MODEL"]["how_to_get"]


def test_key_is_stored_and_removed(program: Program, ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("sk-secret-456\n"))
    ended = program("models", "set-key", "openai")
    assert (ended.code, mentions(ended.out, "Stored … openai … keyring")) == (0, True), ended.out
    assert list(ring.stored.values()) == ["sk-secret-456"]
    assert ready(program, "openai/gpt") is True
    assert program("models", "remove-key", "openai").code == 0
    assert ring.stored == {}


def test_key_is_not_echoed_on_a_terminal(program: Program, ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("getpass.getpass", lambda prompt: "sk-secret-789")
    assert program("models", "set-key", "host:localhost:8080").code == 0
    assert ring.stored == {("loopwright", "host:localhost:8080"): "sk-secret-789"}


def test_an_empty_key_is_refused(program: Program, ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    ended = program("models", "set-key", "openai")
    assert ended.code == 2
    assert "The key for openai is empty" in ended.err
    assert ring.stored == {}


@pytest.mark.parametrize("command", ["set-key", "remove-key"])
def test_unknown_provider_is_refused(program: Program, ring: MemoryKeyring, command: str):
    ended = program("models", command, "opneai")
    assert ended.code == 2
    assert mentions(ended.err, 'no provider "opneai" … : openai, '), ended.err


def test_json_is_ascii(program: Program):
    for command in ("nodes", "templates", "models"):
        out = program(command, "--json").out
        assert out.isascii()
        assert isinstance(json.loads(out), dict)
