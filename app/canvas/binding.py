"""The parts of NodeGraphQt that the canvas is built on, imported in one place.

Used are its scene, its viewer with the mouse gestures, and its base classes of nodes, ports and pipes. Not used are its
graph and node objects, undo stack, clipboard, session files, cycle check, layout and widgets: what they would hold
stands in the document. Importing this module takes about a third of a second, so it is imported with the canvas and not
with the program.
"""

from __future__ import annotations

import os
import warnings

from PySide6.QtCore import QPoint
from PySide6.QtGui import QMouseEvent

os.environ.setdefault("QT_PREFERRED_BINDING", "PySide6")  # else Qt.py imports every binding and module that there is

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it imports distutils, and escapes in its texts are not valid
    from NodeGraphQt.constants import PortTypeEnum
    from NodeGraphQt.qgraphics.node_abstract import AbstractNodeItem
    from NodeGraphQt.qgraphics.pipe import PipeItem
    from NodeGraphQt.qgraphics.port import PortItem
    from NodeGraphQt.widgets.viewer import NodeViewer


def _place(event: QMouseEvent) -> QPoint:
    return event.position().toPoint()


QMouseEvent.pos = _place  # its viewer asks for that at each move, and Qt's own, which is deprecated, warns each time

__all__ = ["INPUT", "OUTPUT", "AbstractNodeItem", "NodeViewer", "PipeItem", "PortItem"]

INPUT: str = PortTypeEnum.IN.value
OUTPUT: str = PortTypeEnum.OUT.value
