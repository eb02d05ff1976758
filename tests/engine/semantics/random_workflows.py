"""Random workflows: valid ones that run, and broken ones with random changes.

A valid one is a chain of parts between an input and an output: single nodes, branches that join again, and loops and
iterators around further parts. Parallel items contain nothing that depends on their order: no budgets, state and notes,
and no item that stops the others.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

_TEMPLATES = ["{{input}}", "fixed", "{{input}} again", "\\{{x}} {{input}}"]
_IN_A_BODY = ["{{loop.iteration}}: {{input}}", "{{input}}{{loop.previous}}", "{{input}} of {{loop.input}}"]
_IN_AN_ITEM = ["{{index}}: {{input}}", "{{item}} and {{input}}"]
_ITEMS = ["[items, 'b']", "[items]", "[]", "['b', 'a.txt', 'b']", "[items, items, 1, 2, items]", "items"]
_EXPRESSIONS = ["input", "[input, 1]", "{'k': input}", "size(string(input))", "input.k", "1 / 0", "input == null"]
_CONDITIONS = ["true", "size(string(input)) % 2 == 0", "input == 'seed'", "input.k > 1", "false"]
_UNTIL = ["", "", "similarity != null && similarity > 0.8", "loop.iteration == 2", "output == null", "output.k == 1"]
_ERRORS: list[dict[str, Any]] = [
    {},
    {},
    {"on_error": "continue", "error_value": "sorry"},
    {"on_error": "continue"},
    {"on_error": "branch"},
    {"retries": 1, "retry_delay_s": 0},
]
_LISTED: list[list[dict[str, Any]]] = [
    [],
    [],
    [{"condition": "until", "until": "loop.iteration == 2"}, {"condition": "max_iterations", "count": 2}],
    [{"condition": "plateau", "patience": 1}, {"condition": "oscillation", "threshold": 1.0}],
    [{"condition": "stable_output", "threshold": 0.9}, {"condition": "judge"}],
]
_NO_VALUE = [choice for choice in _ERRORS if choice.get("on_error") != "continue"]


@dataclass
class _Sketch:
    """A document under construction."""

    draw: st.DrawFn
    nodes: list[dict[str, Any]] = field(default_factory=list)
    edges: list[dict[str, Any]] = field(default_factory=list)
    in_a_body: int = 0
    named: list[str] = field(default_factory=list)
    in_an_item: int = 0
    side_by_side: bool = False

    def pick(self, choices: list[Any]) -> Any:
        return self.draw(st.sampled_from(choices))

    def add(self, node_type: str, **config: Any) -> str:
        node_id = f"{node_type}_{len(self.nodes)}"
        self.nodes.append({"id": node_id, "type": node_type, "title": "", "config": config})
        return node_id

    def connect(self, source: str, target: str) -> None:
        self.edges.append({"from": source, "to": target})

    def template(self) -> str:
        of_state = [f"{{{{state.{name}}}}}|{{{{input}}}}" for name in self.named]
        of_item = _IN_AN_ITEM if self.in_an_item else []
        return self.pick(_TEMPLATES + (_IN_A_BODY if self.in_a_body else []) + of_item + of_state)

    def name(self) -> dict[str, Any]:
        """Perhaps a name for a node's output, which later nodes know."""
        name = self.pick(["", "", "x", "y"]) if not self.side_by_side else ""
        self.named += [name] if name and name not in self.named else []
        return {"output_key": name} if name else {}

    def piece(self, source: str, depth: int) -> str:
        kinds = [self.model, self.agent, self.text, self.formula, self.checked, self.approved, self.routed, self.tool]
        return self.pick(kinds + ([*[self.looped] * 3, *[self.iterated] * 2, self.nested] if depth else []))(
            source, depth
        )

    def model(self, source: str, _depth: int) -> str:
        prompt, exits = self.template(), bool(self.in_a_body and self.pick([False, False, True]))
        config = {"retries": 0, "may_exit_loop": exits, **self.pick(_ERRORS), **self.name()}
        node = self.add("llm", prompt=prompt, **config)
        self.connect(source, f"{node}.input")
        return f"{node}.output"

    def agent(self, source: str, _depth: int) -> str:
        prompt = self.template()
        tools: list[list[str]] = [[], ["read_file"], [] if self.side_by_side else ["send_note"]]
        if self.in_a_body:
            tools.append(["exit_loop", "read_file"])
        node = self.add(
            "agent",
            prompt=prompt,
            tools=self.pick(tools),
            max_turns=self.pick([1, 2, 4]),
            on_max_turns=self.pick(["return_last", "flag", "fail"]),
            turn_strategy="tool_calling",
            **{"retries": 0, **self.pick(_ERRORS), **self.name()},
        )
        self.connect(source, f"{node}.input")
        return f"{node}.output"

    def text(self, source: str, _depth: int) -> str:
        template = self.template()
        node = self.add("transform", template=template, **self.pick(_ERRORS), **self.name())
        if self.draw(st.booleans()) and not self.draw(st.booleans()):
            self.nodes[-1]["enabled"] = False
        self.connect(source, f"{node}.input")
        return f"{node}.output"

    def formula(self, source: str, _depth: int) -> str:
        node = self.add("transform", mode="expression", expression=self.pick(_EXPRESSIONS), **self.pick(_ERRORS))
        self.connect(source, f"{node}.input")
        return f"{node}.output"

    def tool(self, source: str, _depth: int) -> str:
        node = self.add("tool", tool="read_file", **self.pick(_ERRORS))
        self.connect(source, f"{node}.path")
        return f"{node}.output"

    def checked(self, source: str, _depth: int) -> str:
        node = self.add("validator", mode="expression", expression=self.pick(_CONDITIONS), **self.pick(_NO_VALUE))
        join = self.add("transform", template="{{input}}")
        self.connect(source, f"{node}.input")
        self.connect(f"{node}.valid", f"{join}.input")
        self.connect(f"{node}.invalid", f"{join}.input")
        return f"{join}.output"

    def approved(self, source: str, _depth: int) -> str:
        unanswered = self.pick(["approve", "reject", "fail"])
        node = self.add("approval", answer_within_s=1, when_unanswered=unanswered, **self.pick(_NO_VALUE))
        join = self.add("transform", template="{{input}}")
        self.connect(source, f"{node}.input")
        self.connect(f"{node}.approved", f"{join}.input")
        self.connect(f"{node}.rejected", f"{join}.input")
        return f"{join}.output"

    def nested(self, source: str, depth: int) -> str:
        inner = _Sketch(self.draw, side_by_side=self.side_by_side)
        text = inner.add("input", name="given", type="any")
        inner.connect(inner.chain(f"{text}.value", depth - 1), f"{inner.add('output', name='made')}.value")
        errors: list[dict[str, Any]] = [{}, {}, {"on_error": "branch"}, {"retries": 1, "retry_delay_s": 0}]
        node = self.add("subflow", file="part.loop.json", workflow=inner.document({}), **self.pick(errors))
        self.connect(source, f"{node}.given")
        return f"{node}.made"

    def routed(self, source: str, depth: int) -> str:
        branches = [{"name": "left", "when": self.pick(_CONDITIONS)}, {"name": "right", "when": "else"}]
        mode = self.pick(["rules", "model"])
        node = self.add("router", mode=mode, criteria="Left?", branches=branches, retries=0)
        join = self.add("transform", template="{{input}}")
        self.connect(source, f"{node}.input")
        self.connect(self.piece(f"{node}.left", max(depth - 1, 0)), f"{join}.input")
        self.connect(f"{node}.right", f"{join}.input")
        return f"{join}.output"

    def looped(self, source: str, depth: int) -> str:
        condition = self.pick(["max_iterations", "evaluator", "stable_output", "judge"])
        listed = [] if condition == "evaluator" else self.pick(_LISTED)
        judged = condition == "judge" or {"condition": "judge"} in listed or self.draw(st.booleans())
        loop = self.add(
            "loop",
            max_iterations=self.pick([1, 2, 3]),
            exit_condition=condition,
            feedback_mode=self.pick(["replace", "append", "append_window"]),
            until=self.pick(_UNTIL),
            score=self.pick(["0", "size(string(output))"]),
            condition=self.pick(["", "", *_CONDITIONS]),
            on_max_iterations=self.pick(["return_last", "return_best", "return_with_flag", "fail"]),
            on_budget=self.pick(["return_last", "return_best", "fail"]),
            output_mode=self.pick(["final", "last_iteration", "all_iterations"]),
            stability_threshold=self.pick([0.0, 0.9, 1.0]),
            inject_feedback=self.draw(st.booleans()),
            budget_usd=self.pick([None] if self.side_by_side else [None, None, 0.0, 3.0]),
            judge={"criteria": "Better than {{loop.previous}}.", "retries": 0} if judged else None,
            exit_conditions=listed,
            exit_when=self.pick(["any", "all"]),
            memory=self.pick(["fresh", "accumulate", "window"]),
            memory_window=1,
            **self.pick(_ERRORS),
        )
        leave = self.add("exit", loop=loop)
        self.connect(source, f"{loop}.input")
        self.in_a_body += 1
        end = self.chain(f"{loop}.body", depth - 1)
        if condition == "evaluator":
            router = self.add("router", criteria="Done?", retries=0)
            self.connect(end, f"{router}.input")
            self.connect(f"{router}.done", f"{leave}.input")
            wiring = self.pick(["unconnected", "dangling", "feedback"])
            if wiring != "unconnected":
                again = self.add("transform", template=self.template())
                self.connect(f"{router}.continue", f"{again}.input")
                if wiring == "feedback":
                    self.connect(f"{again}.output", f"{leave}.feedback")
        else:
            self.connect(end, f"{leave}.input")
        self.in_a_body -= 1
        return f"{leave}.output"

    def iterated(self, source: str, depth: int) -> str:
        each = self.add(
            "iterator",
            source="expression",
            expression=self.pick(_ITEMS),
            max_concurrency=self.pick([0, 1, 2, 3]) if self.side_by_side else 1,
            on_item_error=self.pick(["skip", "collect"] if self.side_by_side else ["fail", "skip", "collect"]),
            on_empty=self.pick(["pass", "pass", "fail"]),
            condition=self.pick(["", "", "items == 'seed'"]),
            **self.pick(_ERRORS),
        )
        mode = self.pick(["collect", "join", "first", "vote", "expression"])
        gather = self.add("aggregator", iterator=each, mode=mode, **self.pick(_ERRORS), **self.name())
        self.connect(source, f"{each}.items")
        self.in_an_item += 1
        self.connect(self.chain(f"{each}.{self.pick(['item', 'item', 'index'])}", depth - 1), f"{gather}.input")
        self.in_an_item -= 1
        return f"{gather}.output"

    def document(self, settings: dict[str, Any]) -> dict[str, Any]:
        top = {"format": "loopwright.workflow", "version": 1, "name": "random", "settings": settings}
        return {**top, "nodes": self.nodes, "edges": self.edges}

    def chain(self, source: str, depth: int) -> str:
        end = self.piece(source, depth)
        for _ in range(self.draw(st.integers(0, 2))):
            end = self.piece(end, depth)
        return end


@st.composite
def good_documents(draw: st.DrawFn) -> dict[str, Any]:
    """Documents that should run, whatever the outcome."""
    sketch = _Sketch(draw, side_by_side=draw(st.booleans()))
    default = draw(st.sampled_from(["seed", {"k": 2}]))
    text = sketch.add("input", name="text", type="text" if default == "seed" else "json", default=default)
    grow = sketch.iterated if sketch.pick([False, False, True]) else sketch.chain
    end = grow(f"{text}.value", 2)
    sketch.connect(end, f"{sketch.add('output')}.value")
    budgets: list[dict[str, Any]] = [{"budget_usd": 5.0}, {"budget_tokens": 60}, {"budget_usd": 0.0}]
    return sketch.document(
        draw(st.sampled_from([{}, {"max_concurrency": 1}, *([] if sketch.side_by_side else budgets)]))
    )


_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 99), st.floats(-3, 3), st.text(max_size=8), st.just("{{"), st.just("1 +")
)
_VALUES = st.one_of(
    _SCALARS, st.lists(_SCALARS, max_size=2), st.dictionaries(st.text(max_size=4), _SCALARS, max_size=2)
)
_TYPES = ["input", "output", "llm", "router", "transform", "validator", "tool", "loop", "exit", "agent"]
_TYPES += ["iterator", "aggregator", "approval", ""]
_PORTS = ["input", "output", "value", "body", "item", "items", "done", "continue", "feedback", "error", "valid"]
_PORTS += ["reason", "x", ""]


def _broken(draw: st.DrawFn, document: dict[str, Any]) -> None:
    """Change one thing in a document."""
    nodes, edges = document["nodes"], document["edges"]
    node = draw(st.sampled_from(nodes))
    what = draw(
        st.sampled_from(["config", "add", "type", "drop", "unplug", "plug", "copy", "off", "replug", "settings"])
    )
    if what == "config" and node["config"]:
        node["config"][draw(st.sampled_from(sorted(node["config"])))] = draw(_VALUES)
    elif what == "add":
        known = [
            "timeout_s",
            "retries",
            "on_error",
            "loop",
            "evaluator",
            "until",
            "prompt",
            "reply_schema",
            "name",
            "odd",
        ]
        node["config"][draw(st.sampled_from(known))] = draw(_VALUES)
    elif what == "type":
        node["type"] = draw(st.sampled_from(_TYPES))
    elif what == "drop" and len(nodes) > 1:
        nodes.remove(node)
    elif what == "unplug" and edges:
        edges.remove(draw(st.sampled_from(edges)))
    elif what == "plug":
        ends = [f"{draw(st.sampled_from(nodes))['id']}.{draw(st.sampled_from(_PORTS))}" for _ in range(2)]
        edges.append({"from": ends[0], "to": ends[1]})
    elif what == "copy":
        nodes.append(deepcopy(node))
    elif what == "off":
        node["enabled"] = False
    elif what == "replug" and edges:
        draw(st.sampled_from(edges))["to"] = f"{node['id']}.{draw(st.sampled_from(_PORTS))}"
    elif what == "settings":
        known = ["model", "max_concurrency", "budget_usd", "budget_tokens", "prices", "odd"]
        document["settings"] = {draw(st.sampled_from(known)): draw(_VALUES)}


@st.composite
def broken_documents(draw: st.DrawFn) -> dict[str, Any]:
    """Valid documents with one or two changes; some of them still run."""
    document = deepcopy(draw(good_documents()))
    for _ in range(draw(st.integers(1, 3))):
        _broken(draw, document)
    return document
