"""Run an exported module and the workflow itself with the same fake model."""

from __future__ import annotations

import ast
import asyncio
import sys
import types
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from engine import Answer, Run, Workflow
from engine.events import NodeWaiting
from engine.export.langgraph_module import export_langgraph
from engine.models.protocol import Reply as Said
from engine.values import Value
from tests.engine.semantics.kit import Played, begin, finish
from tests.engine.semantics.models import Call, FunctionModel

Reply = Callable[[str, list[tuple[str, str]]], str | Said]
"""A fake model: the reply for a node and its messages (role and text)."""

KEPT = ("index", "input", "result", "feedback", "branch", "reason", "score", "similarity", "nodes")
ALLOWED_IMPORTS = {
    "__future__",
    "json",
    "math",
    "os",
    "re",
    "sys",
    "time",
    "unicodedata",
    "warnings",
    "collections.abc",
    "concurrent.futures",
    "functools",
    "typing",
    "jsonschema_rs",
    "langgraph.checkpoint.memory",
    "langgraph.errors",
    "langgraph.graph",
    "langgraph.types",
}


def module_of(text: str) -> types.ModuleType:
    """The module with this source."""
    module = types.ModuleType("exported")
    sys.modules["exported"] = module  # LangGraph looks up names of annotations there
    exec(compile(text, "exported", "exec"), module.__dict__)
    return module


def imports_of(text: str) -> set[str]:
    """The modules that a source imports at top level."""
    found: set[str] = set()
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Import):
            found.update(alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            found.add(statement.module or "")
    return found


def echo(node: str, messages: list[tuple[str, str]]) -> str:
    """A reply that depends on the node and all its messages."""
    return f"{node} says {zlib.crc32(repr(messages).encode('utf-8', 'surrogatepass')) % 1000}"


class Both:
    """A workflow that runs in the engine and as a LangGraph module.

    Attributes:
        ours: The run in the engine.
        theirs: The outputs of the module, by name.
        our_calls, their_calls: The node and messages of each model call.
    """

    def __init__(self, workflow: Workflow, reply: Reply = echo, answers: Sequence[Answer] = ()) -> None:
        self.workflow, self.reply, self.answers = workflow, reply, answers
        self.exported = export_langgraph(workflow)
        self.our_calls: list[tuple[str, list[tuple[str, str]]]] = []
        self.their_calls: list[tuple[str, list[tuple[str, str]]]] = []
        self.their_questions: list[dict[str, Any]] = []
        self.end: Any = None

    async def play(
        self, inputs: Mapping[str, Value] | None = None, tools: Mapping[str, Any] | None = None, **more: Any
    ) -> Both:
        if inputs is None:
            inputs = {"text": "seed"} if "text" in self.workflow.nodes_by_id else {}
        await self.play_ours(inputs, **more)
        self.theirs = self.run_module(inputs, tools)
        return self

    async def play_ours(self, inputs: Mapping[str, Value], **more: Any) -> Played:
        def answer(call: Call) -> str | Said:
            messages = [(message.role, message.text) for message in call.request.messages]
            self.our_calls.append((call.node, messages))
            return self.reply(call.node, messages)

        run, models = begin(self.workflow, FunctionModel(answer), inputs, **more)
        person = asyncio.create_task(_answer(run, self.answers))
        self.ours: Played = await finish(run, models)
        await person
        assert self.ours.result.status == "completed", self.ours.result.error
        return self.ours

    def run_module(self, inputs: Mapping[str, Value], tools: Mapping[str, Any] | None = None) -> dict[str, Value]:
        module = module_of(self.exported.text)

        def reply(messages: list[dict[str, str]], node: str) -> str | Said:
            pairs = [(message["role"], message["content"]) for message in messages]
            self.their_calls.append((node, pairs))
            return self.reply(node, pairs)

        def ask(messages: list[dict[str, str]], *, node: str, **_settings: Any) -> str:
            content = reply(messages, node)
            return content if isinstance(content, str) else content.text

        def act(messages: list[dict[str, str]], *, node: str, **_settings: Any) -> tuple[str, list[dict[str, Any]]]:
            content = reply(messages, node)
            if isinstance(content, str):
                return content, []
            return content.text, [{"id": one.id, "name": one.name, "args": one.arguments} for one in content.tool_calls]

        module.__dict__.update(ask=ask, act=act)
        module.__dict__.get("TOOLS", {}).update(tools or {})
        compiled, ends = module.build(), list[Any]()

        class Kept:
            def invoke(self, *given: Any) -> Any:
                ends.append(compiled.invoke(*given))
                return ends[-1]

        module.__dict__["build"] = Kept
        results = module.run(dict(inputs), self._person()) if self.answers else module.run(dict(inputs))
        self.end = ends[-1]
        return results

    def _person(self) -> Callable[[dict[str, Any]], dict[str, Any]]:
        """A function that gives the answers in order, in the module's format."""
        left = iter(self.answers)

        def answer(question: dict[str, Any]) -> dict[str, Any]:
            self.their_questions.append(question)
            given = next(left)
            return {"choice": given.choice, "value": given.value, "comment": given.comment}

        return answer

    def loop(self, name: str = "loop") -> tuple[list[Any], list[Any]]:
        """The iteration records of the engine and of the module, with the members that both have."""
        ours = [{key: getattr(record, key) for key in KEPT} for record in self.ours.result.loops[name].iterations]
        theirs = [{key: record[key] for key in KEPT} for record in self.end["_values"][name]["iterations"]]
        for record in (*ours, *theirs):
            if record["branch"] == "failed":  # error messages differ
                record["reason"], record["nodes"] = "failed", {}
        return ours, theirs

    def check(self, *loops: str, in_order: bool = True) -> None:
        """Check that outputs, model calls and records agree; calls of parallel nodes have no order."""
        assert without_figures(self.theirs) == without_figures(self.ours.result.outputs)
        if in_order:
            assert self.their_calls == self.our_calls
        else:
            assert sorted(self.their_calls) == sorted(self.our_calls)
        for name in loops or tuple(path for path in self.ours.result.loops if "." not in path):
            ended = self.end["_values"][name]
            if ended["count"] == 0:  # an iterator that passed its items through
                continue
            ours, theirs = self.loop(name)
            assert theirs == ours
            if "exit_reason" not in ended:  # an iterator
                continue
            result = self.ours.result.loops[name]
            assert (ended["count"], ended["exit_reason"], ended["converged"]) == (
                result.iterations_run,
                result.exit_reason,
                result.converged,
            )


def without_figures(value: Any) -> Any:
    """A value without cost and duration, which differ between runs."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {key: without_figures(inner) for key, inner in members if key not in {"cost_usd", "duration_s"}}
    return [without_figures(inner) for inner in cast("list[Any]", value)] if isinstance(value, list) else value


async def _answer(run: Run, answers: Sequence[Answer]) -> None:
    """Answer the questions of a run in order."""
    left = iter(answers)
    async for event in run.events():
        if isinstance(event, NodeWaiting):
            run.answer(event.path, next(left))
