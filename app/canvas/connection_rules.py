"""Rules for connecting two ports: whether an edge is allowed, and the reason if not. No Qt here.

The rules are evaluated on every mouse move of a drag, so everything that depends on the start port alone is computed
once. They check the current document; validation of the whole workflow has the last word.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.canvas.node_card import PortViewModel
from engine.document.model import Edge, Workflow
from engine.nodes.json_values import can_ever_fit
from engine.nodes.node_names import node_name
from engine.plan.graph_algorithms import reachable, reverse
from engine.plan.loop_bodies import Body
from engine.plan.structure import Structure


def successors(workflow: Workflow, structure: Structure, without: Edge | None = None) -> dict[str, list[str]]:
    """Return the direct successors of each node; the exit is a successor of its loop."""
    following = {node: [body.exit] for node, body in structure.bodies.items()}
    # the structure follows an edit with a delay
    following |= {node: following.get(node, []) for node in (*workflow.nodes_by_id, *structure.loop_of)}
    for edge in workflow.edges:
        (source, _), (target, _) = edge.source, edge.target
        if edge is not without and source in following and target in following:
            following[source].append(target)
    return following


@dataclass(frozen=True, slots=True)
class _BodyExits:
    """How nodes lead out of a loop body.

    Attributes:
        to_exit: Nodes that lead to the loop's exit.
        to_outside: Nodes that lead to an end of the workflow or to nodes after the exit.
    """

    to_exit: set[str]
    to_outside: set[str]


class ConnectionRules:
    """The ports that one end of an edge may connect to."""

    def __init__(
        self,
        workflow: Workflow,
        structure: Structure,
        node: str,
        port: PortViewModel,
        *,
        is_input: bool,
        without: Edge | None = None,
    ) -> None:
        self._workflow, self._structure = workflow, structure
        self._node, self._port, self._is_input = node, port, is_input
        self._successors = successors(workflow, structure, without)
        self._edges = {(edge.from_, edge.to) for edge in workflow.edges if edge is not without}
        self._predecessors = reverse(self._successors)
        self._bodies: dict[str, _BodyExits] = {}
        # An edge to these would close a cycle.
        self._cyclic = reachable(self._successors if is_input else self._predecessors, [node])

    def rejection_reason(self, node: str, port: PortViewModel, *, is_input: bool) -> str | None:
        """Return why the known end must not be connected to a port, or None if it may."""
        if is_input == self._is_input:
            return "Connect an output to an input."
        if node == self._node:
            return "A node cannot be connected to itself."
        if is_input:
            source, source_port, target, target_port = self._node, self._port, node, port
        else:
            source, source_port, target, target_port = node, port, self._node, self._port
        if not can_ever_fit(source_port.type, target_port.type):
            return f"A {source_port.type} cannot be converted to a {target_port.type}. Put a Transform node in between."
        if (f"{source}.{source_port.name}", f"{target}.{target_port.name}") in self._edges:
            return "These ports are already connected."
        if node in self._cyclic:
            return "This would create a cycle. To repeat nodes, put them between a Loop and its Exit."
        return self._leaving_body_reason(source, source_port.name, target)

    def _leaving_body_reason(self, source: str, source_port: str, target: str) -> str | None:
        bodies = self._structure.bodies
        own = bodies.get(source)
        ports = () if own is None else own.kind.body_ports
        if own is not None and source_port not in ports and (target in own.nodes or target == own.exit):
            port = own.kind.body_ports[0]
            title = self._title(source)
            return f"“{title}” has this value only after its last iteration. Use its output “{port}” instead."
        around = self._around(source)
        if own is not None and source_port in ports:
            around = own
        if around is None or target in around.nodes or target == around.exit:
            return None
        if not self._leaves(target, around):
            return None
        start, end = around.kind.start, around.kind.end
        return f"This edge would leave the {start} “{self._title(around.loop)}”. Route it through the {start}'s {end}."

    def _leaves(self, target: str, around: Body) -> bool:
        """Whether a path from a node leaves a body other than through its exit or a side branch."""
        exits = self._bodies.get(around.loop) or self._bodies.setdefault(around.loop, self._find_exits(around))
        if target in exits.to_exit:
            return False
        if target in exits.to_outside:
            return True
        reached = reachable(self._successors, [target])
        return any(body.exit in reached and body.loop not in reached for body in self._structure.bodies.values())

    def _find_exits(self, around: Body) -> _BodyExits:
        ends = {node.id for node in self._workflow.nodes if node.type in {"output", "input"}}
        after = reachable(self._successors, [around.exit])
        before = self._predecessors
        return _BodyExits(reachable(before, [around.exit]), reachable(before, ends | after))

    def _around(self, node: str) -> Body | None:
        parent = self._structure.parent.get(node)
        if parent is None:
            loop = self._structure.loop_of.get(node)
            parent = self._structure.parent.get(loop) if loop is not None else None
        return self._structure.bodies.get(parent) if parent is not None else None

    def _title(self, node_id: str) -> str:
        return node_name(self._workflow, node_id)
