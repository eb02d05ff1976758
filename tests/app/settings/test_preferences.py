"""Preferences survive, whatever happens to their file."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.canvas.node_card import card_view_model
from app.session import analyze_document
from app.settings.preferences import (
    MAX_RECENT,
    PreferenceError,
    Preferences,
    PreferenceValues,
    follow_settings_file,
)
from engine.nodes.node_registry import builtin_registry
from engine.safe_file_io import hold_lock
from engine.settings import CustomServer, change_settings
from tests.closed_folder import close_folder
from tests.engine.semantics.documents import around, llm

pytestmark = pytest.mark.usefixtures("qapp")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "settings" / "settings.json"


def test_without_a_file_defaults_apply_and_none_is_written(path: Path) -> None:
    preferences = Preferences(path)

    assert preferences.values == PreferenceValues()
    assert (preferences.theme, preferences.text_scale, preferences.max_iterations_cap) == ("system", 1.0, 50)
    assert (preferences.default_model, preferences.budget_usd, preferences.budget_tokens) == (None, None, None)
    assert preferences.notice == ""
    assert not path.parent.exists()


def test_preferences_file_is_in_the_config_folder(own_folders: Path) -> None:
    assert own_folders in Preferences().path.parents
    assert Preferences().path.parts[-2:] == ("loopwright", "settings.json")


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
    assert {file.name for file in path.parent.iterdir()} == {"settings.json", ".settings.json.lock"}


def test_unchanged_value_emits_and_saves_nothing(path: Path, qtbot: QtBot) -> None:
    preferences = Preferences(path)
    with qtbot.assertNotEmitted(preferences.changed):
        preferences.set(theme="system")
    preferences.save()
    assert not path.parent.exists()


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


def test_undeclared_preference_is_an_attribute_error(path: Path) -> None:
    preferences = Preferences(path)
    with pytest.raises(AttributeError, match="api_key"):
        preferences.set(api_key="sk-1")
    with pytest.raises(AttributeError, match="api_key"):
        preferences.api_key  # noqa: B018


def test_file_that_cannot_be_read_is_left_alone_until_it_is_reset(path: Path, qtbot: QtBot) -> None:
    path.parent.mkdir()
    path.write_text('{"theme": "dark"')
    preferences = Preferences(path)
    assert preferences.values == PreferenceValues()
    assert str(path) in preferences.notice
    assert preferences.is_unreadable

    with qtbot.waitSignal(preferences.save_failed) as reported:
        preferences.set(text_scale=1.5)
        preferences.save()

    assert str(path) in reported.args[0]
    assert preferences.text_scale == 1.5
    assert path.read_text() == '{"theme": "dark"'
    preferences.reset_file()
    assert (preferences.is_unreadable, preferences.notice) == (False, "")
    assert path.with_name("settings.broken.json").read_text() == '{"theme": "dark"'
    assert Preferences(path).text_scale == 1.5


def test_file_that_becomes_unreadable_changes_nothing(path: Path) -> None:
    preferences = Preferences(path)
    preferences.set(theme="dark")
    preferences.save()
    path.write_text("{")

    preferences.load()

    assert preferences.theme == "dark"
    assert preferences.is_unreadable


def test_valid_values_of_a_partly_invalid_file_apply_and_the_others_stay_in_it(path: Path) -> None:
    path.parent.mkdir()
    path.write_text('{"theme": "light", "text_scale": 7, "extra": [], "window": {"learned": 7, "window_state": "x"}}')

    preferences = Preferences(path)
    preferences.set(budget_usd=1.0)
    preferences.save()

    assert (preferences.theme, preferences.text_scale, preferences.window_state) == ("light", 1.0, "x")
    assert "Text size" in preferences.notice
    stored = json.loads(path.read_text())
    assert (stored["text_scale"], stored["extra"], stored["window"]["learned"]) == (7, [], 7)
    assert stored["budget_usd"] == 1.0


def test_model_of_a_plugin_that_is_not_loaded_yet_stays(path: Path) -> None:
    path.parent.mkdir()
    path.write_text('{"default_model": "mine:small"}')

    preferences = Preferences(path)
    preferences.set(theme="dark")
    preferences.save()

    assert (preferences.default_model, preferences.notice) == ("mine:small", "")
    assert Preferences(path).default_model == "mine:small"


def test_file_has_only_what_differs_from_the_defaults(path: Path) -> None:
    preferences = Preferences(path)
    preferences.set(theme="dark", keep_megabytes=None, learned=("tour",))
    preferences.save()
    preferences.set(theme="system")
    preferences.save()

    assert json.loads(path.read_text()) == {"version": 1, "keep_megabytes": None, "window": {"learned": ["tour"]}}


def test_preferences_of_an_earlier_version_are_taken_over_once(path: Path) -> None:
    path.parent.mkdir()
    old = path.with_name("preferences.json")
    values = {"version": 1, "theme": "light", "budget_usd": None, "recent_files": ["a.loop.json"], "learned": ["tour"]}
    old.write_text(json.dumps(values))

    preferences = Preferences(path)
    assert (preferences.theme, preferences.recent_files, preferences.learned) == ("light", ("a.loop.json",), ("tour",))
    assert not path.exists()
    preferences.set(theme="dark")
    preferences.save()

    assert json.loads(old.read_text()) == values
    old.unlink()
    again = Preferences(path)
    assert (again.theme, again.recent_files, again.learned) == ("dark", ("a.loop.json",), ("tour",))


def test_changes_of_another_program_are_followed(path: Path, qtbot: QtBot) -> None:
    preferences = Preferences(path)
    follow_settings_file(preferences)
    for change in ({"theme": "dark"}, {"theme": "light", "text_scale": 1.5}):
        with qtbot.waitSignal(preferences.changed) as reported:
            change_settings(path, change)
        assert reported.args == [frozenset(change)]
    with qtbot.waitSignal(preferences.changed):
        path.write_text('{"theme": "dark"}')  # in place, as some editors do
        qtbot.waitUntil(lambda: preferences.theme == "dark")
    assert preferences.text_scale == 1.0


def test_settings_in_a_folder_that_may_not_be_entered_are_unreadable(
    path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    close_folder(path.parent, monkeypatch)
    preferences = Preferences(path)
    follow_settings_file(preferences)
    assert preferences.is_unreadable


def test_file_that_breaks_while_the_window_is_open_is_reported_until_it_is_corrected(path: Path, qtbot: QtBot) -> None:
    change_settings(path, {"theme": "dark"})
    preferences = Preferences(path)
    follow_settings_file(preferences)

    with qtbot.waitSignal(preferences.notice_changed) as reported:
        path.write_text('{"theme": ')
    assert str(path) in reported.args[0]
    assert (preferences.theme, preferences.is_unreadable) == ("dark", True)

    with qtbot.waitSignal(preferences.notice_changed) as reported:
        path.write_text('{"theme": "light", "text_scale": 9}')
    assert "Text size" in reported.args[0]

    with qtbot.waitSignal(preferences.notice_changed) as reported:
        path.write_text('{"theme": "light"}')
    assert reported.args == [""]
    assert (preferences.theme, preferences.is_unreadable) == ("light", False)


def test_file_that_another_program_changes_is_saved_later_and_never_waited_for(path: Path, qtbot: QtBot) -> None:
    path.parent.mkdir(parents=True)
    preferences = Preferences(path)
    preferences._timer.setInterval(0)
    preferences.set(theme="dark")

    with hold_lock(path):
        with qtbot.waitSignal(preferences.save_failed) as reported:
            preferences.save()
            assert not path.exists()
        assert str(path) in reported.args[0]
    qtbot.waitUntil(path.exists)

    assert Preferences(path).theme == "dark"


def test_unsaved_change_survives_the_change_of_another_program(path: Path) -> None:
    preferences = Preferences(path)
    preferences.set(theme="dark")
    change_settings(path, {"theme": "light", "budget_usd": 2.0})

    preferences.load()
    assert (preferences.theme, preferences.budget_usd) == ("dark", 2.0)
    preferences.save()

    assert (Preferences(path).theme, Preferences(path).budget_usd) == ("dark", 2.0)


def test_value_of_the_environment_applies_and_is_not_stored(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPWRIGHT_THEME", "light")
    preferences = Preferences(path)
    assert preferences.theme == "light"
    assert preferences.is_fixed("theme")

    preferences.set(text_scale=1.5)
    preferences.save()

    assert json.loads(path.read_text()) == {"version": 1, "text_scale": 1.5}
    monkeypatch.delenv("LOOPWRIGHT_THEME")
    preferences.load()
    assert (preferences.theme, preferences.is_fixed("theme")) == ("system", False)


def test_folder_instead_of_the_file_is_reported(path: Path, qtbot: QtBot) -> None:
    path.mkdir(parents=True)
    preferences = Preferences(path)
    assert str(path) in preferences.notice

    with qtbot.waitSignal(preferences.save_failed) as reported:
        preferences.set(theme="dark")
        preferences.save()

    assert str(path) in reported.args[0]
    assert preferences.theme == "dark"
    assert path.is_dir()
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


@pytest.mark.parametrize(("mark", "encoding"), [(b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le")])
def test_byte_order_mark_is_accepted(path: Path, mark: bytes, encoding: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(mark + '{\r\n"version": 1,\r\n"text_scale": 1.5}'.encode(encoding))

    preferences = Preferences(path)

    assert (preferences.text_scale, preferences.notice) == (1.5, "")
