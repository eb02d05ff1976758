"""Everything that a person can do from the menus, declared once: name, words, keys, icon.

Menus, bar, command palette and shortcut sheet are made from this. What an action does is wired by whoever can do it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMainWindow, QMenu, QWidget

from app.theme.style import ThemedIcon
from app.theme.widgets import plain_tool_tip


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """One action.

    Attributes:
        name: What the program calls it.
        text: What people call it.
        keys: Its keys; the first is the one that is shown.
        icon: QtAwesome's name; empty for none.
        short: The words on a button, where they are shorter.
        checkable: Whether it is on or off.
    """

    name: str
    text: str
    keys: tuple[str, ...] = ()
    icon: str = ""
    short: str = ""
    checkable: bool = False


SEPARATOR: Final = ActionSpec("", "")
SLOT: Final = "…"
"""Text of an entry that stands for something else: a submenu, or actions of the canvas."""

MENUS: Final[Mapping[str, tuple[ActionSpec, ...]]] = {
    "&File": (
        ActionSpec("new", "New", ("Ctrl+N",), "mdi6.file-plus-outline"),
        ActionSpec("start_page", "New from template…", ("Ctrl+Shift+N",), "mdi6.view-grid-outline"),
        ActionSpec("open", "Open…", ("Ctrl+O",), "mdi6.folder-open-outline"),
        ActionSpec("recent", SLOT),
        SEPARATOR,
        ActionSpec("save", "Save", ("Ctrl+S",), "mdi6.content-save-outline"),
        ActionSpec("save_as", "Save as…", ("Ctrl+Shift+S",)),
        ActionSpec("revert", "Revert to saved"),
        SEPARATOR,
        ActionSpec("export_png", "Export as PNG…"),
        ActionSpec("export_svg", "Export as SVG…"),
        SEPARATOR,
        ActionSpec("close", "Close", ("Ctrl+W",)),
        ActionSpec("quit", "Quit", ("Ctrl+Q",)),
    ),
    "&Edit": (
        ActionSpec("undo", "Undo", ("Ctrl+Z",), "mdi6.undo"),
        ActionSpec("redo", "Redo", ("Ctrl+Shift+Z", "Ctrl+Y"), "mdi6.redo"),
        SEPARATOR,
        ActionSpec("canvas", SLOT),
        SEPARATOR,
        ActionSpec("find_node", "Find node…", ("Ctrl+F",), "mdi6.magnify"),
        ActionSpec("settings", "Settings…", ("Ctrl+,",), "mdi6.cog-outline"),
    ),
    "&View": (
        ActionSpec("canvas_view", SLOT),
        SEPARATOR,
        ActionSpec("show_palette", "Palette", ("Alt+1",), checkable=True),
        ActionSpec("show_inspector", "Inspector", ("Alt+2",), checkable=True),
        ActionSpec("show_iterations", "Iterations", ("Alt+3",), checkable=True),
        ActionSpec("show_log", "Log", ("Alt+4",), checkable=True),
        ActionSpec("show_problems", "Problems", ("Alt+5",), checkable=True),
        ActionSpec("show_runs", "Runs", ("Alt+6",), checkable=True),
        SEPARATOR,
        ActionSpec("next_tab", "Next document", ("Ctrl+Tab", "Ctrl+PgDown")),
        ActionSpec("previous_tab", "Previous document", ("Ctrl+Shift+Tab", "Ctrl+PgUp")),
    ),
    "&Run": (
        ActionSpec("run", "Run", ("F5", "Ctrl+Return"), "mdi6.play"),
        ActionSpec("run_with", "Run with…", ("Shift+F5", "Ctrl+Shift+Return")),
        ActionSpec("run_batch", "Run for a table…", (), "mdi6.table-arrow-right"),
        ActionSpec("stop", "Stop", ("Ctrl+.",), "mdi6.stop"),
        ActionSpec("pause", "Pause", ("F6",), "mdi6.pause"),
        SEPARATOR,
        ActionSpec("step_node", "Step one node", ("F10",), "mdi6.debug-step-over"),
        ActionSpec("step_iteration", "Step one iteration", ("F11",), "mdi6.debug-step-into"),
        SEPARATOR,
        ActionSpec("previous_iteration", "Look at the iteration before", ("Alt+Left",), "mdi6.chevron-left"),
        ActionSpec("next_iteration", "Look at the next iteration", ("Alt+Right",), "mdi6.chevron-right"),
        ActionSpec("latest_iteration", "Look at the latest iteration"),
        SEPARATOR,
        ActionSpec("compare", "Compare iterations…", ("Ctrl+Shift+D",), "mdi6.compare-horizontal"),
        ActionSpec("fork", "Fork from this iteration…", ("Ctrl+Shift+F",), "mdi6.source-fork"),
    ),
    "&Help": (
        ActionSpec("command_palette", "Find an action…", ("Ctrl+K",), "mdi6.lightning-bolt-outline"),
        ActionSpec("shortcuts", "Keyboard shortcuts", ("?", "F1"), "mdi6.keyboard-outline"),
        ActionSpec("about", "About Loopwright"),
    ),
}


def make_actions(window: QWidget) -> dict[str, QAction]:
    """The actions, by name, for a window."""
    made: dict[str, QAction] = {}
    for spec in (spec for menu in MENUS.values() for spec in menu):
        if not spec.name or spec.text == SLOT:
            continue
        action = QAction(spec.text, window)
        action.setObjectName(spec.name)
        action.setIconText(spec.short or spec.text.rstrip("…"))
        action.setToolTip(spec.text.rstrip("…"))
        action.setCheckable(spec.checkable)
        action.setShortcuts([QKeySequence(keys) for keys in spec.keys])
        if spec.icon:
            ThemedIcon(action, spec.icon)
        made[spec.name] = action
        window.addAction(action)
    return made


class WindowMenus:
    """The menus of a window.

    Args:
        window: The window.
        actions: The window's actions by name.
        open_recent: Opens a file.
    """

    def __init__(
        self, window: QMainWindow, actions: Mapping[str, QAction], open_recent: Callable[[Path], object]
    ) -> None:
        self._open_recent = open_recent
        self._slots: dict[str, tuple[QMenu, QAction]] = {}
        self._canvas_actions: dict[str, list[QAction]] = {"canvas": [], "canvas_view": []}
        self.recent = QMenu("Open recent", window)
        self.recent.setToolTipsVisible(True)
        bar = window.menuBar()
        self.groups: list[tuple[str, list[QAction]]] = []
        for title, specs in MENUS.items():
            menu = bar.addMenu(title)
            group: list[QAction] = []
            for spec in specs:
                if spec.name == "recent":
                    menu.addMenu(self.recent)
                elif spec.text == SLOT:
                    self._slots[spec.name] = (menu, menu.addSeparator())
                elif spec.name:
                    menu.addAction(actions[spec.name])
                    group.append(actions[spec.name])
                else:
                    menu.addSeparator()
            self.groups.append((title.replace("&", ""), group))

    @property
    def canvas_actions(self) -> list[QAction]:
        """The actions of the canvas that is shown."""
        return [action for there in self._canvas_actions.values() for action in there]

    def show_canvas(self, actions: Mapping[str, QAction]) -> None:
        """Show the actions of another canvas; none where there is none."""
        view = [action for name, action in actions.items() if name.startswith(("zoom", "fit"))]
        edit = [action for action in actions.values() if action not in view]
        for slot, wanted in (("canvas", edit), ("canvas_view", view)):
            menu, before = self._slots[slot]
            for action in self._canvas_actions[slot]:
                menu.removeAction(action)
            for action in wanted:
                menu.insertAction(before, action)
            self._canvas_actions[slot] = wanted

    def show_recent(self, files: Sequence[Path]) -> None:
        """Offer these files."""
        self.recent.clear()
        self.recent.setEnabled(bool(files))
        for file in files:
            # A name may hold an ampersand, which a menu would read as a mark.
            action = self.recent.addAction(file.name.replace("&", "&&"))
            action.setToolTip(plain_tool_tip(str(file)))
            action.triggered.connect(lambda _checked=False, file=file: self._open_recent(file))
