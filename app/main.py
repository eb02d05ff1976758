"""Start the window: first what is visible, then what is slow to import."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from PySide6.QtWidgets import QWidget

from app.engine_thread import EngineThread
from app.garbage_collector import GarbageCollector
from app.settings.preferences import Preferences, apply_appearance, follow_settings_file
from app.single_instance import Application, InstanceServer
from app.theme.style import Style
from app.timers import call_later
from app.window.crash_reporter import CrashDialog, CrashReporter
from app.window.main_window import program_icon
from app.workbench import Workbench
from app.worker import Worker, wait_for_workers
from engine.models.catalog import Models
from engine.models.protocol import EMBEDDED_MODEL, GGUF_PREFIX, RECORDED_PREFIX, SCRIPTED_PREFIX, ModelError
from engine.safe_file_io import LOCK_TIMEOUT_S

if TYPE_CHECKING:
    from engine.models.embedded import EmbeddedModel

AFTER_FIRST_PAINT_MS: Final = 50
IDLE_MS: Final = 500
"""Delay between opening the documents and loading models."""
STEP_MS: Final = 1
"""Delay between two steps of preloading, in which the window handles clicks."""

_SLOW_MODULES: Final = (
    "app.canvas.canvas",
    "app.inspector.inspector",
    "app.settings.settings_dialog",
    "app.help.guide_window",
)

DISK_TIMEOUT_S: Final = 5.0
"""How long the end of the program waits for a disk."""


def run_window(application: Application, server: InstanceServer, files: Sequence[Path], store: Path | None) -> int:
    """Show the window until it is closed.

    Args:
        application: The Qt application.
        server: Receives the files of later starts.
        files: Files to open; by default those that were open last.
        store: The file of the history; the default one if None.

    Returns:
        The exit code.
    """
    gc.disable()  # during imports, a collection frees nothing; later, `GarbageCollector` collects
    application.setApplicationName("loopwright")
    application.setApplicationDisplayName("Loopwright")
    application.setDesktopFileName("loopwright")
    application.setWindowIcon(program_icon())
    # A run may continue after the window is closed.
    application.setQuitOnLastWindowClosed(False)
    Style(application)
    preferences = Preferences()
    apply_appearance(preferences)
    follow_settings_file(preferences)
    engine = EngineThread()
    workbench = Workbench(engine, preferences, store=store)
    workbench.is_additional = not server.is_first
    reporter = report_crashes(workbench)
    workbench.finished.connect(application.quit)
    preloader = ModelPreloader(workbench, engine)
    workbench.is_starting = True
    window = workbench.window
    window.resize(window.size().boundedTo(window.screen().availableSize()))
    requested: list[Path] = []
    application.files_requested.connect(partial(open_requested, workbench, requested))
    server.files_requested.connect(partial(open_requested, workbench, requested))
    window.closed.connect(server.close)
    workbench.show()
    call_later(workbench, lambda: fit_frame_on_screen(window), AFTER_FIRST_PAINT_MS)
    workbench.store_access.open(AFTER_FIRST_PAINT_MS)

    def load_extensions() -> None:
        gc.freeze()  # modules and classes stay: exclude them from later collections
        GarbageCollector(workbench)
        workbench.extensions.load(open_documents)  # documents may need them

    def open_documents() -> None:
        open_at_start(workbench, files, requested)
        call_later(workbench, preloader.begin, IDLE_MS)

    call_later(workbench, lambda: preload(workbench, load_extensions), AFTER_FIRST_PAINT_MS)
    code = application.exec()
    reporter.uninstall()
    preferences.save(lock_timeout_s=LOCK_TIMEOUT_S)
    wait_for_workers(DISK_TIMEOUT_S)
    engine.stop()
    workbench.store_access.close()  # after the last run has reported its end
    wait_for_workers(DISK_TIMEOUT_S)
    return code


def fit_frame_on_screen(window: QWidget) -> None:
    """Shrink a window whose title bar and borders, unknown before it is shown, reach beyond the screen."""
    frame = window.frameSize() - window.size()
    fitting = window.size().boundedTo(window.screen().availableSize() - frame)
    if fitting != window.size():
        window.resize(fitting)


def open_requested(workbench: Workbench, waiting: list[Path], files: Sequence[Path]) -> None:
    """Show the window, and open the files that a later start or the desktop asks for.

    Args:
        workbench: The window.
        waiting: Takes the files while the window starts.
        files: The files.
    """
    workbench.window.come_to_front()
    if workbench.is_starting:
        waiting.extend(files)
    else:
        workbench.documents.open_files(files)


def preload(workbench: Workbench, then: Callable[[], object]) -> None:
    """Create what the first paint does not need, while the window handles clicks.

    The engine is imported in a thread. Modules with Qt classes are imported in the window's thread: PySide6 enters each
    class into tables that the event loop reads without Python's lock.

    Args:
        workbench: Its cached properties are created one by one.
        then: Called at the end.
    """
    worker = Worker(workbench)
    steps = _steps(workbench)

    def do_next() -> None:
        step = next(steps, None)
        if step is None:
            then()
            return
        call_later(workbench, do_next, STEP_MS)  # scheduled first, in case the step fails
        step()

    worker.ask(import_engine, lambda _done: do_next(), lambda _error: do_next())
    worker.ask(build_parser)


def _steps(workbench: Workbench) -> Iterator[Callable[[], object]]:
    for name, attribute in vars(Workbench).items():
        if isinstance(attribute, cached_property):
            yield partial(getattr, workbench, name)
    for name in _SLOW_MODULES:
        yield partial(import_module, name)


def import_engine() -> None:
    """Import the parts of the engine that controllers and panels use. Called in a thread."""
    with contextlib.suppress(ImportError):  # reported where it is used
        import engine.extensions.plugins
        import engine.importing.reader
        import engine.runner.run
        import engine.store.resume
        import engine.store.run_file  # noqa: F401


def build_parser() -> None:
    """Build the parser of expressions, which is slow. Called in a thread."""
    with contextlib.suppress(Exception):  # reported where it is used
        from engine.expr.expression import compile_expression

        compile_expression("1 + 1")


def open_at_start(workbench: Workbench, files: Sequence[Path], requested: Sequence[Path]) -> None:
    """Open documents once everything is loaded.

    Args:
        workbench: The window.
        files: The files of the command line; if none, those that were open last are opened again.
        requested: Files that were requested meanwhile.
    """
    documents = workbench.documents
    workbench.is_starting = False
    if documents.all:  # the user was faster
        workbench.remember_open()
    if files:
        documents.open_files(files)
    elif not workbench.is_additional:
        workbench.reopen()
    documents.open_files(requested)

    def finish() -> None:
        for file in (*files, *requested):
            documents.show_file(file)  # in front of what was recovered
        workbench.help.offer_tour()

    if not workbench.is_additional:  # the first window has offered both
        documents.recover_unsaved(then=finish)


def report_crashes(workbench: Workbench) -> CrashReporter:
    """Catch unhandled exceptions: autosave all documents, and show the error over the window."""
    reporter = CrashReporter(workbench)

    def show(message: str, details: str) -> None:
        workbench.autosave_all()
        window = workbench.window
        dialog = next((dialog for dialog in window.findChildren(CrashDialog) if dialog.isVisible()), None)
        if dialog is None:
            CrashDialog(message, details, window).show()
        else:  # an error that repeats must not fill the screen
            dialog.add(details)

    reporter.crashed.connect(show)
    reporter.install()
    return reporter


class ModelPreloader:
    """Loads models while the program is idle: the built-in model's process, and litellm where a document needs it.

    Args:
        workbench: Reports which models are used.
        engine: The thread in which models live.
    """

    def __init__(self, workbench: Workbench, engine: EngineThread) -> None:
        self._engine = engine
        self._wanted: set[str] = set()
        self._has_begun = False
        self._loaded: set[str] = set()
        workbench.models_wanted.connect(self._add)

    def begin(self) -> None:
        """Load the models wanted so far, and from now on those that will be wanted."""
        self._has_begun = True
        self._load()

    def _add(self, names: tuple[str, ...]) -> None:
        self._wanted.update(names)
        if self._has_begun:
            self._load()

    def _load(self) -> None:
        for name in self._wanted - self._loaded:
            self._loaded.add(name)
            if name == EMBEDDED_MODEL:
                self._engine.submit(_start_embedded(self._engine.models))
            elif not name.startswith((SCRIPTED_PREFIX, RECORDED_PREFIX, GGUF_PREFIX)):
                from engine.models.litellm_adapter import load_litellm

                self._engine.submit(load_litellm())


async def _start_embedded(models: Models) -> None:
    # The shared catalog holds the model, so that its process outlives each run.
    model = cast("EmbeddedModel", models.get(EMBEDDED_MODEL))
    with contextlib.suppress(ModelError):  # reported by the run that uses it
        await model.warm_up()
