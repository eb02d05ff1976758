"""Shows the user guide, and the tour of the window."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from app.dialogs import show_failure
from app.gallery.gallery import Gallery
from app.help.tour import Tour, TourStep
from app.settings.preferences import Preferences
from app.window.bottom_panel import BottomPanel
from app.window.document_tabs import DocumentTabs
from app.window.run_bar import RunBar
from engine.bundled import templates_folder
from engine.errors import EngineError
from engine.nodes.spec import Category

if TYPE_CHECKING:
    from app.help.guide_window import GuideWindow
    from app.window.document_page import DocumentPage

TOUR: Final = "tour"
"""The name of the tour among the hints that the user has seen."""


class HelpController(QObject):
    """Implements the commands of the Help menu.

    Args:
        window: The main window.
        preferences: The user's settings, for whether the tour was shown.
        tabs: The tabs with the documents and the start page.
        run_bar: The bar with the Run button.
        bottom_panel: The panel with the iterations.
        open_template: Opens a copy of a template.
        show_inspector: Makes the inspector visible.

    Attributes:
        guide: The window of the guide; None until it is first opened.
        tour: The tour; None while none is shown.
    """

    def __init__(
        self,
        window: QWidget,
        preferences: Preferences,
        tabs: DocumentTabs,
        gallery: Gallery,
        run_bar: RunBar,
        bottom_panel: BottomPanel,
        open_template: Callable[[Path], DocumentPage | None],
        show_inspector: Callable[[], object],
    ) -> None:
        super().__init__(window)
        self._window = window
        self._preferences = preferences
        self._tabs = tabs
        self._gallery = gallery
        self._run_bar = run_bar
        self._bottom_panel = bottom_panel
        self._open_template = open_template
        self._show_inspector = show_inspector
        self.guide: GuideWindow | None = None
        self.tour: Tour | None = None

    def show_guide(self) -> None:
        """Show the window of the guide."""
        from app.help.guide_window import GuideWindow

        if self.guide is None:
            try:
                self.guide = GuideWindow(self._window)
            except (EngineError, OSError) as error:
                show_failure(self._window, "The user guide cannot be opened.", str(error))
                return
            self.guide.template_wanted.connect(lambda name: self._open_template(templates_folder() / name))
        self.guide.show()
        self.guide.raise_()
        self.guide.activateWindow()

    def offer_tour(self) -> None:
        """Start the tour at the first start of the program, unless a document is open."""
        if not self._preferences.has_learned(TOUR) and self._tabs.current is None:
            self.start_tour()

    def start_tour(self) -> None:
        """Start the tour, or start it again."""
        if self.tour is not None:
            self.tour.end()
        self._preferences.learn(TOUR)
        tour = Tour(self._window, self._steps())
        self.tour = tour
        tour.ended.connect(lambda: setattr(self, "tour", None))
        tour.show_step(0)

    def _steps(self) -> tuple[TourStep, ...]:
        return (
            TourStep(
                "Start with a template",
                "A template is a complete workflow. This one drafts a text, criticizes it, and writes it again. "
                "Click Next to open it.",
                self._first_card,
            ),
            TourStep(
                "Read the workflow",
                "Each card is a node, one step of the work, from left to right. The tinted region is a loop: its nodes "
                "run again until the loop stops. Click + beside a node to add another.",
                self._canvas,
            ),
            TourStep(
                "Change what a node does",
                "Select a node to see its prompt, its model and its other settings here. After a run, Result shows "
                "what it received and what it wrote.",
                self._inspector,
            ),
            TourStep(
                "Run it",
                "Click Run to start. The built-in demo model needs no key and costs nothing, but its answers are poor; "
                "choose a better one under Settings.",
                lambda: self._run_bar.run if self._tabs.current is not None else None,
            ),
            TourStep(
                "Look through the iterations",
                "Every iteration is stored. Open this panel to look at each one, compare two of them, or continue from "
                "one with another prompt. Press F1 for the user guide.",
                lambda: self._bottom_panel.buttons["iterations"] if self._tabs.current is not None else None,
            ),
        )

    def _first_card(self) -> QWidget | None:
        self._tabs.show_start()
        return self._gallery.cards[0] if self._gallery.cards else None

    def _document(self) -> DocumentPage | None:
        """The current document; without one, the last one, or a new one from the first template."""
        document = self._tabs.current or next(reversed(self._tabs.documents), None)
        if document is None:
            document = self._open_template(self._gallery.cards[0].template.path) if self._gallery.cards else None
        if document is not None:
            self._tabs.show_document(document)
        return document

    def _canvas(self) -> QWidget | None:
        document = self._document()
        return document.canvas if document is not None else None

    def _inspector(self) -> QWidget | None:
        document = self._document()
        if document is None:
            return None
        self._show_inspector()
        session = document.session
        specs = ((node.id, session.registry.find(node.type)) for node in session.workflow.nodes)
        models = [node_id for node_id, spec in specs if spec is not None and spec.category is Category.AI]
        session.select(models[:1])
        return document.inspector
