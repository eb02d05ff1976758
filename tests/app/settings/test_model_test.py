"""The model test: one small call, its reply or error without keys, and its cancellation."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.engine_thread import EngineThread
from app.settings.settings_widgets import COST_NOTE, ModelTestRow, run_model_test
from engine.errors import EngineError
from engine.models import litellm_adapter
from engine.models.catalog import Models
from engine.models.keys import Keys
from tests.app.settings.conftest import CANARY
from tests.engine.wire.server import WireServer

LEFT = Qt.MouseButton.LeftButton


def _row(engine: EngineThread, qtbot: QtBot, model: str, address: str | None = None) -> ModelTestRow:
    row = ModelTestRow(engine, lambda: run_model_test(engine.models, model, address), "the model")
    qtbot.addWidget(row)
    row.show()
    return row


async def test_reply_is_shown_on_one_line(script: str) -> None:
    trial = await run_model_test(Models(), script)
    assert trial.text == "<b>ready</b> now"
    assert trial.sentence == f"Replied in {trial.duration_s:.1f} s: <b>ready</b> now"


async def test_long_reply_is_truncated_and_keys_are_redacted(tmp_path: Path) -> None:
    file = tmp_path / "long.json"
    file.write_text(json.dumps({"default": f"{CANARY} " + "x" * 5000}))
    models = Models(Keys({"OPENAI_API_KEY": CANARY}))
    models.keys.get("openai")

    trial = await run_model_test(models, f"scripted:{file}")

    assert trial.text == "… " + "x" * 118 + "…"


async def test_errors_contain_no_key(tmp_path: Path) -> None:
    file = tmp_path / "error.json"
    file.write_text(json.dumps({"default": {"error": {"kind": "server", "message": f"It said {CANARY}."}}}))
    models = Models(Keys({"OPENAI_API_KEY": CANARY}))
    models.keys.get("openai")

    with pytest.raises(EngineError) as caught:
        await run_model_test(models, f"scripted:{file}")

    assert CANARY not in str(caught.value)
    assert "It said …." in str(caught.value)


async def test_model_test_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.settings.settings_widgets.TIMEOUT_S", 0.01)
    file = tmp_path / "slow.json"
    file.write_text(json.dumps({"default": {"text": "late", "delay_s": 5}}))
    with pytest.raises(EngineError, match="did not reply within"):
        await run_model_test(Models(), f"scripted:{file}")


def test_key_press_starts_the_test_and_shows_the_reply(engine_thread: EngineThread, qtbot: QtBot, script: str) -> None:
    row = _row(engine_thread, qtbot, script)
    assert row.result.text() == COST_NOTE
    assert row.button.accessibleName() == "Test: the model"

    row.button.setFocus()
    QTest.keyClick(row.button, Qt.Key.Key_Space)
    assert row.button.text() == "Cancel"
    qtbot.waitUntil(lambda: not row.is_running)

    assert row.result.text().startswith("✓ Replied in ")
    assert row.result.text().endswith("<b>ready</b> now")
    assert row.result.textFormat() is Qt.TextFormat.PlainText
    assert row.result.property("tone") == "good"
    row.reset()
    assert row.result.text() == COST_NOTE


def test_model_test_shows_the_error(engine_thread: EngineThread, qtbot: QtBot, tmp_path: Path) -> None:
    row = _row(engine_thread, qtbot, f"scripted:{tmp_path / 'missing.json'}")
    qtbot.mouseClick(row.button, LEFT)
    qtbot.waitUntil(lambda: not row.is_running)

    assert row.result.text().startswith("✗ ")
    assert "missing.json" in row.result.text()
    assert row.result.property("tone") == "bad"


def test_no_call_without_a_valid_model(engine_thread: EngineThread, qtbot: QtBot) -> None:
    row = ModelTestRow(engine_thread, lambda: None, "nothing")
    qtbot.addWidget(row)
    qtbot.mouseClick(row.button, LEFT)
    assert not row.is_running
    assert row.button.text() == "Test"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["cancel", "hide"])
def test_running_test_can_be_cancelled(engine_thread: EngineThread, qtbot: QtBot, wire: WireServer, how: str) -> None:
    engine_thread.submit(litellm_adapter.load_litellm()).result()  # on a busy machine, longer than the server waits
    row = _row(engine_thread, qtbot, "openai/silent", wire.base_url)
    qtbot.mouseClick(row.button, LEFT)
    engine_thread.submit(wire.request_arrived()).result()

    if how == "cancel":
        qtbot.mouseClick(row.button, LEFT)
    else:
        row.hide()

    engine_thread.submit(wire.call_abandoned()).result()
    assert row.result.text() == "Cancelled."
    assert row.button.text() == "Test"


def test_test_cancelled_while_the_client_is_imported_makes_no_call(
    engine_thread: EngineThread, qtbot: QtBot, wire: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading, ended = threading.Event(), threading.Event()

    async def load() -> None:
        loading.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    monkeypatch.setattr(litellm_adapter, "load_litellm", load)
    row = _row(engine_thread, qtbot, "openai/silent", wire.base_url)
    qtbot.mouseClick(row.button, LEFT)
    assert loading.wait(60)
    qtbot.mouseClick(row.button, LEFT)

    assert ended.wait(60)
    assert (row.result.text(), row.button.text()) == ("Cancelled.", "Test")
    assert wire.requests == []


def test_result_for_a_deleted_widget_is_ignored(engine_thread: EngineThread, qtbot: QtBot, script: str) -> None:
    released = asyncio.Event()

    async def work() -> object:
        await released.wait()
        return await run_model_test(engine_thread.models, script)

    row = ModelTestRow(engine_thread, work, "the model")  # type: ignore[arg-type]
    row.show()
    qtbot.mouseClick(row.button, LEFT)
    with qtbot.waitSignal(row.destroyed):
        row.deleteLater()
    engine_thread.call(released.set)
    done = engine_thread.submit(asyncio.sleep(0))
    qtbot.waitUntil(done.done)


@pytest.mark.slow
def test_built_in_model_replies(engine_thread: EngineThread, qtbot: QtBot) -> None:
    row = _row(engine_thread, qtbot, "embedded:smollm2-135m")
    qtbot.mouseClick(row.button, LEFT)
    qtbot.waitUntil(lambda: not row.is_running)
    assert row.result.text().startswith("✓ Replied in ")
