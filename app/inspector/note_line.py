"""Where a person sends a node of a running run a note: one line, shown only while there is somebody to read it."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from app.inspector.editors.base import name_widget
from app.session import Session
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel

SENT = "Sent. The next call of its model gets it."


class NoteLine(QWidget):
    """A note to the node that is shown.

    Attributes:
        line: What is to be sent.
        send: Sends it; Enter in the line does the same.
        told: Says that it was sent.
    """

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._node_id = ""
        self.line = QLineEdit(self)
        name_widget(self.line, "Note to this node", "The next call of its model gets it, while the run goes on.")
        self.line.setPlaceholderText("Note to this node")
        self.send = QPushButton("Send", self)
        self.send.setAccessibleName("Send the note")
        self.send.setEnabled(False)
        self.told = PlainLabel("", self, look="dim small", wrap=True)
        self.told.hide()
        row = QHBoxLayout()
        row.setSpacing(2 * UNIT)
        row.addWidget(self.line, 1)
        row.addWidget(self.send)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(UNIT)
        box.addLayout(row)
        box.addWidget(self.told)
        self.line.textChanged.connect(self._typed)
        self.line.returnPressed.connect(self._send)
        self.send.clicked.connect(self._send)
        self.hide()

    def show_node(self, node_id: str | None) -> None:
        """Be there for a node that calls a model in a run that goes on; be hidden for any other."""
        if node_id != self._node_id:
            self._node_id = node_id or ""
            self.line.clear()
            self.told.hide()
        resolved = self._session.structure.resolution.nodes.get(self._node_id)
        calls_model = resolved is not None and resolved.spec.model(resolved.config) is not None
        self.setVisible(calls_model and self._session.shown.live is not None)

    def _typed(self, text: str) -> None:
        self.send.setEnabled(bool(text.strip()))
        if text:
            self.told.hide()

    def _send(self) -> None:
        text = self.line.text().strip()
        if not text or self._session.shown.live is None:
            return
        self._session.shown.live.post_note(self._node_id, text)
        self.line.clear()
        self.told.setText(SENT)
        self.told.show()
