"""The window's actions, declared once: name, text, shortcuts, icon, menu, and when each is enabled.

Menu bar, run bar, command palette and shortcut list are built from these declarations. `app.workbench` connects them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMainWindow, QMenu

from app.canvas.actions import EDIT, PIN, SUBMENUS, VIEW
from app.theme.style import ThemedIcon
from app.theme.widgets import plain_tool_tip

if TYPE_CHECKING:
    from app.session import Session


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """One action.

    Attributes:
        name: Its name in the code.
        text: Its text in menus.
        keys: Its shortcuts; the first is shown.
        icon: A QtAwesome icon name; empty for none.
        checkable: Whether it is a toggle.
    """

    name: str
    text: str
    keys: tuple[str, ...] = ()
    icon: str = ""
    checkable: bool = False


SEPARATOR: Final = ActionSpec("", "")
SLOT: Final = "…"
"""Text of an entry that is a placeholder for a submenu or for the canvas's actions."""

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
        ActionSpec("import", "Import…"),
        ActionSpec("export_png", "Export as PNG…"),
        ActionSpec("export_svg", "Export as SVG…"),
        ActionSpec("export_pdf", "Export as PDF…"),
        ActionSpec("export_python", "Export as Python script…"),
        ActionSpec("export_langgraph", "Export as LangGraph module…"),
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
        ActionSpec("show_chat", "Chat preview", ("Alt+7",)),
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
        ActionSpec("run_batch", "Run batch…", (), "mdi6.table-arrow-right"),
        SEPARATOR,
        ActionSpec("run_until", "Run up to here", ("F7",), "mdi6.arrow-collapse-right"),
        ActionSpec("run_only", "Run this node", ("F8",), "mdi6.play-circle-outline"),
        ActionSpec("run_from", "Run from here", ("F9",), "mdi6.arrow-expand-right"),
        ActionSpec("canvas_run", SLOT),
        SEPARATOR,
        ActionSpec("stop", "Stop", ("Ctrl+.",), "mdi6.stop"),
        ActionSpec("pause", "Pause", ("F6",), "mdi6.pause"),
        SEPARATOR,
        ActionSpec("step_node", "Step one node", ("F10",), "mdi6.debug-step-over"),
        ActionSpec("step_iteration", "Step one iteration", ("F11",), "mdi6.debug-step-into"),
        SEPARATOR,
        ActionSpec("previous_iteration", "Previous iteration", ("Alt+Left",), "mdi6.chevron-left"),
        ActionSpec("next_iteration", "Next iteration", ("Alt+Right",), "mdi6.chevron-right"),
        ActionSpec("latest_iteration", "Latest iteration"),
        SEPARATOR,
        ActionSpec("compare", "Compare iterations…", ("Ctrl+Shift+D",), "mdi6.compare-horizontal"),
        ActionSpec("fork", "Fork from this iteration…", ("Ctrl+Shift+F",), "mdi6.source-fork"),
    ),
    "&Help": (
        ActionSpec("guide", "User guide", ("F1",), "mdi6.book-open-variant"),
        ActionSpec("tour", "Tour"),
        ActionSpec("command_palette", "Find an action…", ("Ctrl+K",), "mdi6.lightning-bolt-outline"),
        ActionSpec("shortcuts", "Keyboard shortcuts", ("?", "Shift+F1"), "mdi6.keyboard-outline"),
        SEPARATOR,
        ActionSpec("about", "About Loopwright"),
    ),
}


def make_actions(parent: QObject) -> dict[str, QAction]:
    """Create the actions, by name."""
    actions: dict[str, QAction] = {}
    for spec in (spec for menu in MENUS.values() for spec in menu):
        if not spec.name or spec.text == SLOT:
            continue
        action = QAction(spec.text, parent)
        action.setObjectName(spec.name)
        action.setIconText(spec.text.rstrip("…"))
        action.setToolTip(spec.text.rstrip("…"))
        action.setCheckable(spec.checkable)
        action.setShortcuts([QKeySequence(keys) for keys in spec.keys])
        if spec.icon:
            ThemedIcon(action, spec.icon)
        actions[spec.name] = action
    return actions


class ActionStates:
    """Enables and names the actions after the current document."""

    def __init__(self, actions: Mapping[str, QAction]) -> None:
        self._actions = actions
        self._pause_icon = ThemedIcon(actions["pause"], "mdi6.pause")

    def refresh(
        self, session: Session | None, panels: Iterable[str], open_panel: str, *, can_resume: bool = False
    ) -> None:
        """Update every action.

        Args:
            session: The current document; None on the start page.
            can_resume: Whether its run was stopped or failed and can be resumed.
            panels: The names of the bottom panels.
            open_panel: The one that is open; empty for none.
        """
        actions = self._actions
        enabled = _enabled(session)
        enabled["pause"] = enabled["pause"] or can_resume
        for name, is_enabled in enabled.items():
            if actions[name].isEnabled() != is_enabled:
                actions[name].setEnabled(is_enabled)
        undo = session.undo_title if session is not None else None
        redo = session.redo_title if session is not None else None
        _set_text(actions["undo"], f"Undo {undo}" if undo else "Undo")
        _set_text(actions["redo"], f"Redo {redo}" if redo else "Redo")
        is_paused = (
            session is not None and session.shown.view_model is not None and session.shown.view_model.status == "paused"
        )
        if actions["pause"].iconText() != (text := "Resume" if is_paused or can_resume else "Pause"):
            _set_text(actions["pause"], text)
            self._pause_icon.show("mdi6.play" if is_paused or can_resume else "mdi6.pause")
        for name in panels:
            actions[f"show_{name}"].setChecked(open_panel == name)


PARTS: Final = ("run_until", "run_only", "run_from")
"""The actions that run a part of the workflow, around the selected node."""
EXPORTS: Final = ("export_png", "export_svg", "export_pdf", "export_python", "export_langgraph")


def _enabled(session: Session | None) -> dict[str, bool]:
    has_document = session is not None
    is_running = session is not None and session.shown.live is not None
    may_run = session is not None and not session.is_past
    has_loops = session is not None and session.shown.view_model is not None and bool(session.shown.view_model.loops)
    return {
        **dict.fromkeys(("save_as", *EXPORTS, "close", "find_node"), has_document),
        **dict.fromkeys(("show_iterations", "show_log", "show_problems", "show_palette"), has_document),
        "show_inspector": has_document,
        "show_chat": may_run,
        "save": session is not None and may_run and (session.is_modified or session.path is None),
        "revert": session is not None and session.path is not None and session.is_modified,
        "undo": session is not None and session.undo_title is not None,
        "redo": session is not None and session.redo_title is not None,
        "run": may_run and not is_running,
        "run_with": may_run and not is_running,
        "run_batch": may_run,
        **dict.fromkeys(PARTS, may_run and not is_running and session is not None and _has_one_target(session)),
        "stop": is_running,
        "pause": is_running,
        "step_node": may_run or is_running,
        "step_iteration": may_run or is_running,
        **dict.fromkeys(("previous_iteration", "next_iteration", "latest_iteration", "compare", "fork"), has_loops),
    }


def _has_one_target(session: Session) -> bool:
    """Return whether all selected nodes stand for the same node: itself, or the loop that they are in."""
    if len(session.selection) < 2:
        return bool(session.selection)
    from engine.plan.dependencies import outermost  # the window shows its bars before it loads the node types

    structure = session.structure
    targets = (outermost(structure, structure.loop_of.get(node, node)) for node in session.selection)
    first = next(targets)
    return all(target == first for target in targets)


def _set_text(action: QAction, text: str) -> None:
    if action.text() != text:
        action.setText(text)
        action.setIconText(text)
        action.setToolTip(text)


class WindowMenus:
    """The menu bar of a window.

    Attributes:
        groups: The actions by menu title.
    """

    def __init__(
        self, window: QMainWindow, actions: Mapping[str, QAction], open_recent: Callable[[Path], object]
    ) -> None:
        self._open_recent = open_recent
        self._slots: dict[str, tuple[QMenu, QAction]] = {}
        self._canvas_actions: dict[str, list[QAction]] = {"canvas": [], "canvas_view": [], "canvas_run": []}
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
        edit, before = self._slots["canvas"]
        self._submenus = {name: QMenu(name, window) for name in SUBMENUS}
        submenus = [edit.insertMenu(before, submenu) for submenu in self._submenus.values()]
        self._slots["canvas"] = (edit, submenus[0])

    @property
    def canvas_actions(self) -> list[QAction]:
        """Actions of the current canvas."""
        direct = [action for there in self._canvas_actions.values() for action in there]
        return [*direct, *(action for submenu in self._submenus.values() for action in submenu.actions())]

    def show_canvas(self, actions: Mapping[str, QAction]) -> None:
        """Replace the actions of the canvas; an empty mapping removes them."""
        for slot, specs in (("canvas", EDIT), ("canvas_view", VIEW), ("canvas_run", PIN)):
            menu, before = self._slots[slot]
            for action in self._canvas_actions[slot]:
                menu.removeAction(action)
            self._canvas_actions[slot] = [actions[spec.name] for spec in specs if spec.name in actions]
            menu.insertActions(before, self._canvas_actions[slot])
        for title, specs in SUBMENUS.items():
            submenu = self._submenus[title]
            submenu.clear()
            submenu.addActions([actions[spec.name] for spec in specs if spec.name in actions])
            submenu.menuAction().setVisible(bool(actions))

    def show_recent(self, files: Sequence[Path]) -> None:
        """List these files in the Open recent menu."""
        self.recent.clear()
        self.recent.setEnabled(bool(files))
        for file in files:
            # An ampersand in a menu text marks a mnemonic.
            action = self.recent.addAction(file.name.replace("&", "&&"))
            action.setToolTip(plain_tool_tip(str(file)))
            action.triggered.connect(lambda _checked=False, file=file: self._open_recent(file))
