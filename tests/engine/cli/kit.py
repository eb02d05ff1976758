"""Helpers for tests of the command line: documents, scripts, and the program in this or a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from engine import events as run_events
from engine.cli.main import main
from engine.models.protocol import Usage

PROGRAM = (sys.executable, "-m", "engine.cli.main")


@dataclass(frozen=True)
class Ended:
    """The result of a call of the program."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Program:
    """The program in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Ended:
        self._capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = self._capsys.readouterr()
        return Ended(code, captured.out, captured.err)


def environment(**changes: str) -> dict[str, str]:
    """The environment for a process of the program: no forced colors, and no default model of the user."""
    usual = {
        name: value
        for name, value in os.environ.items()
        if name not in {"FORCE_COLOR", "NO_COLOR", "LOOPWRIGHT_MODEL", "LOOPWRIGHT_DEBUG", "COLUMNS", "LC_ALL", "LANG"}
    }
    return {**usual, "TERM": "xterm", "PYTHONIOENCODING": "", **changes}


def process(
    *arguments: object, env: Mapping[str, str] | None = None, given: bytes = b"", cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run the program in a separate process until it ends."""
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        env=environment() if env is None else dict(env),
        input=given,
        capture_output=True,
        timeout=60,
        check=False,
        cwd=cwd,
    )


def document(nodes: Sequence[Mapping[str, Any]], edges: Sequence[str], **more: Any) -> dict[str, Any]:
    """A document; an edge is written `a.b > c.d`."""
    pairs = [edge.split(" > ") for edge in edges]
    return {
        "format": "loopwright.workflow",
        "version": 1,
        "name": "Sample",
        "description": "A sample.",
        "settings": {},
        "nodes": [{"title": "", "config": {}, **node} for node in nodes],
        "edges": [{"from": source, "to": target} for source, target in pairs],
        "layout": {},
        **more,
    }


def refine(iterations: int = 3, **loop: Any) -> dict[str, Any]:
    """A loop around one model node: task -> loop (draft) -> answer."""
    return document(
        [
            {"id": "task", "type": "input", "config": {"default": "Explain tides."}},
            {"id": "loop", "type": "loop", "config": {"max_iterations": iterations, **loop}},
            {"id": "draft", "type": "llm", "config": {"prompt": "{{input}}", "retry_delay_s": 0}},
            {"id": "exit", "type": "exit", "config": {"loop": "loop"}},
            {"id": "answer", "type": "output"},
        ],
        [
            "task.value > loop.input",
            "loop.body > draft.input",
            "draft.output > exit.input",
            "exit.output > answer.value",
        ],
    )


def echo(kind: str = "text", default: Any = None) -> dict[str, Any]:
    """An input that is the output, without a model."""
    return document(
        [
            {"id": "value", "type": "input", "config": {"type": kind, "default": default}},
            {"id": "result", "type": "output"},
        ],
        ["value.value > result.value"],
    )


def write(folder: Path, content: Any, name: str = "w.loop.json") -> Path:
    """Write a JSON file into a folder."""
    file = folder / name
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def drafts(*replies: Any) -> dict[str, Any]:
    """A script in which the node `draft` gives these replies in turn."""
    return {"rules": [{"node": "draft", "replies": list(replies)}]}


class Events:
    """Creates numbered events of a run."""

    def __init__(self) -> None:
        self._seq = -1

    def __call__(self, kind: str, /, path: str = "", **fields: Any) -> Any:
        self._seq += 1
        return getattr(run_events, kind)(run_id="r", seq=self._seq, time=1000.0 + self._seq, path=path, **fields)

    def node(self, path: str, usage: Usage | None = None, cost: float | None = 0.0, **fields: Any) -> Any:
        return self(
            "NodeCompleted",
            path,
            **{"node_type": "llm", "outputs": {}, "usage": usage, "cost_usd": cost, "duration_s": 1.5, **fields},
        )

    def iteration(self, path: str, index: int, result: Any, **fields: Any) -> Any:
        usual: dict[str, Any] = {
            "input": "",
            "feedback": None,
            "branch": None,
            "reason": None,
            "score": None,
            "similarity": None,
            "usage": Usage(),
            "cost_usd": 0.0,
            "duration_s": 1.0,
        }
        return self("LoopIterationCompleted", path, index=index, result=result, **{**usual, **fields})
