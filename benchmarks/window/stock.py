"""Stock NodeGraphQt with the same graphs, without loops, forms and runs.

Its acyclic check is off: it takes exponential time. Nodes are given their names, or finding free ones would take longer
than everything else.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

from NodeGraphQt import BaseNode, NodeGraph
from PySide6.QtCore import QPoint, QTimer
from PySide6.QtWidgets import QApplication, QWidget

from benchmarks.window.graphs import laid_out, side_by_side
from benchmarks.window.measure import growth_mb, largest_gap_ms, memory_mb, settle
from engine.document.model import Workflow
from engine.nodes.node_registry import builtin_registry

BATCH_MS = 16


class _Node(BaseNode):
    __identifier__ = "benchmark"
    NODE_NAME = "node"

    def __init__(self) -> None:
        super().__init__()
        self.set_port_deletion_allowed(True)


class Contender:
    """A graph in a widget as large as the window's canvas."""

    def __init__(self, application: QApplication, folder: Path) -> None:
        self._application, self._folder = application, folder
        self._graph = _graph()
        self._nodes: dict[str, BaseNode] = {}
        settle()

    def open(self, workflow: Workflow) -> float:
        """Create the graph, and return the seconds up to the end of its first full paint."""
        begin = time.perf_counter()
        self._nodes = _fill(self._graph, workflow)
        self.fit_all()
        QApplication.processEvents()
        self.viewport.repaint()
        return time.perf_counter() - begin

    @property
    def viewport(self) -> QWidget:
        """The painted widget."""
        return self._graph.viewer().viewport()

    def fit_all(self) -> None:
        """Fit everything into the view."""
        self._graph.viewer().zoom_to_nodes(self._graph.viewer().all_nodes())

    def look_closely(self) -> None:
        """Show the second loop at 100 %."""
        viewer = self._graph.viewer()
        self._graph.reset_zoom()
        viewer.center_selection([self._nodes["n1_3"].view])

    def pan(self, across: int, down: int) -> None:
        """Pan the view."""
        viewer = self._graph.viewer()
        scale = viewer.transform().m11()
        viewer._set_viewer_pan(-across / scale, -down / scale)  # noqa: SLF001 - no public way pans by so many pixels

    def zoom(self, factor: float) -> None:
        """Zoom by a factor."""
        viewer = self._graph.viewer()
        viewer._set_viewer_zoom(math.log(factor) / math.log(1.001))  # noqa: SLF001 - as above

    def select(self, ids: list[str]) -> QPoint:
        """Select nodes, and return the position of the first one in the viewport."""
        self._graph.clear_selection()
        nodes = [self._nodes[name] for name in ids]
        for node in nodes:
            node.set_selected(True)
        settle()
        view = nodes[0].view
        return self._graph.viewer().mapFromScene(view.sceneBoundingRect().center())

    def prepare_keystroke(self) -> None:
        """Nothing to prepare."""
        self._typed = self._nodes["n1_3"]

    def keystroke(self, place: int) -> None:
        """Rename a node."""
        self._typed.set_property("name", "n1_3" + "x" * place, push_undo=False)

    def flood(self, width: int, pieces: int, pause_s: float) -> tuple[float, float]:
        """Rename nodes as often as the run emits events, and return the largest gap and the renames per second."""
        graph = _graph()
        workflow, _ = side_by_side(width, pieces, pause_s, self._folder)
        nodes = [node for name, node in _fill(graph, workflow).items() if name.startswith("n")]
        settle()
        number, total = 0, width * pieces
        batch = max(round(width / pause_s * BATCH_MS / 1e3), 1)

        def name() -> None:
            nonlocal number
            for _ in range(batch):
                nodes[number % len(nodes)].set_property("name", f"n{number}", push_undo=False)
                number += 1

        timer = QTimer()
        timer.timeout.connect(name)
        begin = time.perf_counter()
        timer.start(BATCH_MS)
        gap = largest_gap_ms(lambda: number < total)
        timer.stop()
        return gap, number / (time.perf_counter() - begin)

    def open_and_close(self, nodes: int, edges: int, times: int) -> float | None:
        """Create and close a graph repeatedly, and return the growth in megabytes."""
        workflow = laid_out(nodes, edges)
        before = None
        for place in range(-3, times):
            if place == 0:
                before = memory_mb()
            graph = _graph()
            _fill(graph, workflow)
            QApplication.processEvents()
            graph.close()
            graph.widget.deleteLater()
            graph.deleteLater()
            settle(20)
        settle(500)
        return growth_mb(before)

    def steps_ms(self) -> dict[str, float]:
        """Nothing: it has no tabs, themes and settings."""
        return {}

    def close(self) -> None:
        """Close everything."""
        self._graph.widget.hide()


def _graph() -> NodeGraph:
    graph = NodeGraph()
    graph.register_node(_Node)
    graph.set_acyclic(False)
    graph.widget.resize(904, 730)
    graph.widget.show()
    return graph


def _fill(graph: NodeGraph, workflow: Workflow) -> dict[str, BaseNode]:
    registry = builtin_registry()
    made: dict[str, BaseNode] = {}
    for node in workflow.nodes:
        place = workflow.layout["nodes"][node.id]
        view = graph.create_node(
            "benchmark._Node", name=node.id, selected=False, pos=[place["x"], place["y"]], push_undo=False
        )
        spec = registry.find(node.type)
        assert spec is not None
        config = spec.config.model_validate(node.config)
        for port in spec.inputs(config):
            view.add_input(port.name, multi_input=True)
        for port in spec.outputs(config):
            view.add_output(port.name)
        made[node.id] = view
    for edge in workflow.edges:
        (start, out), (end, into) = edge.source, edge.target
        made[start].outputs()[out].connect_to(made[end].inputs()[into], push_undo=False)
    return made
