"""The start page: templates, recent files, and the model in use.

It opens nothing itself; its signals report what the user wants. Diagrams of templates are created, and recent files are
checked, in threads: analyzing the first document loads libraries, and a file may be on a slow disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QEvent, Qt, Signal, SignalInstance
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QPushButton, QScrollArea, QVBoxLayout, QWidget

from app.gallery.diagram import DiagramPicture, make_diagram
from app.runs.run_status import model_label
from app.theme.style import ThemedIcon, style
from app.theme.tokens import UNIT
from app.theme.widgets import (
    QWIDGETSIZE_MAX,
    STRETCH,
    Badge,
    ElidedLabel,
    MessageBar,
    PlainLabel,
    hbox,
    plain_tool_tip,
    push_button,
    vbox,
)
from app.timers import call_later
from app.worker import Worker
from engine.bundled import templates_folder
from engine.document.files import load
from engine.document.model import FILE_SUFFIX, Workflow, stem_of
from engine.errors import EngineError
from engine.models.protocol import EMBEDDED_MODEL
from engine.safe_file_io import is_file

GROUPS: Final = {
    "Improve a text": (
        "self-refine",
        "writer-and-critic",
        "document-improvement",
        "converging-summary",
        "best-of-several",
        "refine-or-exit",
    ),
    "Check and extract": ("code-review", "multi-pass-extraction", "valid-json", "classify"),
    "Search, tools and roles": ("agentic-search", "calculator-agent", "map-reduce-summary", "negotiation"),
}
"""The bundled templates by group, in the order of the start page."""
OTHER_GROUP: Final = "More templates"
TEMPLATES_MISSING: Final = (
    "The templates folder is missing. Reinstall Loopwright to restore it; everything else works without it."
)
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True)
class Template:
    """A template.

    Attributes:
        path: Its file.
        title: Its title.
        about: What it does.
        when: When to use it; empty if its description does not say.
        group: The title of its group.
        workflow: The document.
    """

    path: Path
    title: str
    about: str
    when: str
    group: str
    workflow: Workflow


def split_description(description: str) -> tuple[str, str]:
    """Split a description into what it does and its last sentence if that begins with 'For'."""
    sentences = _SENTENCE_END.split(description.strip())
    if len(sentences) > 1 and sentences[-1].startswith("For "):
        return " ".join(sentences[:-1]), sentences[-1]
    return description.strip(), ""


def bundled_templates(folder: Path | None = None) -> tuple[list[Template], list[str]]:
    """Load the templates of a folder, by default the program's own, in the order of their groups.

    Returns:
        The templates, and a message for each one that cannot be loaded. Never fails.
    """
    try:
        folder = folder or templates_folder()
        if not folder.is_dir():
            return [], [f"{folder}: {TEMPLATES_MISSING}"]
        files = sorted(folder.glob(f"*{FILE_SUFFIX}"))
    except (EngineError, OSError) as error:
        return [], [str(error)]
    templates: list[Template] = []
    problems: list[str] = []
    for path in files:
        try:
            templates.append(_load_template(path, path.stat().st_mtime_ns if path.exists() else 0))
        except EngineError as error:
            problems.append(str(error))
    return sorted(templates, key=lambda each: (_PLACES.get(each.path.name, _LAST), each.title.casefold())), problems


@lru_cache(maxsize=64)
def _load_template(path: Path, _changed_ns: int) -> Template:
    """Load a template. Start page and palette show the same ones."""
    workflow = load(path)
    about, when = split_description(workflow.description)
    title = workflow.name or stem_of(path.name)
    return Template(path, title, about, when, _PLACES.get(path.name, _LAST)[1], workflow)


_PLACES: Final = {
    f"{name}{FILE_SUFFIX}": (at, group)
    for at, (group, name) in enumerate((group, name) for group, names in GROUPS.items() for name in names)
}
_LAST: Final = (len(_PLACES), OTHER_GROUP)


class RecentFile(QWidget):
    """One recent file: a button with its name, and the name of its folder."""

    chosen = Signal(Path)

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._name = name = stem_of(path.name)
        self.button = push_button(name.replace("&", "&&"), lambda: self.chosen.emit(self.path), look="row")
        self.button.setMinimumWidth(1)
        self.button.setAccessibleName(f"Open {name} in {path.parent}")
        self.button.setToolTip(plain_tool_tip(str(path)))
        ThemedIcon(self.button, "mdi6.file-outline", "dim")
        self.badge = Badge("not found", "warning")
        self.badge.hide()
        self._folder = ElidedLabel(path.parent.name, look="dim small")
        hbox(self.button, (self._folder, 1), (self.badge, Qt.AlignmentFlag.AlignVCenter), spacing=2, parent=self)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Elide a long name in the middle."""
        super().resizeEvent(event)
        width = event.size().width()
        others = min(self._folder.sizeHint().width(), width // 3)
        others += 0 if self.badge.isHidden() else self.badge.sizeHint().width() + 2 * UNIT
        room = max(width - others - 2 * UNIT, 1)
        around = self.button.sizeHint().width() - self.button.fontMetrics().horizontalAdvance(self.button.text())
        name = self.button.fontMetrics().elidedText(self._name, Qt.TextElideMode.ElideMiddle, room - around)
        self.button.setText(name.replace("&", "&&"))
        self.button.setMaximumWidth(room)

    @property
    def is_missing(self) -> bool:
        """Whether the file is known to be missing."""
        return not self.button.isEnabled()

    def mark_missing(self) -> None:
        """Mark the file as missing and disable its button."""
        self.button.setEnabled(False)
        self.button.setAccessibleDescription("This file was not found.")
        self.badge.show()


MAX_SHOWN: Final = 5
"""Number of recent files on the start page; the File menu has more."""


class RecentFiles(QWidget):
    """The latest recent files, newest first.

    Signals:
        chosen: This file is to be opened.
    """

    chosen = Signal(Path)

    def __init__(self) -> None:
        super().__init__()
        self.files: list[RecentFile] = []
        self._layout = vbox(spacing=1, parent=self)

    def show_files(self, paths: Iterable[Path]) -> None:
        """Replace the files."""
        for file in self.files:
            self._layout.removeWidget(file)
            file.hide()
            file.deleteLater()
        self.files = [RecentFile(path) for path in list(dict.fromkeys(paths))[:MAX_SHOWN]]
        for file in self.files:
            file.chosen.connect(self.chosen)
            self._layout.addWidget(file)

    def mark_missing(self, paths: Iterable[Path]) -> None:
        """Mark the missing files among these paths."""
        missing = set(paths)
        for file in self.files:
            if file.path in missing:
                file.mark_missing()


GAP = 4 * UNIT
CARD_WIDTH = 256
"""Minimum width of a card at a text size of 100 %."""
RECENT_WIDTH: Final = 232
"""Width of the recent files beside the templates at a text size of 100 %."""
BOTH_WIDTH: Final = 760
"""Minimum width of the page for recent files beside the templates, at a text size of 100 %."""


class CardGrid(QWidget):
    """Grid of cards of equal width; cards of a row have equal height. Arrow keys move the focus.

    Signals:
        reached: An arrow key moved the focus to this card.
    """

    reached = Signal(QWidget)

    def __init__(self) -> None:
        super().__init__()
        self._cards: list[QWidget] = []
        self.columns = 1

    @property
    def cards(self) -> tuple[QWidget, ...]:
        """The cards in order."""
        return tuple(self._cards)

    def add(self, card: QWidget) -> None:
        """Append a card."""
        card.setParent(self)
        self._cards.append(card)
        if self.isVisible():
            self._arrange()

    def event(self, event: QEvent) -> bool:
        """Lay out the cards when the grid is shown, and again when it or their contents change size."""
        if event.type() in {QEvent.Type.Show, QEvent.Type.Resize, QEvent.Type.LayoutRequest}:
            self._arrange()
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move the focus in the arrow's direction."""
        steps = {
            Qt.Key.Key_Left: -1,
            Qt.Key.Key_Right: 1,
            Qt.Key.Key_Up: -self.columns,
            Qt.Key.Key_Down: self.columns,
        }
        step = steps.get(Qt.Key(event.key()))
        index = next((at for at, card in enumerate(self._cards) if card.isAncestorOf(self._focused())), None)
        if step is None or index is None or not 0 <= index + step < len(self._cards):
            super().keyPressEvent(event)
            return
        card = self._cards[index + step]
        card.setFocus(Qt.FocusReason.TabFocusReason)
        self.reached.emit(card)

    def _focused(self) -> QWidget:
        return self.focusWidget() or self

    def _arrange(self) -> None:
        least = round(CARD_WIDTH * style().scale)
        self.columns = max((self.width() + GAP) // (least + GAP), 1)
        width = (self.width() - (self.columns - 1) * GAP) // self.columns
        top = 0
        for start in range(0, len(self._cards), self.columns):
            row = self._cards[start : start + self.columns]
            height = max(max(card.heightForWidth(width), card.minimumSizeHint().height()) for card in row)
            for column, card in enumerate(row):
                card.setGeometry(column * (width + GAP), top, width, height)
            top += height + GAP
        self.setFixedHeight(max(top - GAP, 0))


class TemplateGroups(QWidget):
    """The template cards in groups. Arrow keys move the focus within a group and to the next one.

    Signals:
        reached: An arrow key moved the focus to this card.
    """

    reached = Signal(QWidget)

    def __init__(self) -> None:
        super().__init__()
        self._grids: dict[str, CardGrid] = {}
        self._layout = vbox(spacing=6, parent=self)

    @property
    def cards(self) -> tuple[TemplateCard, ...]:
        """The cards in order."""
        cards = (card for grid in self._grids.values() for card in grid.cards)
        return tuple(card for card in cards if isinstance(card, TemplateCard))

    def add(self, card: TemplateCard) -> None:
        """Append a card to its group."""
        group = card.template.group
        if group not in self._grids:
            self._grids[group] = CardGrid()
            self._grids[group].reached.connect(self.reached)
            self._layout.addWidget(_section(group, self._grids[group]))
        self._grids[group].add(card)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move the focus from the edge of a group to the one before or after it."""
        grids = list(self._grids.values())
        at = next((at for at, grid in enumerate(grids) if grid.isAncestorOf(self.focusWidget() or self)), None)
        step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Left: -1, Qt.Key.Key_Down: 1, Qt.Key.Key_Right: 1}.get(
            Qt.Key(event.key())
        )
        if at is None or step is None or not 0 <= at + step < len(grids):
            super().keyPressEvent(event)
            return
        card = grids[at + step].cards[0 if step > 0 else -1]
        card.setFocus(Qt.FocusReason.TabFocusReason)
        self.reached.emit(card)


class StartBody(QWidget):
    """The recent files beside the templates, or above them if there is not enough width."""

    def __init__(self, recent: QWidget, templates: QWidget) -> None:
        super().__init__()
        self._recent = recent
        self._both = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._both.setContentsMargins(0, 0, 0, 0)
        self._both.setSpacing(8 * UNIT)
        self._both.addWidget(recent, 0, Qt.AlignmentFlag.AlignTop)
        self._both.addWidget(templates, 1)
        style().changed.connect(self._arrange)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Stack both if they do not fit side by side."""
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        is_wide = self.width() >= BOTH_WIDTH * style().scale
        self._both.setDirection(QBoxLayout.Direction.LeftToRight if is_wide else QBoxLayout.Direction.TopToBottom)
        width = round(RECENT_WIDTH * style().scale)
        self._recent.setMinimumWidth(width if is_wide else 0)
        self._recent.setMaximumWidth(width if is_wide else QWIDGETSIZE_MAX)


ARROWS: Final = frozenset({Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down})


class CardButton(QPushButton):
    """Button that leaves the arrow keys to the grid."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Ignore arrow keys."""
        if event.key() in ARROWS:
            event.ignore()
        else:
            super().keyPressEvent(event)


class TemplateCard(QFrame):
    """Card of a template. A double click, its button and Enter open it.

    Signals:
        opened: The template at this path is to be opened.
    """

    opened = Signal(Path)

    def __init__(self, template: Template) -> None:
        super().__init__()
        self.template = template
        self.setProperty("card", True)
        self.picture = DiagramPicture(template.title)
        self.button = CardButton("Open")
        self.button.setAccessibleName(f"Open {template.title}")
        self.button.setAccessibleDescription(f"{template.about} {template.when}".strip())
        self.button.clicked.connect(self._open)
        self.setFocusProxy(self.button)
        foot = hbox(
            (PlainLabel(template.when, look="dim small", wrap=True), 1),
            (self.button, Qt.AlignmentFlag.AlignBottom),
            spacing=3,
        )
        about = [PlainLabel(template.about, wrap=True)] if template.about else []
        title = PlainLabel(template.title, look="title")
        vbox(self.picture, 1, title, *about, STRETCH, foot, spacing=2, margins=3, parent=self)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Open the template."""
        if event.button() == Qt.MouseButton.LeftButton:
            event.accept()
            self._open()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Open the template with Enter; Space belongs to the button."""
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            event.accept()
            self._open()
        else:
            super().keyPressEvent(event)

    def _open(self) -> None:
        self.opened.emit(self.template.path)


INTRODUCTION: Final = (
    "Build workflows in which a language model improves its own work, run them, and inspect every iteration."
)
MODEL_LINE: Final = "The built-in demo model is good for trying the program, not for good answers."
WIDEST: Final = 1240
"""Maximum width of the page, for readable lines."""


class Gallery(QWidget):
    """The start page.

    Attributes:
        recent: The list of recent files.

    Signals:
        template_chosen: The template at this path is to be opened.
        open_requested: The user wants to choose a file.
        new_requested: The user wants an empty document.
        recent_chosen: This recent file is to be opened.
        models_requested: The user wants to set up models.
    """

    template_chosen = Signal(Path)
    open_requested = Signal()
    new_requested = Signal()
    recent_chosen = Signal(Path)
    models_requested = Signal()

    def __init__(self, folder: Path | None = None) -> None:
        """Create the page.

        Args:
            folder: The folder of templates; the program's own by default.
        """
        super().__init__()
        self.setAccessibleName("Start")
        self._templates = TemplateGroups()
        self.recent = RecentFiles()
        self.recent.chosen.connect(self.recent_chosen)
        self._recent_section = _section("Recent", self.recent)
        self._recent_section.hide()
        self._diagram_worker = Worker(self, is_awaited=False)
        self._file_worker = Worker(self, is_awaited=False)
        page = self._make_page()
        templates, problems = bundled_templates(folder)
        self._has_diagrams = False
        for template in templates:
            card = TemplateCard(template)
            card.opened.connect(self.template_chosen)
            self._templates.add(card)
        if problems:
            self._hint.say(" ".join(problems), "warning")
            self._hint.show()
        self._lay_out(page)

    @property
    def cards(self) -> tuple[TemplateCard, ...]:
        """The template cards in order."""
        return self._templates.cards

    def show_model(self, name: str) -> None:
        """Show which model workflows use by default."""
        self._model_line.setText(MODEL_LINE if name == EMBEDDED_MODEL else f"Default model: {model_label(name)}")

    def set_recent(self, paths: list[Path]) -> None:
        """Set the recent files, latest first."""
        self.recent.show_files(paths)
        self._recent_section.setVisible(bool(paths))
        if paths:
            self._file_worker.ask(partial(_missing_files, paths), self.recent.mark_missing)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Create the diagrams after the first paint; they load much that the page does not need."""
        super().paintEvent(event)
        if not self._has_diagrams:
            self._has_diagrams = True
            call_later(self, self._create_diagrams)

    def _create_diagrams(self) -> None:
        for card in self.cards:
            create = partial(make_diagram, card.template.workflow)
            self._diagram_worker.ask(create, card.picture.set_diagram)

    def _make_page(self) -> QWidget:
        page = QWidget()
        page.setMaximumWidth(WIDEST)
        self._hint = MessageBar()
        self._hint.hide()
        vbox(
            self._head(),
            self._hint,
            StartBody(self._recent_section, self._templates),
            STRETCH,
            spacing=6,
            margins=(8, 6, 8, 8),
            parent=page,
        )
        return page

    def _head(self) -> QVBoxLayout:
        buttons = hbox(
            _button("New workflow", "mdi6.plus", self.new_requested),
            _button("Open…", "mdi6.folder-open-outline", self.open_requested),
            STRETCH,
            spacing=2,
        )
        models = _button("Set up models", "mdi6.cog-outline", self.models_requested)
        models.setProperty("link", True)
        self._model_line = PlainLabel(MODEL_LINE, look="dim", wrap=True)
        model_line = hbox(models, (self._model_line, 1), spacing=2)
        introduction = PlainLabel(INTRODUCTION, look="dim", wrap=True)
        return vbox(PlainLabel("Loopwright", look="heading"), introduction, 2, buttons, model_line, spacing=1)

    def _lay_out(self, page: QWidget) -> None:
        area = QScrollArea()
        vbox(area, parent=self)
        area.setWidgetResizable(True)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        middle = QWidget()
        area.setWidget(middle)  # while it is empty: Qt would style the contents here, and again with each new parent
        hbox(STRETCH, (page, 1000), STRETCH, parent=middle)
        self._templates.reached.connect(area.ensureWidgetVisible)


def _missing_files(paths: Iterable[Path]) -> list[Path]:
    return [path for path in paths if not is_file(path)]


def _section(title: str, body: QWidget) -> QWidget:
    section = QWidget()
    vbox(PlainLabel(title, look="title"), body, spacing=3, parent=section)
    return section


def _button(text: str, icon_name: str, signal: SignalInstance) -> QPushButton:
    button = push_button(text, signal.emit)
    ThemedIcon(button, icon_name)
    return button
