"""Models in GGUF files in the window: a problem before the run if one is missing, and a run with one."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.settings.model_download import ModelDownloadDialog
from app.settings.preferences import Preferences
from app.window.document_page import DocumentPage
from app.window.problems_panel import quick_fixes
from app.workbench import Workbench
from engine.document.builder import Builder
from engine.document.model import Workflow
from engine.document.operations import SetConfig
from engine.models.demo_weights import find_weights
from engine.models.gguf_files import GgufSettings
from tests.app.window.conftest import MakeWindow, open_file, saved
from tests.engine.models.gguf_writer import language_model, write_header
from tests.engine.models.loopback_hub import LoopbackHub


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with downloaded models."""
    folder = tmp_path / "models"
    folder.mkdir()
    monkeypatch.setenv("LOOPWRIGHT_MODELS_FOLDER", str(folder))
    return folder


def flow(model: str) -> Workflow:
    made = Builder("Greeting")
    draft = made.add("llm", id="draft", title="Draft", prompt="Say hi.", model=model, max_tokens=4)
    made.connect(draft["output"], made.add("output", id="text", name="text")["value"])
    return made.build()


def ended(document: DocumentPage) -> bool:
    shown = document.session.shown
    return shown.live is None and shown.view_model is not None and shown.view_model.is_over


def test_missing_file_is_a_problem_until_it_is_there(
    workbench: Workbench, folder: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    document = open_file(workbench, saved(tmp_path, "one.loop.json", flow("gguf:tiny-chat")))

    def problems() -> list[tuple[str, str | None, str | None, str]]:
        listed = document.session.problems
        return [(problem.code, problem.node, problem.field, problem.fix) for problem in listed]

    missing = [("missing-model-file", "draft", "model", "choose_model")]
    qtbot.waitUntil(lambda: problems() == missing)
    (folder / "Tiny-Chat.gguf").symlink_to(find_weights())
    workbench.models.refresh()
    qtbot.waitUntil(lambda: problems() == [])


def test_missing_model_of_the_catalog_is_offered_for_download(
    workbench: Workbench, folder: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    document = open_file(workbench, saved(tmp_path, "one.loop.json", flow("gguf:qwen2.5-0.5b-instruct-q4_k_m")))
    qtbot.waitUntil(lambda: [problem.fix for problem in document.session.problems] == ["get_model:qwen2.5-0.5b"])
    (problem,) = document.session.problems
    (fix,) = quick_fixes(problem, document.session.structure)
    document.fix_wanted.emit(fix.fix)
    (dialog,) = workbench.window.findChildren(ModelDownloadDialog)

    assert "model" in fix.title
    assert dialog.chosen is not None
    assert dialog.chosen.title == "Qwen2.5 0.5B Instruct"
    dialog.close()


def test_downloaded_model_is_in_the_lists_of_models_and_its_problem_is_gone(
    workbench: Workbench, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    name = "gguf:qwen2.5-0.5b-instruct-q4_k_m"
    document = open_file(workbench, saved(tmp_path, "one.loop.json", flow(name)))
    qtbot.waitUntil(lambda: len(document.session.problems) == 1)
    with LoopbackHub(write_header(tmp_path / "content", language_model("Tiny")).read_bytes()) as hub:
        hub.use(monkeypatch)
        document.fix_wanted.emit(document.session.problems[0].fix)
        (dialog,) = workbench.window.findChildren(ModelDownloadDialog)
        with qtbot.waitSignal(dialog.downloaded):
            dialog.start.click()
        qtbot.waitUntil(lambda: name in workbench.models.names())
        qtbot.waitUntil(lambda: document.session.problems == [])
    dialog.close()


def test_opening_looks_at_no_path_in_a_document(
    workbench: Workbench, folder: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    by_path = open_file(workbench, saved(tmp_path, "one.loop.json", flow(f"gguf:{tmp_path}/none.gguf")))
    by_name = open_file(workbench, saved(tmp_path, "two.loop.json", flow("gguf:none")))
    qtbot.waitUntil(lambda: len(by_name.session.problems) == 1)  # checked in this order
    assert by_path.session.problems == []


def test_file_runs_and_a_missing_one_offers_another_model(
    workbench: Workbench, folder: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    (folder / "Tiny-Chat.gguf").symlink_to(find_weights())
    document = open_file(workbench, saved(tmp_path, "one.loop.json", flow("gguf:tiny-chat")))
    workbench.runs.run(document)
    qtbot.waitUntil(lambda: ended(document))
    view_model = document.session.shown.view_model
    assert view_model is not None
    assert (view_model.status, view_model.cost_usd) == ("completed", 0.0)

    document.session.do(SetConfig(("model",), {"draft": "gguf:none"}))
    workbench.runs.run(document)
    qtbot.waitUntil(lambda: document.session.shown.view_model is not view_model and ended(document))
    assert document.session.shown.view_model is not None
    assert document.session.shown.view_model.status == "failed"
    assert "Choose a model" in {button.text() for button in document.findChildren(QPushButton)}


def test_models_in_files_are_run_as_the_settings_say(make_window: MakeWindow, preferences: Preferences) -> None:
    models = make_window().engine.models
    preferences.set(gguf_context_tokens=4096, gguf_gpu_layers=0)
    assert models.gguf_settings is not None
    assert models.gguf_settings() == GgufSettings(4096, None, 0)


def test_button_of_a_run_with_too_long_a_context_opens_its_setting(
    workbench: Workbench, preferences: Preferences, folder: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    write_header(folder / "short.gguf", language_model())  # supports 2,048 tokens
    preferences.set(gguf_context_tokens=4000)
    document = open_file(workbench, saved(tmp_path, "one.loop.json", flow("gguf:short")))
    workbench.runs.run(document)
    qtbot.waitUntil(lambda: ended(document))

    (button,) = (button for button in document.findChildren(QPushButton) if button.text() == "Open settings…")
    button.click()

    settings = workbench.commands.settings
    assert settings is not None
    assert settings.forms["local models"].rows["gguf_context_tokens"].isVisible()
