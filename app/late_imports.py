"""What is imported once the window has been seen: in which thread, and in which steps.

Libraries and the engine are imported in a thread. Whatever makes classes of Qt, or first uses one, is imported in the
window's own thread: PySide6 enters each class into tables that the event loop reads without Python's lock, so that a
class made in another thread at the wrong moment ends the program. There it is done in steps between which the window
takes clicks.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

LIBRARIES: Final = (
    "engine.runner.run",
    "engine.runner.reach",
    "engine.extensions.plugins",
    "engine.extensions.activation",
    "engine.extensions.activation",
    "engine.text_diff",
    "engine.importing.reader",
    "engine.document.subflows",
    "engine.store",
    "engine.store.answering",
    "engine.store.consent",
    "engine.store.export_csv",
    "engine.store.export_markdown",
    "engine.store.resume",
    "engine.store.run_file",
    "engine.store.stopping",
)
"""What the modules below import that knows nothing of Qt."""

WINDOW_MODULES: Final = (
    "app.session",
    "app.history.iteration_selection",
    "app.inspector.editors.choice_editors",
    "app.inspector.prompt_editor",
    "app.inspector.result_page",
    "app.history.iterations_panel",
    "app.window.log_panel",
    "app.window.document_page",
    "app.controllers.document_controller",
    "app.extensions_controller",
    "app.history.store_session",
    "app.controllers.subflow_controller",
    "app.controllers.document_controller",
    "app.window.ties",
    "app.history.compare_window",
    "app.history.runs_panel",
    "app.controllers.remote_answers",
    "app.history.fork_dialog",
    "app.controllers.history_pages",
    "app.controllers.resume_fork_controller",
    "app.controllers.history_controller",
    "app.controllers.run_controller",
    "app.window.facts",
    "app.controllers.close_controller",
    "app.controllers.desktop_integration",
    "app.controllers.desktop_integration",
    "app.palette.palette",
)
"""What the late parts of the window are made of, each after what it imports itself, so that no step is long."""

PAGE_MODULES: Final = (
    "app.canvas.node_card",
    "app.canvas.nodegraphqt_imports",
    "app.canvas.node_item",
    "app.canvas.loop_region",
    "app.canvas.document_view",
    "app.canvas.gestures",
    "app.canvas.node_status_item",
    "app.canvas.run_view",
    "app.canvas.viewer",
    "app.canvas.canvas",
    "app.inspector.inspector",
)
"""What the page of a document takes, with the canvas's library."""


def import_libraries() -> None:
    """Import what knows nothing of Qt. For a thread."""
    import_modules(LIBRARIES)


def build_parser() -> None:
    """Build the parser of expressions, which takes as long as much of the rest. For a thread."""
    with contextlib.suppress(Exception):  # it shows where it is used
        from engine.expr.expression import compile_expression

        compile_expression("1 + 1")


def steps_for_window() -> Iterator[Callable[[], object]]:
    """Steps that import what the late parts of the window are made of. For the window's thread."""
    return (partial(import_modules, [module]) for module in WINDOW_MODULES)


def steps_for_pages() -> Iterator[Callable[[], object]]:
    """Steps that import what the page of a document takes. For the window's thread."""
    return (partial(import_modules, [module]) for module in PAGE_MODULES)


def import_modules(modules: Iterable[str]) -> None:
    """Import modules; failures show where they are used."""
    for module in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(module)
