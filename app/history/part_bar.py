"""The bar over a subflow of a run: the way back to what it is a part of, and to the workflow itself."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QToolButton, QWidget

from app.theme.style import ThemedIcon, set_style_properties, style
from app.theme.tokens import UNIT
from app.theme.widgets import ElidedLabel, PlainLabel, plain_tool_tip

_WIDEST = 160
"""The widest part of the way, in pixels at the usual size of texts; a longer title ends in `…`."""


class PartBar(QFrame):
    """The bar.

    Signals:
        back_wanted: Show what it is a part of; 0 is the whole run, 1 the outermost subflow.
        workflow_wanted: Open the workflow in the subflow as a document that can be changed.

    Attributes:
        steps: The buttons of the way, the whole run first.
        open: Opens the workflow.
    """

    back_wanted = Signal(int)
    workflow_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.steps: list[QToolButton] = []
        self._here = ElidedLabel("")
        self.open = QPushButton("Open the workflow")
        self.open.setAccessibleName("Open the workflow")
        self.open.setToolTip("Open the workflow in this subflow, to change it.")
        self.open.clicked.connect(lambda _checked=False: self.workflow_wanted.emit())
        self._way = QHBoxLayout()
        self._way.setSpacing(UNIT)
        row = QHBoxLayout(self)
        row.setContentsMargins(3 * UNIT, UNIT, 2 * UNIT, UNIT)
        row.setSpacing(UNIT)
        row.addLayout(self._way)
        row.addWidget(self._here, 1)
        row.addWidget(self.open)
        set_style_properties(self, hint="info")

    @property
    def text(self) -> str:
        """Where one is: the way and what is shown."""
        return " › ".join([*(button.accessibleDescription() for button in self.steps), self._here.full_text])

    def show_way(self, names: Sequence[str], here: str) -> None:
        """Say where one is.

        Args:
            names: What it is a part of, the whole run first.
            here: What is shown, and in which iteration.
        """
        self._here.set_full_text(here)
        if [button.accessibleDescription() for button in self.steps] != list(names):
            self._build(names)
        self.setAccessibleName(self.text)

    def _build(self, names: Sequence[str]) -> None:
        while self._way.count():
            widget = self._way.takeAt(0).widget()
            widget.hide()
            widget.deleteLater()
        self.steps = []
        for place, name in enumerate(names):
            button = QToolButton()
            widest = round(_WIDEST * style().scale)
            button.setText(button.fontMetrics().elidedText(name, Qt.TextElideMode.ElideRight, widest))
            button.setAccessibleName(f"Back to {name}")
            button.setAccessibleDescription(name)
            button.setToolTip(plain_tool_tip(f"Back to {name}"))
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
            if not place:
                ThemedIcon(button, "mdi6.arrow-left", "dim")
            button.clicked.connect(lambda _checked=False, place=place: self.back_wanted.emit(place))
            self.steps.append(button)
            self._way.addWidget(button)
            self._way.addWidget(PlainLabel("›", look="dim"))
