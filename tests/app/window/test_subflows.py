"""Subflows in the window: their files are read, followed, and opened by a double click."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtCore import QPointF, Qt
from pytestqt.qtbot import QtBot

from app.inspector.text_editors import WorkflowFileEditor
from app.window.document_page import DocumentPage
from app.workbench import Workbench
from engine.document.files import load, save
from engine.document.model import Workflow
from engine.document.operations import SetConfig
from tests.app.window.conftest import Answers, Script, await_files, ended, open_file, saved, small
from tests.wording import mentions


def around(file: str) -> Workflow:
    """A document with a subflow whose ports are unknown until its file is read."""
    raw = {
        "nodes": [
            {"id": "part", "type": "subflow", "config": {"file": file}},
            {"id": "out", "type": "output"},
        ],
        "edges": [{"from": "part.out", "to": "out.value"}],
    }
    return Workflow.model_validate(raw)


def copy_of(document: DocumentPage) -> Any:
    node = document.session.node("part")
    assert node is not None
    return node.config.get("workflow")


def test_subflow_file_is_read_and_runs(workbench: Workbench, script: Script, tmp_path: Path, qtbot: QtBot) -> None:
    saved(tmp_path, "inner.loop.json")
    document = open_file(workbench, saved(tmp_path, "outer.loop.json", around("inner.loop.json")))
    qtbot.waitUntil(lambda: copy_of(document) is not None)
    qtbot.waitUntil(lambda: document.session.structure.workflow is document.session.workflow)
    assert list(document.session.structure.resolution.nodes["part"].outputs) == ["out"]
    assert list(document.session.structure.resolution.nodes["part"].inputs) == ["text"]
    assert [problem for problem in document.session.problems if problem.severity == "error"] == []

    document.session.is_trusted = True
    workbench.runs.run(document)
    ended(document, qtbot)
    assert document.session.shown.view_model is not None
    assert (document.session.shown.view_model.status, document.session.shown.view_model.nodes["part"].outputs) == (
        "completed",
        {"out": "words"},
    )


def test_subflow_follows_its_file_and_respects_undo(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    inner_path = saved(tmp_path, "inner.loop.json")
    document = open_file(workbench, saved(tmp_path, "outer.loop.json", around("inner.loop.json")))
    qtbot.waitUntil(lambda: copy_of(document) is not None)
    inner = open_file(workbench, inner_path)
    inner.session.do(SetConfig(("prompt",), {"draft": "Other {{input}}."}))
    workbench.documents.files.save(inner)
    qtbot.waitUntil(lambda: copy_of(document)["nodes"][1]["config"]["prompt"] == "Other {{input}}.")

    document.session.undo()
    document.session.undo()
    assert copy_of(document) is None
    qtbot.wait(0)
    assert document.session.workflow == load(tmp_path / "outer.loop.json")


def test_subflow_file_changed_during_a_run_is_read_afterwards(
    workbench: Workbench, script: Script, tmp_path: Path, qtbot: QtBot
) -> None:
    script({"text": "words", "delay_s": 600})
    inner_path = saved(tmp_path, "inner.loop.json")
    document = open_file(workbench, saved(tmp_path, "outer.loop.json", around("inner.loop.json")))
    qtbot.waitUntil(lambda: copy_of(document) is not None)
    document.session.is_trusted = True
    workbench.runs.run(document)
    assert document.session.shown.live is not None
    inner = open_file(workbench, inner_path)
    inner.session.do(SetConfig(("prompt",), {"draft": "Other {{input}}."}))
    workbench.documents.files.save(inner)
    qtbot.waitUntil(lambda: not inner.session.is_saving)
    subflows = workbench.subflows.refreshers[document]
    qtbot.waitUntil(lambda: not subflows._worker.is_busy)
    assert copy_of(document)["nodes"][1]["config"]["prompt"] == "Write about {{input}}."

    workbench.runs.stop(document)
    ended(document, qtbot)
    qtbot.waitUntil(lambda: copy_of(document)["nodes"][1]["config"]["prompt"] == "Other {{input}}.")


def test_missing_subflow_file_is_reported(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    document = open_file(workbench, saved(tmp_path, "outer.loop.json", around("gone.loop.json")))
    qtbot.waitUntil(lambda: mentions(document.bars.text("subflow"), "gone.loop.json: … cannot be opened"))
    saved(tmp_path, "gone.loop.json")
    document.session.do(SetConfig(("file",), {"part": "./gone.loop.json"}))
    qtbot.waitUntil(lambda: copy_of(document) is not None)
    assert document.bars.text("subflow") == ""


def test_subflow_needs_a_saved_document(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    document = workbench.documents.open_copy(around("inner.loop.json"))
    assert document.bars.text("subflow").startswith("Save the workflow first")
    saved(tmp_path, "inner.loop.json")
    document.session.save(tmp_path / "outer.loop.json")
    qtbot.waitUntil(lambda: copy_of(document) is not None)
    assert document.bars.text("subflow") == ""


def test_double_click_opens_the_subflow_workflow(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    inner_path = saved(tmp_path, "inner.loop.json")
    document = open_file(workbench, saved(tmp_path, "outer.loop.json", around("inner.loop.json")))
    qtbot.waitUntil(lambda: copy_of(document) is not None)
    viewer = document.canvas.viewer
    item = document.canvas.view.nodes["part"]
    place = viewer.mapFromScene(item.mapToScene(QPointF(item.boundingRect().center())))
    qtbot.mouseDClick(viewer.viewport(), Qt.MouseButton.LeftButton, pos=place)
    await_files(workbench)
    assert workbench.documents.all[-1].session.path == inner_path


def test_subflow_path_is_relative_to_the_folder(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    (tmp_path / "parts").mkdir()
    save(small(), tmp_path / "parts" / "inner.loop.json")
    document = open_file(workbench, saved(tmp_path, "outer.loop.json", around("")))
    document.session.select(["part"])
    form = document.inspector.page.form
    editor = form.row("file").editor
    assert isinstance(editor, WorkflowFileEditor)
    assert "workflow" not in form.fields
    editor.set_file(tmp_path / "parts" / "inner.loop.json")
    node = document.session.node("part")
    assert node is not None
    assert node.config["file"] == "parts/inner.loop.json"
    qtbot.waitUntil(lambda: copy_of(document) is not None)


def test_saved_in_another_folder_the_document_still_leads_to_its_subflow_files(
    workbench: Workbench, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    saved(tmp_path, "inner.loop.json")
    document = open_file(workbench, saved(tmp_path, "outer.loop.json", around("inner.loop.json")))
    qtbot.waitUntil(lambda: copy_of(document) is not None)
    answers.to_save = tmp_path / "missing" / "outer.loop.json"
    with qtbot.waitSignal(document.session.save_failed):
        workbench.documents.files.save_as(document)
    assert document.session.workflow.node("part").config["file"] == "inner.loop.json"
    (tmp_path / "other").mkdir()
    answers.to_save = tmp_path / "other" / "outer.loop.json"
    with qtbot.waitSignal(document.session.saved):
        workbench.documents.files.save_as(document)
    assert document.session.workflow.node("part").config["file"] == "../inner.loop.json"
    assert load(tmp_path / "other" / "outer.loop.json") == document.session.workflow
    qtbot.waitUntil(lambda: not workbench.subflows.refreshers[document]._worker.is_busy)
    assert not document.session.is_modified
    assert not document.bars.text("subflow")


def test_changes_made_while_it_is_saved_elsewhere_stay_unsaved(
    workbench: Workbench, tmp_path: Path, qtbot: QtBot
) -> None:
    saved(tmp_path, "inner.loop.json")
    document = open_file(workbench, saved(tmp_path, "outer.loop.json", around("inner.loop.json")))
    qtbot.waitUntil(lambda: copy_of(document) is not None)
    (tmp_path / "other").mkdir()
    with qtbot.waitSignal(document.session.saved):
        document.session.save(tmp_path / "other" / "outer.loop.json")
        document.session.do(SetConfig(("retries",), {"part": 1}))
    assert document.session.is_modified
    assert document.session.workflow.node("part").config["file"] == "../inner.loop.json"
