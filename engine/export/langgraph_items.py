"""The functions of iterators, aggregators and subflows in an exported LangGraph module: graphs within the graph."""

from __future__ import annotations

from typing import Any

from engine.export.cel_python import expression_to_python
from engine.export.langgraph_nodes import NodeFunctions, gave_output
from engine.export.langgraph_texts import Place, reader, recorded_ports, sources, taken, written
from engine.export.literals import literal
from engine.nodes.aggregator import AggregatorConfig
from engine.nodes.iterator import IteratorConfig
from engine.plan.execution_plan import GraphPlan, NodePlan
from engine.values import Value


class PartFunctions:
    """Writes the functions of nodes that run a graph of their own.

    Args:
        functions: Writes functions, and keeps what was left out.
        place: Where the nodes stand.
    """

    def __init__(self, functions: NodeFunctions, place: Place) -> None:
        self._functions, self._place = functions, place

    def iterator(self, node: NodePlan, inside: Place, at_once: int) -> str:
        """The function of an iterator.

        Args:
            node: The iterator.
            inside: Where its body stands.
            at_once: How many items may be worked on at a time.
        """
        return self._functions.function(node, self._place, lambda: self._iterator_lines(node, inside, at_once))

    def _iterator_lines(self, node: NodePlan, inside: Place, at_once: int) -> list[str]:
        config: IteratorConfig = node.config
        plan = node.iterator
        assert plan is not None
        lines = taken(node, self._place)
        lines.append("items = given.get('items')")
        raw = literal(config.items, "    ") if config.source == "list" else "items"
        if not node.enabled:
            return [*lines, f"return pass_items({node.id!r}, {raw})"]
        self._tell_what_is_left_out(node)
        if config.condition.strip() or config.source == "expression":
            lines.append("given.setdefault('items', None)")
        if config.condition.strip():
            condition = written(expression_to_python(config.condition, reader(self._place)))
            lines += [f"if not ({condition}):", f"    return pass_items({node.id!r}, {raw})"]
        if config.source == "list":
            lines.append(f"items = {raw}")
        elif config.source == "expression":
            lines.append(f"items = {written(expression_to_python(config.expression, reader(self._place)))}")
        arguments = [f"{sources(plan.body.result, inside)!r}", literal(recorded_ports(plan.body), "    ")]
        arguments.append(f"at_once={at_once}")
        if config.on_item_error != "fail":
            arguments.append(f"on_item_error={config.on_item_error!r}")
        if config.on_empty != "pass":
            arguments.append(f"on_empty={config.on_empty!r}")
        graph = f"build_{node.id}{self._place.suffix}()"
        return [*lines, f"return run_items({node.id!r}, {graph}, state, items, {', '.join(arguments)})"]

    def _tell_what_is_left_out(self, node: NodePlan) -> None:
        config, name = node.config, f'The iterator "{node.title}" ({node.id})'
        told = {
            "has no time limit.": config.timeout_s is not None,
            "is not begun again after a failure.": bool(config.retries),
            "fails the run where it would go on after an error.": config.on_error != "fail",
        }
        self._functions.left_out += [f"{name} {what}" for what, is_so in told.items() if is_so]

    def aggregator(self, node: NodePlan, iterator: NodePlan) -> str:
        """The function of an aggregator."""
        return self._functions.function(node, self._place, lambda: self._aggregator_lines(node, iterator))

    def _aggregator_lines(self, node: NodePlan, iterator: NodePlan) -> list[str]:
        config: AggregatorConfig = node.config
        keeps_places = iterator.config.on_item_error == "collect"
        lines = [
            f"iterated = state['_values'].get({iterator.id!r}, {{}})",
            "if 'iterations' not in iterated:",
            f"    return skipped({node.id!r})",
            f"results = item_results(iterated['iterations'], keeps_places={keeps_places})",
        ]
        if not node.enabled:
            return [*lines, f"return gave({node.id!r}, {{'output': results}})"]
        if config.mode == "expression":
            lines.append("items = [record['input'] for record in iterated['iterations']]")
            lines.append("given = {'items': items, 'results': results, 'failures': iterated['failures']}")
        made = {
            "join": lambda: f"{config.separator!r}.join(to_text(result) for result in results)",
            "first": lambda: "next((result for result in results if result is not None), None)",
            "vote": lambda: "most_frequent(results)",
            "expression": lambda: written(expression_to_python(config.expression, reader(self._place))),
        }.get(config.mode, lambda: "results")
        return [*lines, f"output = {made()}", gave_output(node, config.output_key)]

    def subflow(self, node: NodePlan, outputs: dict[str, Value]) -> str:
        """The function of a subflow; `outputs` names the node of each of its results."""
        return self._functions.function(node, self._place, lambda: self._subflow_lines(node, outputs))

    def _subflow_lines(self, node: NodePlan, outputs: dict[str, Value]) -> list[str]:
        assert node.subflow is not None
        if not node.enabled:
            return self._functions.bypass(node, self._place)
        declared = "".join(
            f"    {name!r}: ({str(config.type)!r}, {literal(config.default, '        ')}),\n    "
            for name, config in node.subflow.parameters.items()
        )
        graph = f"build_{node.id}{self._place.suffix}()"
        return [
            *taken(node, self._place),
            f"inputs = parameters({{\n    {declared}}}, given)" if declared else "inputs: dict[str, Any] = {}",
            f"return run_part({node.id!r}, {graph}, state, inputs, {literal(outputs, '    ')})",
        ]


def named_outputs(graph: GraphPlan) -> dict[str, Any]:
    """The node of each result that a workflow may give, by the result's name."""
    found: dict[str, Any] = {}
    for node in graph.nodes:
        if node.result_name and node.enabled:
            found[node.result_name] = node.id
    return found
