"""Running what was exported, and the workflow itself, on the same fake model."""

from __future__ import annotations

import ast
import sys
import types
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from engine import Workflow
from engine.export.langgraph_module import export_langgraph
from engine.values import Value
from tests.engine.semantics.kit import Played, play
from tests.engine.semantics.models import Call

Reply = Callable[[str, list[tuple[str, str]]], str]
"""What a model says, by the node that asks and the messages: role and text."""

KEPT = ("index", "input", "result", "feedback", "branch", "reason", "score", "similarity")
ALLOWED_IMPORTS = {
    "__future__",
    "json",
    "re",
    "sys",
    "time",
    "warnings",
    "collections.abc",
    "typing",
    "langgraph.graph",
}


def module_of(text: str) -> types.ModuleType:
    """The module that a source makes."""
    module = types.ModuleType("exported")
    sys.modules["exported"] = module  # where LangGraph looks up what the annotations name
    exec(compile(text, "exported", "exec"), module.__dict__)
    return module


def imports_of(text: str) -> set[str]:
    """The modules that a source imports at its top."""
    found: set[str] = set()
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Import):
            found.update(alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            found.add(statement.module or "")
    return found


def told(node: str, messages: list[tuple[str, str]]) -> str:
    """A reply that hangs on all that was asked."""
    return f"{node} says {zlib.crc32(repr(messages).encode('utf-8', 'surrogatepass')) % 1000}"


class Both:
    """A workflow run by the engine, and as a LangGraph module.

    Attributes:
        ours: What the engine made of it.
        theirs: What the module made of it, by result.
        values: By node, what it gave there in the end.
        our_calls, their_calls: Who asked what.
    """

    def __init__(self, workflow: Workflow, reply: Reply = told) -> None:
        self.workflow, self.reply = workflow, reply
        self.exported = export_langgraph(workflow)
        self.our_calls: list[tuple[str, list[tuple[str, str]]]] = []
        self.their_calls: list[tuple[str, list[tuple[str, str]]]] = []

    async def play(
        self, inputs: Mapping[str, Value] | None = None, tools: Mapping[str, Any] | None = None, **more: Any
    ) -> Both:
        if inputs is None:
            inputs = {"text": "seed"} if "text" in self.workflow.nodes_by_id else {}
        await self.play_ours(inputs, **more)
        self.theirs = self.run_module(inputs, tools)
        return self

    async def play_ours(self, inputs: Mapping[str, Value], **more: Any) -> Played:
        def answer(call: Call) -> str:
            messages = [(message.role, message.text) for message in call.request.messages]
            self.our_calls.append((call.node, messages))
            return self.reply(call.node, messages)

        self.ours: Played = await play(self.workflow, answer, inputs, **more)
        return self.ours

    def run_module(self, inputs: Mapping[str, Value], tools: Mapping[str, Any] | None = None) -> dict[str, Value]:
        module = module_of(self.exported.text)

        def ask(messages: list[dict[str, str]], *, node: str, **_settings: Any) -> str:
            pairs = [(message["role"], message["content"]) for message in messages]
            self.their_calls.append((node, pairs))
            return self.reply(node, pairs)

        module.__dict__["ask"] = ask
        module.__dict__.get("TOOLS", {}).update(tools or {})
        compiled, ends = module.build(), []

        class Kept:
            def invoke(self, *given: Any) -> Any:
                ends.append(compiled.invoke(*given))
                return ends[-1]

        module.__dict__["build"] = Kept
        results = module.run(dict(inputs))
        self.end = ends[-1]
        return results

    def loop(self, name: str = "loop") -> tuple[list[Any], list[Any]]:
        """The records of a loop's iterations, ours and theirs, as far as both keep them."""
        ours = [{key: getattr(record, key) for key in KEPT} for record in self.ours.result.loops[name].iterations]
        theirs = self.end["_values"][name]["iterations"]
        return ours, [{key: record[key] for key in KEPT} for record in theirs]

    def check(self, *loops: str) -> None:
        """Both came to the same, by the same questions."""
        assert self.theirs == self.ours.result.outputs
        assert self.their_calls == self.our_calls
        for name in loops or tuple(path for path in self.ours.result.loops if "." not in path):
            ours, theirs = self.loop(name)
            assert theirs == ours
            ended = self.end["_values"][name]
            result = self.ours.result.loops[name]
            assert (ended["count"], ended["exit_reason"], ended["converged"]) == (
                result.iterations_run,
                result.exit_reason,
                result.converged,
            )
