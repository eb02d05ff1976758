"""Preferences survive, whatever happens to their file."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.canvas.node_card import card_view_model
from app.session import analyze_document
from app.settings.preferences import (
    MAX_BYTES,
    MAX_RECENT,
    CustomServer,
    PreferenceError,
    Preferences,
    PreferenceValues,
    validation_error,
)
from engine.nodes.node_registry import builtin_registry
from tests.engine.semantics.documents import around, llm
from tests.examples import examples

pytestmark = pytest.mark.usefixtures("qapp")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "settings" / "preferences.json"


def test_without_a_file_defaults_apply_and_none_is_written(path: Path) -> None:
    preferences = Preferences(path)

    assert preferences.values == PreferenceValues()
    assert (preferences.theme, preferences.text_scale, preferences.max_iterations_cap) == ("system", 1.0, 50)
    assert (preferences.default_model, preferences.budget_usd, preferences.budget_tokens) == (None, None, None)
    assert preferences.notice == ""
    assert not path.parent.exists()


def test_preferences_file_is_in_the_config_folder(own_folders: Path) -> None:
    assert own_folders in Preferences().path.parents
    assert Preferences().path.parts[-2:] == ("loopwright", "preferences.json")


def test_change_is_emitted_at_once_and_saved_soon(path: Path, qtbot: QtBot) -> None:
    preferences = Preferences(path)
    server = CustomServer(model="openai/mine", address="http://localhost:9/v1")

    with qtbot.waitSignal(preferences.changed) as reported:
        preferences.set(theme="light", text_scale=1.5, budget_usd=2, servers=(server,))
    qtbot.waitUntil(path.exists)

    assert reported.args == [frozenset({"theme", "text_scale", "budget_usd", "servers"})]
    again = Preferences(path)
    assert again.values == preferences.values
    assert (again.theme, again.text_scale, again.budget_usd, again.servers) == ("light", 1.5, 2.0, (server,))
    assert [file.name for file in path.parent.iterdir()] == ["preferences.json"]


def test_unchanged_value_emits_and_saves_nothing(path: Path, qtbot: QtBot) -> None:
    preferences = Preferences(path)
    with qtbot.assertNotEmitted(preferences.changed):
        preferences.set(theme="system")
    preferences.save()
    before = path.stat().st_ino
    assert before


def test_iteration_cap_preference_is_shown_on_cards_and_in_problems(path: Path) -> None:
    workflow = around(llm("draft"), edges="loop -> draft -> exit", max_iterations=500)
    registry = builtin_registry()
    loop = next(node for node in workflow.nodes if node.type == "loop")
    preferences = Preferences(path)
    shown: list[tuple[str, list[str]]] = []
    for cap in (3, 1000):
        preferences.set(max_iterations_cap=cap)
        structure, problems = analyze_document(workflow, registry)
        card = card_view_model(loop, registry, structure, (), ())
        shown.append((card.summary, [problem.code for problem in problems]))

    assert shown == [("at most 3", ["iterations-clamped"]), ("at most 500", [])]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("theme", "blue"),
        ("text_scale", 2.1),
        ("text_scale", float("nan")),
        ("max_iterations_cap", 0),
        ("max_iterations_cap", 10_001),
        ("max_iterations_cap", 1.5),
        ("budget_usd", -1),
        ("budget_usd", float("inf")),
        ("default_model", "gpt-4o"),
        ("recent_files", ("a",) * (MAX_RECENT + 1)),
    ],
)
def test_invalid_preference_is_rejected(path: Path, name: str, value: object) -> None:
    preferences = Preferences(path)

    with pytest.raises(PreferenceError, match=name):
        preferences.set(**{"window_state": "x", name: value})

    assert preferences.values == PreferenceValues()
    assert validation_error(name, value)


def test_validation_error_is_a_sentence() -> None:
    assert validation_error("max_iterations_cap", 0) == "Must be at least 1."
    assert validation_error("default_model", "gpt-4o").startswith(
        "There is no model 'gpt-4o'. Did you mean openai/gpt-4o?"
    )
    assert validation_error("max_iterations_cap", 10_000) == ""


def test_undeclared_preference_is_an_attribute_error(path: Path) -> None:
    preferences = Preferences(path)
    with pytest.raises(AttributeError, match="api_key"):
        preferences.set(api_key="sk-1")
    with pytest.raises(AttributeError, match="api_key"):
        preferences.api_key  # noqa: B018


@pytest.mark.parametrize(
    "address", ["http://user:sk-1@host/v1", "http://host/v1?key=sk-1", "http://host/v1#sk-1", "ftp://host", "host"]
)
def test_address_that_may_contain_a_key_is_rejected(address: str) -> None:
    with pytest.raises(ValueError, match="address of a model server"):
        CustomServer(model="openai/mine", address=address)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b'{"theme": "dark"}',
        b'{"version": "1"}',
        b'{"version": true}',
        b"\xff\xfe",
        b"[" * 99_999,
    ],
)
def test_damaged_file_is_renamed_and_defaults_apply(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)

    preferences = Preferences(path)

    assert preferences.values == PreferenceValues()
    assert "are damaged" in preferences.notice
    assert "preferences.broken.json" in preferences.notice
    assert (path.parent / "preferences.broken.json").read_bytes() == content


def test_newer_file_is_renamed(path: Path) -> None:
    path.parent.mkdir()
    path.write_text('{"version": 2, "theme": {"name": "dark"}}')

    preferences = Preferences(path)

    assert preferences.values == PreferenceValues()
    assert "newer version" in preferences.notice
    assert json.loads((path.parent / "preferences.newer.json").read_text())["version"] == 2
    preferences.set(theme="dark")
    preferences.save()
    assert Preferences(path).theme == "dark"


def test_valid_values_of_a_partly_damaged_file_apply(path: Path) -> None:
    path.parent.mkdir()
    path.write_text('{"version": 1, "theme": "light", "text_scale": 7, "default_model": "nonsense", "extra": []}')

    preferences = Preferences(path)

    assert (preferences.theme, preferences.text_scale, preferences.default_model) == ("light", 1.0, None)
    assert "partly damaged (default_model, text_scale)" in preferences.notice


def test_oversized_file_is_not_read_completely(path: Path) -> None:
    path.parent.mkdir()
    path.write_text('{"version": 1, "window_state": "' + "x" * MAX_BYTES + '"}')

    assert "are damaged" in Preferences(path).notice


def test_folder_instead_of_the_file_is_reported(path: Path, qtbot: QtBot) -> None:
    path.mkdir(parents=True)
    preferences = Preferences(path)
    assert "Cannot read" in preferences.notice

    with qtbot.waitSignal(preferences.save_failed) as reported:
        preferences.set(theme="dark")
        preferences.save()

    assert "Cannot save" in reported.args[0]
    assert preferences.theme == "dark"
    assert [file.name for file in path.parent.iterdir()] == ["preferences.json"]
    with qtbot.assertNotEmitted(preferences.save_failed):
        preferences.save()


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of folders")
def test_file_is_replaced_atomically(path: Path) -> None:
    preferences = Preferences(path)
    preferences.set(theme="dark")
    preferences.save()
    old = path.stat().st_ino
    link = path.with_name("link")
    link.hardlink_to(path)

    preferences.set(theme="light")
    preferences.save()

    assert json.loads(link.read_text())["theme"] == "dark"
    assert path.stat().st_ino != old
    assert stat.S_ISREG(path.stat().st_mode)


def test_loading_again_reads_changes_of_another_window(path: Path, qtbot: QtBot) -> None:
    one, other = Preferences(path), Preferences(path)
    one.set(theme="light")
    one.save()

    with qtbot.waitSignal(other.changed) as reported:
        other.load()

    assert reported.args == [frozenset({"theme"})]
    assert other.theme == "light"


def test_recent_lists_hold_twelve_newest_first(path: Path, tmp_path: Path) -> None:
    preferences = Preferences(path)
    for number in range(MAX_RECENT + 3):
        preferences.remember_file(tmp_path / f"{number}.loop.json")
        preferences.remember_model(f"openai/{number}")
    preferences.remember_file(tmp_path / "9.loop.json")
    preferences.remember_model("openai/9")
    preferences.forget_file(tmp_path / "14.loop.json")

    assert [Path(file).name.partition(".")[0] for file in preferences.recent_files] == [
        *("9", "13", "12", "11", "10", "8", "7", "6", "5", "4", "3")
    ]
    assert preferences.recent_models[:2] == ("openai/9", "openai/14")
    assert len(preferences.recent_models) == MAX_RECENT


def test_undecodable_file_name_is_not_remembered(path: Path) -> None:
    preferences = Preferences(path)
    preferences.remember_file(Path("/tmp/\udc80.loop.json"))
    assert preferences.recent_files == ()


def test_learned_hints_are_remembered(path: Path) -> None:
    preferences = Preferences(path)
    assert not preferences.has_learned("tour")
    preferences.learn("tour")
    preferences.learn("tour")
    preferences.save()
    assert Preferences(path).learned == ("tour",)


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: json.dumps({"version": text}).encode()))
def test_any_preferences_file_lets_the_program_start(qapp: QApplication, path: Path, content: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    assert Preferences(path).values == PreferenceValues()


@pytest.mark.parametrize(("mark", "encoding"), [(b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le")])
def test_byte_order_mark_is_accepted(path: Path, mark: bytes, encoding: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(mark + '{\r\n"version": 1,\r\n"text_scale": 1.5}'.encode(encoding))

    preferences = Preferences(path)

    assert (preferences.text_scale, preferences.notice) == (1.5, "")
