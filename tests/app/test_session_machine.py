"""Undo, redo and views agree after any sequence of edits through a session."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from app.engine_thread import EngineThread
from app.session import ReplaceDocument, Session
from engine.document.clipboard import copy_fragment, paste_fragment, read_fragment
from engine.document.files import dumps, loads
from engine.document.model import Node, Workflow, unique_id
from engine.document.operations import (
    UNSET,
    AddNodes,
    Batch,
    Connect,
    Disconnect,
    Operation,
    RemoveNodes,
    RenameNode,
    SetConfig,
    SetEnabled,
    SetLayout,
    SetSettings,
    SetText,
    SetTitle,
)
from engine.plan.structure import analyse
from engine.plan.validation import validate_structure
from tests.examples import examples

TYPES = st.sampled_from(["input", "output", "llm", "loop", "exit", "router", "transform", "nonsense"])
TEXTS = st.text(max_size=8)
PORTS = st.sampled_from(["value", "input", "output", "body", "done", "feedback"])


class SessionMachine(RuleBasedStateMachine):
    """Operations, undo and redo against a plain list of documents."""

    engine: EngineThread

    @initialize()
    def begin(self) -> None:
        self.session = Session(self.engine)
        self.done: list[Workflow] = [self.session.workflow]
        self.undone: list[Workflow] = []
        self.saved: Workflow | None = self.session.workflow
        self.shown = self.session.workflow
        self.session.changed.connect(self.follow)

    def follow(self, old: Workflow, new: Workflow) -> None:
        assert old is self.shown, "whoever patches a view from old to new must have been at old"
        self.shown = new

    def do(self, operation: Operation) -> None:
        self.session.seal()
        try:
            expected = operation.apply(self.session.workflow)[0]
        except Exception:
            assert not self.session.do(operation)
            return
        assert self.session.do(operation)
        assert self.session.workflow == expected
        self.done.append(self.session.workflow)
        self.undone.clear()

    def node(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from([node.id for node in self.session.workflow.nodes]))

    @rule(node_type=TYPES)
    def add(self, node_type: str) -> None:
        self.do(AddNodes((Node(id=unique_id(self.session.workflow, node_type), type=node_type),)))

    @precondition(lambda self: self.session.workflow.nodes)
    @rule(data=st.data(), text=TEXTS, enabled=st.booleans())
    def change_a_node(self, data: st.DataObject, text: str, enabled: bool) -> None:
        node = self.node(data)
        operations: list[Operation] = [
            SetTitle(node, text),
            SetEnabled(node, enabled),
            SetConfig(("prompt",), {node: text}),
            SetConfig(("prompt",), {node: UNSET}),
            SetLayout(("nodes", node), {"x": 1, "y": 2}),
            RenameNode(node, f"{node}_b"),
            RemoveNodes((node,)),
        ]
        self.do(data.draw(st.sampled_from(operations)))

    @precondition(lambda self: self.session.workflow.nodes)
    @rule(data=st.data(), source=PORTS, end=PORTS)
    def connect(self, data: st.DataObject, source: str, end: str) -> None:
        self.do(Connect.between(f"{self.node(data)}.{source}", f"{self.node(data)}.{end}"))

    @precondition(lambda self: self.session.workflow.edges)
    @rule(data=st.data())
    def disconnect(self, data: st.DataObject) -> None:
        edge = data.draw(st.sampled_from(self.session.workflow.edges))
        self.do(Disconnect(edge.from_, edge.to))

    @rule(data=st.data(), text=TEXTS)
    def change_the_document(self, data: st.DataObject, text: str) -> None:
        operations: list[Operation] = [
            SetText("name", text),
            SetText("description", text),
            SetSettings(("budget_usd",), 1.5),
            Batch("Both", (SetText("name", text), SetText("description", text))),
            ReplaceDocument("Revert", self.done[0]),
        ]
        self.do(data.draw(st.sampled_from(operations)))

    @precondition(lambda self: self.session.workflow.nodes)
    @rule()
    def copy_and_paste(self) -> None:
        text = copy_fragment(self.session.workflow, list(self.session.workflow.nodes_by_id)[:3])
        self.do(paste_fragment(self.session.workflow, read_fragment(text)))

    @rule()
    def undo(self) -> None:
        assert self.session.undo() is (len(self.done) > 1)
        if len(self.done) > 1:
            self.undone.append(self.done.pop())

    @rule()
    def redo(self) -> None:
        assert self.session.redo() is bool(self.undone)
        if self.undone:
            self.done.append(self.undone.pop())

    @rule()
    def save(self) -> None:
        self.session.mark_saved()
        self.saved = self.session.workflow

    @precondition(lambda self: self.session.workflow.nodes)
    @rule(data=st.data())
    def select(self, data: st.DataObject) -> None:
        self.session.select([self.node(data), "nobody"])

    @invariant()
    def everybody_is_at_the_same_document(self) -> None:
        if not hasattr(self, "session"):
            return
        workflow = self.session.workflow
        assert workflow == self.done[-1]
        assert self.shown is workflow
        assert loads(dumps(workflow)) == workflow
        assert all(self.session.node(node) is not None for node in self.session.selection)
        if not self.session.is_modified:
            assert workflow == self.saved
        assert (self.session.undo_title is None) is (len(self.done) == 1)
        assert (self.session.redo_title is None) is (not self.undone)

    def teardown(self) -> None:
        if hasattr(self, "session"):
            validate_structure(analyse(self.session.workflow))  # whatever was done, it can be looked at
            self.session.deleteLater()


@pytest.mark.slow
def test_undo_and_redo_return_the_same_documents(engine_thread: EngineThread) -> None:
    class Machine(SessionMachine):
        engine = engine_thread

    run_state_machine_as_test(
        Machine,
        settings=examples(
            60, stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
        ),
    )
