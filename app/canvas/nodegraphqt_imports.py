"""Import the parts of NodeGraphQt that the canvas builds on.

The canvas uses NodeGraphQt's scene, its viewer with the mouse gestures, and its base classes of nodes, ports and pipes.
It does not use the graph and node objects, undo stack, clipboard, session files, cycle check, layout and widgets: the
document holds what they would hold.

NodeGraphQt imports Qt through Qt.py, which loads every Qt module and creates every class in it, and `distutils` through
setuptools. Both together take about ten times as long as NodeGraphQt itself, so stand-ins take their place while it is
being imported. `sys.modules` is restored afterwards: other packages get the real modules.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final

from PySide6.QtCore import QObject, QPoint, QVersionNumber, Signal
from PySide6.QtGui import QMouseEvent

_QT_MODULES: Final = ("QtCore", "QtGui", "QtWidgets")
_RENAMED_CLASSES: Final = {"QRegExp": "QRegularExpression", "QRegExpValidator": "QRegularExpressionValidator"}


class _QtModule(ModuleType):
    """A Qt module whose names are looked up in PySide6 when they are first used.

    Qt.py offers the names where Qt 5 had them; Qt 6 moved some between QtCore, QtGui and QtWidgets.
    """

    def __getattr__(self, name: str) -> Any:
        wanted = _RENAMED_CLASSES.get(name, name)
        for module_name in dict.fromkeys((self.__name__.removeprefix("Qt."), *_QT_MODULES)):
            found = getattr(importlib.import_module(f"PySide6.{module_name}"), wanted, None)
            if found is not None:
                setattr(self, name, found)
                return found
        raise AttributeError(f"PySide6 has no {name}", name=name, obj=self)


class _QtPackage(ModuleType):
    """Replacement for Qt.py that loads a Qt module when it is first used."""

    QtCompat = ModuleType("Qt.QtCompat")

    def __getattr__(self, name: str) -> ModuleType:
        if not name.startswith("Qt"):
            raise AttributeError(name=name, obj=self)
        module = _QtModule(f"Qt.{name}")
        setattr(self, name, module)
        return module


@contextmanager
def _stand_ins() -> Iterator[None]:
    """Replace Qt.py and distutils in `sys.modules`."""
    version = ModuleType("distutils.version")
    version.__dict__["LooseVersion"] = QVersionNumber.fromString
    replaced: dict[str, ModuleType] = {"Qt": _QtPackage("Qt"), "distutils.version": version}
    before = {name: sys.modules.get(name) for name in replaced}
    sys.modules.update(replaced)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


with _stand_ins(), warnings.catch_warnings():
    warnings.simplefilter("ignore")  # some string literals in NodeGraphQt have invalid escapes
    from NodeGraphQt.constants import PortTypeEnum
    from NodeGraphQt.qgraphics.node_abstract import AbstractNodeItem
    from NodeGraphQt.qgraphics.pipe import PipeItem
    from NodeGraphQt.qgraphics.port import PortItem
    from NodeGraphQt.widgets import viewer
    from NodeGraphQt.widgets.viewer import NodeViewer


class _NullSearchWidget(QObject):
    """Replacement for the viewer's search box, which takes longer to create than most of a canvas."""

    search_submitted = Signal(str)

    def isVisible(self) -> bool:
        return False


viewer.TabSearchMenuWidget = _NullSearchWidget


def _pos(event: QMouseEvent) -> QPoint:
    return event.position().toPoint()


QMouseEvent.pos = _pos  # NodeGraphQt's viewer calls the deprecated `pos` on each move; Qt would warn each time

__all__ = ["INPUT", "OUTPUT", "AbstractNodeItem", "NodeViewer", "PipeItem", "PortItem"]

INPUT: str = PortTypeEnum.IN.value
OUTPUT: str = PortTypeEnum.OUT.value
