"""*Get a local model*: download from a loopback hub, pause, resume, refusals, and choosing the model."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMessageBox, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app.engine_thread import EngineThread
from app.inspector.model_list import ModelList, ModelSource
from app.settings import model_download
from app.settings.key_dialog import KeyDialog
from app.settings.model_download import ModelDownloadDialog
from app.settings.preferences import Preferences
from app.settings.settings_dialog import SettingsDialog
from app.theme.style import style
from engine.errors import EngineError
from engine.models import file_download
from engine.models.demo_weights import find_weights
from engine.models.embedded import EmbeddedModel, WorkerMessage
from engine.models.gguf_files import models_folder
from engine.models.model_hub import CATALOG, DEMO
from engine.models.protocol import EMBEDDED_MODEL, Message, Request
from tests.app.settings.conftest import MemoryKeyring
from tests.engine.models.embedded_fixtures import process_id
from tests.engine.models.gguf_writer import header_bytes, language_model
from tests.engine.models.loopback_hub import Answer, LoopbackHub

CONTENT = header_bytes(language_model()) + random.Random(1).randbytes(2_000_000)
NAMES = [model.name for model in CATALOG]
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ring: MemoryKeyring) -> Iterator[LoopbackHub]:
    monkeypatch.setenv("LOOPWRIGHT_MODELS_FOLDER", str(tmp_path / "models"))
    monkeypatch.setattr(file_download, "_FIRST_WAIT_S", 0.0)
    monkeypatch.setattr(file_download, "_REPORT_INTERVAL_S", 0.0)
    with LoopbackHub(CONTENT) as hub:
        hub.use(monkeypatch)
        yield hub


@pytest.fixture
def dialog(
    hub: LoopbackHub, preferences: Preferences, engine_thread: EngineThread, qtbot: QtBot
) -> Iterator[ModelDownloadDialog]:
    owner = QWidget()
    qtbot.addWidget(owner)
    dialog = ModelDownloadDialog(engine_thread, preferences, owner)
    dialog.show_for(None, "qwen2.5-1.5b")
    yield dialog
    hub.go_on.set()
    if isValid(dialog):
        dialog.close()


def press(dialog: ModelDownloadDialog, qtbot: QtBot, text: str) -> None:
    """Press the main button once it has a text."""
    qtbot.waitUntil(lambda: dialog.start.text() == text and dialog.start.isEnabled())
    qtbot.mouseClick(dialog.start, LEFT)


def row_of(dialog: ModelDownloadDialog, title: str) -> int:
    """The row of a model by its title."""
    return [dialog.table.item(row, 0).text() for row in range(dialog.table.rowCount())].index(title)


def pause_in_the_middle(dialog: ModelDownloadDialog, hub: LoopbackHub, qtbot: QtBot) -> None:
    hub.content_answers.append(Answer(stall_after=1_000_000))
    press(dialog, qtbot, "Download")
    qtbot.waitUntil(lambda: dialog.status.text().startswith("1.0 MB of 2.0 MB"))
    press(dialog, qtbot, "Pause")
    qtbot.waitUntil(lambda: not dialog.is_running)
    hub.go_on.set()


def test_catalog_says_size_memory_and_license_and_asks_nobody(dialog: ModelDownloadDialog, hub: LoopbackHub) -> None:
    shown = [[dialog.table.item(row, column).text() for column in range(5)] for row in range(dialog.table.rowCount())]

    assert ["Qwen2.5 1.5B Instruct", "Small", "1.1 GB", "2.0 GB", "Apache 2.0"] in shown
    assert dialog.table.currentRow() == NAMES.index("qwen2.5-1.5b")
    assert hub.asked == []


def test_downloaded_model_is_used_where_it_was_wanted(
    dialog: ModelDownloadDialog, hub: LoopbackHub, qtbot: QtBot
) -> None:
    used: list[str] = []
    dialog.show_for(used.append)
    with qtbot.waitSignal(dialog.downloaded) as signal:
        press(dialog, qtbot, "Download")
    press(dialog, qtbot, "Use this model")

    (file,) = models_folder().iterdir()
    assert file.read_bytes() == CONTENT
    assert used == signal.args == ["gguf:qwen2.5-1.5b-instruct-q4_k_m"]
    assert not dialog.isVisible()


def test_downloaded_model_becomes_the_default_model(
    dialog: ModelDownloadDialog, preferences: Preferences, qtbot: QtBot
) -> None:
    assert str(models_folder()) not in dialog.about.text()
    press(dialog, qtbot, "Download")
    press(dialog, qtbot, "Use as default model")

    assert str(models_folder()) in dialog.about.text()
    assert preferences.values.default_model == "gguf:qwen2.5-1.5b-instruct-q4_k_m"
    assert preferences.values.recent_models[0] == "gguf:qwen2.5-1.5b-instruct-q4_k_m"


def test_model_that_is_there_becomes_the_default_model(
    dialog: ModelDownloadDialog, preferences: Preferences, qtbot: QtBot
) -> None:
    dialog.show_for(None, DEMO)
    press(dialog, qtbot, "Use as default model")

    assert preferences.values.default_model == EMBEDDED_MODEL
    assert not dialog.start.isEnabled()


def test_demo_model_that_a_run_could_not_load_can_be_downloaded_though_its_file_is_there(
    dialog: ModelDownloadDialog, qtbot: QtBot
) -> None:
    ran: list[str] = []
    dialog.show_for(None, DEMO, ran.append)
    press(dialog, qtbot, "Download")
    qtbot.waitUntil(lambda: bool(ran))

    assert ran == [EMBEDDED_MODEL]
    assert dialog.start.text() == "Use as default model"


def test_paused_download_resumes(dialog: ModelDownloadDialog, hub: LoopbackHub, qtbot: QtBot) -> None:
    pause_in_the_middle(dialog, hub, qtbot)
    assert dialog.status.text().startswith("Paused: 1.0 MB")
    with qtbot.waitSignal(dialog.downloaded):
        press(dialog, qtbot, "Resume")

    assert hub.range_starts == [None, "bytes=1000000-"]
    assert not dialog.discard.isVisible()


def test_partial_download_is_deleted_by_a_button(dialog: ModelDownloadDialog, hub: LoopbackHub, qtbot: QtBot) -> None:
    pause_in_the_middle(dialog, hub, qtbot)
    qtbot.mouseClick(dialog.discard, LEFT)

    assert dialog.start.text() == "Download"
    assert list(models_folder().iterdir()) == []


def test_closing_pauses_the_download(
    dialog: ModelDownloadDialog, hub: LoopbackHub, engine_thread: EngineThread, qtbot: QtBot
) -> None:
    hub.content_answers.append(Answer(stall_after=1_000_000))
    press(dialog, qtbot, "Download")
    qtbot.waitUntil(lambda: dialog.status.text().startswith("1.0 MB of 2.0 MB"))
    dialog.close()
    part = models_folder() / "qwen2.5-1.5b-instruct-q4_k_m.gguf.part"
    qtbot.waitUntil(lambda: part.stat().st_size == 1_000_000)


def test_any_file_of_the_hub_is_looked_up_first(dialog: ModelDownloadDialog, hub: LoopbackHub, qtbot: QtBot) -> None:
    qtbot.keyClicks(dialog.other, "maker/model/other.gguf")
    assert dialog.other.text() == "maker/model/other.gguf"
    press(dialog, qtbot, "Look up")
    qtbot.waitUntil(lambda: "other.gguf: 2.0 MB" in dialog.about.text())
    with qtbot.waitSignal(dialog.downloaded) as signal:
        press(dialog, qtbot, "Download")

    assert signal.args == ["gguf:other"]
    assert dialog.table.currentRow() == row_of(dialog, "other")
    assert dialog.other.text() == ""


def test_pasted_address_stays_and_deselects_the_row(dialog: ModelDownloadDialog, qtbot: QtBot) -> None:
    dialog.other.setFocus()
    QGuiApplication.clipboard().setText("maker/model/other.gguf")
    qtbot.keyClick(dialog.other, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)

    assert dialog.other.text() == "maker/model/other.gguf"
    assert dialog.table.selectedItems() == []
    assert dialog.start.text() == "Look up"

    dialog.table.selectRow(1)
    assert (dialog.other.text(), dialog.start.text()) == ("", "Download")


@pytest.mark.parametrize("status", [200, 404])
def test_answer_about_a_text_that_was_changed_is_ignored(
    dialog: ModelDownloadDialog, hub: LoopbackHub, qtbot: QtBot, status: int
) -> None:
    hub.hub_answers.append(Answer(status))
    qtbot.keyClicks(dialog.other, "maker/model/other.gguf")
    qtbot.mouseClick(dialog.start, LEFT)
    qtbot.keyClick(dialog.other, Qt.Key.Key_Backspace)
    changed = "maker/model/another.gguf"
    dialog.other.selectAll()
    qtbot.keyClicks(dialog.other, changed)
    qtbot.waitUntil(lambda: len(hub.asked) == 1)
    press(dialog, qtbot, "Look up")
    qtbot.waitUntil(lambda: dialog.chosen is not None)

    assert dialog.chosen is not None
    assert dialog.chosen.target.name == "another.gguf"
    assert dialog.status.text() == ""


def test_another_file_of_the_same_name_is_not_offered_for_use(dialog: ModelDownloadDialog, qtbot: QtBot) -> None:
    models_folder().mkdir()
    (models_folder() / "other.gguf").write_bytes(b"GGUF")
    qtbot.keyClicks(dialog.other, "maker/model/other.gguf")
    press(dialog, qtbot, "Look up")
    qtbot.waitUntil(lambda: "another file" in dialog.status.text())

    assert dialog.chosen is None
    assert dialog.start.text() == "Look up"


def test_every_paused_download_has_a_row_to_resume_or_delete_it(
    dialog: ModelDownloadDialog, hub: LoopbackHub, preferences: Preferences, engine_thread: EngineThread, qtbot: QtBot
) -> None:
    pause_in_the_middle(dialog, hub, qtbot)
    for name in ("one.gguf", "two.gguf"):
        hub.go_on.clear()
        dialog.other.clear()
        qtbot.keyClicks(dialog.other, f"maker/model/{name}")
        press(dialog, qtbot, "Look up")
        pause_in_the_middle(dialog, hub, qtbot)
    dialog.close()
    again = ModelDownloadDialog(engine_thread, preferences)
    qtbot.addWidget(again)
    again.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    again.show_for(None)

    rows = [row_of(again, title) for title in ("Qwen2.5 1.5B Instruct", "one", "two")]
    assert again.table.currentRow() == rows[0]
    assert [again.table.item(row, 2).text() for row in rows] == ["1.0 MB of 1.1 GB", *["1.0 MB of 2.0 MB"] * 2]
    again.table.selectRow(rows[1])
    with qtbot.waitSignal(again.downloaded):
        press(again, qtbot, "Resume")
    assert (models_folder() / "one.gguf").read_bytes() == CONTENT
    assert hub.range_starts[-1] == "bytes=1000000-"
    assert (again.start.text(), again.table.currentRow()) == ("Use as default model", row_of(again, "one"))

    again.table.selectRow(row_of(again, "two"))
    qtbot.mouseClick(again.discard, LEFT)
    again.table.selectRow(row_of(again, "Qwen2.5 1.5B Instruct"))
    qtbot.mouseClick(again.discard, LEFT)
    assert [file.name for file in models_folder().iterdir()] == ["one.gguf"]
    assert again.table.rowCount() == len(CATALOG) + 1


def answer(dialog: ModelDownloadDialog, text: str) -> str:
    """Answer the question that is open; return it."""
    (box,) = dialog.findChildren(QMessageBox)
    (button,) = (button for button in box.buttons() if button.text() == text)
    question = f"{box.text()} {box.informativeText()}"
    button.click()
    return question


def test_downloaded_model_is_deleted_after_a_question(dialog: ModelDownloadDialog, qtbot: QtBot) -> None:
    assert not dialog.delete.isVisible()
    with qtbot.waitSignal(dialog.downloaded):
        press(dialog, qtbot, "Download")
    file = models_folder() / "qwen2.5-1.5b-instruct-q4_k_m.gguf"
    qtbot.mouseClick(dialog.delete, LEFT)
    question = answer(dialog, "Cancel")
    assert (str(file) in question, "(2.0 MB)" in question, file.exists()) == (True, True, True)

    qtbot.waitUntil(lambda: not dialog.findChildren(QMessageBox))
    qtbot.mouseClick(dialog.delete, LEFT)
    with qtbot.waitSignal(dialog.deleted) as signal:
        answer(dialog, "Delete")
    assert signal.args == ["gguf:qwen2.5-1.5b-instruct-q4_k_m"]
    assert list(models_folder().iterdir()) == []
    assert not dialog.delete.isVisible()


def test_model_in_several_files_is_deleted_as_one(dialog: ModelDownloadDialog, qtbot: QtBot) -> None:
    models_folder().mkdir()
    for number in (1, 2, 3):
        (models_folder() / f"Big-0000{number}-of-00003.gguf").write_bytes(header_bytes(language_model()))
    dialog.show_for(None)
    dialog.table.selectRow(row_of(dialog, "Big"))
    assert dialog.start.text() == "Use as default model"
    qtbot.mouseClick(dialog.delete, LEFT)
    with qtbot.waitSignal(dialog.deleted):
        assert "2 more files" in answer(dialog, "Delete")

    assert list(models_folder().iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("Big-00001-of-00003.gguf", header_bytes(language_model()), "2 of its 3 parts are missing"),
        ("Big.gguf", header_bytes(language_model(), tensors=[((9,), 0, 0)]), "incomplete"),
        ("Big.gguf", header_bytes({"general.architecture": "bert"}), "not a language model"),
    ],
    ids=["part missing", "cut", "no language model"],
)
def test_file_that_cannot_be_used_can_only_be_deleted(
    dialog: ModelDownloadDialog, name: str, content: bytes, reason: str
) -> None:
    models_folder().mkdir()
    (models_folder() / name).write_bytes(content)
    dialog.show_for(None)
    dialog.table.selectRow(row_of(dialog, "Big"))

    assert not dialog.start.isEnabled()
    assert reason in dialog.about.text()
    assert dialog.table.item(dialog.table.currentRow(), 0).toolTip().count("Unusable") == 1
    assert dialog.delete.isVisible()


def test_dialog_grows_with_the_text_size_while_it_is_open(dialog: ModelDownloadDialog, qtbot: QtBot) -> None:
    style().choose("dark", 1.5)
    qtbot.waitUntil(lambda: dialog.width() >= 1.5 * model_download.WIDTH)
    bottoms = [widget.geometry().bottom() for widget in (dialog.table, dialog.other, dialog.about, dialog.start)]

    assert bottoms == sorted(bottoms)
    assert dialog.other.geometry().top() > dialog.table.geometry().bottom()
    assert dialog.table.columnWidth(0) > dialog.table.columnWidth(1)
    style().choose("dark", 1.0)


def test_model_of_the_package_cannot_be_deleted(dialog: ModelDownloadDialog) -> None:
    dialog.show_for(None, DEMO)

    assert dialog.start.text() == "Use as default model"
    assert not dialog.delete.isVisible()


def test_loaded_model_is_deleted_but_not_one_that_a_run_uses(
    dialog: ModelDownloadDialog, engine_thread: EngineThread, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    file = models_folder() / "Tiny-Chat.gguf"
    models_folder().mkdir()
    file.symlink_to(find_weights())
    model = engine_thread.models.get("gguf:tiny-chat")
    assert isinstance(model, EmbeddedModel)
    began: list[str] = []
    is_refused, receive = threading.Event(), model._on_message

    def delay_end(message: WorkerMessage) -> None:  # the model may be faster than the window
        if message.tell not in {"ready", "text"}:
            is_refused.wait(60)
        receive(message)

    monkeypatch.setattr(model, "_on_message", delay_end)
    request = Request((Message("user", "Count to a thousand."),))
    call = engine_thread.ask(dialog, model.complete(request, began.append), lambda _reply: None, print)
    qtbot.waitUntil(lambda: bool(began))
    dialog.show_for(None)
    dialog.table.selectRow(row_of(dialog, "Tiny-Chat"))
    qtbot.mouseClick(dialog.delete, LEFT)
    answer(dialog, "Delete")
    qtbot.waitUntil(lambda: "gguf:tiny-chat" in dialog.status.text())
    assert file.exists()

    is_refused.set()
    call.cancel()
    qtbot.waitUntil(lambda: not dialog.findChildren(QMessageBox))

    def is_deleted() -> bool:  # once the call has ended
        if dialog.delete.isVisible() and not dialog.findChildren(QMessageBox):
            qtbot.mouseClick(dialog.delete, LEFT)
            if dialog.findChildren(QMessageBox):  # none if it was just deleted
                answer(dialog, "Delete")
        return not file.is_symlink()

    qtbot.waitUntil(is_deleted)
    assert process_id(model) is None


def test_nothing_is_downloaded_while_a_model_is_being_deleted(
    dialog: ModelDownloadDialog, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    may_fail = threading.Event()

    def fail(_files: object) -> None:
        may_fail.wait(60)
        raise EngineError("The disk is read-only.")

    monkeypatch.setattr(model_download, "delete_files", fail)
    file = models_folder() / "Tiny-Chat.gguf"
    models_folder().mkdir()
    file.symlink_to(find_weights())
    dialog.show_for(None)
    dialog.table.selectRow(row_of(dialog, "Tiny-Chat"))
    qtbot.mouseClick(dialog.delete, LEFT)
    answer(dialog, "Delete")
    assert not dialog.delete.isEnabled()
    dialog.table.selectRow(1)
    assert (dialog.start.text(), dialog.start.isEnabled()) == ("Download", False)

    may_fail.set()
    qtbot.waitUntil(lambda: "read-only" in dialog.status.text())
    assert dialog.start.isEnabled()
    assert dialog.delete.isEnabled()


def test_model_that_was_deleted_meanwhile_leaves_the_list(dialog: ModelDownloadDialog, qtbot: QtBot) -> None:
    file = models_folder() / "Tiny-Chat.gguf"
    models_folder().mkdir()
    file.symlink_to(find_weights())
    dialog.show_for(None)
    dialog.table.selectRow(row_of(dialog, "Tiny-Chat"))
    file.unlink()
    qtbot.mouseClick(dialog.delete, LEFT)
    assert not dialog.findChildren(QMessageBox)
    titles = [dialog.table.item(row, 0).text() for row in range(dialog.table.rowCount())]
    assert "Tiny-Chat" not in titles


def test_refusal_offers_a_key_for_the_host(dialog: ModelDownloadDialog, hub: LoopbackHub, qtbot: QtBot) -> None:
    hub.hub_answers.append(Answer(401, (("X-Error-Code", "GatedRepo"),)))
    press(dialog, qtbot, "Download")
    qtbot.waitUntil(dialog.add_key.isVisible)
    host = hub.url.removeprefix("http://")
    assert host in dialog.status.text()
    qtbot.mouseClick(dialog.add_key, LEFT)
    (key,) = dialog.findChildren(KeyDialog)
    qtbot.keyClicks(key.field, "hf_secret")
    with qtbot.waitSignal(key.key_saved):
        qtbot.mouseClick(key.save, LEFT)
    with qtbot.waitSignal(dialog.downloaded):
        press(dialog, qtbot, "Download")

    assert [headers["Authorization"] for _, headers in hub.asked][-1] == "Bearer hf_secret"
    assert {headers["Authorization"] for _, headers in hub.sent} == {None}


def test_failed_download_says_why_and_can_be_repeated(
    dialog: ModelDownloadDialog, hub: LoopbackHub, qtbot: QtBot
) -> None:
    hub.linked_etag = "0" * 64
    press(dialog, qtbot, "Download")
    qtbot.waitUntil(lambda: "checksum" in dialog.status.text())
    hub.linked_etag = None
    with qtbot.waitSignal(dialog.downloaded):
        press(dialog, qtbot, "Download")


def test_too_little_memory_is_a_warning(
    hub: LoopbackHub,
    preferences: Preferences,
    engine_thread: EngineThread,
    qtbot: QtBot,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(model_download, "memory_of_machine", lambda: 3_000_000_000)
    dialog = ModelDownloadDialog(engine_thread, preferences)
    qtbot.addWidget(dialog)
    dialog.show_for(None, "qwen2.5-1.5b")
    assert "more memory" not in dialog.about.text()
    dialog.show_for(None, "mistral-7b")

    assert "more memory" in dialog.about.text()
    assert dialog.about.property("tone") == "warning"
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)


def test_settings_and_lists_of_models_lead_to_the_dialog(
    preferences: Preferences, engine_thread: EngineThread, ring: MemoryKeyring, qtbot: QtBot
) -> None:
    source, wanted, chosen = ModelSource(), [], []
    source.download_requested.connect(wanted.append)
    settings = SettingsDialog(preferences, engine_thread, source)
    qtbot.addWidget(settings)
    qtbot.mouseClick(settings.get_model, LEFT)
    assert wanted == [None]

    models = ModelList(source, chosen.append, settings)
    models.get.click()
    wanted[1]("gguf:model")
    assert chosen == ["gguf:model"]
