"""What the window's actions do, and when they can be done."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QKeySequence

from app.dialogs import confirm_overwrite
from app.theme.style import ThemedIcon
from app.window.command_palette import CommandPalette, PaletteEntry
from app.window.shortcuts_dialog import ShortcutsDialog
from engine.errors import EngineError

if TYPE_CHECKING:
    from app.session import Session
    from app.settings.settings_dialog import SettingsDialog
    from app.window.document_page import DocumentPage
    from app.window.main_window import MainWindow

_ITERATION_ACTIONS = ("previous_iteration", "next_iteration", "latest_iteration")


class CommandController(QObject):
    """Wires the actions of a window.

    Attributes:
        settings: The settings, once they were opened.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self.settings: SettingsDialog | None = None
        self._pause_icon = ThemedIcon(window.actions_by_name["pause"], "mdi6.pause")
        for name, handler in self._handlers().items():
            window.actions_by_name[name].triggered.connect(lambda _checked=False, handler=handler: handler())

    def _handlers(self) -> dict[str, Callable[[], object]]:
        window = self._window
        return {
            "new": self._do(lambda window: window.documents.new()),
            "start_page": window.tabs.show_start,
            "open": self._do(lambda window: window.documents.ask_for_files()),
            "save": self._with(lambda window, document: window.documents.files.save(document)),
            "save_as": self._with(lambda window, document: window.documents.files.save_as(document)),
            "revert": self._with(lambda window, document: window.documents.files.revert(document)),
            "export_png": partial(self._export, "png"),
            "export_svg": partial(self._export, "svg"),
            "close": self._with(lambda window, document: window.closing.close_document(document)),
            "quit": window.close,
            "undo": self._with(lambda _window, document: document.session.undo()),
            "redo": self._with(lambda _window, document: document.session.redo()),
            "find_node": self.find_node,
            "settings": self.open_settings,
            "show_palette": window.show_current,
            "show_inspector": window.show_current,
            "show_iterations": partial(window.drawer.toggle, "iterations"),
            "show_log": partial(window.drawer.toggle, "log"),
            "show_problems": partial(window.drawer.toggle, "problems"),
            "show_runs": partial(window.drawer.toggle, "runs"),
            "next_tab": partial(window.tabs.step, 1),
            "previous_tab": partial(window.tabs.step, -1),
            "run": self._with(lambda window, document: window.runs.run(document)),
            "run_with": self._with(lambda window, document: window.runs.run_with(document)),
            "run_batch": self._with(lambda window, document: window.runs.run_batch(document)),
            "stop": self._with(lambda window, document: window.runs.stop(document)),
            "pause": self._with(lambda window, document: window.runs.toggle_pause(document)),
            "step_node": self._with(lambda window, document: window.runs.step_node(document)),
            "step_iteration": self._with(lambda window, document: window.runs.step_iteration(document)),
            "previous_iteration": self._with(lambda _window, document: document.iterations.step(-1)),
            "next_iteration": self._with(lambda _window, document: document.iterations.step(1)),
            "latest_iteration": self._with(lambda _window, document: document.session.shown.look_at_latest()),
            "compare": self._do(lambda window: window.history.compare_current()),
            "fork": self._do(lambda window: window.history.fork_current()),
            "command_palette": self.open_command_palette,
            "shortcuts": self.show_shortcuts,
            "about": self._about,
        }

    def _do(self, act: Callable[[MainWindow], object]) -> Callable[[], object]:
        """Asks the window for a part of it no sooner than it is needed: see `app.window.late_parts`."""
        return lambda: act(self._window)

    def _with(self, act: Callable[[MainWindow, DocumentPage], object]) -> Callable[[], object]:
        """The same, for the document that is shown; does nothing where none is."""

        def call() -> object:
            document = self._window.current
            return act(self._window, document) if document is not None else None

        return call

    def refresh(self) -> None:
        """Switch each action on or off, and name the steps that undo and redo would take."""
        actions, document = self._window.actions_by_name, self._window.current
        session = document.session if document is not None else None
        possible = _possible(session)
        for name, can in possible.items():
            if actions[name].isEnabled() != can:
                actions[name].setEnabled(can)
        undo = session.undo_title if session is not None else None
        redo = session.redo_title if session is not None else None
        _say(actions["undo"], f"Undo {undo}" if undo else "Undo")
        _say(actions["redo"], f"Redo {redo}" if redo else "Redo")
        is_paused = (
            session is not None and session.shown.picture is not None and session.shown.picture.status == "paused"
        )
        if actions["pause"].iconText() != (word := "Resume" if is_paused else "Pause"):
            _say(actions["pause"], word)
            self._pause_icon.show("mdi6.play" if is_paused else "mdi6.pause")
        for name in self._window.drawer.buttons:
            actions[f"show_{name}"].setChecked(self._window.drawer.open_panel == name)

    def add_node(self, node_type: str) -> None:
        """Put a node of that type on the canvas."""
        document = self._window.current
        if document is not None:
            document.canvas.add_node(node_type)
            document.canvas.setFocus()

    def set_up(self, document: DocumentPage) -> None:
        """Lead the keyboard to the form of the selected node, which may have to be shown first."""
        shown = self._window.actions_by_name["show_inspector"]
        if not shown.isChecked():
            shown.trigger()
        document.focus_setup()

    def open_settings(self) -> None:
        """Show the settings."""
        from app.settings.settings_dialog import SettingsDialog

        if self.settings is None:
            window = self._window
            self.settings = SettingsDialog(
                window.preferences, window.engine, window, history=window.store_access, additions=window.additions
            )
        self.settings.show()
        self.settings.raise_()
        self.settings.activateWindow()

    def find_node(self) -> CommandPalette | None:
        """Find a node of the document by some letters."""
        document = self._window.current
        return self._show_finder(_nodes_of(document), "Find a node") if document is not None else None

    def open_command_palette(self) -> CommandPalette:
        """Find anything that can be done by some letters."""
        from app.palette.entries import tool_entries
        from engine.nodes.registry import builtin_registry

        window, document = self._window, self._window.current
        entries = [_entry(action, title) for title, group in self.groups() for action in group if action.isEnabled()]
        if document is not None:
            entries += [
                PaletteEntry(f"Add {spec.title}", "node", partial(self.add_node, spec.type))
                for spec in builtin_registry()
            ]
            entries += [
                PaletteEntry(f"Add {row.title}", "tool", partial(self.add_node, row.key)) for row in tool_entries()
            ]
            entries += _nodes_of(document)
        entries += [
            PaletteEntry(path.name, "recent file", partial(window.documents.open_file, path))
            for path in map(Path, window.preferences.recent_files)
        ]
        return self._show_finder(entries, "Find an action, a node, a file")

    def groups(self) -> list[tuple[str, list[QAction]]]:
        """All actions by menu, those of the canvas with them."""
        return [*self._window.menus.groups, ("Canvas", self._window.menus.canvas_actions)]

    def show_shortcuts(self) -> ShortcutsDialog:
        """Show all keys."""
        sheet = ShortcutsDialog(self.groups(), self._window)
        sheet.show()
        return sheet

    def _show_finder(self, entries: list[PaletteEntry], prompt: str) -> CommandPalette:
        finder = CommandPalette(entries, prompt, self._window)
        finder.show()
        return finder

    def _export(self, kind: str) -> None:
        document = self._window.current
        if document is None:
            return
        session = document.session
        folder = session.path.parent if session.path is not None else Path.home()

        def write(target: Path) -> None:
            try:
                (document.canvas.export_png if kind == "png" else document.canvas.export_svg)(target)
            except EngineError as error:
                session.refused.emit(str(error))
            except OSError as error:
                session.refused.emit(f"{target.name} cannot be written: {error.strerror or error}.")

        name = session.name.replace("/", "-").replace("\\", "-")
        filters = f"{kind.upper()} (*.{kind})"

        def choose(path: Path) -> None:
            target = path if path.suffix else path.with_suffix(f".{kind}")
            confirm_overwrite(self._window, path, target, lambda: write(target))

        self._window.asker.save_file(self._window, folder / f"{name}.{kind}", filters, choose)

    def _about(self) -> None:
        from importlib.metadata import version

        from PySide6.QtWidgets import QMessageBox

        from app.dialogs import ask_question

        ask_question(
            self._window,
            f"Loopwright {version('loopwright')}",
            "Draw a workflow in which a language model improves its own work, run it, and look at every iteration.\n"
            "Free software under the GNU General Public Licence, version 3 or later.",
            [("Close", QMessageBox.ButtonRole.RejectRole, lambda: None)],
        )


def _possible(session: Session | None) -> dict[str, bool]:
    has_document = session is not None
    running = session is not None and session.shown.live is not None
    may_run = session is not None and not session.is_past
    has_picture = session is not None and session.shown.picture is not None and bool(session.shown.picture.loops)
    return {
        **dict.fromkeys(("save_as", "export_png", "export_svg", "close", "find_node"), has_document),
        **dict.fromkeys(("show_iterations", "show_log", "show_problems", "show_palette"), has_document),
        "show_inspector": has_document,
        "save": session is not None and may_run and (session.is_modified or session.path is None),
        "revert": session is not None and session.path is not None and session.is_modified,
        "undo": session is not None and session.undo_title is not None,
        "redo": session is not None and session.redo_title is not None,
        "run": may_run and not running,
        "run_with": may_run and not running,
        "run_batch": may_run,
        "stop": running,
        "pause": running,
        "step_node": may_run or running,
        "step_iteration": may_run or running,
        **dict.fromkeys((*_ITERATION_ACTIONS, "compare", "fork"), has_picture),
    }


def _say(action: QAction, text: str) -> None:
    if action.text() != text:
        action.setText(text)
        action.setIconText(text)
        action.setToolTip(text)


def _entry(action: QAction, group: str) -> PaletteEntry:
    keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
    return PaletteEntry(action.text().replace("&", ""), keys or group, action.trigger)


def _nodes_of(document: DocumentPage) -> list[PaletteEntry]:
    return [
        PaletteEntry(node.title or node.id, f"{node.type} {node.id}", partial(document.show_node, node.id))
        for node in document.session.workflow.nodes
    ]
