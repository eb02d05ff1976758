"""The arguments of a tool: a field for each of its parameters; one that an edge leads to says where it comes from."""

from __future__ import annotations

from typing import Any

from PySide6.QtWidgets import QWidget

from app.inspector.editors.base import Editor, Fault, set_invalid
from app.inspector.fields import Field, fields_of
from app.inspector.target import Target
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel
from engine.tools.registry import all_tools
from engine.values import Value


class ArgumentsEditor(Editor):
    """An object with a value for each parameter that no edge gives."""

    def __init__(self, field: Field, target: Target, parent: QWidget | None = None) -> None:
        from app.inspector.rows import Rows  # rows are made of editors, and this one of rows

        super().__init__(field, target, parent)
        self.box.setContentsMargins(0, UNIT, 0, 0)
        self._tool: str | None = None
        self.rows: Rows | None = None
        self._nothing = PlainLabel("Choose a tool first.", self, look="dim small", wrap=True)
        self.box.addWidget(self._nothing)

    def refresh(self) -> None:
        """Show the parameters of the tool that is chosen now, and what edges lead to them."""
        from app.inspector.rows import Rows

        name = self.target.values.get("tool", "")
        tool = all_tools().get(name) if isinstance(name, str) else None
        if (tool.name if tool else "") != self._tool:
            self._tool = tool.name if tool else ""
            if self.rows is not None:
                self.box.removeWidget(self.rows)
                self.rows.setParent(None)
                self.rows.deleteLater()
                self.rows = None
            if tool is not None:
                fields = fields_of(tool.parameters)
                self.rows = Rows(fields.values(), fields, self.target, with_help=True, parent=self)
                self.rows.edited.connect(self._edited)
                self.box.addWidget(self.rows)
                self.rows.show_values(self._arguments())
            self._nothing.setVisible(tool is None)
            self.arranged.emit()
        self._show_sources()

    def show_faults(self, faults: list[Fault]) -> list[Fault]:
        """Show each beside its parameter, where there is one."""
        rows = self.rows.rows if self.rows is not None else {}
        by_name: dict[str, list[Fault]] = {}
        rest: list[Fault] = []
        for fault in faults:
            name, _, deeper = fault.place.partition(".")
            if name in rows:
                by_name.setdefault(name, []).append(Fault(deeper, fault.problem))
            else:
                rest.append(fault)
        if self.rows is not None:
            self.rows.show_faults(by_name, self._arguments())
        set_invalid(self, invalid=bool(rest))
        return rest

    def focus_place(self, place: str) -> None:
        """Go to a parameter."""
        name, _, deeper = place.partition(".")
        if self.rows is not None and name in self.rows.rows:
            self.rows.rows[name].editor.focus_place(deeper)
        elif self.rows is not None:
            self.rows.focus_first()

    def _arguments(self) -> dict[str, Any]:
        return self._value if isinstance(self._value, dict) else {}

    def _put(self, _value: Any) -> None:
        self.refresh()
        if self.rows is not None:
            self.rows.show_values(self._arguments())

    def _edited(self, name: str, value: Value) -> None:
        assert self.rows is not None
        field = self.rows.rows[name].field
        kept = {key: other for key, other in self._arguments().items() if key != name}
        is_empty = (value is None or value == "") if field.required else value == field.default
        self._tell(kept if is_empty else {**self._arguments(), name: value})

    def _show_sources(self) -> None:
        if self.rows is None or self.target.node_id is None:
            return
        structure = self.target.session.structure
        titles = {
            link.target_port: structure.workflow.node(link.source).title or link.source
            for link in structure.links_to.get(self.target.node_id, ())
        }
        for name, row in self.rows.rows.items():
            row.show_source(f"From {titles[name]}, by an edge." if name in titles else "")
