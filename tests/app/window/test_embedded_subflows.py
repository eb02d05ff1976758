"""A subflow that was made of nodes of a document, and has no file yet: it is opened, edited and saved."""

from __future__ import annotations

from pathlib import Path

from pytestqt.qtbot import QtBot

from app.window.document_page import DocumentPage
from app.workbench import Workbench
from engine.document.files import load
from engine.document.operations import SetConfig
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
    inner.session.do(SetConfig(model, ("prompt",), "Another prompt: {{input}}"))
    with qtbot.waitSignal(inner.session.saved):
        workbench.documents.files.save(inner)


def prompt(document: DocumentPage) -> object:
    nodes = document.session.workflow.node("subflow").config["workflow"]["nodes"]
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


def test_in_a_document_without_a_file_only_the_copy_changes(
    workbench: Workbench, self_refine: DocumentPage, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    inner = wrapped(workbench, self_refine)
    answers.to_save = tmp_path / "parts.loop.json"
    edited_and_saved(workbench, inner, qtbot)
    assert not self_refine.session.workflow.node("subflow").config.get("file")
    assert prompt(self_refine) == "Another prompt: {{input}}"
