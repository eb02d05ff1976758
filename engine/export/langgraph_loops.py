"""Functions of loops, iterators, aggregators and subflows in an exported LangGraph module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from engine.exits.condition import Need, PythonTest
from engine.exits.loop_conditions import Condition
from engine.export.cel_python import UnsupportedError
from engine.export.langgraph_nodes import NodeWriter, bypass_lines, return_output
from engine.export.langgraph_scope import Scope, fill_question, model_arguments, placeholder, recorded_ports
from engine.export.python_source import literal
from engine.expr import Expression, compile_expression, compile_template
from engine.nodes.aggregator import AggregatorConfig
from engine.nodes.iterator import IteratorConfig
from engine.nodes.judge import JUDGE, JudgeConfig, judge_question, judge_schema
from engine.nodes.loop import LoopConfig
from engine.plan.execution_plan import GraphPlan, LoopPlan, NodePlan
from engine.values import Value


class LoopWriter:
    """Writes the functions of one loop.

    Args:
        writer: Writes functions, and collects what is left out.
        node: The loop.
        loop: Its plan.
        end: The id of its exit.
        outside: What the loop itself can read.
        inside: What its body can read.
    """

    def __init__(
        self, writer: NodeWriter, node: NodePlan, loop: LoopPlan, end: str, outside: Scope, inside: Scope
    ) -> None:
        self._writer = writer
        self._node, self._loop, self._end = node, loop, end
        self._outside, self._inside = outside, inside
        self._config: LoopConfig = loop.config

    def start(self) -> str:
        """The function that starts the loop."""
        if self.counts_costs:
            self._writer.sequential += 1
            self._writer.counts_costs = True
        return self._writer.function(self._node, self._outside, self._start_lines)

    def end(self, end: NodePlan) -> str:
        """The function of its exit, which ends an iteration."""
        return self._writer.function(end, self._outside, self._end_lines)

    @property
    def counts_costs(self) -> bool:
        """Whether anything depends on the cost of the loop."""
        config = self._config
        is_named = any(("cost_usd",) in compile_expression(text).paths for _, text in config.expressions)
        in_criteria = self._loop.judge is not None and ("cost_usd",) in _criteria_paths(config.judge)
        return is_named or in_criteria or config.budget_usd is not None or Need.COST in config.needs

    def _start_lines(self) -> list[str]:
        names = f"{self._node.id!r}, {self._end!r}"
        read, condition, _ = self._outside.inputs(self._node)
        lines = [read, condition, f"    return skip_loop({names}, NOTHING, '')"]
        if not self._node.enabled:
            return [*lines, f"return skip_loop({names}, inputs['input'], 'disabled')"]
        if self._node.pinned is not None:
            result = {"output": self._node.pinned["output"]} if "output" in self._node.pinned else {}
            values = literal({self._node.id: self._node.pinned, self._end: result}, "    ")
            return [*lines, f"return {{'_values': {values}, '_loops': {{{self._node.id!r}: {{'continues': False}}}}}}"]
        config = self._config
        if config.condition.strip():
            condition = self._outside.expression(config.condition)
            lines += [f"if not ({condition}):", f"    return skip_loop({names}, inputs['input'], 'condition')"]
        name = f'The loop "{self._node.title}" ({self._node.id})'
        if config.budget_usd is not None:
            self._writer.left_out.append(f"{name} checks its budget only after an iteration.")
        if config.timeout_s is not None:
            self._writer.left_out.append(f"{name} checks its time limit only after an iteration.")
        self._writer.left_out += _ignored_error_settings(name, config)
        nodes = [node.id for node in self._loop.body.nodes]
        spent = ", spent_since(0)" if self.counts_costs else ""
        return [*lines, f"return start_loop({self._node.id!r}, inputs['input'], {nodes!r}{spent})"]

    @property
    def _can_be_exited(self) -> bool:
        """Whether a node of the body, which is already written, may exit the loop."""
        return self._node.id in self._writer.exited_loops

    def _end_lines(self) -> list[str]:
        if not self._node.enabled:
            return ["return {}"]
        body, config = self._loop.body, self._config
        lines = [
            f"loop = state['_loops'][{self._node.id!r}]",
            f"nodes = body_outputs(state, {literal(recorded_ports(body), '    ')})",
            f"result = port_value(state, {self._inside.sources(body.result)!r})",
            f"feedback = port_value(state, {self._inside.sources(body.feedback)!r})",
        ]
        if self._loop.evaluator is not None:
            lines.append(f"verdict = nodes.get({body.nodes[self._loop.evaluator].id!r})")
        for position in self._loop.feedback_ends:
            lines += ["if feedback is NOTHING:", f"    feedback = nodes.get({body.nodes[position].id!r}, NOTHING)"]
        if Need.EVALUATOR in config.needs:
            lines += ["if verdict and feedback is NOTHING:", "    feedback = verdict['value']"]
            lines += ["if verdict and result is NOTHING:", "    result = verdict['value']"]
        if self._can_be_exited:
            lines += ["if loop['exited'] and result is NOTHING:", "    result = feedback = current_result(loop)"]
        return [*lines, *self._figures(), *self._reasons(), *self._return()]

    def _figures(self) -> list[str]:
        """The lines that compute what conditions and expressions need."""
        config, lines = self._config, list[str]()
        if config.compares_results:
            lines.append("is_first = result is NOTHING or not loop['had_result']")
            lines.append("similar = None if is_first else similarity(loop['previous'], result)")
        if config.expressions or self._loop.judge is not None:
            lines.append("inputs = {'output': None if result is NOTHING else result}")
            if config.compares_results:
                lines.append("inputs['similarity'] = similar")
            if self.counts_costs:
                lines.append("inputs['cost_usd'] = spent_since(loop['spent'])")
            lines.append("inputs['elapsed_s'] = time.monotonic() - loop['started']")
        if config.score.strip():
            lines.append(f"score = float({self._inside.expression(config.score)})")
        return lines

    def _reasons(self) -> list[str]:
        """The lines that find the exit reason, in the order in which conditions are checked."""
        config = self._config
        lines = ["reason = 'exit_loop' if loop['exited'] else None" if self._can_be_exited else "reason = None"]
        conditions = list(config.conditions)
        if self._loop.judge is not None:
            while conditions and config.stop_mode == "any" and conditions[0].spec.precedes_judge:
                lines += self._stop_if_all(conditions.pop(0).leaves)
            lines += self._judge_lines()
        if config.stop_mode == "all":
            lines += self._stop_if_all(tuple(leaf for condition in conditions for leaf in condition.leaves))
        else:
            lines += [line for condition in conditions for line in self._stop_if_all(condition.leaves)]
        if config.budget_usd is not None or config.timeout_s is not None:
            lines.append("at_end = 'return_last'")
        if config.budget_usd is not None:
            lines.append(f"if reason is None and spent_since(loop['spent']) >= {config.budget_usd!r}:")
            lines.append(f"    reason, at_end = 'budget', {config.on_budget!r}")
        if config.timeout_s is not None:
            lines.append(f"if reason is None and time.monotonic() - loop['started'] >= {config.timeout_s!r}:")
            lines.append(f"    reason, at_end = 'timeout', {config.on_timeout!r}")
        return [*lines, *_reason_if(f"loop['index'] + 1 >= {self._loop.max_iterations}", "max_iterations")]

    def _judge_lines(self) -> list[str]:
        judge = self._config.judge
        assert judge is not None
        criteria = placeholder("criteria") if judge.criteria.strip() else ""
        system, user = judge_question(judge, criteria, placeholder("output"))
        criteria = f"{self._inside.template(judge.criteria, '        ')}.strip()"
        weights: dict[str, Any] = {one.name: one.weight for one in judge.rubric}
        arguments = model_arguments(JUDGE, judge, judge_schema(judge))
        empty = ", allow_empty=True" if judge.allow_empty else ""
        return [
            "judged = None",
            "if reason is None and result is not NOTHING:",
            f"    system = {fill_question(system.text, {'criteria': criteria}, '        ')}",
            f"    question = {fill_question(user.text, {'output': 'result'}, '        ')}",
            "    messages = [{'role': 'system', 'content': system}, {'role': 'user', 'content': question}]",
            f"    judged = judge(ask, messages, {weights!r}, {judge.threshold!r}, {judge.runs}, {arguments}{empty})",
        ]

    def _stop_if_all(self, conditions: tuple[Condition, ...]) -> list[str]:
        """The lines that stop the loop if all of these conditions hold."""
        lines: list[str] = []
        tests: list[str] = []
        for condition in conditions:
            test = self._test(condition)
            name = f"{condition.spec.name}_{_key(condition)}"
            if test.observes:
                lines.append(f"{name} = {test.source}")
            tests.append(name if test.observes else test.source)
        if not tests:
            return []
        reason = "+".join(dict.fromkeys(condition.spec.reason for condition in conditions))
        return [*lines, *_reason_if(tests[0] if len(tests) == 1 else " and ".join(f"({t})" for t in tests), reason)]

    def _test(self, condition: Condition) -> PythonTest:
        """A condition as Python source.

        Raises:
            UnsupportedError: It cannot be exported.
        """
        if condition.spec.to_python is None:
            raise UnsupportedError(f'The exit condition "{condition.spec.name}" cannot be exported.')
        score = "score" if self._config.score.strip() else "None"
        if score == "None" and self._loop.judge is not None:
            score = "judged['score'] if judged else None"
        writer = _ConditionWriter(_key(condition), score, self._inside.expression)
        test = condition.spec.to_python(condition.config, writer)
        if test.module and test.module not in self._writer.condition_modules:
            self._writer.condition_modules.append(test.module)
        return test

    def _return(self) -> list[str]:
        config = self._config
        arguments = ["result=result", "feedback=feedback", "nodes=nodes", "reason=reason"]
        arguments += ["verdict=verdict"] if self._loop.evaluator is not None else []
        arguments += ["judged=judged"] if self._loop.judge is not None else []
        arguments += ["score=score"] if config.score.strip() else []
        arguments += ["similar=similar"] if config.compares_results else []
        if config.feedback_mode != "replace":
            arguments.append(f"feedback_mode={config.feedback_mode!r}")
        if config.feedback_mode == "append_window":
            arguments.append(f"window={config.append_window}")
        if config.delay_s:
            arguments.append(f"delay_s={config.delay_s!r}")
        has_limit = config.budget_usd is not None or config.timeout_s is not None
        if config.on_max_iterations != "return_last" and (
            config.on_max_iterations == "return_best" or config.can_fall_short
        ):
            otherwise = "at_end" if has_limit else "'return_last'"
            choice = f"{config.on_max_iterations!r} if reason == 'max_iterations' else {otherwise}"
            arguments.append(f"at_end={choice}")
        elif has_limit:
            arguments.append("at_end=at_end")
        if config.output_mode != "final":
            arguments.append(f"output_mode={config.output_mode!r}")
        names = f"({self._node.id!r}, {self._end!r})"
        return ["return end_iteration(", f"    loop, {names},", *(f"    {part}," for part in arguments), ")"]


@dataclass(frozen=True, slots=True)
class _ConditionWriter:
    """Implements `engine.exits.condition.PythonWriter`."""

    key: str
    score: str
    expression: Callable[[str], str]


def _key(condition: Condition) -> str:
    """A name that is unique among the conditions of a loop: `0`, `1_conditions_0`."""
    return condition.field.removeprefix("stop_when.").replace(".", "_")


def _reason_if(condition: str, reason: str) -> list[str]:
    """The lines that set the exit reason if a condition holds and there is no reason yet."""
    needs_brackets = not condition.isidentifier() and (" or " in condition or " if " in condition)
    return [f"if reason is None and {f'({condition})' if needs_brackets else condition}:", f"    reason = {reason!r}"]


def _criteria_paths(judge: JudgeConfig | None) -> set[tuple[str, ...]]:
    """The names in a judge's criteria."""
    paths: set[tuple[str, ...]] = set()
    for part in compile_template(judge.criteria).parts if judge is not None else ():
        if isinstance(part, Expression):
            paths.update(compile_expression(part.text).paths)
        elif not isinstance(part, str):
            paths.add(part)
    return paths


def _ignored_error_settings(name: str, config: LoopConfig | IteratorConfig) -> Iterator[str]:
    """A sentence for each setting for errors that the module ignores."""
    if config.retries:
        yield f"{name} is not restarted after a failure."
    if config.on_error != "fail":
        yield f"{name} fails the run after an error; 'On error' is ignored."


def iterator_lines(writer: NodeWriter, node: NodePlan, scope: Scope, inside: Scope, max_concurrency: int) -> list[str]:
    """The lines of an iterator; `inside` is what its body can read."""
    config: IteratorConfig = node.config
    plan = node.iterator
    assert plan is not None
    lines = [*scope.inputs(node), "items = inputs.get('items')"]
    items = literal(config.items, "    ") if config.source == "list" else "items"
    if not node.enabled:
        return [*lines, f"return pass_items({node.id!r}, {items})"]
    name = f'The iterator "{node.title}" ({node.id})'
    writer.left_out += [f"{name} has no time limit."] if config.timeout_s is not None else []
    writer.left_out += _ignored_error_settings(name, config)
    if config.condition.strip() or config.source == "expression":
        lines.append("inputs.setdefault('items', None)")
    if config.condition.strip():
        lines += [f"if not ({scope.expression(config.condition)}):", f"    return pass_items({node.id!r}, {items})"]
    if config.source != "port":
        lines.append(f"items = {items if config.source == 'list' else scope.expression(config.expression)}")
    arguments = [f"{inside.sources(plan.body.result)!r}", literal(recorded_ports(plan.body), "    ")]
    arguments.append(f"max_concurrency={max_concurrency}")
    arguments += [f"on_item_error={config.on_item_error!r}"] if config.on_item_error != "fail" else []
    arguments += [f"on_empty={config.on_empty!r}"] if config.on_empty != "pass" else []
    graph = f"build_{node.id}{scope.suffix}()"
    return [*lines, f"return run_items({node.id!r}, {graph}, state, items, {', '.join(arguments)})"]


def aggregator_lines(node: NodePlan, iterator: NodePlan, scope: Scope) -> list[str]:
    """The lines of an aggregator."""
    config: AggregatorConfig = node.config
    keeps_failed = iterator.config.on_item_error == "collect"
    lines = [
        f"iterated = state['_values'].get({iterator.id!r}, {{}})",
        "if 'iterations' not in iterated:",
        f"    return skipped({node.id!r})",
        f"results = item_results(iterated['iterations'], keeps_failed={keeps_failed})",
    ]
    if not node.enabled:
        return [*lines, f"return node_outputs({node.id!r}, {{'output': results}})"]
    output = {
        "join": f"{config.separator!r}.join(to_text(result) for result in results)",
        "first": "next((result for result in results if result is not None), None)",
        "vote": "most_frequent(results)",
    }.get(config.mode, "results")
    if config.mode == "expression":
        lines.append("items = [record['input'] for record in iterated['iterations']]")
        lines.append("inputs = {'items': items, 'results': results, 'failures': iterated['failures']}")
        output = scope.expression(config.expression)
    return [*lines, f"output = {output}", return_output(node, config.output_key)]


def subflow_lines(node: NodePlan, scope: Scope) -> list[str]:
    """The lines of a subflow."""
    assert node.subflow is not None
    if not node.enabled:
        return bypass_lines(node, scope)
    declared = "".join(
        f"    {name!r}: ({str(config.type)!r}, {literal(config.default, '        ')}),\n    "
        for name, config in node.subflow.parameters.items()
    )
    graph, outputs = f"build_{node.id}{scope.suffix}()", literal(named_outputs(node.subflow.body), "    ")
    return [
        *scope.inputs(node),
        f"values = input_values({{\n    {declared}}}, inputs)" if declared else "values: dict[str, Any] = {}",
        f"return run_subflow({node.id!r}, {graph}, state, values, {outputs})",
    ]


def named_outputs(graph: GraphPlan) -> dict[str, Value]:
    """The node that provides each output of a workflow, by the output's name."""
    return {node.result_name: node.id for node in graph.nodes if node.result_name and node.enabled}
