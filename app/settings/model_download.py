"""Dialog *Get a local model*: downloads models that run on this computer, and lets the user choose or delete them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QSignalBlocker, QSize, Qt, QTimer, Signal
from PySide6.QtWidgets import QDialog, QHeaderView, QMessageBox, QTableWidget, QTableWidgetItem, QWidget

from app.dialogs import ask_question
from app.engine_thread import EngineThread
from app.settings.key_dialog import KeyDialog
from app.settings.preferences import Preferences
from app.settings.settings_widgets import line_field
from app.theme.style import icon, style
from app.theme.tokens import UNIT
from app.theme.widgets import (
    STRETCH,
    PlainLabel,
    ProgressBar,
    StatusLabel,
    hbox,
    make_read_only,
    plain_tool_tip,
    push_button,
    vbox,
)
from engine.errors import EngineError, Fix
from engine.formatting import format_bytes
from engine.models.catalog import unload_models
from engine.models.file_download import Progress, discard_partial, partial_size
from engine.models.gguf_files import existing_parts, gguf_problem
from engine.models.model_hub import (
    CATALOG,
    DEMO,
    CatalogModel,
    ModelFile,
    delete_files,
    find_model_file,
    get_model_file,
    models_outside_catalog,
)
from engine.models.model_hub import machine_memory as memory_of_machine
from engine.models.protocol import EMBEDDED_MODEL

WIDTH: Final = 680
ROW_HEIGHT: Final = 28
ICON_SIDE: Final = 16
SHARE_OF_SCREEN: Final = 0.33
"""Largest part of the screen's height that the table covers; it scrolls then."""
TITLE: Final = "Get a local model"
_ABOUT: Final = "These models run on this computer, without a key and for free. Larger ones answer better, but slower."
_HEADS: Final = ("Model", "Category", "Download", "Memory", "License")
_BAR_STEPS: Final = 1000
_UPDATE_MS: Final = 100
_Role = QMessageBox.ButtonRole


class _Transfer:
    """A download in the engine's thread. The window reads its progress, and can pause it."""

    def __init__(self, engine: EngineThread, model: ModelFile | str) -> None:
        self._engine = engine
        self._model = model
        self._task: asyncio.Task[object] | None = None
        self.is_pausing = False
        self.progress: Progress | None = None

    async def run(self) -> tuple[ModelFile, Path | None]:
        """Return the model and its file; None for the file if it was paused."""
        self._task = asyncio.current_task()
        model = self._model
        if isinstance(model, str):
            model = await find_model_file(model, self._engine.models.keys)
        try:
            return model, await get_model_file(model, self._note)
        except asyncio.CancelledError:
            if not self.is_pausing:
                raise
            return model, None

    def pause(self) -> None:
        """End the download; what has arrived stays."""
        self.is_pausing = True
        self._engine.call(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _note(self, progress: Progress) -> None:
        self.progress = progress


class ModelDownloadDialog(QDialog):
    """The dialog. Nothing is downloaded before the user clicks the button. Closing it pauses a download.

    Args:
        preferences: Has the default model.

    Signals:
        downloaded: A model can be used; its name in workflows.
        deleted: A model was deleted; its name in workflows.
    """

    downloaded = Signal(str)
    deleted = Signal(str)

    def __init__(
        self,
        engine: EngineThread,
        preferences: Preferences,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._engine = engine
        self._preferences = preferences
        self._use_model: Callable[[str], object] | None = None
        self._then: Callable[[str], object] | None = None
        self._is_demo_wanted = False
        self._is_deleting = False
        self._transfer: _Transfer | None = None
        self._looked_up: ModelFile | None = None
        self._rows: list[CatalogModel | ModelFile] = []
        self._memory = memory_of_machine()
        self._fix = ""
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(TITLE)
        self.table = _table()
        self.table.itemSelectionChanged.connect(self._select_row)
        self.other = line_field("Another model", "OWNER/REPOSITORY/FILE.gguf on Hugging Face, or an https address")
        self.other.textEdited.connect(self._type)
        self.about = StatusLabel()
        self.bar = ProgressBar(maximum=_BAR_STEPS, textVisible=False)
        self.bar.setAccessibleName("Progress of the download")
        self.status = StatusLabel()
        self.add_key = push_button("Add key…", self._add_key)
        self.discard = push_button("Delete partial download", self._discard)
        self.delete = push_button("Delete…", self._ask_to_delete)
        self.start = push_button("Download", self._press, look="primary")
        self.start.setDefault(True)
        self.close_button = push_button("Close", self.close)
        for widget in (self.bar, self.status):
            _keep_space(widget)
        self._timer = QTimer(self, interval=_UPDATE_MS)
        self._timer.timeout.connect(self._show_progress)
        self.finished.connect(self._pause)
        self._lay_out()
        style().changed.connect(self._restyle)
        self._draw()
        self.table.selectRow(1)  # after the demo model

    @property
    def is_running(self) -> bool:
        """Whether a model is being downloaded."""
        return self._transfer is not None

    @property
    def chosen(self) -> CatalogModel | ModelFile | None:
        """The model that the user selected, or typed and looked up."""
        row = self.table.currentRow()
        return self._rows[row] if row >= 0 else self._looked_up

    def show_for(
        self, use: Callable[[str], object] | None, name: str = "", then: Callable[[str], object] | None = None
    ) -> None:
        """Show the dialog and bring it to the front.

        Args:
            use: Uses the model that the user chooses; None makes it the default model.
            name: The model of the catalog to select; empty for no change. A running download stays selected.
            then: Called with the name of a model in workflows when it was downloaded. With it, the demo model can be
                downloaded even where its file is, which a run may have found damaged.
        """
        self._use_model, self._then = use, then
        self._is_demo_wanted = name == DEMO and then is not None
        names = [model.name for model in CATALOG]
        if not self.is_running:
            self._draw()
            if name in names:
                self.table.selectRow(names.index(name))
            elif not self.isVisible():
                self._select(next((model for model in self._rows if _is_paused(model)), self.chosen))
        self.show()
        self.raise_()
        self.activateWindow()
        self._update()

    def _lay_out(self) -> None:
        memory = f" This computer has {format_bytes(self._memory)} of memory." if self._memory is not None else ""
        self._layout = vbox(
            PlainLabel(TITLE, look="title"),
            PlainLabel(_ABOUT + memory, wrap=True),
            self.table,
            hbox(PlainLabel("Another model", buddy=self.other), (self.other, 1), spacing=3),
            self.about,
            self.bar,
            hbox((self.status, 1), self.add_key, spacing=2),
            hbox(self.discard, self.delete, STRETCH, self.close_button, self.start, spacing=2),
            spacing=3,
            margins=(6, 5, 6, 5),
            parent=self,
        )

    def _restyle(self) -> None:
        self._draw()
        self._update()

    def _draw(self) -> None:
        """Fill the table with the current files, theme and text size; the selected model stays selected."""
        chosen = None if self.table.currentRow() < 0 else self.chosen
        self._rows = [*CATALOG, *models_outside_catalog()]
        with QSignalBlocker(self.table):
            self.table.setRowCount(len(self._rows))
            for row, model in enumerate(self._rows):
                self._draw_row(row, model)
            self._select(chosen)
        scale = style().scale
        self.setMinimumWidth(round(WIDTH * scale))
        for label in (self.about, self.status):
            label.setMinimumHeight(2 * label.fontMetrics().lineSpacing())
        side, height = round(ICON_SIDE * scale), round(ROW_HEIGHT * scale)
        self.table.setIconSize(QSize(side, side))
        self.table.verticalHeader().setDefaultSectionSize(height)
        whole = self.table.horizontalHeader().sizeHint().height() + height * len(self._rows) + UNIT
        self.table.setFixedHeight(min(whole, round(self.screen().availableSize().height() * SHARE_OF_SCREEN)))

    def _draw_row(self, row: int, model: CatalogModel | ModelFile) -> None:
        theme = style().theme
        if _problem(model):
            picture, state = ("mdi6.alert-circle-outline", theme.bad), "Unusable"
        elif model.is_downloaded:
            picture, state = ("mdi6.check", theme.good), "Downloaded"
        elif _is_paused(model):
            picture, state = ("mdi6.pause", theme.warning), "Paused"
        else:
            picture, state = ("mdi6.download-outline", theme.dim), "Not downloaded"
        size = format_bytes(model.size)
        if isinstance(model, CatalogModel):
            category, license_name, about = model.category, model.license, f"{model.about}. {state}."
        else:
            category, license_name, about = "Other", "", f"{state}: {model.target}"
        texts = (
            model.title,
            category,
            f"{format_bytes(partial_size(model.target))} of {size}" if state == "Paused" else size,
            format_bytes(model.memory),
            license_name,
        )
        for column, text in enumerate(texts):
            item = QTableWidgetItem(text) if column else QTableWidgetItem(icon(*picture), text)
            item.setToolTip(plain_tool_tip(text if column else about))
            self.table.setItem(row, column, item)

    def _select(self, model: CatalogModel | ModelFile | None) -> None:
        """Select the row of a model; of its name in the catalog, or of its file."""
        rows = [row for row, each in enumerate(self._rows) if model is not None and each.target == model.target]
        # A file of another size than that in the catalog has a row of its own.
        rows.sort(key=lambda row: self._rows[row].is_downloaded, reverse=True)
        self.table.clearSelection()
        self.table.setCurrentCell(rows[0] if rows else -1, 0)

    def _select_row(self) -> None:
        if self.table.currentRow() >= 0:
            self.other.clear()
            self._looked_up = None
            self._clear_status()

    def _type(self, text: str) -> None:
        if text.strip():
            with QSignalBlocker(self.table):  # a selected row clears the field, also while it is being deselected
                self.table.clearSelection()
                self.table.setCurrentCell(-1, -1)
        self._looked_up = None
        self._clear_status()

    def _update(self) -> None:
        """Show what can be done with the chosen model."""
        chosen, is_running = self.chosen, self.is_running
        partial = 0 if chosen is None else partial_size(chosen.target)
        is_too_large = self._memory is not None and chosen is not None and chosen.memory > self._memory
        problem = _problem(chosen)
        warning = "It needs more memory than this computer has. " if is_too_large else ""
        about = problem or warning + _description(chosen) + _folder(chosen)
        self.about.say(about, "bad" if problem else "warning" if is_too_large else "")
        self.add_key.setVisible(self._fix.startswith(Fix.ADD_KEY))
        self.bar.setVisible(is_running or bool(partial))
        self.discard.setVisible(bool(partial) and not is_running)
        self.delete.setVisible(not is_running and bool(_deletable(chosen)))
        self.delete.setEnabled(not self._is_deleting)
        for widget in (self.table, self.other):
            widget.setEnabled(not is_running)
        self.start.setText(self._action(chosen, partial))
        is_default = chosen is not None and self._preferences.values.default_model == chosen.model
        is_ready = self._is_ready(chosen)
        is_done = is_ready and self._use_model is None and is_default
        is_possible = bool(self.other.text().strip()) if chosen is None else is_ready or _can_download(chosen)
        self.start.setEnabled(not is_done and is_possible and not problem and not self._is_deleting)
        if partial and chosen is not None and not is_running:
            self.bar.setValue(partial * _BAR_STEPS // max(chosen.size, 1))
            if not self.status.text():
                self.status.say(f"Paused: {Progress(partial, chosen.size).text}")
        self._grow()

    def _grow(self) -> None:
        """Make room for what wraps into more lines."""
        self._layout.activate()
        self.resize(self.width(), max(self.height(), self._layout.totalHeightForWidth(self.width())))

    def _action(self, chosen: CatalogModel | ModelFile | None, partial: int) -> str:
        if self.is_running:
            return "Pause"
        if chosen is None:
            return "Look up"
        if self._is_ready(chosen):
            return "Use as default model" if self._use_model is None else "Use this model"
        return "Resume" if partial else "Download"

    def _is_ready(self, chosen: CatalogModel | ModelFile | None) -> bool:
        """Whether a model can be used without a download."""
        is_wanted = self._is_demo_wanted and chosen is not None and chosen.model == EMBEDDED_MODEL
        return chosen is not None and chosen.is_downloaded and not is_wanted

    def _press(self) -> None:
        chosen = self.chosen
        if self.is_running:
            self._pause()
        elif chosen is None:
            self._look_up()
        elif self._is_ready(chosen):
            self._use(chosen.model)
        else:
            self._download(chosen)

    def _look_up(self) -> None:
        self.start.setEnabled(False)
        self.status.say("Looking up size and address…")
        name = self.other.text()

        def is_wanted() -> bool:  # not after the text was changed or a model was selected
            return self.other.text() == name and self.chosen is None

        def take(model: ModelFile) -> None:
            if is_wanted():
                self._looked_up = model
                self._clear_status()

        def fail(error: EngineError) -> None:
            if is_wanted():
                self._fail(error)

        self._engine.ask(self, find_model_file(name, self._engine.models.keys), take, fail)

    def _download(self, chosen: CatalogModel | ModelFile) -> None:
        if isinstance(chosen, CatalogModel):
            model = chosen.name
        elif chosen is self._looked_up:
            model = chosen
        else:  # paused: an address without the user's key
            model = chosen.sources[0].address
        transfer = self._transfer = _Transfer(self._engine, model)
        self._clear_status()
        self.status.say("Connecting…")
        self._engine.ask(self, transfer.run(), self._finish, self._fail)
        self._timer.start()
        self._update()

    def _pause(self) -> None:
        if self._transfer is not None:
            self._transfer.pause()
            self.start.setEnabled(False)

    def _show_progress(self) -> None:
        progress = self._transfer.progress if self._transfer is not None else None
        if progress is not None:
            self.bar.setValue(progress.done * _BAR_STEPS // max(progress.size, 1))
            self.status.say(progress.text)

    def _finish(self, result: tuple[ModelFile, Path | None]) -> None:
        model, file = result
        self._end_transfer()
        self._is_demo_wanted = self._is_demo_wanted and file is None
        self.status.say("" if file is None else f"✓ {model.title} is ready.", "good")
        self._draw()
        if file is not None:
            with QSignalBlocker(self.table):
                self._select(model)
            self.other.clear()
            self._looked_up = None
        self._update()
        if file is not None:
            self.downloaded.emit(model.model)
            if self._then is not None:
                self._then(model.model)

    def _fail(self, error: EngineError) -> None:
        self._end_transfer()
        self.status.say(str(error), "bad")
        self._fix = error.fix
        self._update()

    def _end_transfer(self) -> None:
        self._transfer = None
        self._timer.stop()

    def _add_key(self) -> None:
        dialog = KeyDialog(self._engine, self._fix.partition(":")[2], self)
        dialog.key_saved.connect(self._clear_status)
        dialog.open()

    def _clear_status(self) -> None:
        self._fix = ""
        self.status.say("")
        self._update()

    def _discard(self) -> None:
        chosen = self.chosen
        assert chosen is not None
        try:
            discard_partial(chosen.target)
        except EngineError as error:
            self._fail(error)
        else:
            self._draw()
            self._clear_status()

    def _ask_to_delete(self) -> None:
        chosen = self.chosen
        assert chosen is not None
        files = _deletable(chosen)
        if not files:  # deleted since the list was drawn
            self._draw()
            self._update()
            return
        size = format_bytes(sum(file.stat().st_size for file in files if file.exists()))  # links may lead nowhere
        others = f" and {len(files) - 1} more files" if len(files) > 1 else ""
        ask_question(
            self,
            f"Delete {chosen.title}?",
            f"{files[0]}{others} ({size}) will be deleted. Workflows that use this model will need another one.",
            [("Delete", _Role.DestructiveRole, lambda: self._delete(chosen.model, files))],
        )

    def _delete(self, model: str, files: Sequence[Path]) -> None:
        def finish(_result: None) -> None:
            self._is_deleting = False
            self._draw()
            self.status.say("Deleted.")
            self._update()
            self.deleted.emit(model)

        def fail(error: EngineError) -> None:
            self._is_deleting = False
            self._fail(error)

        self._is_deleting = True  # nothing is downloaded meanwhile: a failure of one would look like one of the other
        self._update()
        self._engine.ask(self, _unload_and_delete(files), finish, fail)

    def _use(self, model: str) -> None:
        if self._use_model is None:
            self._preferences.set(default_model=model)
            self._preferences.remember_model(model)
            self.status.say("✓ This is now the default model.", "good")
            self._update()
        else:
            self._use_model(model)
            self.close()


async def _unload_and_delete(files: Sequence[Path]) -> None:
    await unload_models(files)
    await asyncio.to_thread(delete_files, files)


def _deletable(model: CatalogModel | ModelFile | None) -> list[Path]:
    """Return the files of a model in the folder of this program, to delete them."""
    if model is None or (isinstance(model, CatalogModel) and not model.is_downloaded):
        return []
    return existing_parts(model.target)


def _problem(model: CatalogModel | ModelFile | None) -> str:
    """Say why the files of a model that is not of the catalog cannot be used; empty if they can, or are not here."""
    if not isinstance(model, ModelFile) or model.sources or model.model == EMBEDDED_MODEL:
        return ""
    return gguf_problem(model.target)


def _is_paused(model: CatalogModel | ModelFile) -> bool:
    return partial_size(model.target) > 0


def _can_download(model: CatalogModel | ModelFile) -> bool:
    return isinstance(model, CatalogModel) or bool(model.sources)


def _keep_space(widget: QWidget) -> None:
    """Leave the space of a widget empty while it is hidden, so that nothing moves."""
    policy = widget.sizePolicy()
    policy.setRetainSizeWhenHidden(True)
    widget.setSizePolicy(policy)


def _description(chosen: CatalogModel | ModelFile | None) -> str:
    if chosen is None:
        return "Any language model in the GGUF format."
    if isinstance(chosen, ModelFile):
        return f"{chosen.title}: {format_bytes(chosen.size)}. See its maker's page for the license."
    if chosen.name == DEMO:
        return f"{chosen.about}."
    return f"{chosen.about}. From {chosen.file.rpartition('/')[0]} on Hugging Face."


def _folder(chosen: CatalogModel | ModelFile | None) -> str:
    """Say where a downloaded file is."""
    if chosen is None or chosen.model == EMBEDDED_MODEL or not chosen.is_downloaded:
        return ""
    return f" The file is in {chosen.target.parent}."


def _table() -> QTableWidget:
    table = QTableWidget(len(CATALOG), len(_HEADS))
    table.setHorizontalHeaderLabels(list(_HEADS))
    table.setAccessibleName("Models")
    make_read_only(table)
    header = table.horizontalHeader()
    header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
    header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
    return table
