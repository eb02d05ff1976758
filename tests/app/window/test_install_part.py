"""What an optional part of the program lacks is installed in the window, by a package client that the test writes."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.settings.install_dialog import InstallDialog
from app.window.document_page import DocumentPage
from app.workbench import Workbench
from engine.document.builder import Builder
from engine.models import embedded
from engine.models.protocol import EMBEDDED_MODEL, ModelError
from tests.app.window.conftest import ended, open_file, saved
from tests.app.window.web_search import NoSearch, no_search, searching
from tests.engine.wheels import HANG, use_stub_client

__all__ = ["no_search"]

LEFT = Qt.MouseButton.LeftButton
PACKAGE = "sample_runtime"

INSTALL = """
package = Path({folder!r}) / "sample_runtime"
package.mkdir()
(package / "__init__.py").touch()
"""


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder from which the runtime of local models would be imported; it is empty."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(embedded, "RUNTIME_PACKAGE", PACKAGE)
    return folder


@pytest.fixture
def document(workbench: Workbench, packages: Path, tmp_path: Path, qtbot: QtBot) -> DocumentPage:
    """A document whose run failed because the runtime is missing."""
    made = Builder("Greeting")
    draft = made.add("llm", id="draft", prompt="Say hi.", model=EMBEDDED_MODEL)
    made.connect(draft["output"], made.add("output", id="text", name="text")["value"])
    document = open_file(workbench, saved(tmp_path, "one.loop.json", made.build()))
    workbench.runs.run(document)
    ended(document, qtbot)
    return document


def bar_button(document: DocumentPage, title: str) -> QPushButton:
    (button,) = (each for each in document.bars.findChildren(QPushButton) if each.text() == title)
    return button


def install_dialog(workbench: Workbench, document: DocumentPage, qtbot: QtBot) -> InstallDialog:
    qtbot.mouseClick(bar_button(document, "Install…"), LEFT)
    (dialog,) = workbench.window.findChildren(InstallDialog)
    return dialog


def test_button_of_the_failed_run_installs_the_part_and_resumes_the_run(
    workbench: Workbench, document: DocumentPage, packages: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelError):
        embedded.find_runtime()
    use_stub_client(monkeypatch, packages.parent / "bin", INSTALL.format(folder=str(packages)))
    dialog = install_dialog(workbench, document, qtbot)

    assert dialog.requirements.text().startswith("xllamacpp==")
    assert dialog.folder.text() == sysconfig.get_path("purelib")
    assert not list(packages.iterdir())

    monkeypatch.setattr(workbench.runs, "run", lambda _document: pytest.fail("calls that had finished are repeated"))
    document.is_stored = lambda: True
    document.resume_wanted.disconnect()
    with qtbot.waitSignals([document.resume_wanted, dialog.installed]):
        qtbot.mouseClick(dialog.start, LEFT)

    assert embedded.find_runtime() == packages
    assert not dialog.isVisible()


def test_failure_is_shown_and_can_be_repeated(
    workbench: Workbench, document: DocumentPage, packages: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_stub_client(monkeypatch, packages.parent / "bin", "sys.exit('error: The index does not answer.')")
    dialog = install_dialog(workbench, document, qtbot)
    qtbot.mouseClick(dialog.start, LEFT)
    qtbot.waitUntil(lambda: "The index does not answer" in dialog.status.text())
    assert (dialog.start.text(), dialog.start.isEnabled(), dialog.bar.isVisible()) == ("Try again", True, False)

    use_stub_client(monkeypatch, packages.parent / "bin", INSTALL.format(folder=str(packages)))
    monkeypatch.setattr(workbench.runs, "run", lambda _document: None)
    with qtbot.waitSignal(dialog.installed):
        qtbot.mouseClick(dialog.start, LEFT)


@pytest.mark.parametrize("way", ["button", "Esc"])
def test_installation_shows_its_progress_and_is_canceled(
    workbench: Workbench,
    document: DocumentPage,
    packages: Path,
    qtbot: QtBot,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    use_stub_client(monkeypatch, packages.parent / "bin", HANG)
    dialog = install_dialog(workbench, document, qtbot)
    qtbot.mouseClick(dialog.start, LEFT)
    qtbot.waitUntil(lambda: dialog.output.full_text == "Downloading sample")
    assert dialog.bar.isVisible()
    assert not dialog.start.isEnabled()

    with qtbot.waitSignal(dialog.rejected):
        if way == "Esc":
            QTest.keyClick(dialog, Qt.Key.Key_Escape)
        else:
            qtbot.mouseClick(dialog.cancel, LEFT)
    assert bar_button(document, "Install…").isVisible()


def test_replaced_package_needs_a_restart(
    workbench: Workbench, document: DocumentPage, packages: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = packages / "other_part-1.dist-info"
    info.mkdir()
    metadata = "Metadata-Version: 2.1\nName: other_part\nVersion: {}\n"
    (info / "METADATA").write_text(metadata.format(1))
    code = f"Path({str(info / 'METADATA')!r}).write_text({metadata.format(2)!r})"
    use_stub_client(monkeypatch, packages.parent / "bin", code)
    dialog = install_dialog(workbench, document, qtbot)
    monkeypatch.setattr(workbench.runs, "run", lambda _document: pytest.fail("it cannot work before the restart"))
    qtbot.mouseClick(dialog.start, LEFT)
    qtbot.waitUntil(lambda: "Restart Loopwright" in dialog.status.text())

    assert (dialog.start.isVisible(), dialog.cancel.text()) == (False, "Close")
    qtbot.mouseClick(dialog.cancel, LEFT)
    assert not dialog.isVisible()


def test_missing_client_is_said_without_a_button(
    workbench: Workbench, document: DocumentPage, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_stub_client(monkeypatch, tmp_path / "bin", "")
    (tmp_path / "bin" / "uv").unlink()
    dialog = install_dialog(workbench, document, qtbot)

    assert "neither pip nor uv" in dialog.status.text()
    assert not dialog.start.isVisible()
    dialog.close()


def test_another_model_can_be_chosen_instead_of_the_runtime(
    workbench: Workbench, document: DocumentPage, qtbot: QtBot
) -> None:
    qtbot.mouseClick(bar_button(document, "Choose a model"), LEFT)
    assert document.inspector.page.form.row("model").editor.combo.hasFocus()


def test_next_run_has_what_was_installed(
    workbench: Workbench, tmp_path: Path, qtbot: QtBot, no_search: NoSearch
) -> None:
    """The tool imports the package that was missing when it failed."""
    document = open_file(workbench, saved(tmp_path, "search.loop.json", searching()))
    document.session.is_trusted = True
    with no_search():
        workbench.runs.run(document)
        ended(document, qtbot)
    dialog = install_dialog(workbench, document, qtbot)
    shown = document.session.shown
    qtbot.mouseClick(dialog.start, LEFT)
    qtbot.waitUntil(
        lambda: shown.live is None and shown.view_model is not None and shown.view_model.status == "completed",
    )
    assert not [button for button in document.bars.findChildren(QPushButton) if button.text() == "Install…"]
