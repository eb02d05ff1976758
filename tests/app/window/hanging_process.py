"""The real program in a process of its own, whose window is closed while a tool hangs in a thread."""

from __future__ import annotations

import asyncio
import sys
import threading

from PySide6.QtCore import QTimer

import app.main
from app.entry import main
from app.workbench import Workbench
from engine.runner import event_loop


class HangingWorkbench(Workbench):
    """A window that is closed as soon as the tool hangs."""

    def show(self) -> None:
        super().show()
        hangs = threading.Event()

        def hang() -> None:
            hangs.set()
            threading.Event().wait()

        def close() -> None:
            if hangs.is_set() and self.window.close():
                sys.stdout.write("The window is closed.\n")
                self._looking.stop()

        self.engine.submit(asyncio.to_thread(hang))
        self._looking = QTimer(self)
        self._looking.timeout.connect(close)
        self._looking.start(10)


if __name__ == "__main__":
    event_loop.TOOL_GRACE_S = 0.1
    app.main.Workbench = HangingWorkbench
    sys.exit(main())
