"""Start-up of the window: first what can be seen, then what is slow."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from app.engine_thread import EngineThread
from app.late_imports import build_parser, import_libraries, steps_for_pages, steps_for_window
from app.settings.preferences import Preferences, follow_looks
from app.theme.style import Style
from app.window.crash_reporter import CrashDialog, CrashReporter
from app.window.late_parts import PARTS
from app.window.main_window import MainWindow, program_icon
from app.worker import Worker, wait_for_workers
from engine.models.base import ModelError
from engine.models.catalogue import Models
from engine.models.litellm_import import load_litellm
from engine.models.model_names import EMBEDDED_MODEL, RECORDED_PREFIX, SCRIPTED_PREFIX

if TYPE_CHECKING:
    from engine.models.embedded import EmbeddedModel

AFTER_FIRST_PAINT_MS: Final = 50
IDLE_MS: Final = 500
"""After documents have been opened, how long to wait before slow things are got ready that no picture needs."""
STEP_MS: Final = 1
"""Between two steps: with none, Qt would do them all in one go."""

DISK_ANSWERS_S: Final = 5.0
"""At the end of the program, how long to wait for a disk."""


def run_window(files: Sequence[str], store: Path | None = None) -> int:
    """Show the window until it is closed.

    Args:
        files: Files to open; where there are none, those that were open last.
        store: The file of the history; None for the usual one.

    Returns:
        The exit code.
    """
    gc.disable()  # until all is imported: going through everything holds all threads up, and finds nothing
    os.environ.setdefault("QT_PREFERRED_BINDING", "PySide6")
    application = QApplication(sys.argv[:1])
    application.setApplicationName("loopwright")
    application.setApplicationDisplayName("Loopwright")
    application.setDesktopFileName("loopwright")
    application.setWindowIcon(program_icon())
    # A run may go on when the window is closed.
    application.setQuitOnLastWindowClosed(False)
    Style(application)
    preferences = Preferences()
    follow_looks(preferences)
    engine = EngineThread()
    window = MainWindow(engine, preferences, store=store)
    guard = guard_against_faults(window)
    window.finished.connect(application.quit)
    warm_up = WarmUp(window, engine)
    window.is_starting = True
    window.show()
    window.store_access.open(AFTER_FIRST_PAINT_MS)

    def go_on() -> None:
        gc.freeze()  # what is there by now stays, and is not gone through again
        gc.enable()
        window.additions.begin(open_documents)  # documents may need them

    def open_documents() -> None:
        _open(window, files)
        QTimer.singleShot(IDLE_MS, window, warm_up.begin)

    QTimer.singleShot(AFTER_FIRST_PAINT_MS, window, lambda: make_ready(window, go_on))
    code = application.exec()
    guard.uninstall()
    preferences.save()
    wait_for_workers(DISK_ANSWERS_S)
    engine.stop()
    window.store_access.close()  # after the last run has told its end
    wait_for_workers(DISK_ANSWERS_S)
    return code


def make_ready(window: MainWindow, then: Callable[[], object]) -> None:
    """Get ready what the first picture did without, while the window takes clicks, and go on.

    What is to be imported is imported; then the window's late parts are made; last is imported what the page of a
    document takes. Each is a step of its own.
    """
    worker = Worker(window)
    parts = (partial(getattr, window, part) for part in PARTS)
    steps = chain(steps_for_window(), parts, steps_for_pages())

    def go_on() -> None:
        step = next(steps, None)
        if step is None:
            then()
            return
        QTimer.singleShot(STEP_MS, window, go_on)  # also where the step fails
        step()

    worker.ask(import_libraries, lambda _done: go_on())
    worker.ask(build_parser)


def _open(window: MainWindow, files: Sequence[str]) -> None:
    window.is_starting = False
    if window.documents.all:  # somebody was quick
        window.remember_open()
    if files:
        window.documents.open_files([Path(file) for file in files])
    else:
        window.reopen()
    window.documents.recover_unsaved()


def guard_against_faults(window: MainWindow) -> CrashReporter:
    """Catch what nobody caught: keep all work, and say it over the window."""
    guard = CrashReporter(window)

    def tell(sentence: str, details: str) -> None:
        window.keep_everything()
        there = next((dialog for dialog in window.findChildren(CrashDialog) if dialog.isVisible()), None)
        if there is None:
            CrashDialog(sentence, details, window).show()
        else:  # a fault of something that is done again and again must not fill the screen
            there.add(details)

    guard.told.connect(tell)
    guard.install()
    return guard


class WarmUp:
    """Gets slow things ready when nobody waits: the built-in model's process, and litellm where a document calls it.

    Args:
        window: Says which models are wanted.
        engine: The thread in which models live.
    """

    def __init__(self, window: MainWindow, engine: EngineThread) -> None:
        self._engine = engine
        self._wanted: set[str] = set()
        self._begun = False
        self._done: set[str] = set()
        window.models_wanted.connect(self._want)

    def begin(self) -> None:
        """The window has been painted: slow things may start now."""
        self._begun = True
        self._go_on()

    def _want(self, names: tuple[str, ...]) -> None:
        self._wanted.update(names)
        if self._begun:
            self._go_on()

    def _go_on(self) -> None:
        for name in self._wanted - self._done:
            self._done.add(name)
            if name == EMBEDDED_MODEL:
                self._engine.submit(_start_embedded(self._engine.models))
            elif not name.startswith((SCRIPTED_PREFIX, RECORDED_PREFIX)):
                self._engine.submit(load_litellm())


async def _start_embedded(models: Models) -> None:
    # The program's own catalogue keeps the model from now on, so that its process outlives each run.
    model = cast("EmbeddedModel", models.get(EMBEDDED_MODEL))
    with contextlib.suppress(ModelError):  # a run will say it, where it matters
        await asyncio.to_thread(model.warm_up)
