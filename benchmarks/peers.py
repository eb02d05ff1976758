"""The peers' environment, created by uv beside the project's, from the versions pinned in `peers.txt`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.processes import ROOT

PEERS = {"peer_burr": "burr", "peer_langgraph": "langgraph", "peer_adk": "google-adk"}
"""Contenders that need the environment, with their packages."""

KEEPING_PEERS = {
    "kept_burr": "burr",
    "kept_langgraph": "langgraph-checkpoint-sqlite",
    "kept_langgraph_async": "langgraph-checkpoint-sqlite",
}
"""Peers that store their runs on disk."""

_PINS = Path(__file__).with_name("peers.txt")
_FOLDER = ROOT / ".venv-bench"


class PeersError(Exception):
    """A peer is not available; the text says why."""


def pinned() -> dict[str, str]:
    """The pinned version of each package."""
    lines = (line.strip() for line in _PINS.read_text(encoding="utf-8").splitlines())
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def python_with(package: str) -> Path:
    """Install the pinned version of a package in the environment, and return the environment's Python.

    Raises:
        PeersError: It cannot be made or installed.
    """
    python = _FOLDER / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv is None:
        raise PeersError("uv is not there; `make env` installs it")
    if not python.exists():
        _do([uv, "venv", "--quiet", "--python", sys.executable, str(_FOLDER)])
    pin = f"{package}=={pinned()[package]}"
    _do([uv, "pip", "install", "--quiet", "--python", str(python), "--compile-bytecode", pin])
    return python


def _do(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()
        raise PeersError(reason[-1].strip() if reason else f"uv ended with {done.returncode}")
