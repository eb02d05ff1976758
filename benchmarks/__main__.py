"""`python -m benchmarks [SCENARIO…]`: measure, and print tables.

Figures are only comparable within one run.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
from dataclasses import replace
from typing import Final

from benchmarks.effort import SMALLEST, Effort

SCENARIOS: Final = {
    "loop_overhead": "an iteration of three instant nodes, beside a bare loop and peers",
    "linearity": "time and memory from 100 to 10,000 iterations",
    "chain": "1,000 nodes in a row, and compiling them",
    "parallel_calls": "100 waiting model calls side by side",
    "history": "storing runs on disk, compared with peers, and reading them",
    "import_time": "importing the engine in a fresh process",
    "stable_output": "one comparison of two results",
    "validation": "a document of 1,000 nodes",
    "window_canvas": "the window with 1,000 nodes, beside stock NodeGraphQt",
    "window_memory": "what stays of documents that were opened, run and closed",
    "window_history": "the Iterations panel with 1,000 iterations",
    "window_start": "from a fresh process to a window that takes clicks",
}


def main(arguments: list[str] | None = None) -> None:
    """Measure the given scenarios, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure the engine, and print tables.")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="which to measure; without any, all of them")
    parser.add_argument("--list", action="store_true", help="name the scenarios and measure nothing")
    parser.add_argument("--rounds", type=_at_least_one, help="how often each contender has its turn")
    parser.add_argument("--no-peers", action="store_true", help="leave out other engines, which need an environment")
    parser.add_argument("--smallest", action="store_true", help="everything once and tiny, to see that it works")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.scenarios if name not in SCENARIOS]
    if unknown:
        parser.error(f"there is no scenario {unknown[0]!r}; there are: {', '.join(SCENARIOS)}")
    if options.list:
        for name, about in SCENARIOS.items():
            print(f"{name:<15} {about}")
        return
    effort = SMALLEST if options.smallest else Effort()
    if options.rounds is not None:
        effort = replace(effort, rounds=options.rounds)
    if options.no_peers:
        effort = replace(effort, peers=False)
    print(machine())
    for name in options.scenarios or SCENARIOS:
        scenario = importlib.import_module(f"benchmarks.scenarios.{name}")
        for table in scenario.tables(effort):
            print(f"\n{table.text()}", flush=True)


def machine() -> str:
    """The machine and the versions, in one line."""
    implementation = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{implementation} on {platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
