"""For each problem code, a document that has it, and the expected place of the problem."""

from __future__ import annotations

from typing import Any

from engine import Workflow
from tests.engine.plan.documents import CLOSE, LOOPED, OPEN, ROUTER, STEP, document, in_a_row, looped, of_json

Place = dict[str, Any]


def _branching(*branches: dict[str, Any], **config: Any) -> Workflow:
    router = ("router", {"criteria": "?", "branches": list(branches), **config})
    return in_a_row(router, "text.value -> n.input", "n.reason -> out.value")


def _judged(loop: dict[str, Any], routers: tuple[str, ...]) -> Workflow:
    nodes = {**looped(loop), **dict.fromkeys(routers, ROUTER)}
    judged = [edge for name in routers for edge in (f"a.output -> {name}.input", f"{name}.done -> exit.input")]
    return document(nodes, *OPEN, *(judged or ["a.output -> exit.input"]), *CLOSE)


def _nested(depth: int) -> Workflow:
    nodes: dict[str, Any] = {"text": "input"}
    edges = ["text.value -> l0.input", f"l{depth - 1}.body -> a.input", f"a.output -> e{depth - 1}.input"]
    for level in range(depth):
        nodes[f"l{level}"] = "loop"
        nodes[f"e{level}"] = ("exit", {"loop": f"l{level}"})
        if level:
            edges += [f"l{level - 1}.body -> l{level}.input", f"e{level}.output -> e{level - 1}.input"]
    return document({**nodes, "a": STEP, "out": "output"}, *edges, "e0.output -> out.value")


def _nodes(*more: dict[str, Any], key: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    return [{"id": "text", "type": "input", **(key or {})}, {"id": "out", "type": "output"}, *more]


_JUDGED = {"exit_condition": "judge", "judge": {"criteria": "Good.", "model": "a/b"}}
_EDGE = {"from": "text.value", "to": "out.value"}
_OVERLAPPING = {
    "text": "input",
    "one": "loop",
    "two": "loop",
    "a": STEP,
    "b": STEP,
    "c": STEP,
    "leave_one": ("exit", {"loop": "one"}),
    "leave_two": ("exit", {"loop": "two"}),
    "out": "output",
}
_RULES = {"mode": "rules"}
_TWO_ENDS = {
    "check": ROUTER,
    "x": STEP,
    "y": STEP,
}

BROKEN: dict[str, tuple[Workflow, Place]] = {
    # The document as a whole.
    "wrong-format": (of_json(_nodes(), [_EDGE]).model_copy(update={"format": "other.thing"}), {"field": "format"}),
    "newer-version": (of_json(_nodes(), [_EDGE], version=99), {"field": "version"}),
    "unknown-key": (of_json(_nodes(), [_EDGE], colour="red"), {"field": "colour"}),
    "bad-setting": (
        of_json(_nodes(), [_EDGE], settings={"max_concurrency": 0}),
        {"field": "settings.max_concurrency"},
    ),
    "no-nodes": (document({}), {}),
    "no-output": (document({"text": "input"}), {}),
    # Nodes.
    "bad-id": (of_json(_nodes({"id": "Big One", "type": "input"}), [_EDGE]), {"node": "Big One", "field": "id"}),
    "duplicate-id": (of_json(_nodes({"id": "text", "type": "input"}), [_EDGE]), {"node": "text", "field": "id"}),
    "unknown-type": (in_a_row("rooter"), {"node": "n", "field": "type"}),
    "bad-config": (in_a_row(("transform", {"mode": 5})), {"node": "n", "field": "mode"}),
    "unknown-config-key": (in_a_row(("transform", {"templat": "x"})), {"node": "n", "field": "templat"}),
    "no-value-on-error": (
        in_a_row(("router", {"criteria": "?", "on_error": "continue"}), "text.value -> n.input", "n.done -> out.value"),
        {"node": "n", "field": "on_error"},
    ),
    "duplicate-input": (
        document(
            {"a": ("input", {"name": "x"}), "b": ("input", {"name": "x"}), "out": "output"}, "a.value -> out.value"
        ),
        {"node": "b", "field": "name"},
    ),
    "duplicate-output": (
        document(
            {"a": "input", "b": ("output", {"name": "c"}), "c": "output"}, "a.value -> b.value", "a.value -> c.value"
        ),
        {"node": "c", "field": "name"},
    ),
    # Settings of single types.
    "bad-default": (
        document({"text": ("input", {"type": "list", "default": 5}), "out": "output"}, "text.value -> out.value"),
        {"node": "text", "field": "default"},
    ),
    "bad-template": (in_a_row(("transform", {"template": "{{input"})), {"node": "n", "field": "template"}),
    "bad-expression": (
        in_a_row(("transform", {"mode": "expression", "expression": "input +"})),
        {"node": "n", "field": "expression"},
    ),
    "bad-schema": (
        in_a_row(("llm", {"prompt": "{{input}}", "reply_schema": {"type": "text"}})),
        {"node": "n", "field": "reply_schema"},
    ),
    "repeated-tool": (in_a_row(("agent", {"tools": ["read_file", "read_file"]})), {"node": "n", "field": "tools"}),
    "approval-of-no-tool": (
        in_a_row(("agent", {"tools": ["read_file"], "require_approval": ["write_file"]})),
        {"node": "n", "field": "require_approval"},
    ),
    "unknown-turn-strategy": (
        in_a_row(("agent", {"turn_strategy": "debate"})),
        {"node": "n", "field": "turn_strategy"},
    ),
    "tools-on-single-call": (
        in_a_row(("agent", {"tools": ["read_file"], "turn_strategy": "single_call"})),
        {"node": "n", "field": "tools"},
    ),
    "exit-loop-with-schema": (
        document(looped(a=("llm", {"may_exit_loop": True, "reply_schema": {"type": "object"}})), *LOOPED),
        {"node": "a", "field": "may_exit_loop"},
    ),
    "exit-loop-outside": (in_a_row(("agent", {"tools": ["exit_loop"]})), {"node": "n", "field": "tools"}),
    "empty-search": (
        document(looped({"stop_when": [{"condition": "until", "expression": '!output.contains("")'}]}), *LOOPED),
        {"node": "loop", "field": "stop_when.0.expression"},
    ),
    "judge-is-writer": (
        document(looped(_JUDGED, a=("llm", {"model": "a/b"})), *LOOPED),
        {"node": "loop", "field": "judge.model"},
    ),
    "no-criteria": (
        in_a_row("router", "text.value -> n.input", "n.done -> out.value"),
        {"node": "n", "field": "criteria"},
    ),
    "duplicate-branch": (_branching({"name": "a"}, {"name": "a"}), {"node": "n", "field": "branches.1.name"}),
    "bad-branch": (_branching({"name": "a"}, {"name": "error"}), {"node": "n", "field": "branches.1.name"}),
    "no-rule": (
        _branching({"name": "a", "when": "true"}, {"name": "b"}, **_RULES),
        {"node": "n", "field": "branches.1.when"},
    ),
    "early-else": (
        _branching({"name": "a", "when": "else"}, {"name": "b", "when": "true"}, **_RULES),
        {"node": "n", "field": "branches.0.when"},
    ),
    "unknown-tool": (
        document({"n": ("tool", {"tool": "serch_files"}), "out": "output"}, "n.output -> out.value"),
        {"node": "n", "field": "tool"},
    ),
    "unknown-argument": (
        document(
            {"n": ("tool", {"tool": "read_file", "arguments": {"path": "a", "paht": "b"}}), "out": "output"},
            "n.output -> out.value",
        ),
        {"node": "n", "field": "arguments.paht"},
    ),
    "unknown-name": (
        in_a_row(("transform", {"template": "{{input}} {{loop.index}}"})),
        {"node": "n", "field": "template"},
    ),
    # Edges.
    "unknown-node": (
        document({"text": "input", "out": "output"}, "text.value -> out.value", "gone.output -> out.value"),
        {"edge": "gone.output -> out.value"},
    ),
    "unknown-port": (
        document({"text": "input", "out": "output"}, "text.value -> out.value", "text.output -> out.value"),
        {"edge": "text.output -> out.value", "node": "text", "port": "output"},
    ),
    "type-mismatch": (
        document(
            {"text": ("input", {"type": "boolean"}), "n": ("tool", {"tool": "search_files"}), "out": "output"},
            "text.value -> n.limit",
            "n.output -> out.value",
        ),
        {"edge": "text.value -> n.limit", "node": "n", "port": "limit"},
    ),
    "duplicate-edge": (
        document({"text": "input", "out": "output"}, "text.value -> out.value", "text.value -> out.value"),
        {"edge": "text.value -> out.value"},
    ),
    "too-many-edges": (
        document(
            {"text": "input", "b": "input", "n": ("transform", {"template": "{{who}}"}), "out": "output"},
            "text.value -> n.who",
            "b.value -> n.who",
            "n.output -> out.value",
        ),
        {"node": "n", "port": "who"},
    ),
    "unconnected-port": (in_a_row(STEP, "n.output -> out.value"), {"node": "n", "port": "input"}),
    "cycle": (
        document(
            {"a": STEP, "b": STEP, "out": "output"},
            "a.output -> b.input",
            "b.output -> a.input",
            "b.output -> out.value",
        ),
        {"node": "a"},
    ),
    # Subflows.
    "no-subflow": (in_a_row("subflow"), {"node": "n", "field": "file"}),
    "subflow-not-read": (in_a_row(("subflow", {"file": "part.loop.json"})), {"node": "n", "field": "file"}),
    "bad-subflow": (
        in_a_row(("subflow", {"file": "part.loop.json", "workflow": {"nodes": 5}})),
        {"node": "n", "field": "file"},
    ),
    # Loops.
    "duplicate-name": (
        document(looped({"judge": {"rubric": [{"name": "a"}, {"name": "a"}]}}), *LOOPED),
        {"node": "loop", "field": "judge.rubric.1.name"},
    ),
    "no-weight": (
        document(looped({"judge": {"rubric": [{"name": "a", "weight": 0.0}]}}), *LOOPED),
        {"node": "loop", "field": "judge.rubric"},
    ),
    "no-conditions": (
        document(looped({"stop_when": [{"condition": "all_of"}]}), *LOOPED),
        {"node": "loop", "field": "stop_when.0.conditions"},
    ),
    "no-expression": (
        document(looped({"stop_when": [{"condition": "until"}]}), *LOOPED),
        {"node": "loop", "field": "stop_when.0.expression"},
    ),
    "unknown-condition": (
        document(looped({"stop_when": [{"condition": "moon"}]}), *LOOPED),
        {"node": "loop", "field": "stop_when.0.condition"},
    ),
    "no-items": (
        document(
            {"each": ("iterator", {"source": "list"}), "a": STEP, "gather": "aggregator", "out": "output"},
            "each.item -> a.input",
            "a.output -> gather.input",
            "gather.output -> out.value",
        ),
        {"node": "each", "field": "items"},
    ),
    "iterations-clamped": (
        document(looped({"max_iterations": 51}), *LOOPED),
        {"node": "loop", "field": "max_iterations"},
    ),
    "no-score": (
        document(looped({"on_max_iterations": "return_best"}), *LOOPED),
        {"node": "loop", "field": "on_max_iterations"},
    ),
    "no-effect": (
        document(looped({"on_max_iterations": "fail"}), *LOOPED),
        {"node": "loop", "field": "on_max_iterations"},
    ),
    "unknown-loop": (document(looped(None, {"loop": "loup"}), *LOOPED), {"node": "exit", "field": "loop"}),
    "exit-without-loop": (
        document({"text": "input", "exit": "exit", "out": "output"}, "text.value -> exit.input", *CLOSE),
        {"node": "exit"},
    ),
    "missing-exit": (
        document({"text": "input", "loop": "loop", "a": STEP, "out": "output"}, *OPEN, "a.output -> out.value"),
        {"node": "loop"},
    ),
    "two-exits": (
        document(looped(None, {"loop": "loop"}, other=("exit", {"loop": "loop"})), *LOOPED, "a.output -> other.input"),
        {"node": "loop"},
    ),
    "empty-body": (
        document(
            {"text": "input", "loop": "loop", "exit": "exit", "out": "output"},
            "text.value -> loop.input",
            "loop.body -> exit.input",
            *CLOSE,
        ),
        {"node": "loop"},
    ),
    "nested-too-deep": (_nested(65), {"node": "l64"}),
    "loop-result-in-body": (
        document({**looped(), "a": ("transform", {"template": "{{input}} {{n}}"})}, *LOOPED, "loop.count -> a.n"),
        {"node": "loop", "port": "count", "edge": "loop.count -> a.n"},
    ),
    "loop-waits-for-itself": (
        document(
            {**looped(), "a": ("transform", {"template": "{{input}} {{n}}"}), "b": STEP},
            *LOOPED,
            "loop.count -> b.input",
            "b.output -> a.n",
        ),
        {"node": "loop", "edge": "b.output -> a.n"},
    ),
    "edge-out-of-body": (
        document(looped(), *LOOPED, "a.output -> out.value"),
        {"node": "a", "port": "output", "edge": "a.output -> out.value"},
    ),
    "overlapping-loops": (
        document(
            _OVERLAPPING,
            "text.value -> one.input",
            "one.body -> a.input",
            "a.output -> two.input",
            "two.body -> b.input",
            "b.output -> leave_one.input",
            "b.output -> c.input",
            "c.output -> leave_two.input",
            "leave_one.output -> out.value",
            "leave_two.output -> out.value",
        ),
        {"node": "one"},
    ),
    "no-evaluator": (_judged({"exit_condition": "evaluator"}, ()), {"node": "loop", "field": "stop_when.0.condition"}),
    "several-evaluators": (
        _judged({"exit_condition": "evaluator"}, ("one", "two")),
        {"node": "loop", "field": "evaluator"},
    ),
    "bad-evaluator": (
        _judged({"exit_condition": "evaluator", "evaluator": "a"}, ("one",)),
        {"node": "loop", "field": "evaluator"},
    ),
    "two-feedback-ends": (
        document(
            looped(None, None, **_TWO_ENDS),
            *OPEN,
            "a.output -> check.input",
            "check.done -> exit.input",
            "check.continue -> x.input",
            "check.continue -> y.input",
            *CLOSE,
        ),
        {"node": "check", "port": "continue"},
    ),
    "unconnected-branch": (
        document(
            looped(None, None, check="approval"),
            *OPEN,
            "a.output -> check.input",
            "check.approved -> exit.input",
            *CLOSE,
        ),
        {"node": "check", "port": "rejected"},
    ),
    "unpinned-port": (
        of_json(
            _nodes({"id": "n", "type": "router", "config": {"criteria": "?"}, "pinned": {"done": "x"}}),
            [{"from": "text.value", "to": "n.input"}, {"from": "n.reason", "to": "out.value"}],
        ),
        {"node": "n", "port": "reason", "field": "pinned"},
    ),
}

WARNINGS = frozenset(
    {
        "newer-version",
        "unknown-key",
        "no-output",
        "unknown-config-key",
        "iterations-clamped",
        "no-effect",
        "empty-search",
        "judge-is-writer",
        "unconnected-branch",
        "unpinned-port",
    }
)
