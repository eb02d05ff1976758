"""The command line with a tool that hangs: reading a file never ends. Runs as a separate process."""

from __future__ import annotations

import runpy
import sys
import threading
from pathlib import Path

from engine.runner import event_loop
from engine.tools import file_tools


def _hang(_folder: Path, _path: str, _max_bytes: int) -> str:
    sys.stderr.write("It hangs.\n")
    sys.stderr.flush()
    threading.Event().wait()
    return ""


if __name__ == "__main__":
    event_loop.TOOL_GRACE_S = 0.1
    file_tools._read = _hang
    runpy.run_module("engine.cli.main", run_name="__main__")
