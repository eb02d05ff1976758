"""Contenders in separate processes, so that none is affected by the imports and memory of another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.timing import Span

ROOT = Path(__file__).resolve().parent.parent


class ContenderError(Exception):
    """A contender cannot be measured; the text says why."""


class Contender:
    """A worker process for one contender. Use it as a context manager."""

    def __init__(self, name: str, python: Path = Path(sys.executable)) -> None:
        self._process = subprocess.Popen(
            [str(python), "-m", "benchmarks.worker", name],
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def wait_until_ready(self) -> None:
        """Wait until the process has imported everything.

        Raises:
            ContenderError: It cannot.
        """
        self._read()

    def measure(self, iterations: int) -> Span:
        """Measure the time of that many iterations.

        Raises:
            ContenderError: It failed, or its outcome is wrong.
        """
        answer = self._ask(iterations, trace=False)
        return Span(answer["wall_s"], answer["cpu_s"], answer["collector_s"], answer["disk_bytes"])

    def peak_bytes(self, iterations: int) -> int:
        """Measure the peak memory of Python objects during that many iterations.

        Raises:
            ContenderError: It failed, or its outcome is wrong.
        """
        return self._ask(iterations, trace=True)["peak_bytes"]

    def _ask(self, iterations: int, *, trace: bool) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"iterations": iterations, "trace": trace}) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "its process ended without an answer"}
        if "error" in answer:
            raise ContenderError(answer["error"])
        return answer


def environment(**more: str) -> dict[str, str]:
    """The environment of a worker: that of this process, with tracing off."""
    switched_off = ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2")
    inherited: Mapping[str, str] = {name: value for name, value in os.environ.items() if name not in switched_off}
    return {**inherited, **more}
