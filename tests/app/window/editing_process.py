"""The real program in a process of its own, in whose document somebody types until it is killed.

Each change is reported on standard output: its number and its time in seconds since the epoch.
"""

from __future__ import annotations

import itertools
import sys
import time

from PySide6.QtCore import QTimer

import app.main
from app.entry import main
from app.workbench import Workbench
from engine.document.operations import SetText

BETWEEN_MS = 20


class EditedWorkbench(Workbench):
    """A window whose document changes repeatedly once it is open."""

    def show(self) -> None:
        super().show()
        if not sys.argv[1:]:
            self.documents.new()
        self._numbers = itertools.count()
        self._typing = QTimer(self)
        self._typing.timeout.connect(self._type)
        self._typing.start(BETWEEN_MS)

    def _type(self) -> None:
        if self.current is not None:
            number = next(self._numbers)
            self.current.session.do(SetText("description", f"change {number}"))
            self.current.session.seal()
            sys.stdout.write(f"{number} {time.time()}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    app.main.Workbench = EditedWorkbench
    sys.exit(main(["open", *sys.argv[1:]]))
