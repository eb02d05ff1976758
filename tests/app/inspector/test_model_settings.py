"""The editors of a model's settings: stop sequences, reasoning effort, extra parameters, fallback models."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox

from engine.document.operations import SetConfig
from tests.app.inspector.conftest import MODELS, Bench

OneNode = Callable[..., Bench]
Key = Qt.Key
CTRL = Qt.KeyboardModifier.ControlModifier


def choose(combo: QComboBox, steps: int) -> None:
    """Choose with the keyboard, a number of entries down (or up)."""
    combo.setFocus()
    for _ in range(abs(steps)):
        QTest.keyClick(combo, Key.Key_Down if steps > 0 else Key.Key_Up)


def test_stop_sequences_are_one_per_line_with_escapes(one_node: OneNode) -> None:
    bench = one_node("llm", stop=["END", "\n\n", "a\\nb"])
    edit = bench.editor("stop").edit
    assert edit.text() == "END\n\\n\\n\na\\\\nb"
    edit.setFocus()
    QTest.keyClick(edit, Key.Key_End, CTRL)
    QTest.keyClick(edit, Key.Key_Return)
    QTest.keyClicks(edit, "\\tx")
    assert bench.config("it")["stop"] == ["END", "\n\n", "a\\nb", "\tx"]
    edit.selectAll()
    QTest.keyClick(edit, Key.Key_Delete)
    assert bench.config("it") == {}


def test_fallback_models_can_be_added_chosen_typed_and_removed(one_node: OneNode) -> None:
    bench = one_node("llm")
    editor = bench.editor("fallback_models")
    QTest.mouseClick(editor.add, Qt.MouseButton.LeftButton)
    assert bench.config("it")["fallback_models"] == [MODELS[0]]
    QTest.mouseClick(editor.add, Qt.MouseButton.LeftButton)
    assert bench.config("it")["fallback_models"] == MODELS
    line = editor.rows[1][0].lineEdit()
    line.selectAll()
    QTest.keyClicks(line, "a/b")
    assert bench.config("it")["fallback_models"] == [MODELS[0], "a/b"]
    first = editor.rows[0][0]
    QTest.keyClick(first, Key.Key_Down)
    QTest.keyClick(first.list.filter, Key.Key_Down)
    QTest.keyClick(first.list.filter, Key.Key_Return)
    assert bench.config("it")["fallback_models"] == [MODELS[1], "a/b"]
    QTest.mouseClick(editor.rows[0][1], Qt.MouseButton.LeftButton)
    assert bench.config("it")["fallback_models"] == ["a/b"]
    assert [combo.currentText() for combo, _ in editor.rows] == ["a/b"]
    bench.session.undo()
    assert [combo.currentText() for combo, _ in editor.rows] == [MODELS[1], "a/b"]


def test_reasoning_effort_may_be_the_model_default(one_node: OneNode) -> None:
    bench = one_node("llm")
    combo = bench.editor("reasoning_effort").combo
    assert (combo.currentText(), combo.currentData()) == ("Model default", None)
    choose(combo, 3)
    assert bench.config("it") == {"reasoning_effort": "low"}
    choose(combo, -3)
    assert bench.config("it") == {}


def test_secret_in_extra_parameters_is_a_problem_of_the_field(one_node: OneNode) -> None:
    bench = one_node("llm")
    bench.editor("extra_parameters")
    bench.session.do(SetConfig(("extra_parameters",), {"it": {"api_key": "x"}}))
    bench.analyzed()
    bench.qtbot.waitUntil(lambda: bench.problems("extra_parameters") != [])
    assert '"api_key"' in bench.problems("extra_parameters")[0]
