"""Factories of canvas and inspector. They import them on first use: the canvas's library is slow to import."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

if TYPE_CHECKING:
    from app.session import Session


@dataclass(frozen=True, slots=True)
class PageFactories:
    """Creates the canvas and the inspector of a page.

    Attributes:
        canvas: Creates the canvas of a document.
        inspector: Creates the inspector of a document; its second argument returns the available models.
    """

    canvas: Callable[[Session], QWidget]
    inspector: Callable[[Session, Callable[[], list[str]]], QWidget]


def default_factories() -> PageFactories:
    """Return the factories of the real canvas and inspector."""

    def canvas(session: Session) -> QWidget:
        from app.canvas.canvas import Canvas

        return Canvas(session)

    def inspector(session: Session, model_names: Callable[[], list[str]]) -> QWidget:
        from app.inspector.inspector import Inspector

        return Inspector(session, model_names)

    return PageFactories(canvas, inspector)
