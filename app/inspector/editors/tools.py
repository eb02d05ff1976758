"""Which of the tools an agent has, and how it takes its turns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from PySide6.QtWidgets import QCheckBox, QWidget

from app.inspector.editors.base import Editor, name_widget
from app.inspector.editors.choice import ListEditor
from app.inspector.fields import Field
from app.inspector.target import Target
from app.theme.widgets import PlainLabel
from engine.nodes.agent_tools import tool_choices
from engine.nodes.turns.registry import turn_strategies

ALL_TOOLS = "tools"
"""The field that has all tools of the agent; any other chooses among those."""


class ToolsEditor(Editor):
    """A box to tick for each tool; one that is not there is shown all the same.

    Attributes:
        boxes: The boxes, by the tools' names.
        empty: What stands there where there is nothing to choose from.
    """

    def __init__(self, field: Field, target: Target, parent: QWidget | None = None) -> None:
        super().__init__(field, target, parent)
        self.boxes: dict[str, QCheckBox] = {}
        self.empty = PlainLabel("The agent has no tools yet.", self, look="dim small", wrap=True)
        self.box.addWidget(self.empty)
        self._ticked: list[str] = []
        self._fill()

    def refresh(self) -> None:
        """Offer what there is to choose from now."""
        self._fill()

    def _put(self, value: Any) -> None:
        names = cast("list[Any]", value) if isinstance(value, list) else []
        self._ticked = [name for name in names if isinstance(name, str)]
        self._fill()

    def _offered(self) -> dict[str, tuple[str, str]]:
        """Title and help of what may be ticked, by name."""
        known = tool_choices()
        if self.field.name != ALL_TOOLS:
            chosen = self.target.values.get(ALL_TOOLS)
            names = cast("list[Any]", chosen) if isinstance(chosen, list) else []
            known = {name: known.get(name, (name, "")) for name in names if isinstance(name, str)}
        return known | {name: (f"{name} (not there)", "") for name in self._ticked if name not in known}

    def _fill(self) -> None:
        offered = self._offered()
        if list(offered) != list(self.boxes):
            for box in self.boxes.values():
                self.box.removeWidget(box)
                box.setParent(None)
                box.deleteLater()
            self.boxes = {name: self._make(name, *words) for name, words in offered.items()}
            self.main_widget = next(iter(self.boxes.values()), self)
            self.arranged.emit()
        self.empty.setVisible(not self.boxes)
        for name, box in self.boxes.items():
            box.setChecked(name in self._ticked)

    def _make(self, name: str, title: str, text: str) -> QCheckBox:
        box = QCheckBox(title.replace("&", "&&"), self)
        name_widget(box, f"{self.field.title}: {title}", text)
        self.target.keys.watch(box)
        box.clicked.connect(lambda on: self._tick(name, on=on))
        self.box.addWidget(box)
        return box

    def _tick(self, name: str, *, on: bool) -> None:
        others = [ticked for ticked in self._ticked if ticked != name]
        self._ticked = [*others, name] if on else others
        self._tell(list(self._ticked))
        self.target.session.seal()


class TurnStrategyEditor(ListEditor):
    """One of the turn strategies that there are."""

    def options(self) -> Iterable[tuple[Any, str, str]]:
        """All of them, by title."""
        return [(strategy.name, strategy.title, strategy.help) for strategy in turn_strategies().values()]
