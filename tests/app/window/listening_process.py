"""The real program in a process of its own, which reports on standard output what its window does."""

from __future__ import annotations

import sys

import app.main
import app.workbench
from app.entry import main
from app.window.main_window import MainWindow
from app.workbench import Workbench


def report(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class ReportingWindow(MainWindow):
    """Reports when it comes to the front."""

    def come_to_front(self) -> None:
        super().come_to_front()
        report("front")


class ReportingWorkbench(Workbench):
    """Reports which documents are open."""

    def remember_open(self) -> None:
        super().remember_open()
        report(str([document.session.name for document in self.documents.all]))


def start() -> int:
    app.workbench.MainWindow = ReportingWindow
    app.main.Workbench = ReportingWorkbench
    return main()


if __name__ == "__main__":
    sys.exit(start())
