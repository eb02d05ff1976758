"""Contenders in separate processes, so that none is affected by the imports and memory of another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from benchmarks.timing import Span

ROOT = Path(__file__).resolve().parent.parent
WINDOW_TIMEOUT_S: Final = 1_200
"""How long a process with a window may take, also on a slow machine."""


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


def window_figures(command: Sequence[str], *, timeout_s: float = WINDOW_TIMEOUT_S, **variables: str) -> dict[str, Any]:
    """Run a program with a window but no screen, with settings of its own, and return the figures that it prints.

    Args:
        command: Arguments of Python.
        timeout_s: How long it may take, in seconds.
        variables: More environment variables.

    Raises:
        ContenderError: It failed, or took longer.
    """
    with tempfile.TemporaryDirectory() as folder:
        home = {f"XDG_{kind}_HOME": folder for kind in ("CONFIG", "DATA", "STATE", "CACHE")}
        try:
            done = subprocess.run(
                [sys.executable, *command],
                cwd=ROOT,
                env={**offscreen(), **home, **variables},
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as expired:
            said = (expired.stderr or b"").decode(errors="replace").strip()[-500:]
            raise ContenderError(
                f"The window printed no figures within {timeout_s:g} seconds. {said}".strip()
            ) from None
    if done.returncode or not done.stdout:
        raise ContenderError(f"The window failed: {(done.stderr.strip().splitlines() or ['no error message'])[-1]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def offscreen() -> dict[str, str]:
    """The environment of a process with a window but no screen."""
    return environment(QT_QPA_PLATFORM="offscreen", QT_PREFERRED_BINDING="PySide6")
