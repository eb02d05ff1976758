"""A subflow that was made of nodes of a document, and has no file yet: it is opened, edited and saved."""

from __future__ import annotations

import json
from pathlib import Path

from pytestqt.qtbot import QtBot

from app.window.document_page import DocumentPage
from app.workbench import Workbench
from engine.document.builder import Builder
from engine.document.files import dumps, load
from engine.document.operations import AddNodes, RemoveNodes, RenameNode, SetConfig
from tests.app.window.conftest import Answers, open_file, saved


def wrapped(workbench: Workbench, document: DocumentPage) -> DocumentPage:
    """Wrap the model node of a document, and open the new subflow."""
    document.session.select([node.id for node in document.session.workflow.nodes if node.type == "llm"])
    document.canvas.actions_by_name["wrap_subflow"].trigger()
    document.canvas.actions_by_name["open_subflow"].trigger()
    inner = workbench.current
    assert inner is not None
    assert inner is not document
    return inner


def edited_and_saved(workbench: Workbench, inner: DocumentPage, qtbot: QtBot) -> None:
    model = next(node.id for node in inner.session.workflow.nodes if node.type == "llm")
    inner.session.do(SetConfig(("prompt",), {model: "Another prompt: {{input}}"}))
    with qtbot.waitSignal(inner.session.saved):
        workbench.documents.files.save(inner)


def prompt(document: DocumentPage, node_id: str = "subflow") -> object:
    nodes = document.session.workflow.node(node_id).config["workflow"]["nodes"]
    return next(node["config"]["prompt"] for node in nodes if node["type"] == "llm")


def test_saving_it_gives_it_a_file_beside_the_document(
    workbench: Workbench, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    document = open_file(workbench, saved(tmp_path))
    inner = wrapped(workbench, document)
    assert inner.bars.text("embedded")
    answers.to_save = tmp_path / "parts.loop.json"
    edited_and_saved(workbench, inner, qtbot)
    assert document.session.workflow.node("subflow").config["file"] == "parts.loop.json"
    assert prompt(document) == "Another prompt: {{input}}"
    assert not inner.bars.text("embedded")
    assert load(tmp_path / "parts.loop.json").nodes == inner.session.workflow.nodes


def test_edits_while_it_is_saved_stay_in_it(
    workbench: Workbench, self_refine: DocumentPage, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    inner = wrapped(workbench, self_refine)
    answers.to_save = tmp_path / "parts.loop.json"
    before = prompt(self_refine)
    model = next(node.id for node in inner.session.workflow.nodes if node.type == "llm")
    with qtbot.waitSignal(inner.session.saved):
        workbench.documents.files.save(inner)
        inner.session.do(SetConfig(("prompt",), {model: "Another prompt: {{input}}"}))
    assert prompt(self_refine) == before


def test_files_in_it_are_found_from_its_own_folder_once_it_is_saved(
    workbench: Workbench, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    (tmp_path / "parts").mkdir()
    saved(tmp_path / "parts", "inner.loop.json")
    flow = Builder("Outer")
    part = flow.add("subflow", id="part", config={"file": "parts/inner.loop.json"})
    flow.connect(part["out"], flow.add("output", id="end")["value"])
    document = open_file(workbench, saved(tmp_path, "outer.loop.json", flow.build()))
    qtbot.waitUntil(lambda: "workflow" in document.session.workflow.node("part").config)
    document.session.select(["part"])
    document.canvas.actions_by_name["wrap_subflow"].trigger()
    document.canvas.actions_by_name["open_subflow"].trigger()
    inner = workbench.current
    answers.to_save = tmp_path / "parts" / "middle.loop.json"
    with qtbot.waitSignal(inner.session.saved):
        workbench.documents.files.save(inner)
    assert inner.session.workflow.node("part").config["file"] == "inner.loop.json"
    assert document.session.workflow.node("subflow").config["file"] == "parts/middle.loop.json"
    assert not document.bars.text("subflow")


def test_files_in_it_are_read_when_the_document_is_opened(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    saved(tmp_path, "inner.loop.json")
    flow = Builder("Outer")
    flow.add("subflow", id="part", config={"file": "inner.loop.json"})
    outer = Builder("Around")
    outer.add("subflow", id="around", config={"workflow": json.loads(dumps(flow.build()))})
    document = open_file(workbench, saved(tmp_path, "outer.loop.json", outer.build()))

    def copy() -> object:
        (part,) = document.session.workflow.node("around").config["workflow"]["nodes"]
        return part["config"].get("workflow", {}).get("name")

    qtbot.waitUntil(lambda: copy() == "Small")


def test_in_a_document_without_a_file_only_the_copy_changes(
    workbench: Workbench, self_refine: DocumentPage, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    inner = wrapped(workbench, self_refine)
    answers.to_save = tmp_path / "parts.loop.json"
    edited_and_saved(workbench, inner, qtbot)
    assert not self_refine.session.workflow.node("subflow").config.get("file")
    assert prompt(self_refine) == "Another prompt: {{input}}"


def test_saving_the_document_later_gives_the_subflow_its_file(
    workbench: Workbench, self_refine: DocumentPage, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    inner = wrapped(workbench, self_refine)
    (tmp_path / "parts").mkdir()
    answers.to_save = tmp_path / "parts" / "inner.loop.json"
    edited_and_saved(workbench, inner, qtbot)
    workbench.documents.drop(inner)
    with qtbot.waitSignal(self_refine.session.save_failed):
        self_refine.session.save(tmp_path / "missing" / "outer.loop.json")
    assert not self_refine.session.workflow.node("subflow").config.get("file")
    answers.to_save = tmp_path / "outer.loop.json"
    with qtbot.waitSignal(self_refine.session.saved):
        workbench.documents.files.save(self_refine)
    assert load(tmp_path / "outer.loop.json") == self_refine.session.workflow
    assert self_refine.session.workflow.node("subflow").config["file"] == "parts/inner.loop.json"
    qtbot.waitUntil(lambda: not workbench.subflows.refreshers[self_refine]._worker.is_busy)
    assert not self_refine.session.is_modified
    assert not self_refine.bars.text("subflow")


def test_a_subflow_that_was_changed_since_is_not_linked_to_its_file(
    workbench: Workbench, self_refine: DocumentPage, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    inner = wrapped(workbench, self_refine)
    answers.to_save = tmp_path / "parts.loop.json"
    edited_and_saved(workbench, inner, qtbot)
    self_refine.session.undo()
    with qtbot.waitSignal(self_refine.session.saved):
        self_refine.session.save(tmp_path / "outer.loop.json")
    assert not load(tmp_path / "outer.loop.json").node("subflow").config.get("file")


def test_opened_again_it_is_the_same_document(
    workbench: Workbench, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    document = open_file(workbench, saved(tmp_path))
    inner = wrapped(workbench, document)
    workbench.documents.shown.emit(document)
    document.canvas.actions_by_name["open_subflow"].trigger()
    assert workbench.current is inner
    assert len(workbench.documents.all) == 2


def test_it_is_opened_anew_after_it_was_closed(workbench: Workbench, self_refine: DocumentPage) -> None:
    inner = wrapped(workbench, self_refine)
    workbench.documents.drop(inner)
    self_refine.canvas.actions_by_name["open_subflow"].trigger()
    assert workbench.current not in {None, inner, self_refine}


def test_saving_changes_a_subflow_that_was_renamed(
    workbench: Workbench, self_refine: DocumentPage, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    inner = wrapped(workbench, self_refine)
    self_refine.session.do(RenameNode("subflow", "part"))
    self_refine.session.select(["part"])
    self_refine.canvas.actions_by_name["open_subflow"].trigger()
    assert workbench.current is inner
    answers.to_save = tmp_path / "parts.loop.json"
    edited_and_saved(workbench, inner, qtbot)
    assert prompt(self_refine, "part") == "Another prompt: {{input}}"
    assert not inner.bars.text("embedded")


def test_saving_leaves_another_subflow_with_its_old_id_alone_and_says_so(
    workbench: Workbench, self_refine: DocumentPage, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    inner = wrapped(workbench, self_refine)
    session = self_refine.session
    other = session.workflow.node("subflow")
    session.do(RemoveNodes(("subflow",)))
    session.do(AddNodes((other.model_copy(update={"config": {"workflow": {"name": "Other"}}}),)))
    answers.to_save = tmp_path / "parts.loop.json"
    edited_and_saved(workbench, inner, qtbot)
    assert session.workflow.node("subflow").config == {"workflow": {"name": "Other"}}
    assert "does not use these changes" in inner.bars.text("embedded")


def test_saving_changes_a_subflow_that_came_back_by_undo(
    workbench: Workbench, self_refine: DocumentPage, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    inner = wrapped(workbench, self_refine)
    self_refine.session.do(RemoveNodes(("subflow",)))
    self_refine.session.undo()
    answers.to_save = tmp_path / "parts.loop.json"
    edited_and_saved(workbench, inner, qtbot)
    assert prompt(self_refine) == "Another prompt: {{input}}"
    assert not inner.bars.text("embedded")


def test_saving_it_again_is_no_failure(workbench: Workbench, answers: Answers, tmp_path: Path, qtbot: QtBot) -> None:
    document = open_file(workbench, saved(tmp_path))
    inner = wrapped(workbench, document)
    answers.to_save = tmp_path / "parts.loop.json"
    edited_and_saved(workbench, inner, qtbot)
    edited_and_saved(workbench, inner, qtbot)
    assert not inner.bars.text("embedded")


def test_nothing_is_promised_after_the_document_was_closed(workbench: Workbench, self_refine: DocumentPage) -> None:
    inner = wrapped(workbench, self_refine)
    workbench.documents.drop(self_refine)
    assert not inner.bars.text("embedded")
