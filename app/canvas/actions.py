"""Actions of the canvas: texts, shortcuts and when they are enabled.

The window's menus and the context menu use the same actions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from app.theme.style import ThemedIcon


@dataclass(frozen=True, slots=True)
class CanvasAction:
    """Declaration of an action.

    Attributes:
        name: Internal name.
        text: Text in menus.
        keys: Shortcuts; menus show the first.
        needs: Required selection: nothing, `nodes`, `two`, `three` nodes, `one` node, `one item`, a `subflow`, a
            `loop` or iterator, something `wrapped` (a loop, subflow or frame), a node that can be pinned (`pinnable`)
            or is `pinned`, or `any` item.
        icon: Name of the icon, or empty.
    """

    name: str
    text: str
    keys: tuple[str, ...] = ()
    needs: str = ""
    icon: str = ""


EDIT: Final = (
    CanvasAction("cut", "Cut", ("Ctrl+X",), "nodes", "mdi6.content-cut"),
    CanvasAction("copy", "Copy", ("Ctrl+C",), "nodes", "mdi6.content-copy"),
    CanvasAction("paste", "Paste", ("Ctrl+V",), "", "mdi6.content-paste"),
    CanvasAction("duplicate", "Duplicate", ("Ctrl+D",), "nodes", "mdi6.content-duplicate"),
    CanvasAction("delete", "Delete", ("Del", "Backspace"), "any", "mdi6.delete-outline"),
    CanvasAction("delete_reconnect", "Delete and reconnect", ("Ctrl+Del", "Ctrl+Backspace"), "nodes"),
    CanvasAction("set_up", "Edit properties", ("Return", "Enter"), "nodes", "mdi6.tune-variant"),
    CanvasAction("open_subflow", "Open subflow", ("Ctrl+E",), "subflow", "mdi6.file-tree"),
    CanvasAction("rename", "Rename", ("F2",), "one item", "mdi6.pencil-outline"),
    CanvasAction("toggle_enabled", "Enable or disable", ("E",), "nodes", "mdi6.power"),
    CanvasAction("toggle_ports", "Show or hide more outputs", ("O",), "one"),
)
PIN: Final = (
    CanvasAction("pin", "Pin output…", ("P",), "pinnable", "mdi6.pin-outline"),
    CanvasAction("unpin", "Unpin", ("Shift+P",), "pinned", "mdi6.pin-off-outline"),
)
SELECT: Final = (
    CanvasAction("select_all", "Select all", ("Ctrl+A",)),
    CanvasAction("select_next", "Select next", ("N",)),
    CanvasAction("select_previous", "Select previous", ("Shift+N",)),
)
ADD: Final = (
    CanvasAction("quick_add", "Add node…", ("Tab", "A"), "", "mdi6.plus-circle-outline"),
    CanvasAction("connect_to", "Connect to…", ("C",), "one", "mdi6.connection"),
    CanvasAction("add_frame", "Add frame", (), "", "mdi6.border-all-variant"),
    CanvasAction("add_note", "Add note", ("Ctrl+Shift+T",), "", "mdi6.note-outline"),
)
WRAP: Final = (
    CanvasAction("wrap_loop", "Wrap in a loop", ("Ctrl+L",), "nodes", "mdi6.autorenew"),
    CanvasAction("wrap_iterator", "Wrap in an iterator", (), "nodes"),
    CanvasAction("wrap_subflow", "Wrap in a subflow", ("Ctrl+Shift+E",), "nodes", "mdi6.file-tree"),
    CanvasAction("wrap_frame", "Wrap in a frame", ("Ctrl+G",), "", "mdi6.border-all-variant"),
    CanvasAction("unwrap", "Unwrap", ("Ctrl+Shift+L",), "wrapped"),
    CanvasAction("toggle_collapsed", "Collapse or expand loop", ("L",), "loop", "mdi6.arrow-collapse"),
)
ARRANGE: Final = (
    CanvasAction("tidy", "Tidy up", ("Ctrl+Shift+A",), "", "mdi6.auto-fix"),
    CanvasAction("align_left", "Align left edges", (), "two"),
    CanvasAction("align_center", "Align horizontal centers", (), "two"),
    CanvasAction("align_right", "Align right edges", (), "two"),
    CanvasAction("align_top", "Align top edges", (), "two"),
    CanvasAction("align_middle", "Align vertical centers", (), "two"),
    CanvasAction("align_bottom", "Align bottom edges", (), "two"),
    CanvasAction("distribute_across", "Distribute horizontally", (), "three"),
    CanvasAction("distribute_down", "Distribute vertically", (), "three"),
)
VIEW: Final = (
    CanvasAction("zoom_in", "Zoom in", ("Ctrl++", "Ctrl+="), "", "mdi6.magnify-plus-outline"),
    CanvasAction("zoom_out", "Zoom out", ("Ctrl+-",), "", "mdi6.magnify-minus-outline"),
    CanvasAction("zoom_100", "Zoom to 100%", ("Ctrl+1",)),
    CanvasAction("fit_all", "Zoom to fit", ("Ctrl+0",), "", "mdi6.fit-to-page-outline"),
    CanvasAction("fit_selection", "Zoom to selection", ("Ctrl+2",)),
)
SUBMENUS: Final = {"Select": SELECT, "Add": ADD, "Wrap": WRAP, "Arrange": ARRANGE}
"""The submenus of the Edit menu."""

ALL: Final = (*EDIT, *PIN, *SELECT, *ADD, *WRAP, *ARRANGE, *VIEW)


def make_actions(view: QWidget, handlers: Mapping[str, Callable[[], object]]) -> dict[str, QAction]:
    """Create the actions of a canvas; their shortcuts work while its view has the focus."""
    made: dict[str, QAction] = {}
    for spec in ALL:
        action = QAction(spec.text, view)
        action.setObjectName(f"canvas_{spec.name}")
        action.setToolTip(spec.text.rstrip("…"))
        action.setShortcuts([QKeySequence(keys) for keys in spec.keys])
        action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        action.triggered.connect(_without_arguments(handlers[spec.name]))
        if spec.icon:
            ThemedIcon(action, spec.icon)
        view.addAction(action)
        made[spec.name] = action
    return made


def enable(actions: Mapping[str, QAction], selection: Mapping[str, bool]) -> None:
    """Enable the actions that apply to a selection: what it is, by the words of `CanvasAction.needs`."""
    pin = "Edit pinned value…" if selection["pinned"] else "Pin output…"
    actions["pin"].setText(pin)
    actions["pin"].setToolTip(pin.rstrip("…"))
    for spec in ALL:
        actions[spec.name].setEnabled(not spec.needs or selection[spec.needs])


def _without_arguments(handler: Callable[[], object]) -> Callable[[], None]:
    def call() -> None:
        handler()

    return call
