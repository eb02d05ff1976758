"""The user's settings: precedence, their file, and processes that change it at the same time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from engine.document.model import Workflow
from engine.errors import Fix
from engine.safe_file_io import hold_lock
from engine.settings import (
    MAX_BYTES,
    SETTINGS,
    CustomServer,
    InvalidSetting,
    SettingsBusyError,
    SettingsError,
    Source,
    UserSettings,
    change_settings,
    load_settings,
    parse_setting,
    reset_settings,
    run_defaults,
    setting_error,
    settings_path,
    variable_of,
)
from tests.examples import examples


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "settings" / "settings.json"


def stored(path: Path, content: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    return path


def test_environment_beats_file_beats_default(path: Path) -> None:
    change_settings(path, {"budget_usd": 1.0, "budget_tokens": 500})

    loaded = load_settings(UserSettings, path, {"LOOPWRIGHT_BUDGET_USD": "2", "LOOPWRIGHT_MODEL": "  "})

    names = ("budget_usd", "budget_tokens", "default_model", "max_iterations_cap")
    assert [(getattr(loaded.values, name), loaded.source(name)) for name in names] == [
        (2.0, Source.ENVIRONMENT),
        (500, Source.FILE),
        (None, Source.DEFAULT),
        (50, Source.DEFAULT),
    ]
    assert loaded.invalid == ()


def test_document_beats_budgets_of_the_settings() -> None:
    values = UserSettings(budget_usd=1.0, budget_tokens=500, max_iterations_cap=7, default_model="openai/x")

    assert run_defaults(values, Workflow(settings={"budget_usd": 0.25})) == {
        "default_model": "openai/x",
        "budget_usd": 0.25,
        "budget_tokens": 500,
        "max_iterations_cap": 7,
    }


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_can_be_stored_and_set_in_the_environment(path: Path, name: str) -> None:
    texts = {
        "default_model": "openai/gpt-5",
        "servers": '[{"model": "openai/mine", "address": "http://localhost:9/v1"}]',
        "budget_usd": "0.5",
        "theme": "dark",
        "text_scale": "1.5",
    }
    default = getattr(UserSettings(), name)
    text = texts.get(name, str(not default).lower() if isinstance(default, bool) else "277")
    value = parse_setting(name, text)
    change_settings(path, {name: value})

    from_file = load_settings(UserSettings, path, {})
    from_environment = load_settings(UserSettings, path.with_name("none"), {variable_of(name): text})

    assert (from_file.source(name), from_environment.source(name)) == (Source.FILE, Source.ENVIRONMENT)
    assert getattr(from_file.values, name) == getattr(from_environment.values, name) != default
    assert SETTINGS[name].title
    assert SETTINGS[name].description


def test_settings_have_distinct_variables_that_nothing_else_uses() -> None:
    variables = {variable_of(name) for name in SETTINGS}
    used = {f"LOOPWRIGHT_{name}" for name in ("SETTINGS", "STORE", "EXTENSIONS", "APPROVED", "DEBUG", "MODELS")}
    assert len(variables) == len(SETTINGS)
    assert not variables & used
    assert not [name for name in variables if name.startswith("LOOPWRIGHT_KEY_")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("theme", "blue"),
        ("text_scale", "2.1"),
        ("max_iterations_cap", "0"),
        ("max_iterations_cap", "1.5"),
        ("budget_usd", "-1"),
        ("budget_usd", "NaN"),
        ("budget_usd", "1,5"),
        ("notify_when_done", "perhaps"),
        ("default_model", "gpt-4o"),
        ("servers", '[{"model": "openai/mine", "address": "http://user:sk-1@host/v1"}]'),
        ("servers", "[" * 10_000),
        ("theme", "\udc80"),
    ],
)
def test_invalid_value_is_refused_and_ignored_with_its_place(path: Path, name: str, text: str) -> None:
    with pytest.raises(SettingsError, match=name):
        parse_setting(name, text)
    if name == "default_model":
        return  # a plugin may add it later
    loaded = load_settings(UserSettings, path, {variable_of(name): text})
    assert loaded.values == UserSettings()
    assert [(one.name, one.source) for one in loaded.invalid] == [(name, Source.ENVIRONMENT)]


def test_error_of_a_value_is_a_sentence() -> None:
    assert setting_error("max_iterations_cap", 0) == "Must be at least 1."
    assert setting_error("default_model", "gpt-4o").startswith(
        "There is no model 'gpt-4o'. Did you mean openai/gpt-4o?"
    )
    assert setting_error("max_iterations_cap", 10_000) == ""


@pytest.mark.parametrize(
    "address", ["http://user:sk-1@host/v1", "http://host/v1?key=sk-1", "http://host/v1#sk-1", "ftp://host", "host"]
)
def test_address_that_may_contain_a_key_is_rejected(address: str) -> None:
    with pytest.raises(ValueError, match="address of a model server"):
        CustomServer(model="openai/mine", address=address)


@pytest.mark.parametrize("content", ["{", "[]", "7", '{"theme": NaN}', '{"theme": "\\ud800"}', "[" * 99_999, "x" * 9])
def test_broken_file_has_defaults_and_is_not_overwritten(path: Path, content: str) -> None:
    stored(path, content)

    loaded = load_settings(UserSettings, path, {})
    assert loaded.values == UserSettings()
    assert loaded.unreadable is not None
    assert str(path) in loaded.unreadable.message
    with pytest.raises(SettingsError) as refused:
        change_settings(path, {"theme": "dark"})
    assert refused.value.fix == Fix.RESET_SETTINGS
    assert path.read_text() == content

    assert reset_settings(path) == path.with_name("settings.broken.json")
    assert path.with_name("settings.broken.json").read_text() == content
    change_settings(path, {"theme": "dark"})
    assert load_settings(UserSettings, path, {}).values.theme == "dark"


def test_place_of_a_mistake_in_the_file_is_named(path: Path) -> None:
    loaded = load_settings(UserSettings, stored(path, '{\n  "theme": "dark"\n  "budget_usd": 1\n}'), {})
    assert loaded.unreadable is not None
    assert "line 3" in loaded.unreadable.message


def test_file_of_a_newer_version_is_not_overwritten(path: Path) -> None:
    content = stored(path, '{"version": 2, "theme": {"name": "dark"}}').read_text()
    assert load_settings(UserSettings, path, {}).values == UserSettings()
    with pytest.raises(SettingsError, match="newer"):
        change_settings(path, {"theme": "dark"})
    assert path.read_text() == content


def test_oversized_file_is_not_read(path: Path) -> None:
    stored(path, json.dumps({"window": {"window_state": "x" * MAX_BYTES}}))
    assert load_settings(UserSettings, path, {}).unreadable is not None


def test_empty_and_hand_written_files_are_read(path: Path) -> None:
    assert load_settings(UserSettings, stored(path, "\n"), {}).unreadable is None
    path.write_bytes(b'\xef\xbb\xbf{\r\n"theme": "dark"}')
    assert load_settings(UserSettings, path, {}).values.theme == "dark"


def test_changes_keep_everything_else_in_the_file(path: Path) -> None:
    stored(path, '{"version": 1, "future": {"a": 1}, "text_scale": 7, "theme": "dark", "window": {"learned": ["x"]}}')

    change_settings(path, {"budget_usd": None, "recent_files": ["a"]}, ("theme", "notify_when_done"))

    assert json.loads(path.read_text()) == {
        "version": 1,
        "future": {"a": 1},
        "text_scale": 7,
        "budget_usd": None,
        "window": {"learned": ["x"], "recent_files": ["a"]},
    }
    loaded = load_settings(UserSettings, path, {})
    assert loaded.invalid == (InvalidSetting("text_scale", Source.FILE, "Must be at most 2."),)
    reset_settings(path)
    assert json.loads(path.read_text()).keys() == {"version", "future", "window"}


def test_file_of_an_earlier_version_is_converted_without_loss(path: Path) -> None:
    servers = [{"model": "openai/mine", "address": "http://localhost:9/v1"}]
    window = {"recent_files": ["a", "b"], "window_geometry": "AAA=", "learned": ["tour"], "of_a_plugin": 1}
    values = {"default_model": "openai/gpt-5", "servers": servers, "keep_megabytes": None, "text_scale": 1.0}
    old = stored(path.with_name("preferences.json"), json.dumps({"version": 1, **values, **window}))
    before = old.read_bytes()

    assert load_settings(UserSettings, path, {}).values == UserSettings(
        default_model="openai/gpt-5", servers=(CustomServer.model_validate(servers[0]),), keep_megabytes=None
    )
    assert not path.exists()
    change_settings(path, {"theme": "dark"})

    assert old.read_bytes() == before
    del values["text_scale"]  # its default
    assert json.loads(path.read_text()) == {"version": 1, **values, "theme": "dark", "window": window}
    old.write_text("{")
    assert load_settings(UserSettings, path, {}).unreadable is None


def test_broken_file_of_an_earlier_version_does_not_stop_changes(path: Path) -> None:
    old = stored(path.with_name("preferences.json"), "{")
    assert load_settings(UserSettings, path, {}).unreadable is not None
    change_settings(path, {"theme": "dark"})
    loaded = load_settings(UserSettings, path, {})
    assert (loaded.values.theme, loaded.unreadable, old.read_text()) == ("dark", None, "{")


def test_file_is_in_the_settings_folder_unless_the_environment_names_another(tmp_path: Path) -> None:
    assert settings_path({"LOOPWRIGHT_SETTINGS": str(tmp_path)}) == tmp_path
    assert settings_path({}).parts[-2:] == ("loopwright", "settings.json")


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of folders")
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may write everywhere")
def test_folder_that_cannot_be_written_is_one_sentence(path: Path) -> None:
    path.parent.mkdir(mode=0o500)
    with pytest.raises(SettingsError, match="cannot be saved"):
        change_settings(path, {"theme": "dark"})


def test_file_in_place_of_the_folder_is_one_sentence(path: Path) -> None:
    path.parent.write_text("")
    for work in (lambda: change_settings(path, {"theme": "dark"}), lambda: reset_settings(path)):
        with pytest.raises(SettingsError, match="cannot be saved"):
            work()


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links")
def test_linked_file_stays_linked(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    target = tmp_path / "dotfiles.json"
    target.write_text('{"theme": "light"}')
    path.symlink_to(target)
    change_settings(path, {"budget_usd": 1.0})
    assert path.is_symlink()
    assert json.loads(target.read_text()) == {"version": 1, "theme": "light", "budget_usd": 1.0}


_CHANGES_OFTEN = """
import sys
from pathlib import Path
from engine.settings import change_settings
path, name = Path(sys.argv[1]), sys.argv[2]
sys.stdin.readline()
for number in range(25):
    change_settings(path, {f"{name}{number}": number}, wait_for_disk=False)
"""


def test_server_with_an_unknown_field_is_refused_and_loads_if_it_is_stored(path: Path) -> None:
    servers = [{"model": "openai/mine", "address": "http://localhost:9/v1", "weight": 3}]
    with pytest.raises(SettingsError, match="weight"):
        parse_setting("servers", json.dumps(servers))

    path.parent.mkdir()
    path.write_text(json.dumps({"servers": servers}))
    loaded = load_settings(UserSettings, path, {})
    assert (loaded.invalid, [server.model for server in loaded.values.servers]) == ((), ["openai/mine"])


def test_processes_that_write_at_once_lose_nothing(path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", _CHANGES_OFTEN, str(path), name], stdin=subprocess.PIPE, text=True)
        for name in "abc"
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0

    found = json.loads(path.read_text())["window"]
    assert found == {f"{name}{number}": number for name in "abc" for number in range(25)}
    assert {file.name for file in path.parent.iterdir()} == {"settings.json", ".settings.json.lock"}


def test_reset_never_replaces_an_earlier_backup(path: Path) -> None:
    path.parent.mkdir()
    backups = []
    for content in ("{1", "{2", "{3"):
        path.write_text(content)
        backups.append(reset_settings(path))
    names = ("settings.broken.json", "settings.broken-2.json", "settings.broken-3.json")
    assert backups == [path.with_name(name) for name in names]
    assert [path.with_name(name).read_text() for name in names] == ["{1", "{2", "{3"]


_HOLDS_THE_LOCK = """
import sys
from pathlib import Path
from engine.safe_file_io import hold_lock
with hold_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_lock_of_another_process_is_waited_for_and_ends_with_it(path: Path) -> None:
    path.parent.mkdir()
    command = [sys.executable, "-c", _HOLDS_THE_LOCK, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(SettingsBusyError):
            change_settings(path, {"theme": "dark"}, lock_timeout_s=0.05)
        with pytest.raises(SettingsBusyError):
            reset_settings(path, lock_timeout_s=0)
        holder.send_signal(signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
        holder.wait(timeout=30)
    change_settings(path, {"theme": "dark"})
    with hold_lock(path):
        assert load_settings(UserSettings, path, {}).values.theme == "dark"


json_values = st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5), st.lists, max_leaves=3)


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.binary(max_size=50)
    | st.dictionaries(st.sampled_from([*SETTINGS, "window", "version"]), json_values).map(
        lambda d: json.dumps(d).encode()
    )
)
def test_any_file_lets_the_program_start(path: Path, content: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    loaded = load_settings(UserSettings, path, {})
    defaults = UserSettings()
    assert [
        name
        for name in SETTINGS
        if loaded.source(name) is Source.DEFAULT and getattr(loaded.values, name) != getattr(defaults, name)
    ] == []


@pytest.mark.parametrize(("name", "value"), [("gguf_context_tokens", 255), ("gguf_threads", 513)])
def test_values_that_crash_the_runtime_are_refused(name: str, value: int) -> None:
    with pytest.raises(SettingsError):
        parse_setting(name, str(value))
    assert parse_setting(name, "256") == 256
