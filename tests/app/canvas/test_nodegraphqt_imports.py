"""NodeGraphQt is imported with stand-ins for Qt.py and distutils, and other packages do not notice."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from PySide6.QtGui import QAction, QRegularExpressionValidator

from app.canvas import nodegraphqt_imports

CANVAS_FIRST = """
import app.canvas.nodegraphqt_imports
import Qt
from distutils.version import LooseVersion

assert Qt.__binding__ == "PySide6"
assert Qt.QtCompat.translate
assert LooseVersion("1.2rc1") < LooseVersion("1.10")
"""
QT_PY_FIRST = """
import sys
import Qt
import app.canvas.nodegraphqt_imports

assert sys.modules["Qt"] is Qt
assert Qt.__binding__ == "PySide6"
"""


@pytest.mark.parametrize("program", [CANVAS_FIRST, QT_PY_FIRST], ids=["canvas first", "Qt.py first"])
def test_other_packages_get_the_real_qt_py_and_distutils(program: str) -> None:
    environment = {**os.environ, "QT_PREFERRED_BINDING": "PySide6"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False, env=environment
    )
    assert not done.returncode, done.stderr


def test_stand_in_finds_classes_where_qt_5_had_them() -> None:
    qt = nodegraphqt_imports._QtPackage("Qt")
    assert qt.QtWidgets.QAction is QAction
    assert qt.QtGui.QRegExpValidator is QRegularExpressionValidator
    with pytest.raises(AttributeError, match="QNothing"):
        _ = qt.QtCore.QNothing
    with pytest.raises(AttributeError):
        _ = qt.IsPyQt5
