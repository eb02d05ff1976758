"""Everything that a person can do from the menus, declared once: name, words, keys, icon.

Menus, bar, command palette and shortcut sheet are made from this. What an action does is wired by whoever can do it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from app.theme.style import ThemedIcon


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
