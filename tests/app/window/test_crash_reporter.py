from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.window.crash_reporter import MESSAGE, CrashDialog, CrashReporter
from app.window.document_page import DocumentPage
from app.workbench import Workbench
from engine.document.operations import SetText
from engine.errors import EngineError


@pytest.fixture
def guard(qapp: object) -> Iterator[CrashReporter]:
    before = sys.excepthook, threading.excepthook
    guard = CrashReporter()
    guard.install()
    yield guard
    guard.uninstall()
    assert sys.excepthook is sys.__excepthook__
    sys.excepthook, threading.excepthook = before
    guard.deleteLater()


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


def test_crash_is_reported_in_one_sentence_with_details(guard: CrashReporter, qtbot: QtBot) -> None:
    error = raised(ZeroDivisionError("by zero"))

    with qtbot.waitSignal(guard.crashed) as reported:
        sys.excepthook(type(error), error, error.__traceback__)

    sentence, details = reported.args
    assert sentence == MESSAGE
    assert "ZeroDivisionError: by zero" in details
    assert "test_crash_reporter.py" in details


def test_crash_in_a_thread_is_reported_in_the_window_thread(guard: CrashReporter, qtbot: QtBot) -> None:
    seen: list[threading.Thread] = []
    guard.crashed.connect(lambda *_: seen.append(threading.current_thread()))

    with qtbot.waitSignal(guard.crashed):
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()

    assert seen == [threading.main_thread()]


def test_engine_error_is_reported_with_its_own_message(guard: CrashReporter, qtbot: QtBot) -> None:
    error = raised(EngineError("It is full.", "Empty it."))

    with qtbot.waitSignal(guard.crashed) as reported:
        guard.catch(type(error), error, error.__traceback__)

    assert reported.args[0] == "It is full. Empty it."


def test_interrupt_is_not_a_crash(guard: CrashReporter, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(guard.crashed, wait=20):
        guard.catch(KeyboardInterrupt, KeyboardInterrupt(), None)


def test_crashes_go_to_the_terminal_only_if_asked(
    guard: CrashReporter, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = raised(ValueError("odd"))
    for asked in ("", "1"):
        monkeypatch.setenv("LOOPWRIGHT_DEBUG", asked)
        with qtbot.waitSignal(guard.crashed):
            guard.catch(type(error), error, error.__traceback__)
        assert ("odd" in capsys.readouterr().err) is bool(asked)


def test_crash_dialog_collapses_and_copies_details(qapp: object, qtbot: QtBot) -> None:
    dialog = CrashDialog(MESSAGE, "Traceback: odd")
    dialog.show()
    assert not dialog.isModal()
    assert not dialog.details.isVisible()

    QTest.mouseClick(dialog.fold.button, Qt.MouseButton.LeftButton)
    assert dialog.details.isVisible()
    QTest.mouseClick(dialog.copy, Qt.MouseButton.LeftButton)

    assert QGuiApplication.clipboard().text() == "Traceback: odd"
    dialog.close()


def test_crash_autosaves_unsaved_work_at_once(workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot) -> None:
    from app.main import report_crashes

    before = sys.excepthook, threading.excepthook
    guard = report_crashes(workbench)
    self_refine.session.do(SetText("description", "new"))
    self_refine.autosave._timer.setInterval(1_000_000)
    error = raised(ValueError("odd"))

    with qtbot.waitSignal(self_refine.autosave.autosaved):
        guard.catch(type(error), error, error.__traceback__)

    (dialog,) = workbench.window.findChildren(CrashDialog)
    assert dialog.isVisible()
    other = raised(ZeroDivisionError("by zero"))
    for fault in (error, other, error, other):
        with qtbot.waitSignal(guard.crashed):
            guard.catch(type(fault), fault, fault.__traceback__)
    assert workbench.window.findChildren(CrashDialog) == [dialog], "one that comes again and again covers nothing"
    assert dialog.details.toPlainText().count("ValueError: odd") == 1
    assert dialog.details.toPlainText().count("ZeroDivisionError: by zero") == 1
    assert "new" in self_refine.session.workflow.description
    dialog.close()
    guard.uninstall()
    sys.excepthook, threading.excepthook = before
