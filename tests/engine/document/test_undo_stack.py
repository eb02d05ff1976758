"""Undo, redo, and unsaved changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.document.files import dumps
from engine.document.model import Node, Workflow
from engine.document.operations import (
    AddNodes,
    Connect,
    Operation,
    OperationError,
    RemoveNodes,
    SetConfig,
    SetSettings,
    SetText,
    SetTitle,
)
from engine.document.undo_stack import UndoStack
from tests.engine.document.strategies import workflows
from tests.engine.document.test_operations import operations
from tests.examples import examples

FLOW = Workflow(nodes=(Node(id="a", type="x", config={"p": ""}), Node(id="b", type="x")))


def test_steps_are_undone_and_redone_with_their_titles() -> None:
    history = UndoStack(FLOW)
    assert (history.undo_title, history.redo_title) == (None, None)
    history.do(Connect.between("a.x", "b.x"))
    history.do(RemoveNodes(("a",)))
    assert history.undo_title == "Remove a"
    assert [str(edge) for edge in history.undo().edges] == ["a.x -> b.x"]
    assert (history.undo_title, history.redo_title) == ("Connect a → b", "Remove a")
    assert history.undo() == FLOW
    assert history.undo_title is None
    history.redo()
    assert [node.id for node in history.redo().nodes] == ["b"]
    assert (history.undo_title, history.redo_title) == ("Remove a", None)


def test_empty_undo_and_redo_are_reported() -> None:
    history = UndoStack(FLOW)
    with pytest.raises(OperationError, match="nothing to undo"):
        history.undo()
    with pytest.raises(OperationError, match="nothing to redo"):
        history.redo()


def test_new_step_clears_the_redo_steps() -> None:
    history = UndoStack(FLOW)
    history.do(SetText("name", "n"))
    history.undo()
    history.do(SetText("name", "m"))
    assert history.redo_title is None
    assert history.workflow.name == "m"


def test_failed_operation_changes_nothing() -> None:
    history = UndoStack(FLOW)
    history.do(SetText("name", "n"))
    history.undo()
    with pytest.raises(OperationError):
        history.do(RemoveNodes(("gone",)))
    assert (history.workflow, history.redo_title, history.is_modified) == (FLOW, "Change the name", False)


def test_typing_in_a_field_is_one_step() -> None:
    history = UndoStack(FLOW)
    for text in ("h", "he", "hel"):
        history.do(SetConfig(("p",), {"a": text}))
    assert history.workflow.node("a").config == {"p": "hel"}
    assert history.undo() == FLOW
    assert history.undo_title is None
    assert history.redo().node("a").config == {"p": "hel"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (SetTitle("a", "t"), SetTitle("a", "ti")),
        (SetConfig(("p",), {"a": "t", "b": "t"}), SetConfig(("p",), {"a": "ti", "b": "ti"})),
        (SetSettings(("model",), "m"), SetSettings(("model",), "mo")),
        (SetText("name", "n"), SetText("name", "na")),
        (SetText("description", "d"), SetText("description", "de")),
    ],
)
def test_typing_a_title_setting_name_or_description_is_one_step(first: Operation, second: Operation) -> None:
    history = UndoStack(FLOW)
    history.do(first)
    after = history.do(second)
    assert history.undo() == FLOW
    assert history.undo_title is None
    assert history.redo() == after


@pytest.mark.parametrize(
    "other",
    [
        SetConfig(("q",), {"a": 1}),
        SetConfig(("p",), {"b": 1}),
        SetConfig(("p",), {"a": "1", "b": "1"}),
        SetTitle("a", "t"),
        AddNodes((Node(id="c", type="x"),)),
    ],
)
def test_another_change_starts_another_step(other: Operation) -> None:
    history = UndoStack(FLOW)
    history.do(SetConfig(("p",), {"a": "1"}))
    history.do(other)
    history.do(SetConfig(("p",), {"a": "2"}))
    assert history.undo().node("a").config["p"] == "1"
    history.undo()
    assert history.undo_title == "Change p of a"


def test_seal_save_undo_and_redo_end_a_step() -> None:
    history = UndoStack(FLOW)
    history.do(SetConfig(("p",), {"a": "1"}))
    history.seal()
    history.do(SetConfig(("p",), {"a": "2"}))
    history.mark_saved()
    history.do(SetConfig(("p",), {"a": "3"}))
    history.undo()
    history.redo()
    history.do(SetConfig(("p",), {"a": "4"}))
    assert [history.undo().node("a").config["p"] for _ in range(4)] == ["3", "2", "1", ""]


def test_modified_means_different_from_the_saved_document() -> None:
    history = UndoStack(FLOW)
    assert not history.is_modified
    history.do(SetText("name", "n"))
    assert history.is_modified
    history.undo()
    assert not history.is_modified
    history.redo()
    history.mark_saved()
    assert not history.is_modified
    history.undo()
    assert history.is_modified
    history.redo()
    assert not history.is_modified


def test_unreachable_saved_document_stays_modified() -> None:
    history = UndoStack(FLOW)
    history.do(SetText("name", "n"))
    history.mark_saved()
    history.undo()
    history.do(SetText("name", "m"))
    assert history.is_modified
    history.undo()
    assert history.is_modified


def test_state_saved_during_later_changes_is_the_saved_one() -> None:
    history = UndoStack(FLOW)
    history.do(SetText("name", "written"))
    written = history.state
    history.seal()
    history.do(SetText("name", "typed meanwhile"))

    history.mark_saved(written)

    assert history.is_modified
    history.undo()
    assert not history.is_modified
    history.redo()
    assert history.is_modified


@examples(30)
@given(workflows(max_nodes=2), st.data())
def test_undo_of_all_and_redo_of_all_is_the_same_document(workflow: Workflow, data: st.DataObject) -> None:
    history = UndoStack(workflow)
    for _ in range(data.draw(st.integers(1, 5))):
        try:
            history.do(data.draw(operations(history.workflow)))
        except OperationError:
            continue
    last = dumps(history.workflow)
    for _ in range(2):
        while history.undo_title is not None:
            history.undo()
        assert dumps(history.workflow) == dumps(workflow)
        assert not history.is_modified
        while history.redo_title is not None:
            history.redo()
        assert dumps(history.workflow) == last
