"""The list of files that were opened last."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.theme.style import ThemedIcon
from app.theme.tokens import UNIT
from app.theme.widgets import Badge, ElidedLabel, plain_tool_tip
from engine.document.model import FILE_SUFFIX


class RecentFile(QWidget):
    """One line: a button with the file's name, and the folder that it lies in."""

    chosen = Signal(Path)

    def __init__(self, path: Path, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.path = path
        self._name = name = path.name.removesuffix(FILE_SUFFIX)
        self.button = QPushButton(name.replace("&", "&&"))
        self.button.setMinimumWidth(1)
        self.button.setProperty("row", True)
        self.button.setAccessibleName(f"Open {name} in {path.parent}")
        self.button.setToolTip(plain_tool_tip(str(path)))
        ThemedIcon(self.button, "mdi6.file-outline", "dim")
        self.button.clicked.connect(lambda _checked=False: self.chosen.emit(self.path))
        self.badge = Badge("not found", "warning")
        self.badge.hide()
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2 * UNIT)
        layout.addWidget(self.button)
        layout.addWidget(ElidedLabel(str(path.parent), look="dim small"), 1)
        layout.addWidget(self.badge, 0, Qt.AlignmentFlag.AlignVCenter)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Cut a long name in its middle, so that it does not take all of the line."""
        super().resizeEvent(event)
        room = max(event.size().width() * 2 // 3, 1)
        around = self.button.sizeHint().width() - self.button.fontMetrics().horizontalAdvance(self.button.text())
        name = self.button.fontMetrics().elidedText(self._name, Qt.TextElideMode.ElideMiddle, room - around)
        self.button.setText(name.replace("&", "&&"))
        self.button.setMaximumWidth(room)

    @property
    def is_missing(self) -> bool:
        """Whether the file is known not to be there."""
        return not self.button.isEnabled()

    def show_missing(self) -> None:
        """Say that the file is not there any more; it can be opened no longer."""
        self.button.setEnabled(False)
        self.button.setAccessibleDescription("This file was not found.")
        self.badge.show()


class RecentFiles(QWidget):
    """The files, the latest first.

    Signals:
        chosen: One of them is to be opened.
    """

    chosen = Signal(Path)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.files: list[RecentFile] = []
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(UNIT)

    def show_files(self, paths: Iterable[Path]) -> None:
        """Show these files and no others."""
        for file in self.files:
            self._layout.removeWidget(file)
            file.hide()
            file.deleteLater()
        self.files = [RecentFile(path) for path in dict.fromkeys(paths)]
        for file in self.files:
            file.chosen.connect(self.chosen)
            self._layout.addWidget(file)

    def show_missing(self, paths: Iterable[Path]) -> None:
        """Say which of them are not there any more."""
        missing = set(paths)
        for file in self.files:
            if file.path in missing:
                file.show_missing()
