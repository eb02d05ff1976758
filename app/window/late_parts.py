"""The parts of the window that its first picture does without: each is made when something first asks for it.

Importing what they are made of takes longer than showing the start page. That is why the imports stand inside the
functions here. When the window has been seen, `app.main` imports the modules (`app.late_imports`) and makes the parts
one by one, so that hardly anybody waits for one; who presses a button before that waits for just what the button needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from app.additions import Additions
    from app.palette.palette import Palette
    from app.window.closing import Closing
    from app.window.documents import Documents
    from app.window.facts import Facts
    from app.window.history import History
    from app.window.main_window import MainWindow
    from app.window.notifier import Notifier
    from app.window.runs import Runs
    from app.window.taskbar import Taskbar

PARTS: Final = ("documents", "history", "runs", "facts", "closing", "notifier", "taskbar", "palette_panel")
"""The window's attributes that the functions below make, each in a step that nobody notices."""


def make_documents(window: MainWindow) -> Documents:
    """The open documents, each tied to the window as long as it is open."""
    from app.settings.available_models import model_names
    from app.window.documents import Documents
    from app.window.ties import Ties

    made = Documents(
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


def make_history(window: MainWindow) -> History:
    """The runs that are kept."""
    from app.window.history import History

    return History(window, window.store_access)


def make_runs(window: MainWindow) -> Runs:
    """What starts and stops the runs of documents."""
    from app.window.runs import Runs

    made = Runs(window, window.engine, window.preferences, window.asker, window.store_access)
    made.run_wanted.connect(window.open_run)
    made.problems_in_the_way.connect(lambda _document: window.drawer.unfold("problems"))
    return made


def make_facts(window: MainWindow) -> Facts:
    """What the bar is told of the document that is shown."""
    from app.window.facts import Facts

    return Facts(window)


def make_closing(window: MainWindow) -> Closing:
    """How documents and the window are closed."""
    from app.window.closing import Closing

    return Closing(window)


def make_notifier(window: MainWindow) -> Notifier:
    """What tells the ends of runs by the system's means."""
    from app.window.notifier import Notifier

    return Notifier(window, window.preferences, window.windowIcon())


def make_taskbar(window: MainWindow) -> Taskbar:
    """What shows the progress of runs on the program's icon."""
    from app.window.taskbar import Taskbar

    return Taskbar(window)


def make_additions(window: MainWindow) -> Additions:
    """The person's plugins and MCP servers."""
    from app.additions import Additions

    return Additions(window.engine, window)


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
