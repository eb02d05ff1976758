"""Steps with a loop: `forEach` as an Iterator with its Aggregator, repeat-until as a Loop with its Exit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from engine.document.importing.steps_agents import escaped
from engine.document.importing.steps_expressions import REWRITE, CannotSayError, rewritten, steps_named
from engine.document.importing.steps_model import Step, ends_of, in_order, read_steps
from engine.document.importing.steps_nodes import Body, Made, NodeMaker, first_tested, output_word, port_word
from engine.document.importing.values import Fields, as_list, as_seconds, as_text, as_whole
from engine.document.wording import shown

_ITEM_PROMPT: Final = "Item {{index}}:\n{{input}}"
_FIRST_INPUT: Final = "{{loop.input}}"
_BEFORE: Final = '{{loop.index == 0 ? "" : "The iteration before gave:\\n" + string(input)}}'
_VERDICT: Final = (
    '{{loop.index == 0 || loop.history[loop.index - 1].reason == null ? "" : '
    '"The judge said: " + loop.history[loop.index - 1].reason}}'
)
_MOST: Final = 50


class LoopMaker:
    """Makes the nodes of steps with loops.

    Args:
        nodes: Makes the nodes in them.
        subject: What a loop begins with that depends on nothing.
    """

    def __init__(self, nodes: NodeMaker, subject: str) -> None:
        self._nodes = nodes
        self._draft = nodes.draft
        self._report = nodes.report
        self._subject = subject

    def make(self, step: Step, before: Mapping[str, Made]) -> Made:
        """Make the nodes of a step that has a loop."""
        fields = Fields(step.loop or {})
        made = self._for_each(step, fields, before) if fields.has("forEach") else self._repeat(step, fields, before)
        self._report.settle(f"{step.place}, loop", fields, ".")
        if step.depends and before:
            self._report.carried(f"{step.place}, dependsOn", "Edges from there.")
        self._report.settle(step.place, step.fields)
        return made

    def _repeat(self, step: Step, fields: Fields, before: Mapping[str, Made]) -> Made:
        config: dict[str, Any] = {"max_iterations": self._count(step, fields), "inject_feedback": False}
        judge = as_text(fields.take("untilAgent"))
        self._judge(step, judge, config)
        delay = fields.take("delay")
        seconds = as_seconds(delay)
        if seconds is not None and seconds >= 0:
            config["delay_s"] = seconds
            self._report.carried(f"{step.place}, loop.delay", f"delay_s: {seconds:g}.")
        elif delay is not None:
            self._report.left(f"{step.place}, loop.delay", f"{shown(delay, 40)} is no duration.")
        mode = as_text(fields.take("outputMode"))
        if mode == "cumulative":
            config["output_mode"] = "all_iterations"
            self._report.carried(f"{step.place}, loop.outputMode", "output_mode: all_iterations.")
        elif mode:
            self._report.carried(f"{step.place}, loop.outputMode", "output_mode: final.")
        self._nodes.limits(step, config)
        passed = first_tested(step, before)
        start = self._condition_of_loop(step, before, config)
        loop = self._draft.add("loop", step.id, step.id, config)
        self._begin(loop, step, before, passed, start)
        said = [_FIRST_INPUT if before else "", _BEFORE, _VERDICT if judge else ""]
        body = Body(f"{loop}.body", "\n\n".join(filter(None, said)), {"iteration": "{{loop.index}}"})
        inner = self._body(step, fields, {}, body)
        leave = self._draft.add("exit", f"{step.id}_exit", f"{step.id} exit", {"loop": loop})
        for made in inner.ends:
            self._draft.connect(made.port, f"{leave}.input")
        until = as_text(fields.take("until")).strip()
        if until:
            self._until(step, until, inner, config)
        self._draft.config(loop).update(config)
        self._report.carried(f"{step.place}, loop", f'The loop "{loop}", which the node "{leave}" ends.')
        return Made(f"{leave}.output", loop, is_json=len(inner.ends) == 1 and inner.ends[0].is_json)

    def _count(self, step: Step, fields: Fields) -> int:
        given = fields.take("maxIterations")
        count = as_whole(given)
        where = f"{step.place}, loop.maxIterations"
        if count is None:
            self._report.left(where, "It is no whole number; at most 5 iterations are run.")
            return 5
        kept = min(max(count, 1), _MOST)
        (self._report.carried if kept == count else self._report.changed)(where, f"max_iterations: {kept}.")
        return kept

    def _judge(self, step: Step, name: str, config: dict[str, Any]) -> None:
        if not name:
            return
        place = f"{step.place}, loop.untilAgent"
        if name not in self._nodes.agents:
            # A judge without criteria is a problem of its loop: a person decides what ends it.
            config |= {"exit_condition": "judge"}
            self._report.left(place, f"There is no agent {shown(name, 60)}. Write the judge's criteria before a run.")
            return
        agent = self._nodes.agent(name, place)
        criteria = agent.config.get("system") or "The work is complete."
        judge: dict[str, Any] = {"criteria": f"{criteria}\n\nSay that it is done only when nothing is left to do."}
        judge |= {key: agent.config[key] for key in ("model", "temperature") if key in agent.config}
        config |= {"exit_condition": "judge", "judge": judge}
        self._report.carried(place, "The loop's judge; it says `done` and a reason, here with a score.")
        if agent.config.get("tools"):
            self._report.left(f"agent {shown(name, 60)}, tools", "The judge of a loop has none here.")

    def _condition_of_loop(self, step: Step, before: Mapping[str, Made], config: dict[str, Any]) -> str | None:
        """Take over a condition on what the loop starts from; one on several steps is a router before it."""
        if len(before) == 1 and step.fields.has("condition"):
            (made,) = before.values()
            condition = as_text(step.fields.take("condition"))
            try:
                config["condition"] = rewritten(condition, before, lambda _s, member: _sole(_s, member, made))
            except CannotSayError as error:
                config["condition"] = condition
                self._report.left(f"{step.place}, condition", f"{error}. {REWRITE}")
            else:
                self._report.carried(f"{step.place}, condition", "False skips the loop and passes its input through.")
            return None
        passed = first_tested(step, before)
        return self._nodes.gate(step, before, before[passed].port if passed is not None else None)

    def _begin(self, loop: str, step: Step, before: Mapping[str, Made], passed: str | None, gate: str | None) -> None:
        """Lead into a loop what it starts from: the outputs of the steps before it, one of them through its gate."""
        for name, made in before.items():
            self._draft.connect(gate if gate is not None and name == passed else made.port, f"{loop}.input")
        if not before:
            begin = self._draft.add(
                "transform", f"{step.id}_start", "Start", {"mode": "template", "template": escaped(self._subject)}
            )
            self._draft.connect(f"{begin}.output", f"{loop}.input")
            self._report.changed(f"{step.place}, loop", "It waits for no step; here a loop starts from a text.")

    def _until(self, step: Step, until: str, inner: _Inner, config: dict[str, Any]) -> None:
        def ours(name: str | None, member: str) -> str:
            if name is not None:
                return output_word(f"nodes.{inner.made[name].port.partition('.')[0]}", inner.made[name].is_json, member)
            if member == "iteration":
                return "loop.index"
            return output_word("output", inner.ends[0].is_json if inner.ends else False, member)

        where = f"{step.place}, loop.until"
        try:
            config["until"] = rewritten(until, inner.made, ours)
        except CannotSayError as error:
            config["until"] = until
            self._report.left(where, f"{error}. {REWRITE}")
        else:
            told = self._report.carried if config["until"] == until else self._report.changed
            told(where, f"until: {config['until']}")

    def _for_each(self, step: Step, fields: Fields, before: Mapping[str, Made]) -> Made:
        config: dict[str, Any] = {"on_empty": "fail"}
        at_once = fields.take("maxConcurrency")
        count = as_whole(at_once)
        if count is not None and count >= 0:
            config["max_concurrency"] = min(count, 1000)
            self._report.carried(f"{step.place}, loop.maxConcurrency", f"max_concurrency: {config['max_concurrency']}.")
        elif at_once is not None:
            self._report.left(f"{step.place}, loop.maxConcurrency", f"{shown(at_once, 40)} is no number of items.")
        for name in ("until", "untilAgent", "maxIterations", "delay"):
            if fields.take(name) is not None:
                self._report.left(f"{step.place}, loop.{name}", "It does not go with forEach.")
        self._nodes.limits(step, config)
        source, named = self._items(step, fields.take("forEach"), before, config)
        passed = first_tested(step, before)
        first = source or (before[passed].port if passed is not None else None)
        start = self._nodes.gate(step, before, first) or source
        iterator = self._draft.add("iterator", step.id, step.id, config)
        if start is not None:
            self._draft.connect(start, f"{iterator}.items")
        body = Body(f"{iterator}.item", _ITEM_PROMPT, {"item": "{{input}}", "index": "{{index}}"})
        around = {name: made for name, made in before.items() if name not in named}
        inner = self._body(step, fields, around, body)
        mode = as_text(fields.take("outputMode"))
        gather = "join" if mode == "cumulative" else "collect"
        end = self._draft.add(
            "aggregator", f"{step.id}_results", f"{step.id} results", {"iterator": iterator, "mode": gather}
        )
        for made in inner.ends:
            self._draft.connect(made.port, f"{end}.input")
        if gather == "join":
            self._report.carried(f"{step.place}, loop.outputMode", "All results in one text.")
        else:
            self._report.changed(
                f"{step.place}, loop.outputMode",
                "It gives all results as a list, in the items' order.",
            )
        self._report.carried(f"{step.place}, loop", f'The iterator "{iterator}", which the node "{end}" ends.')
        return Made(f"{end}.output", iterator, is_json=gather == "collect")

    def _items(
        self, step: Step, given: object, before: Mapping[str, Made], config: dict[str, Any]
    ) -> tuple[str | None, list[str]]:
        """Where an iterator's items come from: the port that leads to it, and the steps that its expression names."""
        where = f"{step.place}, loop.forEach"
        listed, text = as_list(given), as_text(given)
        if listed or not text:
            config |= {"source": "list", "items": listed}
            told = self._report.carried if listed else self._report.left
            told(where, f"The list of {len(listed)} items." if listed else "It names no items; write the list.")
            return None, []
        config["source"] = "expression"
        try:
            named = steps_named(text, before)
            if len(named) == 1:
                made = before[named[0]]
                config["expression"] = rewritten(
                    text, before, lambda _s, member: output_word("items", made.is_json, member)
                )
                self._report.carried(where, f"expression: {config['expression']}")
                return made.port, named
            formula = rewritten(text, before, lambda name, member: port_word(name, member, before))
        except CannotSayError as error:
            config |= {"source": "list", "items": []}
            self._report.left(where, f"{error}; write the list of items.")
            return None, []
        if not named:
            config["expression"] = formula
            self._report.carried(where, f"expression: {formula}")
            return None, []
        node = self._draft.add("transform", f"{step.id}_items", "Items", {"mode": "expression", "expression": formula})
        for name in named:
            self._draft.connect(before[name].port, f"{node}.{before[name].name}")
        config["source"] = "port"
        self._report.changed(where, f'The node "{node}" makes the list.')
        return f"{node}.output", named

    def _body(self, step: Step, fields: Fields, around: Mapping[str, Made], body: Body) -> _Inner:
        """Make the nodes of a part."""
        entries = as_list(fields.take("steps"))
        if entries:
            self._report.carried(f"{step.place}, loop.steps", f"{len(entries)} in its body.")
        if not entries:
            alone = Step(step.id, step.agent, step.instructions, (), None, Fields({}), step.prefix)
            made = self._nodes.make(alone, around, body, wish=f"{step.id}_step")
            return _Inner({}, [made])
        for name, given in (("agent", step.agent), ("instructions", step.instructions)):
            if given:
                self._report.left(f"{step.place}, {name}", "The steps of its loop do the work.")
        inner = read_steps(entries, self._report, f"{step.id}.")
        ordered = in_order(inner, self._report)
        all_made: dict[str, Made] = {}
        for part, names in ordered:
            if part.loop is not None:
                self._report.left(f"{part.place}, loop", "A loop in a loop is none of that form; the step runs once.")
            begins = body if not names else None
            all_made[part.id] = self._nodes.make(
                part, {**({} if names else around), **{name: all_made[name] for name in names}}, begins
            )
        return _Inner(all_made, [all_made[name] for name in ends_of(ordered)])


class _Inner:
    """The nodes of a part: by foreign id, and those that nothing in it depends on."""

    def __init__(self, made: dict[str, Made], ends: list[Made]) -> None:
        self.made = made
        self.ends = ends


def _sole(name: str | None, member: str, made: Made) -> str:
    if name is None:
        raise CannotSayError(f"`{member}` has a value only in a loop")
    return output_word("input", made.is_json, member)
