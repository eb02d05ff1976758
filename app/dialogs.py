"""File dialogs and message boxes. None of them blocks; the answer comes in a callback.

The window gets its `FileDialogs` as an argument, so that tests can answer in their place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, cast

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QDialogButtonBox,
    QFileDialog,
    QGridLayout,
    QLabel,
    QLineEdit,
    QMessageBox,
    QPlainTextEdit,
    QWidget,
)

from app.theme.tokens import UNIT
from engine.document.model import FILE_SUFFIXES, is_workflow_file, stem_of
from engine.importing.importers import importable_suffixes
from engine.safe_file_io import is_windows_name

READ_TITLE: Final = "Read value from file"
ANY_FILTER: Final = "All files (*)"
WORKFLOW_FILTER: Final = f"Workflows ({' '.join(f'*{suffix}' for suffix in FILE_SUFFIXES)})"
SUFFIX_BY_FILTER: Final = {f"Workflow (*{suffix})": suffix for suffix in FILE_SUFFIXES}
SAVE_FILTER: Final = ";;".join([*SUFFIX_BY_FILTER, ANY_FILTER])

_TYPED_NAME: Final = "typedName"

_Role = QMessageBox.ButtonRole


def file_name_of(title: str, default: str) -> str:
    """Return a title as the beginning of a file name that every system allows, or the default if nothing remains."""
    name = "".join(letter if letter.isalnum() else "-" for letter in title.casefold()).strip("-")[:60] or default
    return name if is_windows_name(name) else f"{name}-{default}"


def open_filter() -> str:
    """Return the name filters of the Open dialog: workflows, and the files that importers read."""
    return f"{WORKFLOW_FILTER};;{import_filter()}"


def import_filter() -> str:
    """Return the name filters of the Import dialog: the files that importers read."""
    importable = " ".join(f"*{suffix}" for suffix in importable_suffixes())
    return f"Workflows of other programs ({importable});;{ANY_FILTER}"


class FileDialogs:
    """Asks for files with the system's dialogs. The callback is not called on cancel."""

    def open_files(self, parent: QWidget, chosen: Callable[[list[Path]], None]) -> None:
        """Ask for files to open."""
        dialog = QFileDialog(parent, "Open workflows", "", open_filter())
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        _show(dialog, chosen)

    def save_file(
        self,
        parent: QWidget,
        suggestion: Path,
        filters: str,
        chosen: Callable[[Path], None],
        *,
        is_replaced: bool = True,
    ) -> None:
        """Ask where to save, and whether to replace an existing file, if it would be replaced."""
        dialog = QFileDialog(parent, "Save as", str(suggestion.parent), filters)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setOption(QFileDialog.Option.DontConfirmOverwrite, not is_replaced)
        for name_filter, suffix in SUFFIX_BY_FILTER.items():
            if filters == SAVE_FILTER and suggestion.name.lower().endswith(suffix):
                dialog.selectNameFilter(name_filter)
                dialog.setDefaultSuffix(suffix[1:])
        dialog.selectFile(suggestion.name)
        field, types = dialog.findChild(QLineEdit, "fileNameEdit"), dialog.findChild(QComboBox, "fileTypeCombo")
        if field is not None and types is not None:  # not in a dialog of the system
            # Before Qt replaces what follows the last dot, which may be part of the name.
            types.currentIndexChanged.connect(lambda _index: dialog.setProperty(_TYPED_NAME, field.text()))
        dialog.filterSelected.connect(lambda chosen_filter: _change_suffix(dialog, field, chosen_filter))

        def finish(paths: list[Path]) -> None:
            path = with_workflow_suffix(paths[0], SUFFIX_BY_FILTER.get(dialog.selectedNameFilter(), ""))
            confirm_overwrite(parent, paths[0], path, lambda: chosen(path))

        _show(dialog, finish)

    def open_text(
        self, parent: QWidget, chosen: Callable[[Path], None], title: str = READ_TITLE, filters: str = ANY_FILTER
    ) -> None:
        """Ask for one file to read."""
        dialog = QFileDialog(parent, title, "", filters)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        _show(dialog, lambda paths: chosen(paths[0]))


def _change_suffix(dialog: QFileDialog, field: QLineEdit | None, name_filter: str) -> None:
    """Give the file of a Save as dialog the suffix of the chosen filter."""
    suffix = SUFFIX_BY_FILTER.get(name_filter)
    if suffix is None:
        return
    dialog.setDefaultSuffix(suffix[1:])
    name = stem_of(dialog.property(_TYPED_NAME) or "").removesuffix(".json")
    if field is not None and name:
        field.setText(f"{name}{suffix}")


def with_workflow_suffix(path: Path, suffix: str) -> Path:
    """Add the suffix to a name without one of a workflow."""
    return path if is_workflow_file(path.name) else with_suffix(path, suffix, ".json")


def with_suffix(path: Path, suffix: str, *others: str) -> Path:
    """Add a suffix to a name that has neither it nor one of the others; the end of "v1.5" is no suffix."""
    return path if path.name.lower().endswith((suffix, *others)) else path.with_name(path.name + suffix)


def _show(dialog: QFileDialog, chosen: Callable[[list[Path]], None]) -> None:
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.filesSelected.connect(lambda names: chosen([Path(name) for name in names]))
    dialog.open()


def ask_question(
    parent: QWidget,
    text: str,
    detail: str,
    answers: Sequence[tuple[str, _Role, Callable[[], object]]] = (),
    *,
    cancel: str = "Cancel",
) -> QMessageBox:
    """Ask a question over a window. Without an answer that rejects it, a last button does nothing but close it.

    Enter gives the answer with `AcceptRole`. A question without one is about a loss, or about trust (`YesRole`): Enter
    rejects it, because a key press meant for another widget must not confirm it.

    Args:
        parent: The window.
        text: The question, plain text.
        detail: Details, plain text.
        answers: For each button its title, its role and its action.
        cancel: The title of that last button.
    """
    box = QMessageBox(parent)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(text)
    box.setInformativeText(detail)
    actions: dict[object, Callable[[], object]] = {}
    if all(role is not _Role.RejectRole for _, role, _ in answers):
        answers = [*answers, (cancel, _Role.RejectRole, lambda: None)]
    for title, role, action in answers:
        button = box.addButton(title, role)
        button.setAccessibleName(title)
        actions[button] = action
        if role is _Role.RejectRole:
            box.setEscapeButton(button)
        if role is _Role.AcceptRole or (role is _Role.RejectRole and box.defaultButton() is None):
            box.setDefaultButton(button)
    box.buttonClicked.connect(lambda button: actions[button]())
    box.open()
    return box


def show_failure(parent: QWidget, text: str, reason: str) -> QMessageBox:
    """Show in a dialog that something failed, and why; both are plain text."""
    box = ask_question(parent, text, reason, cancel="Close")
    box.setIcon(QMessageBox.Icon.Warning)
    return box


def add_text_area(box: QMessageBox, text: str, name: str) -> QPlainTextEdit:
    """Add a read-only text area between the question and the buttons."""
    field = QPlainTextEdit(text, box)
    field.setReadOnly(True)
    field.setAccessibleName(name)
    field.setProperty("monospace", True)
    field.setMinimumSize(140 * UNIT, 60 * UNIT)
    grid, buttons, question = box.layout(), box.findChild(QDialogButtonBox), box.findChild(QLabel, "qt_msgbox_label")
    assert isinstance(grid, QGridLayout)
    assert buttons is not None
    grid.removeWidget(buttons)
    left = _columns_before(grid, question)
    row, columns = grid.rowCount(), grid.columnCount()
    grid.addWidget(field, row, left, 1, columns - left)
    grid.addWidget(buttons, row + 1, 0, 1, columns)
    return field


def _columns_before(grid: QGridLayout, widget: QWidget | None) -> int:
    """Return how many columns are left of a widget, such as that of the icon."""
    if widget is None or (place := grid.indexOf(widget)) < 0:
        return 0
    position = cast("tuple[int, int, int, int]", grid.getItemPosition(place))
    return position[1]


def confirm_overwrite(parent: QWidget, chosen: Path, path: Path, write: Callable[[], object]) -> None:
    """Write a file, asking first if it exists and the file dialog has not asked about it.

    Args:
        parent: The window.
        chosen: The chosen file; the file dialog has asked about this one.
        path: The file to write, to which a suffix may have been added.
        write: Writes it.
    """
    if path == chosen or not os.path.lexists(path):
        write()
        return
    ask_question(
        parent,
        f"“{path.name}” already exists. Replace it?",
        "Its current content will be lost.",
        [("Replace", _Role.DestructiveRole, write)],
    )


def is_dialog_open() -> bool:
    """Return whether a modal dialog is open, so that a second press does not open another."""
    return QApplication.activeModalWidget() is not None
