"""Functions of loops, iterators, aggregators and subflows in an exported LangGraph module."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.exits.condition import Need, PythonTest
from engine.exits.loop_conditions import Condition
from engine.export.cel_python import UnsupportedError, expression_to_python
from engine.export.langgraph_nodes import NodeFunctions, gave_output
from engine.export.langgraph_texts import (
    Place,
    ask_settings,
    filled,
    marked,
    placed,
    read_path,
    reader,
    recorded_ports,
    sources,
    taken,
    written,
)
from engine.export.python_source import literal
from engine.expr import Expression, compile_expression, compile_template
from engine.nodes.aggregator import AggregatorConfig
from engine.nodes.iterator import IteratorConfig
from engine.nodes.judge import JUDGE, JudgeConfig, judge_question, judge_schema
from engine.nodes.loop import LoopConfig
from engine.plan.execution_plan import GraphPlan, LoopPlan, NodePlan
from engine.values import Value


class LoopFunctions:
    """Writes the functions of one loop.

    Args:
        functions: Writes functions, and keeps what was left out.
        node: The loop.
        loop: Its plan.
        end: The id of its exit.
        around: Where the loop stands.
        inside: Where its body stands.
    """

    def __init__(
        self, functions: NodeFunctions, node: NodePlan, loop: LoopPlan, end: str, around: Place, inside: Place
    ) -> None:
        self._functions = functions
        self._node, self._loop, self._end = node, loop, end
        self._around, self._inside = around, inside
        self._config: LoopConfig = loop.config

    def beginning(self) -> str:
        """The function that begins the loop."""
        if self.counts_costs:
            self._functions.in_turn += 1
            self._functions.counts_costs = True
        return self._functions.function(self._node, self._around, self._begin_lines)

    @property
    def counts_costs(self) -> bool:
        """Whether anything asks what it has cost."""
        config = self._config
        named = any(("cost_usd",) in compile_expression(text).paths for _, text in config.expressions)
        in_criteria = self._loop.judge is not None and ("cost_usd",) in _template_paths(self._config.judge)
        return named or in_criteria or config.budget_usd is not None or Need.COST in config.needs

    def ending(self, end: NodePlan) -> str:
        """The function that ends an iteration."""
        return self._functions.function(end, self._around, self._end_lines)

    def _begin_lines(self) -> list[str]:
        names = f"{self._node.id!r}, {self._end!r}"
        first, *_ = taken(self._node, self._around)
        lines = [first, "if given is None:", f"    return pass_by({names}, NOTHING, '')"]
        if not self._node.enabled:
            return [*lines, f"return pass_by({names}, given['input'], 'disabled')"]
        if self._config.condition.strip():
            condition = written(expression_to_python(self._config.condition, reader(self._around)))
            lines += [f"if not ({condition}):", f"    return pass_by({names}, given['input'], 'condition')"]
        self._tell_what_is_left_out()
        nodes = [node.id for node in self._loop.body.nodes]
        spent = ", spent_since(0)" if self.counts_costs else ""
        return [*lines, f"return begin_loop({self._node.id!r}, given['input'], {nodes!r}{spent})"]

    def _tell_what_is_left_out(self) -> None:
        config, name = self._config, f'The loop "{self._node.title}" ({self._node.id})'
        told = {
            "ends at its budget only after an iteration.": config.budget_usd is not None,
            "ends at its time limit only after an iteration.": config.timeout_s is not None,
            "is not begun again after a failure.": bool(config.retries),
            "fails the run where it would go on after an error.": config.on_error != "fail",
        }
        self._functions.left_out += [f"{name} {what}" for what, is_so in told.items() if is_so]

    # The end of an iteration

    @property
    def _may_be_left(self) -> bool:
        """Whether a node of the body, which is written by now, may end the loop."""
        return self._node.id in self._functions.left_loops

    def _end_lines(self) -> list[str]:
        if not self._node.enabled:
            return ["return {}"]
        body, config = self._loop.body, self._config
        lines = [
            f"loop = state['_loops'][{self._node.id!r}]",
            f"nodes = gave_by(state, {literal(recorded_ports(body), '    ')})",
            f"result = collect(state, {sources(body.result, self._inside)!r})",
            f"feedback = collect(state, {sources(body.feedback, self._inside)!r})",
        ]
        has_verdict = self._loop.evaluator is not None
        if has_verdict and self._loop.evaluator is not None:
            lines.append(f"verdict = nodes.get({body.nodes[self._loop.evaluator].id!r})")
        for place in self._loop.feedback_ends:
            lines += ["if feedback is NOTHING:", f"    feedback = nodes.get({body.nodes[place].id!r}, NOTHING)"]
        if Need.EVALUATOR in config.needs:
            lines += ["if verdict and feedback is NOTHING:", "    feedback = verdict['value']"]
            lines += ["if verdict and result is NOTHING:", "    result = verdict['value']"]
        if self._may_be_left:
            lines += ["if loop['left'] and result is NOTHING:", "    result = feedback = as_it_stood(loop)"]
        lines += self._figures()
        lines += self._reasons()
        return [*lines, *self._return(has_verdict)]

    def _figures(self) -> list[str]:
        lines: list[str] = []
        if self._config.compares_results:
            lines.append("is_first = result is NOTHING or not loop['had_result']")
            lines.append("similar = None if is_first else similarity(loop['previous'], result)")
        if self._names_anything:
            lines.append("given = {'output': None if result is NOTHING else result}")
            if self._config.compares_results:
                lines.append("given['similarity'] = similar")
            if self.counts_costs:
                lines.append("given['cost_usd'] = spent_since(loop['spent'])")
            lines.append("given['elapsed_s'] = time.monotonic() - loop['began']")
        if self._config.score.strip():
            lines.append(f"score = float({self._expression(self._config.score)})")
        return lines

    def _reasons(self) -> list[str]:
        config = self._config
        lines = ["reason = 'exit_loop' if loop['left'] else None" if self._may_be_left else "reason = None"]
        conditions = list(config.conditions)
        if self._loop.judge is not None:
            while conditions and config.stop_mode == "any" and conditions[0].spec.precedes_judge:
                lines += self._together(conditions.pop(0).leaves)
            lines += self._judge_lines()
        if config.stop_mode == "all":
            lines += self._together(tuple(leaf for condition in conditions for leaf in condition.leaves))
        else:
            lines += [line for condition in conditions for line in self._together(condition.leaves)]
        lines += self._limits()
        return [*lines, *_otherwise(f"loop['index'] + 1 >= {self._loop.max_iterations}", "max_iterations")]

    def _limits(self) -> list[str]:
        """The loop's own budget and time limit."""
        config, lines = self._config, list[str]()
        if config.budget_usd is not None:
            over = f"reason is None and spent_since(loop['spent']) >= {config.budget_usd!r}"
            lines += [f"if {over}:", f"    reason, at_end = 'budget', {config.on_budget!r}"]
        if config.timeout_s is not None:
            over = f"reason is None and time.monotonic() - loop['began'] >= {config.timeout_s!r}"
            lines += [f"if {over}:", f"    reason, at_end = 'timeout', {config.on_timeout!r}"]
        return ["at_end = 'return_last'", *lines] if lines else []

    def _judge_lines(self) -> list[str]:
        judge = self._config.judge
        assert judge is not None
        system, user = judge_question(judge, placed("criteria") if judge.criteria.strip() else "", placed("output"))
        criteria = f"{filled(compile_template(judge.criteria), self._read, '        ')}.strip()"
        weights: dict[str, Any] = {one.name: one.weight for one in judge.rubric}
        settings = ask_settings(JUDGE, judge, judge_schema(judge))
        empty = ", allow_empty=True" if judge.allow_empty else ""
        call = f"judge(ask, messages, {weights!r}, {judge.threshold!r}, {judge.runs}, {settings}{empty})"
        condition = "reason is None and result is not NOTHING"
        return [
            "judged = None",
            f"if {condition}:",
            f"    system = {marked(system.text, {'criteria': criteria}, '        ')}",
            f"    question = {marked(user.text, {'output': 'result'}, '        ')}",
            "    messages = [{'role': 'system', 'content': system}, {'role': 'user', 'content': question}]",
            f"    judged = {call}",
        ]

    def _together(self, conditions: tuple[Condition, ...]) -> list[str]:
        """The lines that stop the loop where all of some conditions hold."""
        lines: list[str] = []
        tests: list[str] = []
        for condition in conditions:
            test = self._test(condition)
            if not test.observes:
                tests.append(test.source)
                continue
            name = f"{condition.spec.name}_{_key(condition)}"
            lines.append(f"{name} = {test.source}")
            tests.append(name)
        if not tests:
            return []
        reason = "+".join(dict.fromkeys(condition.spec.reason for condition in conditions))
        every = tests[0] if len(tests) == 1 else " and ".join(f"({test})" for test in tests)
        return [*lines, *_otherwise(every, reason)]

    def _test(self, condition: Condition) -> PythonTest:
        """A condition as Python source.

        Raises:
            UnsupportedError: It cannot be exported.
        """
        if condition.spec.to_python is None:
            raise UnsupportedError(f"The exit condition {condition.spec.name} has no counterpart.")
        score = "score" if self._config.score.strip() else "None"
        if score == "None" and self._loop.judge is not None:
            score = "judged['score'] if judged else None"
        writer = _ConditionWriter(_key(condition), score, self._expression)
        test = condition.spec.to_python(condition.config, writer)
        if test.module and test.module not in self._functions.carried:
            self._functions.carried.append(test.module)
        return test

    def _return(self, has_verdict: bool) -> list[str]:
        config = self._config
        arguments = ["result=result", "feedback=feedback", "nodes=nodes"]
        arguments.append("reason=reason")
        arguments += ["verdict=verdict"] if has_verdict else []
        arguments += ["judged=judged"] if self._loop.judge is not None else []
        arguments += ["score=score"] if config.score.strip() else []
        arguments += ["similar=similar"] if self._config.compares_results else []
        if config.feedback_mode != "replace":
            arguments.append(f"feedback_mode={config.feedback_mode!r}")
        if config.feedback_mode == "append_window":
            arguments.append(f"window={config.append_window}")
        if config.delay_s:
            arguments.append(f"delay_s={config.delay_s!r}")
        has_effect = config.on_max_iterations == "return_best" or config.can_fall_short
        otherwise = "at_end" if config.budget_usd is not None or config.timeout_s is not None else "'return_last'"
        if config.on_max_iterations != "return_last" and has_effect:
            at_count = f"{config.on_max_iterations!r} if reason == 'max_iterations' else {otherwise}"
            arguments.append(f"at_end={at_count}")
        elif otherwise == "at_end":
            arguments.append("at_end=at_end")
        if config.output_mode != "final":
            arguments.append(f"output_mode={config.output_mode!r}")
        names = f"({self._node.id!r}, {self._end!r})"
        return ["return end_iteration(", f"    loop, {names},", *(f"    {part}," for part in arguments), ")"]

    # Expressions

    def _read(self, path: tuple[str, ...]) -> ast.expr:
        return read_path(self._inside, path)

    def _expression(self, text: str) -> str:
        return written(expression_to_python(text, self._read))

    @property
    def _names_anything(self) -> bool:
        return bool(self._config.expressions) or self._loop.judge is not None


@dataclass(frozen=True, slots=True)
class _ConditionWriter:
    """What a condition needs to write itself as Python; see `engine.exits.condition.PythonWriter`."""

    key: str
    score: str
    expression: Callable[[str], str]


def _key(condition: Condition) -> str:
    """A name for a condition among those of its loop: `0`, `1_conditions_0`."""
    return condition.field.removeprefix("stop_when.").replace(".", "_")


def _otherwise(condition: str, reason: str) -> list[str]:
    """The lines that name a reason where there is none yet."""
    return [f"if reason is None and {_in_brackets(condition)}:", f"    reason = {reason!r}"]


def _in_brackets(condition: str) -> str:
    return (
        condition
        if condition.isidentifier() or (" or " not in condition and " if " not in condition)
        else f"({condition})"
    )


def _template_paths(judge: JudgeConfig | None) -> set[tuple[str, ...]]:
    """What a judge's criteria name."""
    paths: set[tuple[str, ...]] = set()
    for part in compile_template(judge.criteria).parts if judge is not None else ():
        if isinstance(part, Expression):
            paths.update(compile_expression(part.text).paths)
        elif not isinstance(part, str):
            paths.add(part)
    return paths


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
