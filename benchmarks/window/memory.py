"""`python -m benchmarks.window.memory SIZES`: open, run and close documents, and print what stays as a line of JSON."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication

from benchmarks.window.history import Bench
from benchmarks.window.measure import growth_mb, memory_mb, settle
from benchmarks.workflows import loop_of_three

ITERATIONS = 3
_IDLE_MS = 200
"""The window makes the forms of a document while nothing happens."""


def figures(bench: Bench, first: int, rounds: int) -> dict[str, float | None]:
    """Open, run and close a document repeatedly.

    Args:
        bench: The window.
        first: Rounds that do not count, because they load what then stays.
        rounds: Rounds that count.
    """
    before, widgets = None, 0
    for place in range(first + rounds):
        if place == first:
            before, widgets = memory_mb(), len(QApplication.allWidgets())
        document = bench.open(loop_of_three("transform", ITERATIONS), "document")
        settle(_IDLE_MS)
        bench.run(document)
        bench.workbench.documents.drop(document)
        del document
        settle()
    return {"grown_mb": growth_mb(before), "widgets": len(QApplication.allWidgets()) - widgets}


def main() -> None:
    """Measure, and print the figures."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    application = QApplication(sys.argv[:1])
    sizes = json.loads(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(application, Path(folder), ITERATIONS)
        found = figures(bench, sizes["first"], sizes["rounds"])
        bench.close()
    answers.write(json.dumps(found) + "\n")
    answers.flush()
    os._exit(0)  # what the bindings do at the end of a process is none of the figures


if __name__ == "__main__":
    main()
