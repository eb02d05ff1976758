"""The parts of the window that its first picture does without: each is made when something first asks for it.

Importing what they are made of takes longer than showing the start page. That is why the imports stand inside the
functions here. When the window has been seen, `app.main` imports the modules (`app.late_imports`) and makes the parts
one by one, so that hardly anybody waits for one; who presses a button before that waits for just what the button needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from app.controllers.close_controller import CloseController
    from app.controllers.desktop_integration import RunNotifier, TaskbarProgress
    from app.controllers.document_controller import DocumentController
    from app.controllers.history_controller import HistoryController
    from app.controllers.run_controller import RunController
    from app.extensions_controller import ExtensionsController
    from app.palette.palette import Palette
    from app.window.facts import Facts
    from app.window.main_window import MainWindow

PARTS: Final = ("documents", "history", "runs", "facts", "closing", "notifier", "taskbar", "palette_panel")
"""The window's attributes that the functions below make, each in a step that nobody notices."""


def make_documents(window: MainWindow) -> DocumentController:
    """The open documents, each tied to the window as long as it is open."""
    from app.controllers.document_controller import DocumentController
    from app.settings.available_models import model_names
    from app.window.ties import Ties

    made = DocumentController(
        window,
        window.engine,
        window.preferences,
        window.asker,
        window.parts,
        window.data_folder,
        lambda: model_names(window.preferences),
    )
    ties = Ties(window)
    made.opened.connect(ties.take_in)
    made.shown.connect(window.tabs.show_document)
    made.closed.connect(ties.let_go)
    made.refused.connect(window.status.refuse)
    return made


def make_history(window: MainWindow) -> HistoryController:
    """The runs that are kept."""
    from app.controllers.history_controller import HistoryController

    return HistoryController(window, window.store_access)


def make_runs(window: MainWindow) -> RunController:
    """What starts and stops the runs of documents."""
    from app.controllers.run_controller import RunController

    made = RunController(window, window.engine, window.preferences, window.asker, window.store_access)
    made.run_wanted.connect(window.open_run)
    made.problems_in_the_way.connect(lambda _document: window.drawer.unfold("problems"))
    return made


def make_facts(window: MainWindow) -> Facts:
    """What the bar is told of the document that is shown."""
    from app.window.facts import Facts

    return Facts(window)


def make_closing(window: MainWindow) -> CloseController:
    """How documents and the window are closed."""
    from app.controllers.close_controller import CloseController

    return CloseController(window)


def make_notifier(window: MainWindow) -> RunNotifier:
    """What tells the ends of runs by the system's means."""
    from app.controllers.desktop_integration import RunNotifier

    return RunNotifier(window, window.preferences, window.windowIcon())


def make_taskbar(window: MainWindow) -> TaskbarProgress:
    """What shows the progress of runs on the program's icon."""
    from app.controllers.desktop_integration import TaskbarProgress

    return TaskbarProgress(window)


def make_additions(window: MainWindow) -> ExtensionsController:
    """The person's plugins and MCP servers."""
    from app.extensions_controller import ExtensionsController

    return ExtensionsController(window.engine, window)


def make_palette(window: MainWindow) -> Palette:
    """The list of what can be put on a canvas, in the place that the window keeps for it."""
    from app.palette.palette import Palette
    from engine.nodes.registry import builtin_registry

    made = Palette(builtin_registry())
    made.setProperty("panel", True)
    made.template_chosen.connect(window.documents.open_template)
    made.node_chosen.connect(window.commands.add_node)
    window.additions.changed.connect(made.refresh)
    place = window.sides.widget(0)
    made.setVisible(not place.isHidden())
    window.sides.replaceWidget(0, made)
    place.deleteLater()
    return made
