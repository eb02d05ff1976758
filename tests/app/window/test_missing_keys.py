"""Models without a key: a problem before the run, and a button wherever one is missing or refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMessageBox, QPushButton
from pytestqt.qtbot import QtBot

from app.inspector.form_fields import ProblemLine
from app.settings.preferences import Preferences
from app.window.document_page import DocumentPage, fix_title
from app.window.run_dialog import RunDialog
from app.workbench import Workbench
from engine.document.builder import Builder
from engine.document.model import Workflow
from engine.document.operations import SetConfig, SetEnabled, SetPinned
from engine.errors import Fix
from engine.models.providers import PROVIDERS
from engine.run_state.state import NodeState
from engine.settings import CustomServer
from tests.app.window.conftest import open_file, press, saved
from tests.engine.models.test_keys import MemoryKeyring
from tests.engine.wire.fixtures import wire
from tests.engine.wire.server import WireServer

__all__ = ["wire"]

LEFT = Qt.MouseButton.LeftButton
CANARY = "sk-canary-0123456789"


@pytest.fixture(autouse=True)
def ring(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryKeyring]:
    for provider in PROVIDERS.values():
        for variable in (*provider.key_variables, *provider.address_variables):
            monkeypatch.delenv(variable, raising=False)
    before = keyring.get_keyring()
    ring = MemoryKeyring()
    keyring.set_keyring(ring)
    yield ring
    keyring.set_keyring(before)


def flow(**config: object) -> Workflow:
    """A node with a model, and an output."""
    made = Builder("Greeting")
    draft = made.add("llm", id="draft", title="Draft", prompt="Say hi.", **config)
    made.connect(draft["output"], made.add("output", id="text", name="text")["value"])
    return made.build()


def run_ended(document: DocumentPage, qtbot: QtBot) -> None:
    """Wait for the end of a run, which may have to wait for the keyring and to import litellm first."""
    shown = document.session.shown
    before = shown.view_model if shown.live is None else None

    def is_over() -> bool:
        return shown.live is None and shown.view_model is not None and shown.view_model is not before

    qtbot.waitUntil(is_over)


def open_flow(workbench: Workbench, tmp_path: Path, **config: object) -> DocumentPage:
    return open_file(workbench, saved(tmp_path, "one.loop.json", flow(**config)))


def open_judged(workbench: Workbench, tmp_path: Path, **config: object) -> DocumentPage:
    """Open a loop that a judge with a model of its own ends."""
    made = Builder("Loop")
    text = made.add("input", id="task", default="go")
    judge = {"criteria": "Short?", **config}
    loop = made.add("loop", id="loop", stop_when=[{"condition": "judge"}], judge=judge)
    draft = made.add("llm", id="draft", prompt="{{input}}")
    end = made.add("exit", id="end", loop="loop")
    made.connect(text["value"], loop["input"])
    made.connect(loop["body"], draft["input"])
    made.connect(draft["output"], end["input"])
    return open_file(workbench, saved(tmp_path, "loop.loop.json", made.build()))


def missing(document: DocumentPage) -> list[tuple[str | None, str | None, str]]:
    problems = [problem for problem in document.session.problems if problem.code == "missing-key"]
    return [(problem.node, problem.field, problem.fix) for problem in problems]


OPENAI = [("draft", "model", "add_key:openai")]


def buttons(document: DocumentPage) -> dict[str, QPushButton]:
    """The buttons of the problems."""
    found = [button for row in document.problems.rows for button in row.findChildren(QPushButton)]
    return {button.text(): button for button in found}


def question(workbench: Workbench) -> QMessageBox:
    (box,) = (box for box in workbench.window.findChildren(QMessageBox) if box.isVisible())
    return box


def enter_key(workbench: Workbench, qtbot: QtBot) -> None:
    dialog = workbench.keys.dialog
    assert dialog is not None
    assert dialog.isVisible()
    qtbot.waitUntil(dialog.field.hasFocus)
    QTest.keyClicks(dialog.field, CANARY)
    QTest.keyClick(dialog.field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not dialog.isVisible())


def test_missing_key_is_a_warning_until_it_is_added_by_its_button(
    workbench: Workbench, tmp_path: Path, ring: MemoryKeyring, qtbot: QtBot
) -> None:
    document = open_flow(workbench, tmp_path, model="openai/gpt-4o")
    qtbot.waitUntil(lambda: missing(document) == OPENAI)
    assert document.session.problem_counts == (0, 1)
    qtbot.mouseClick(buttons(document)["Add key…"], LEFT)
    enter_key(workbench, qtbot)
    assert ring.kept == {("loopwright", "openai"): CANARY}
    qtbot.waitUntil(lambda: missing(document) == [])
    assert document.problems.rows == []


def test_missing_key_is_added_by_the_button_at_the_field_of_the_model(
    workbench: Workbench, tmp_path: Path, ring: MemoryKeyring, qtbot: QtBot
) -> None:
    document = open_flow(workbench, tmp_path, model="openai/gpt-4o")
    document.session.select(["draft"])
    row = document.inspector.page.form.row("model")
    qtbot.waitUntil(lambda: len(row.problems.findChildren(ProblemLine)) == 1)
    (line,) = row.problems.findChildren(ProblemLine)
    assert line.fix.text() == "Add key…"
    qtbot.mouseClick(line.fix, LEFT)
    enter_key(workbench, qtbot)
    assert ring.kept == {("loopwright", "openai"): CANARY}
    qtbot.waitUntil(lambda: row.problems.findChildren(ProblemLine) == [])


def test_the_field_has_the_keyboard_after_its_key_was_added_by_keyboard(
    workbench: Workbench, tmp_path: Path, qtbot: QtBot
) -> None:
    document = open_flow(workbench, tmp_path, model="openai/gpt-4o")
    document.session.select(["draft"])
    row = document.inspector.page.form.row("model")
    qtbot.waitUntil(lambda: len(row.problems.findChildren(ProblemLine)) == 1)
    (line,) = row.problems.findChildren(ProblemLine)
    line.fix.setFocus()
    QTest.keyClick(line.fix, Qt.Key.Key_Space)
    enter_key(workbench, qtbot)
    qtbot.waitUntil(lambda: row.problems.findChildren(ProblemLine) == [])
    workbench.window.activateWindow()
    qtbot.waitUntil(workbench.window.isActiveWindow)
    assert row.editor.isAncestorOf(QApplication.focusWidget())


def test_problem_follows_the_models_of_the_document_and_of_the_settings(
    workbench: Workbench, preferences: Preferences, tmp_path: Path, qtbot: QtBot
) -> None:
    document = open_flow(workbench, tmp_path)
    assert missing(document) == []
    preferences.set(default_model="anthropic/claude-haiku-4-5")
    qtbot.waitUntil(lambda: missing(document) == [("draft", "model", "add_key:anthropic")])
    document.session.do(SetConfig(("model",), {"draft": "openai/mine"}))
    qtbot.waitUntil(lambda: missing(document) == OPENAI)
    preferences.set(servers=(CustomServer(model="openai/mine", address="http://localhost:9/v1"),))
    qtbot.waitUntil(lambda: missing(document) == [])


def test_answer_for_a_model_that_was_replaced_meanwhile_is_ignored(
    workbench: Workbench, tmp_path: Path, ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    is_replaced, answered = threading.Event(), threading.Event()

    def wait(_service: str, _name: str) -> None:
        is_replaced.wait(60)
        answered.set()

    monkeypatch.setattr(ring, "get_password", wait)
    document = open_flow(workbench, tmp_path, model="openai/gpt-4o")
    document.session.do(SetConfig(("model",), {"draft": "embedded:smollm2-135m"}))
    qtbot.waitSignal(document.session.analyzed).wait()
    is_replaced.set()
    qtbot.waitUntil(lambda: answered.is_set() and not workbench.keys._worker.is_busy)
    assert missing(document) == []


def test_model_in_a_subflow_needs_a_key_and_one_that_is_replaced_by_a_pin_does_not(
    workbench: Workbench, tmp_path: Path, qtbot: QtBot
) -> None:
    made = Builder("Outer")
    copy = flow(model="openai/gpt-4o").to_json()
    part = made.add("subflow", id="part", file="inner.loop.json", workflow=copy)
    made.connect(part["text"], made.add("output", id="text", name="text")["value"])
    document = open_file(workbench, saved(tmp_path, "outer.loop.json", made.build()))
    qtbot.waitUntil(lambda: missing(document) == [("part", "file", "add_key:openai")])
    document.session.do(SetPinned("part", {"text": "Hi."}))
    qtbot.waitUntil(lambda: missing(document) == [])


def test_model_in_a_pinned_or_disabled_loop_needs_no_key(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    made = Builder("Loop")
    text = made.add("input", id="task", default="go")
    loop = made.add("loop", id="loop", max_iterations=2)
    draft = made.add("llm", id="draft", prompt="{{input}}", model="openai/gpt-4o")
    end = made.add("exit", id="end", loop="loop")
    made.connect(text["value"], loop["input"])
    made.connect(loop["body"], draft["input"])
    made.connect(draft["output"], end["input"])
    document = open_file(workbench, saved(tmp_path, "loop.loop.json", made.build()))
    qtbot.waitUntil(lambda: missing(document) == OPENAI)
    document.session.do(SetPinned("end", {"output": "done"}))
    qtbot.waitUntil(lambda: missing(document) == [])
    document.session.undo()
    qtbot.waitUntil(lambda: missing(document) == OPENAI)
    document.session.do(SetEnabled("loop", False))
    qtbot.waitUntil(lambda: missing(document) == [])


def test_the_missing_key_of_a_judge_is_at_the_field_of_its_model(
    workbench: Workbench, tmp_path: Path, qtbot: QtBot
) -> None:
    document = open_judged(workbench, tmp_path, model="openai/gpt-4o")
    qtbot.waitUntil(lambda: missing(document) == [("loop", "judge.model", "add_key:openai")])
    document.session.select(["loop"])
    document.inspector.focus_field("loop", "judge.model")
    editor = document.inspector.page.form.row("judge").editor
    focused = workbench.window.focusWidget()
    assert editor.isAncestorOf(focused)
    assert focused.accessibleName() == "Judge: Model"


@pytest.mark.parametrize("model", ["embedded:smollm2-135m", "ollama_chat/llama3", "scripted:nowhere.json"])
def test_models_that_need_no_key_ask_no_keyring(
    workbench: Workbench, tmp_path: Path, ring: MemoryKeyring, model: str
) -> None:
    document = open_flow(workbench, tmp_path, model=model)
    assert missing(document) == []
    assert ring.asked == 0


def test_run_asks_for_the_missing_key_and_starts_when_it_is_added(
    workbench: Workbench, tmp_path: Path, ring: MemoryKeyring, qtbot: QtBot
) -> None:
    document = open_flow(workbench, tmp_path, model="openai/gpt-4o")
    qtbot.waitUntil(lambda: missing(document) == OPENAI)
    starts: list[bool] = []
    workbench.keys.before_run(document.session, lambda: starts.append(True))
    box = question(workbench)
    assert "OpenAI" in box.text()
    assert "Draft" in box.informativeText()
    press(box, "Add key…")
    enter_key(workbench, qtbot)
    qtbot.waitUntil(lambda: starts == [True])


def test_run_asks_for_one_missing_key_after_the_other(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    made = Builder("Greeting")
    draft = made.add("llm", id="draft", title="Draft", prompt="Say hi.", model="openai/gpt-4o")
    check = made.add("llm", id="check", title="Check", model="anthropic/claude-haiku-4-5")
    made.connect(draft["output"], check["input"])
    document = open_file(workbench, saved(tmp_path, "one.loop.json", made.build()))
    qtbot.waitUntil(lambda: len(missing(document)) == 2)
    starts: list[bool] = []
    workbench.keys.before_run(document.session, lambda: starts.append(True), {"draft", "check"})
    press(question(workbench), "Add key…")
    enter_key(workbench, qtbot)
    qtbot.waitUntil(lambda: bool(starts) or any(box.isVisible() for box in workbench.window.findChildren(QMessageBox)))
    assert starts == []
    assert "Check" in question(workbench).informativeText()
    press(question(workbench), "Cancel")


def test_run_can_start_without_the_key_or_not_at_all(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    document = open_flow(workbench, tmp_path, model="openai/gpt-4o")
    workbench.runs.run(document)
    qtbot.waitUntil(lambda: [box for box in workbench.window.findChildren(QMessageBox) if box.isVisible()] != [])
    press(question(workbench), "Cancel")
    assert document.session.shown.view_model is None

    workbench.runs.run(document)
    press(question(workbench), "Run anyway")
    run_ended(document, qtbot)
    view_model = document.session.shown.view_model
    assert view_model is not None
    assert (view_model.status, view_model.state.fix) == ("failed", "add_key:openai")
    bar = document.bars.text("run")
    assert "no key for OpenAI" in bar


def test_a_partial_run_asks_only_for_the_keys_of_the_nodes_that_run(
    workbench: Workbench, tmp_path: Path, qtbot: QtBot
) -> None:
    made = Builder("Greeting")
    plan = made.add("llm", id="plan", prompt="Plan.")
    draft = made.add("llm", id="draft", title="Draft", model="openai/gpt-4o")
    made.connect(plan["output"], draft["input"])
    document = open_file(workbench, saved(tmp_path, "one.loop.json", made.build()))
    shown = document.session.shown
    document.session.select(["plan"])
    QTest.keyClick(workbench.window, Qt.Key.Key_F7)
    run_ended(document, qtbot)
    assert shown.view_model.status == "completed"

    before = shown.view_model
    document.session.select(["draft"])
    QTest.keyClick(workbench.window, Qt.Key.Key_F7)
    qtbot.waitUntil(lambda: [box for box in workbench.window.findChildren(QMessageBox) if box.isVisible()] != [])
    assert "Draft" in question(workbench).informativeText()
    press(question(workbench), "Cancel")
    assert shown.view_model is before
    assert shown.live is None


def bar_button(document: DocumentPage, title: str) -> QPushButton:
    (button,) = (button for button in document.bars.findChildren(QPushButton) if button.text() == title)
    return button


def test_refused_key_of_a_server_can_be_replaced_from_the_error_bar(
    workbench: Workbench, tmp_path: Path, wire: WireServer, ring: MemoryKeyring, qtbot: QtBot
) -> None:
    document = open_flow(workbench, tmp_path, model="openai/unauthorized", api_base=wire.base_url)
    document.session.is_trusted = True
    workbench.runs.run(document)
    run_ended(document, qtbot)
    qtbot.mouseClick(bar_button(document, "Add key…"), LEFT)
    enter_key(workbench, qtbot)
    assert ring.kept == {("loopwright", f"host:{wire.host}"): CANARY}


def open_reader(workbench: Workbench, tmp_path: Path) -> DocumentPage:
    """Open a workflow that reads a file of its folder."""
    made = Builder("Reading")
    read = made.add("tool", id="read", tool="read_file", arguments={"path": "a.txt"})
    made.connect(read["output"], made.add("output", id="text", name="text")["value"])
    (tmp_path / "a.txt").write_text("words")
    document = open_file(workbench, saved(tmp_path, "one.loop.json", made.build()))
    document.session.is_trusted = True
    return document


def test_missing_folder_is_allowed_in_the_dialog_of_the_error_bar(
    workbench: Workbench, tmp_path: Path, qtbot: QtBot
) -> None:
    document = open_reader(workbench, tmp_path)
    workbench.runs.run(document)
    run_ended(document, qtbot)
    qtbot.mouseClick(bar_button(document, "Allow and run…"), LEFT)
    (dialog,) = (dialog for dialog in workbench.window.findChildren(RunDialog) if dialog.isVisible())
    assert not dialog.boxes.private.isVisible()
    dialog.folder.setChecked(True)
    qtbot.mouseClick(dialog.run, LEFT)
    run_ended(document, qtbot)
    assert document.session.shown.view_model.outputs == {"text": "words"}


def test_a_part_that_is_not_stored_is_repeated_with_the_permission(
    workbench: Workbench, tmp_path: Path, qtbot: QtBot
) -> None:
    document = open_reader(workbench, tmp_path)
    document.session.select(["read"])
    QTest.keyClick(workbench.window, Qt.Key.Key_F7)
    run_ended(document, qtbot)
    document.session.select(())
    qtbot.mouseClick(bar_button(document, "Allow and run…"), LEFT)
    qtbot.waitUntil(lambda: any(one.isVisible() for one in workbench.window.findChildren(RunDialog)))
    (dialog,) = (dialog for dialog in workbench.window.findChildren(RunDialog) if dialog.isVisible())
    dialog.folder.setChecked(True)
    qtbot.mouseClick(dialog.run, LEFT)
    run_ended(document, qtbot)
    assert {path: node.state for path, node in document.session.shown.view_model.nodes.items()} == {
        "read": NodeState.COMPLETED
    }


def test_private_addresses_are_allowed_in_the_dialog_of_the_error_bar(
    workbench: Workbench, tmp_path: Path, wire: WireServer, qtbot: QtBot
) -> None:
    made = Builder("Fetching")
    get = made.add("tool", id="get", tool="http_get", arguments={"url": f"{wire.base_url}/models"})
    made.connect(get["output"], made.add("output", id="text", name="text")["value"])
    document = open_file(workbench, saved(tmp_path, "one.loop.json", made.build()))
    document.session.is_trusted = True
    workbench.runs.run(document)
    run_ended(document, qtbot)
    qtbot.mouseClick(bar_button(document, "Allow and run…"), LEFT)
    (dialog,) = (dialog for dialog in workbench.window.findChildren(RunDialog) if dialog.isVisible())
    assert not dialog.code.isVisible()
    dialog.boxes.private.setChecked(True)
    qtbot.mouseClick(dialog.run, LEFT)
    run_ended(document, qtbot)
    assert document.session.shown.view_model.status == "completed"
    assert document.may_reach_private


def test_unknown_model_leads_to_its_field(workbench: Workbench, tmp_path: Path, wire: WireServer, qtbot: QtBot) -> None:
    document = open_flow(workbench, tmp_path, model="openai/not-found", api_base=wire.base_url)
    document.session.is_trusted = True
    workbench.runs.run(document)
    run_ended(document, qtbot)
    qtbot.mouseClick(bar_button(document, "Choose a model"), LEFT)
    editor = document.inspector.page.form.row("model").editor
    assert editor.combo.hasFocus()


def test_unknown_model_of_a_judge_leads_to_the_field_of_its_loop(
    workbench: Workbench, tmp_path: Path, wire: WireServer, qtbot: QtBot
) -> None:
    document = open_judged(workbench, tmp_path, model="openai/not-found", api_base=wire.base_url)
    document.session.is_trusted = True
    workbench.runs.run(document)
    run_ended(document, qtbot)
    assert document.session.shown.view_model.state.failed_node == "loop[0].judge"
    assert bar_button(document, "Show it").isVisible()
    qtbot.mouseClick(bar_button(document, "Choose a model"), LEFT)
    assert document.session.selection == ("loop",)
    assert workbench.window.focusWidget().accessibleName() == "Judge: Model"


@pytest.mark.parametrize("fix", list(Fix))
def test_buttons_exist_for_what_the_window_can_do(fix: Fix) -> None:
    of_a_run = {"add_key", "allow_code", "allow_private_addresses", "change_setting"}
    of_a_run |= {"allow_unknown_price", "choose_folder", "choose_model", "get_model", "install", "raise_budget"}
    assert bool(fix_title(fix.of("x"))) == (fix in of_a_run)
    assert fix_title("of_a_newer_version") == ""
