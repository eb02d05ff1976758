"""Tests that must fail because each leaves something behind; `test_guards` runs them.

Pytest does not collect this file by itself.
"""

from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import QTimer, qWarning
from PySide6.QtWidgets import QApplication

from app.timers import call_later


@pytest.fixture
def thread_patience_s() -> float:
    return 0.0  # the thread never ends


def test_that_leaves_a_thread() -> None:
    threading.Thread(target=threading.Event().wait, name="forgotten", daemon=True).start()


def test_that_warns(qapp: QApplication) -> None:
    qWarning("something is not as it should be")


def test_that_makes_qt_warn(qapp: QApplication) -> None:
    QTimer(qapp).start(-1)


def test_that_raises_in_a_handler(qapp: QApplication) -> None:
    def fail() -> None:
        raise ValueError("nobody catches this")

    call_later(qapp, fail)
    qapp.processEvents()


def test_that_leaves_nothing(qapp: QApplication) -> None:
    qapp.processEvents()
