"""The large parts of the window, made on first use: importing the canvas's library takes a second."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

if TYPE_CHECKING:
    from app.session import Session


@dataclass(frozen=True, slots=True)
class Parts:
    """How the parts of a document's page are made.

    Attributes:
        canvas: The canvas of a document.
        inspector: The inspector of a document; is given a function that lists names of models.
    """

    canvas: Callable[[Session], QWidget]
    inspector: Callable[[Session, Callable[[], list[str]]], QWidget]


def real_parts() -> Parts:
    """The parts as they are."""

    def canvas(session: Session) -> QWidget:
        from app.canvas.canvas import Canvas

        return Canvas(session)

    def inspector(session: Session, model_names: Callable[[], list[str]]) -> QWidget:
        from app.inspector.inspector import Inspector

        return Inspector(session, model_names)

    return Parts(canvas, inspector)
