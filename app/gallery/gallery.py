"""The first page: what the program is, templates to start from, files opened last, and which model is ready.

It opens nothing itself; it says through signals what a person wants.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from app.gallery.background import Background
from app.gallery.card import TemplateCard
from app.gallery.grid import CardGrid
from app.gallery.recent import RecentFiles
from app.gallery.templates import bundled_templates
from app.theme.style import ThemedIcon
from app.theme.tokens import UNIT
from app.theme.widgets import MessageBar, PlainLabel

if TYPE_CHECKING:
    from app.gallery.diagram import Diagram
    from app.gallery.templates import Template
    from engine.nodes.registry import Registry

WHAT_IT_IS: Final = (
    "Draw a workflow in which a language model improves its own work, run it, and look at every iteration."
)
MODEL_LINE: Final = "Built-in demo model (135M): real, but not reliable. Add a key or a local server for a better one."
WIDEST: Final = 1120
"""Wider than this, lines become hard to read; the page stays in the middle."""


class Gallery(QWidget):
    """The first page.

    Signals:
        template_chosen: A template is to be opened; the path of its file.
        open_requested: A person wants to choose a file.
        new_requested: A person wants an empty document.
        recent_chosen: A file opened before is to be opened again.
        models_requested: A person wants to set up models.
    """

    template_chosen = Signal(Path)
    open_requested = Signal()
    new_requested = Signal()
    recent_chosen = Signal(Path)
    models_requested = Signal()

    def __init__(
        self, parent: QWidget | None = None, *, registry: Registry | None = None, folder: Path | None = None
    ) -> None:
        """Make the page.

        Args:
            parent: Its parent.
            registry: The node types, for the pictures; those of the program unless given.
            folder: Where the templates lie; the program's own folder unless given.
        """
        super().__init__(parent)
        self.setAccessibleName("Start")
        self._grid = CardGrid()
        self._recent = RecentFiles()
        self._recent.chosen.connect(self.recent_chosen)
        self._recent_part = _part("Recent", self._recent)
        self._recent_part.hide()
        self._model_line = PlainLabel(MODEL_LINE, look="dim", wrap=True)
        self._background = Background(self)
        self._background.drawn.connect(self._show_picture)
        self._background.missed.connect(self._recent.show_missing)
        page = self._make_page()
        templates, problems = bundled_templates(folder)
        self._registry = registry
        self._to_draw: list[Template] = templates
        for template in templates:
            card = TemplateCard(template)
            card.opened.connect(self.template_chosen)
            self._grid.add(card)
        if problems:
            self._hint.say(" ".join(problems), "warning")
            self._hint.show()
        self._lay_out(page)

    @property
    def cards(self) -> tuple[TemplateCard, ...]:
        """The cards of the templates, in order."""
        return tuple(card for card in self._grid.cards if isinstance(card, TemplateCard))

    @property
    def recent(self) -> RecentFiles:
        """The list of recent files."""
        return self._recent

    @property
    def model_line(self) -> str:
        """What it says about the model."""
        return self._model_line.text()

    def set_recent(self, paths: list[Path]) -> None:
        """Show which files were opened last, the latest first."""
        self._recent.show_files(paths)
        self._recent_part.setVisible(bool(paths))
        if paths:
            self._background.look_for(paths)

    def set_model_line(self, text: str) -> None:
        """Say which model is ready."""
        self._model_line.setText(text)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Once the page has been seen, have the pictures made: that takes much that the page does not."""
        super().paintEvent(event)
        if self._to_draw:
            templates, self._to_draw = self._to_draw, []
            QTimer.singleShot(0, self, lambda: self._background.draw(templates, self._registry))

    def _make_page(self) -> QWidget:
        page = QWidget()
        page.setMaximumWidth(WIDEST)
        self._hint = MessageBar()
        self._hint.hide()
        layout = QVBoxLayout(page)
        layout.setContentsMargins(8 * UNIT, 10 * UNIT, 8 * UNIT, 8 * UNIT)
        layout.setSpacing(8 * UNIT)
        layout.addLayout(self._head())
        layout.addWidget(self._hint)
        layout.addWidget(_part("Start with a template", self._grid))
        layout.addWidget(self._recent_part)
        layout.addStretch(1)
        layout.addLayout(self._foot())
        return page

    def _head(self) -> QVBoxLayout:
        buttons = QHBoxLayout()
        buttons.setSpacing(2 * UNIT)
        buttons.addWidget(_button("New workflow", "mdi6.plus", self.new_requested))
        buttons.addWidget(_button("Open…", "mdi6.folder-open-outline", self.open_requested))
        buttons.addStretch(1)
        head = QVBoxLayout()
        head.setSpacing(UNIT)
        head.addWidget(PlainLabel("Loopwright", look="heading"))
        head.addWidget(PlainLabel(WHAT_IT_IS, look="dim", wrap=True))
        head.addSpacing(3 * UNIT)
        head.addLayout(buttons)
        return head

    def _foot(self) -> QHBoxLayout:
        link = QPushButton("Set up models")
        link.setProperty("link", True)
        link.clicked.connect(lambda _checked=False: self.models_requested.emit())
        foot = QHBoxLayout()
        foot.setSpacing(2 * UNIT)
        foot.addWidget(self._model_line, 1)
        foot.addWidget(link, 0, Qt.AlignmentFlag.AlignVCenter)
        return foot

    def _lay_out(self, page: QWidget) -> None:
        middle = QWidget()
        row = QHBoxLayout(middle)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        row.addWidget(page, 1000)
        row.addStretch(1)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(middle)
        self._grid.reached.connect(area.ensureWidgetVisible)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(area)

    def _show_picture(self, path: Path, diagram: Diagram) -> None:
        for card in self.cards:
            if card.template.path == path:
                card.picture.show_diagram(diagram)


def _part(title: str, body: QWidget) -> QWidget:
    part = QWidget()
    layout = QVBoxLayout(part)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(3 * UNIT)
    layout.addWidget(PlainLabel(title, look="title"))
    layout.addWidget(body)
    return part


def _button(text: str, icon_name: str, signal: Signal) -> QPushButton:
    button = QPushButton(text)
    ThemedIcon(button, icon_name)
    button.clicked.connect(lambda _checked=False: signal.emit())
    return button
