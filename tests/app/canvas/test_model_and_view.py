"""Canvas and document match after any sequence of steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
from PySide6.QtCore import QPointF
from PySide6.QtWidgets import QApplication

from app.canvas.annotations import read_annotations
from app.canvas.canvas import Canvas
from app.engine_thread import EngineThread
from app.node_layout import stored_position
from app.session import Session
from engine.document.operations import Connect, Disconnect, RenameNode, SetConfig, SetLayout, SetTitle
from engine.nodes.node_names import title_of
from engine.plan.structure import analyse
from tests.app.canvas.documents import refine
from tests.examples import examples

TYPES = ("input", "output", "llm", "router", "transform", "loop", "nosuch")
ENGINE: list[EngineThread] = []

chance = st.randoms(use_true_random=False)


class CanvasMachine(RuleBasedStateMachine):
    @initialize()
    def open(self) -> None:
        QApplication.clipboard().clear()  # an earlier example may have copied something
        self.session = Session(ENGINE[0], refine())
        self.canvas = Canvas(self.session)
        self.canvas.resize(900, 600)

    def any_node(self, pick: Any) -> str:
        return pick.choice(sorted(self.session.workflow.nodes_by_id))

    @rule(node_type=st.sampled_from(TYPES), x=st.integers(-500, 900), y=st.integers(-500, 900))
    def add(self, node_type: str, x: int, y: int) -> None:
        self.canvas.commands.add_node(node_type, QPointF(x, y))

    @precondition(lambda self: self.session.workflow.nodes)
    @rule(
        pick=chance,
        from_port=st.sampled_from(["output", "value", "body", "made_up"]),
        to_port=st.sampled_from(["input", "value", "feedback"]),
    )
    def connect(self, pick: Any, from_port: str, to_port: str) -> None:
        self.session.do(Connect.between(f"{self.any_node(pick)}.{from_port}", f"{self.any_node(pick)}.{to_port}"))

    @precondition(lambda self: self.session.workflow.edges)
    @rule(pick=chance)
    def disconnect(self, pick: Any) -> None:
        edge = pick.choice(self.session.workflow.edges)
        self.session.do(Disconnect(edge.from_, edge.to))

    @precondition(lambda self: self.session.workflow.nodes)
    @rule(pick=chance, many=st.integers(1, 4))
    def select(self, pick: Any, many: int) -> None:
        self.session.select({self.any_node(pick) for _ in range(many)})

    @rule(
        action=st.sampled_from(
            [
                "delete",
                "delete_reconnect",
                "copy",
                "paste",
                "duplicate",
                "cut",
                "toggle_enabled",
                "tidy",
                "align_left",
                "distribute_down",
                "add_frame",
                "add_note",
                "select_all",
                "select_next",
                "select_previous",
                "toggle_ports",
            ]
        )
    )
    def act(self, action: str) -> None:
        if len(self.session.workflow.nodes) < 40 or action not in {"paste", "duplicate"}:
            self.canvas.actions_by_name[action].trigger()

    @precondition(lambda self: self.session.workflow.nodes)
    @rule(pick=chance, number=st.integers(0, 99))
    def rename(self, pick: Any, number: int) -> None:
        self.session.do(RenameNode(self.any_node(pick), f"node_{number}"))

    @precondition(lambda self: self.session.workflow.nodes)
    @rule(pick=chance, title=st.text(max_size=12))
    def retitle(self, pick: Any, title: str) -> None:
        self.session.do(SetTitle(self.any_node(pick), title))

    @precondition(lambda self: self.session.workflow.nodes)
    @rule(pick=chance, prompt=st.sampled_from(["{{input}}", "{{one}} {{two}}", "{{"]))
    def prompt(self, pick: Any, prompt: str) -> None:
        self.session.do(SetConfig(("prompt",), {self.any_node(pick): prompt}))

    @precondition(lambda self: self.session.workflow.nodes)
    @rule(pick=chance, x=st.integers(-900, 900), y=st.integers(-900, 900))
    def place(self, pick: Any, x: int, y: int) -> None:
        self.session.do(SetLayout(("nodes", self.any_node(pick)), {"x": x, "y": y}))

    @rule()
    def undo(self) -> None:
        self.session.undo()

    @rule()
    def redo(self) -> None:
        self.session.redo()

    @rule()
    def analyse(self) -> None:
        structure = analyse(self.session.workflow, self.session.registry)
        self.session.structure, self.session.problems = structure, structure.problems
        self.session.analyzed.emit()

    @invariant()
    def nodes_are_the_documents(self) -> None:
        document, view = self.session.workflow, self.canvas.view
        assert set(view.nodes) == set(document.nodes_by_id)
        for node_id, item in view.nodes.items():
            node = document.nodes_by_id[node_id]
            assert item.content.title == (title_of(node) or item.content.title)
            assert item.content.enabled is node.enabled
            place = stored_position(document, node_id)
            if place is not None:
                assert (item.x(), item.y()) == place
            assert item.isSelected() == (node_id in self.session.selection)

    @invariant()
    def edges_are_the_documents(self) -> None:
        document, view = self.session.workflow, self.canvas.view
        wanted = {(edge.from_, edge.to) for edge in document.edges}
        assert set(view.edge_items) == wanted
        for ends, pipe in view.edge_items.items():
            assert pipe.ends == ends
            assert (pipe.path().currentPosition() - pipe.input_port.middle).manhattanLength() < 1
            assert pipe in pipe.input_port.connected_pipes
            assert pipe in pipe.output_port.connected_pipes
        hanging = sum(len(port.connected_pipes) for item in view.nodes.values() for port in item.inputs)
        assert hanging == len(wanted)

    @invariant()
    def frames_and_notes_are_the_documents(self) -> None:
        wanted = read_annotations(self.session.workflow)
        assert {path: item.annotation for path, item in self.canvas.view.annotations.items.items()} == wanted

    @invariant()
    def regions_are_the_loops(self) -> None:
        structure, view = self.session.structure, self.canvas.view
        bodies = {
            loop: body for loop, body in structure.bodies.items() if loop in view.nodes and body.exit in view.nodes
        }
        assert set(view.regions.items) <= set(bodies)
        if structure.workflow is self.session.workflow:
            assert set(view.regions.items) == set(bodies)
        for loop, region in view.regions.items.items():
            for member in {*bodies[loop].nodes, loop, bodies[loop].exit} & view.nodes.keys():
                assert region.rect.contains(view.nodes[member].card_rect)

    def teardown(self) -> None:
        if hasattr(self, "canvas"):
            self.session._timer.stop()
            self.canvas.deleteLater()
            self.session.deleteLater()
            QApplication.processEvents()


@pytest.fixture
def engine(engine_thread: EngineThread) -> Iterator[EngineThread]:
    ENGINE.append(engine_thread)
    yield engine_thread
    ENGINE.clear()


@pytest.mark.slow
def test_canvas_matches_the_document_after_any_steps(engine: EngineThread) -> None:
    checks = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    run_state_machine_as_test(
        CanvasMachine,
        settings=examples(40, stateful_step_count=25, suppress_health_check=checks),
    )
