"""Permissions are asked again when a run is resumed or forked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QCheckBox
from pytestqt.qtbot import QtBot

from app.history.fork_dialog import ForkDialog
from app.window.run_dialog import PermissionDialog, ToolNeeds, needs_of
from app.workbench import Workbench
from engine.document.builder import Builder
from engine.document.files import dumps
from engine.document.model import Node, Workflow
from engine.document.operations import SetConfig
from engine.events import RunStarted
from engine.runner.options import RunOptions
from engine.runner.run import start
from engine.runner.run_storage import RunHead
from engine.store import RunStatus, Store
from engine.store.consent import approve
from tests.app.history.stored_runs import refine, refine_script
from tests.app.window.conftest import ended


def with_tool(tool: str, **arguments: str) -> Workflow:
    """A tool and an output of its result."""
    flow = Builder("With a tool")
    node = flow.add("tool", id="use", tool=tool, arguments=arguments)
    out = flow.add("output", id="out", name="out")
    flow.connect(node["output"], out["value"])
    return flow.build()


CODE = with_tool("python", code="print(6 * 7)")


def broken_off(store: Store, workflow: Workflow, source: str = "") -> str:
    """A run of a trusted workflow that has only started."""
    approve(workflow)
    head = RunHead("run1", dumps(workflow), {}, source)
    return store.import_run(head, [RunStarted("run1", 0, 1.0, "", workflow.name, {}, ())])


def tick(box: QCheckBox) -> None:
    assert not box.isChecked()
    QTest.mouseClick(box, Qt.MouseButton.LeftButton, pos=QPoint(8, box.height() // 2))
    assert box.isChecked()


def asked(workbench: Workbench, qtbot: QtBot) -> PermissionDialog:
    qtbot.waitUntil(lambda: any(dialog.isVisible() for dialog in workbench.window.findChildren(PermissionDialog)))
    return workbench.window.findChildren(PermissionDialog)[0]


@pytest.mark.parametrize("is_allowed", [True, False])
def test_resuming_a_workflow_that_runs_code_asks_first(
    is_allowed: bool, workbench: Workbench, store: Store, qtbot: QtBot
) -> None:
    run_id = broken_off(store, CODE)

    workbench.history.resume(store.find(run_id))
    dialog = asked(workbench, qtbot)
    assert dialog.fields.code.isVisible()
    assert not dialog.fields.folder.isEnabled(), "the document was never saved"
    if is_allowed:
        tick(dialog.fields.code)
    QTest.mouseClick(dialog.resume, Qt.MouseButton.LeftButton)

    if is_allowed:
        qtbot.waitUntil(lambda: store.find(run_id).status is RunStatus.COMPLETED)
        ended(workbench.history.tabs.pages[run_id].document, qtbot)
        view_model = workbench.history.tabs.pages[run_id].session.shown.view_model
        assert view_model is not None
        assert view_model.outputs == {"out": {"exit_code": 0, "stdout": "42\n", "stderr": ""}}
    else:
        qtbot.waitUntil(lambda: "runs code on this computer" in workbench.status_bar.refusal.full_text)


def test_run_reads_files_in_the_document_folder_once_allowed(
    workbench: Workbench, store: Store, tmp_path: Path, qtbot: QtBot
) -> None:
    (tmp_path / "note.txt").write_text("the sea")
    workflow = with_tool("read_file", path="note.txt")
    run_id = broken_off(store, workflow, str(tmp_path / "mine.loop.json"))

    workbench.history.resume(store.find(run_id))
    dialog = asked(workbench, qtbot)
    assert not dialog.fields.code.isVisible()
    assert dialog.fields.folder.toolTip() == str(tmp_path)
    tick(dialog.fields.folder)
    QTest.keyClick(dialog, Qt.Key.Key_Return)

    qtbot.waitUntil(lambda: store.find(run_id).status is RunStatus.COMPLETED)
    ended(workbench.history.tabs.pages[run_id].document, qtbot)
    view_model = workbench.history.tabs.pages[run_id].session.shown.view_model
    assert view_model is not None
    assert view_model.outputs == {"out": "the sea"}


def test_fork_dialog_asks_for_permissions(workbench: Workbench, store: Store, qtbot: QtBot) -> None:
    async def run() -> str:
        going = start(CODE, {}, RunOptions(store=store, allow_code=True))
        await going.result()
        return going.run_id

    approve(CODE)
    run_id = asyncio.run(run())
    workbench.history.tabs.open_run(run_id)
    qtbot.waitUntil(
        lambda: (
            run_id in workbench.history.tabs.pages
            and workbench.history.tabs.pages[run_id].session.shown.run_id == run_id
        )
    )
    workbench.history.resuming.fork_from(workbench.history.tabs.pages[run_id].document, "use")
    qtbot.waitUntil(lambda: any(dialog.plan is not None for dialog in workbench.window.findChildren(ForkDialog)))
    (dialog,) = workbench.window.findChildren(ForkDialog)
    code = next(box for box in dialog.findChildren(QCheckBox) if box.isVisible() and "code" in box.text())
    tick(code)
    QTest.mouseClick(dialog.run, Qt.MouseButton.LeftButton)

    qtbot.waitUntil(lambda: len(store.runs()) == 2)
    fork = next(run.run_id for run in store.runs() if run.run_id != run_id)
    qtbot.waitUntil(lambda: store.find(fork).status is RunStatus.COMPLETED)
    assert fork in workbench.history.tabs.pages
    ended(workbench.history.tabs.pages[fork].document, qtbot)


def test_run_without_budget_left_resumes_with_a_larger_one_from_the_window(
    workbench: Workbench, store: Store, tmp_path: Path, qtbot: QtBot
) -> None:
    model = refine_script(tmp_path / "s.json")
    workflow = refine(on_budget="fail").model_copy(update={"settings": {"budget_tokens": 60}})
    for node in ("draft", "critique"):
        workflow, _ = SetConfig(("max_tokens",), {node: 20}).apply(workflow)

    async def run() -> str:
        going = start(workflow, {}, RunOptions(default_model=model, store=store))
        await going.result()
        return going.run_id

    run_id = asyncio.run(run())
    failed = store.find(run_id)
    assert failed.status is RunStatus.FAILED, failed.error
    assert "budget" in failed.error

    workbench.history.resume(failed)
    dialog = asked(workbench, qtbot)
    assert dialog.fields.usd is None
    assert dialog.fields.tokens is not None
    assert dialog.fields.tokens.value() == 60
    dialog.fields.tokens.setFocus()
    dialog.fields.tokens.selectAll()
    QTest.keyClicks(dialog.fields.tokens, "20000")
    QTest.mouseClick(dialog.resume, Qt.MouseButton.LeftButton)

    qtbot.waitUntil(lambda: store.find(run_id).status is RunStatus.COMPLETED)
    ended(workbench.history.tabs.pages[run_id].document, qtbot)


def test_workflow_with_only_models_and_searches_asks_nothing() -> None:
    assert not needs_of(refine())
    assert not needs_of(with_tool("web_search", query="sea"))


def test_enabled_tools_of_subflows_count_for_permissions() -> None:
    inner = CODE.to_json()
    outer = Workflow(nodes=(Node(id="part", type="subflow", config={"workflow": inner}),))
    assert needs_of(outer) == ToolNeeds(folder=True, code=True)
    off = CODE.model_copy(update={"nodes": tuple(n.model_copy(update={"enabled": False}) for n in CODE.nodes)})
    assert not needs_of(off)
