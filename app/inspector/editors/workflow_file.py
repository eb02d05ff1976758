"""The file of another workflow, named as seen from the folder of this one."""

from __future__ import annotations

import os
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QPushButton, QWidget

from app.inspector.editors.base import name_widget
from app.inspector.editors.texts import LineEditor
from app.inspector.fields import Field
from app.inspector.target import Target
from engine.document.model import FILE_SUFFIX


class WorkflowFileEditor(LineEditor):
    """A line for the name, and a button that asks for the file.

    Attributes:
        choose: The button.
    """

    def __init__(self, field: Field, target: Target, parent: QWidget | None = None) -> None:
        super().__init__(field, target, parent)
        self.line.setPlaceholderText(f"name{FILE_SUFFIX}")
        self.choose = QPushButton("Choose…", self)
        name_widget(self.choose, "Choose the workflow file", "Also: double-click the node to open the workflow in it.")
        self.choose.clicked.connect(lambda _checked=False: self._ask())
        self.target.keys.watch(self.choose)
        self.box.addWidget(self.choose)

    def take(self, file: Path) -> None:
        """Name that file."""
        path = self.target.session.path
        try:
            name = os.path.relpath(file, path.parent) if path is not None else str(file)
        except ValueError:  # another drive
            name = str(file)
        name = Path(name).as_posix()
        self.line.setText(name)
        self._typed(name)
        self.target.session.seal()

    def _ask(self) -> None:
        path = self.target.session.path
        folder = str(path.parent) if path is not None else ""
        dialog = QFileDialog(self, "Choose a workflow", folder, f"Workflows (*{FILE_SUFFIX})")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(lambda name: self.take(Path(name)))
        dialog.open()
