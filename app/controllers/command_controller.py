"""Commands that search or show something: command palette, node search, shortcuts, settings, image export."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QApplication, QMessageBox, QWidget

from app.dialogs import FileDialogs, ask_question, confirm_overwrite, show_failure, with_suffix
from app.inspector.markdown_view import confirm_link
from app.settings.preferences import Preferences
from app.theme.style import style
from app.window.actions import WindowMenus
from app.window.command_palette import CommandPalette, PaletteEntry, ShortcutsDialog
from app.worker import Worker
from engine.errors import EngineError
from engine.safe_file_io import replace_file

ABOUT_ICON_SIZE: Final = 48
"""Side of the program's icon in pixels at a text size of 100 %."""

if TYPE_CHECKING:
    from app.session import Session
    from app.settings.settings_dialog import SettingsDialog
    from app.window.document_page import DocumentPage

_SAY_AFTER_MS: Final = 500
"""Delay of the message that an image is being exported."""


class CommandController(QObject):
    """Implements those commands.

    Args:
        preferences: The user's settings, for the recent files.
        menus: The menu bar, whose actions can be searched.
        current: Returns the current document; None on the start page.

    Attributes:
        settings: The settings dialog; None until it is first opened.

    Signals:
        exported: Something was exported; the text says to which file.
    """

    exported = Signal(str)

    def __init__(
        self,
        window: QWidget,
        preferences: Preferences,
        dialogs: FileDialogs,
        menus: WindowMenus,
        current: Callable[[], DocumentPage | None],
        open_file: Callable[[Path], object],
        make_settings: Callable[[], SettingsDialog],
    ) -> None:
        super().__init__(window)
        self._window = window
        self._preferences = preferences
        self._dialogs = dialogs
        self._menus = menus
        self._current = current
        self._open_file = open_file
        self._make_settings = make_settings
        self.settings: SettingsDialog | None = None
        self._worker = Worker(self)

    def add_node(self, node_type: str) -> None:
        """Add a node of that type to the canvas."""
        document = self._current()
        if document is not None:
            document.canvas.commands.add_node(node_type)
            document.canvas.setFocus()

    def open_settings(self) -> SettingsDialog:
        """Show the settings."""
        if self.settings is None:
            self.settings = self._make_settings()
        self.settings.show()
        self.settings.raise_()
        self.settings.activateWindow()
        return self.settings

    def set_up_models(self) -> None:
        """Show the settings at their page of models, whichever page was shown last."""
        self.open_settings().show_page("models")

    def find_node(self) -> CommandPalette | None:
        """Search the nodes of the current document."""
        document = self._current()
        return self._show_palette(_nodes(document), "Find a node") if document is not None else None

    def open_command_palette(self) -> CommandPalette:
        """Search everything: actions, node types, tools, nodes and recent files."""
        from app.palette import tool_entries
        from engine.nodes.node_registry import builtin_registry

        document = self._current()
        entries = [_entry(action, title) for title, group in self.groups() for action in group if action.isEnabled()]
        if document is not None:
            entries += [
                PaletteEntry(f"Add {spec.title}", "node", partial(self.add_node, spec.type), spec.synonyms)
                for spec in builtin_registry()
            ]
            tools = tool_entries()
            entries += [PaletteEntry(f"Add {row.title}", "tool", partial(self.add_node, row.key)) for row in tools]
            entries += _nodes(document)
        entries += [
            PaletteEntry(path.name, "recent file", partial(self._open_file, path))
            for path in map(Path, self._preferences.recent_files)
        ]
        return self._show_palette(entries, "Search actions, nodes and files")

    def groups(self) -> list[tuple[str, list[QAction]]]:
        """All actions by menu, those of the canvas last."""
        return [*self._menus.groups, ("Canvas", self._menus.canvas_actions)]

    def show_shortcuts(self) -> ShortcutsDialog:
        """Show all keyboard shortcuts."""
        dialog = ShortcutsDialog(self.groups(), self._window)
        dialog.show()
        return dialog

    def export_image(self, kind: str) -> None:
        """Export the canvas of the current document.

        Args:
            kind: `png`, `svg` or `pdf`.
        """
        document = self._current()
        if document is not None:
            self._export(document.session, kind, kind.upper(), partial(self._write_image, document, kind))

    def _write_image(self, document: DocumentPage, kind: str, target: Path) -> None:
        """Draw a document, then encode and write the file in a worker thread, and say so if that takes long."""
        QApplication.setOverrideCursor(Qt.CursorShape.WaitCursor)
        try:
            write = document.canvas.draw(kind)
        finally:
            QApplication.restoreOverrideCursor()
        topic = f"export {target}"
        wait = QTimer(document, singleShot=True, interval=_SAY_AFTER_MS)
        wait.timeout.connect(lambda: document.bars.say(topic, f"Exporting “{target.name}”…"))
        wait.start()

        def end(error: EngineError | None = None) -> None:
            if error is None:
                self.exported.emit(f"Exported to {target}.")
            if not document.is_closed:
                wait.stop()
                wait.deleteLater()
                document.bars.drop(topic)
                if error is not None:
                    document.session.refused.emit(str(error))
            elif error is not None:
                show_failure(self._window, f"“{target.name}” was not exported.", str(error))

        self._worker.ask(partial(write, target), lambda _: end(), end)

    def export_program(self, kind: str) -> None:
        """Export the workflow of the current document as a Python program, and report what the program lacks.

        Args:
            kind: `python` or `langgraph`.
        """
        document = self._current()
        if document is None:
            return
        session = document.session
        from engine.export.langgraph_module import export_langgraph
        from engine.export.python_script import export_python

        try:
            exported = (export_python if kind == "python" else export_langgraph)(session.workflow, session.registry)
        except EngineError as error:
            session.refused.emit(str(error))
            return

        def write(target: Path) -> None:
            replace_file(target, exported.text.encode(), wait_for_disk=False)
            done = f"Exported to {target}."
            if exported.left_out:
                lacks = "\n\n".join(f"• {sentence}" for sentence in exported.left_out)
                title = f"{target.name} differs from the workflow:"
                report = ask_question(self._window, title, lacks, cancel="Close")
                report.finished.connect(lambda _result: self.exported.emit(done))  # it would fade behind the report
            else:
                self.exported.emit(done)

        self._export(session, "py", "Python", write)

    def _export(self, session: Session, kind: str, title: str, write_to: Callable[[Path], object]) -> None:
        """Ask for a file and write it.

        Args:
            session: The document.
            kind: The suffix without its dot.
            title: The name of the format.
            write_to: Writes the file.
        """
        folder = session.path.parent if session.path is not None else Path.home()

        def write(target: Path) -> None:
            try:
                write_to(target)
            except EngineError as error:
                session.refused.emit(str(error))
            except OSError as error:
                session.refused.emit(f"{target.name} cannot be written: {error.strerror or error}.")

        def choose(path: Path) -> None:
            target = with_suffix(path, f".{kind}")
            confirm_overwrite(self._window, path, target, lambda: write(target))

        name = session.name.replace("/", "-").replace("\\", "-")
        self._dialogs.save_file(self._window, folder / f"{name}.{kind}", f"{title} (*.{kind})", choose)

    def show_about(self) -> None:
        """Show the version and the license, and where to report problems if the package names an address."""
        from importlib.metadata import metadata

        package = metadata("loopwright")
        addresses = dict(line.split(", ", 1) for line in package.get_all("Project-URL", []))
        report = partial(confirm_link, self._window, QUrl(addresses.get("Issues", "")))
        box = ask_question(
            self._window,
            f"Loopwright {package['Version']}",
            "Draw a workflow in which a language model improves its own work, run it, and look at every iteration.\n\n"
            "Free software under the GNU General Public License, version 3 or later.",
            [("Report a problem…", QMessageBox.ButtonRole.ActionRole, report)] if "Issues" in addresses else (),
            cancel="Close",
        )
        box.setIconPixmap(self._window.windowIcon().pixmap(round(ABOUT_ICON_SIZE * style().scale)))

    def _show_palette(self, entries: list[PaletteEntry], prompt: str) -> CommandPalette:
        palette = CommandPalette(entries, prompt, self._window)
        palette.show()
        return palette


def _entry(action: QAction, group: str) -> PaletteEntry:
    keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
    return PaletteEntry(action.text().replace("&", ""), keys or group, action.trigger)


def _nodes(document: DocumentPage) -> list[PaletteEntry]:
    names = document.session.structure_now.resolution.names
    return [
        PaletteEntry(names[node.id], f"{node.type} {node.id}", partial(document.show_node, node.id))
        for node in document.session.workflow.nodes
    ]
