"""What a form reads and writes: the config of a node, or the settings of the workflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject

from app.inspector.keys import Keys
from app.session import Session
from engine.document.config_path import Unset
from engine.document.json_rules import JsonPath
from engine.document.node_operations import SetConfig
from engine.document.operation import Operation
from engine.document.operations import SetSettings
from engine.values import Value


class Target(QObject):
    """The object that a form shows.

    Attributes:
        session: The open document.
        node_id: The node; None for the workflow itself.
        model_names: Gives the names of models to choose from.
        keys: Watches the widgets of the form.
    """

    def __init__(
        self,
        session: Session,
        model_names: Callable[[], list[str]],
        node_id: str | None = None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.session = session
        self.node_id = node_id
        self.model_names = model_names
        self.keys = Keys(session, self)

    @property
    def values(self) -> dict[str, Any]:
        """What the document has."""
        if self.node_id is None:
            return self.session.workflow.settings
        node = self.session.node(self.node_id)
        return {} if node is None else node.config

    def write(self, path: JsonPath, value: Value | Unset) -> bool:
        """Change the document."""
        operation: Operation
        operation = SetSettings(path, value) if self.node_id is None else SetConfig(self.node_id, path, value)
        return self.session.do(operation)
