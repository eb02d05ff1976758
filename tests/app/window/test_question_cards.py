"""Question cards: what they show and submit."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.window.question_cards import LONGEST_LINE, MOST_EDITED, QuestionCard
from engine.events import NodeWaiting
from engine.values import Value, to_text

Answered = list[tuple[str, Value, str]]
LEFT = Qt.MouseButton.LeftButton
PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def card(
    qtbot: QtBot,
    kind: Any = "approval",
    message: str = "Shall it go out?",
    value: Value = "A note.",
    *choices: str,
    schema: Any = None,
) -> tuple[QuestionCard, Answered]:
    """A visible card, and the answers that it submits."""
    made = QuestionCard(NodeWaiting("run", 0, 0.0, "ask", "ask", kind, message, value, choices, schema), "Ask")
    qtbot.addWidget(made)
    made.resize(800, 200)
    with qtbot.waitExposed(made):
        made.show()
    made.activateWindow()
    qtbot.waitUntil(made.isActiveWindow)
    answered: Answered = []
    made.answered.connect(lambda *answer: answered.append(answer))
    return made, answered


def press(made: QuestionCard, title: str) -> None:
    (button,) = (button for button in made.buttons if button.text() == title)
    QTest.mouseClick(button, LEFT)


def test_choice_submits_the_unchanged_value_and_the_comment(qtbot: QtBot) -> None:
    made, answered = card(qtbot, "approval", "Shall it go out?", "A note.", "approve", "reject")
    assert [button.text() for button in made.buttons] == ["Approve", "Reject"]

    QTest.keyClicks(made.comment, "too short")
    press(made, "Reject")

    assert answered == [("reject", "A note.", "too short")]


def test_value_can_be_edited_and_approved_by_keyboard(qtbot: QtBot) -> None:
    made, answered = card(qtbot, "approval", "Shall it go out?", "A\xa0note.", "approve", "reject")
    made.setFocus()
    assert made.value.hasFocus()

    QTest.keyClick(made.value, Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClicks(made.value, " More.")
    for widget in (made.value, made.comment, made.buttons[1]):
        assert widget.hasFocus()
        QTest.keyClick(widget, Qt.Key.Key_Tab)
    assert made.buttons[0].hasFocus()
    QTest.keyClick(made.buttons[0], Qt.Key.Key_Space)

    assert answered == [("approve", "A\xa0note. More.", "")]


@pytest.mark.parametrize("value", [{"a": [1, 2.5, None]}, 7, True, None, "two\nlines\u2028and\xa0more", ""])
def test_unedited_value_is_returned_unchanged(qtbot: QtBot, value: Value) -> None:
    made, answered = card(qtbot, "approval", "?", value, "approve")

    press(made, "Approve")

    assert answered == [("approve", value, "")]
    assert type(answered[0][1]) is type(value)


def test_invalid_json_is_reported_and_can_be_corrected(qtbot: QtBot) -> None:
    made, answered = card(qtbot, "approval", "?", {"title": "A"}, "approve")
    assert made.value.toPlainText() == '{"title":"A"}'

    made.value.selectAll()
    QTest.keyClicks(made.value, '{"title": ')
    press(made, "Approve")
    assert answered == []
    assert made.error.isVisible()
    assert made.error.text()
    assert made.value.property("invalid") is True
    assert made.value.hasFocus()

    QTest.keyClicks(made.value, '"B"}')
    press(made, "Approve")
    assert answered == [("approve", {"title": "B"}, "")]


def test_answer_is_submitted_once(qtbot: QtBot) -> None:
    made, answered = card(qtbot, "approval", "?", "x", "approve", "reject")

    press(made, "Approve")
    press(made, "Approve")
    press(made, "Reject")

    assert answered == [("approve", "x", "")]
    assert not made.isEnabled()


def test_question_is_answered_with_text(qtbot: QtBot) -> None:
    made, answered = card(qtbot, "question", "Who are the neighbors?", None)
    assert made.value.isHidden()
    assert made.reading.isHidden()
    assert made.comment.isHidden()

    press(made, "Send")
    assert answered == []
    assert made.error.text() == "Enter an answer first."

    made.setFocus()
    QTest.keyClicks(made.answer, "the whole street")
    press(made, "Send")
    assert answered == [("", "the whole street", "")]


def test_question_with_choices_needs_no_text(qtbot: QtBot) -> None:
    made, answered = card(qtbot, "question", "Which?", {"options": 2}, "the_first", "Q&A")
    assert made.value.isHidden()
    assert made.reading.isVisible()
    assert made.reading.text == '{"options":2}'
    assert [button.text() for button in made.buttons] == ["The first", "Q&&A"]

    press(made, "Q&&A")

    assert answered == [("Q&A", {"options": 2}, "")]


@pytest.mark.parametrize("value", ["words " * 100_000, "x" * (LONGEST_LINE + 1), ["word"] * (MOST_EDITED // 6)])
def test_very_long_value_is_read_only_and_passed_unchanged(qtbot: QtBot, value: Value) -> None:
    made, answered = card(qtbot, "approval", "?", value, "approve")
    assert made.value.isHidden()
    assert made.reading.isVisible()
    assert made.reading.text == to_text(value)
    assert made.note.isVisible()

    press(made, "Approve")

    assert answered == [("approve", value, "")]


def test_question_text_is_not_rendered_as_markup(qtbot: QtBot) -> None:
    text = "<h1>Big</h1><img src='x'>"
    made, _ = card(qtbot, "approval", text, text, "approve")

    assert made.message.text() == text
    assert made.message.textFormat() is Qt.TextFormat.PlainText
    assert made.value.toPlainText() == text


@pytest.mark.parametrize("edited", ['["x"]', "null", "3", "{}", '{"path":7}'])
def test_invalid_arguments_are_reported_on_the_card(qtbot: QtBot, edited: str) -> None:
    made, answered = card(qtbot, "approval", "May it?", {"path": "a"}, "approve", "reject", schema=PATH)

    made.value.setPlainText(edited)
    made.value.document().setModified(True)
    press(made, "Approve")

    assert answered == []
    assert made.isEnabled()
    assert made.error.isVisible()
    assert "does not fit" in made.error.text()
    made.value.setPlainText('{"path":"b"}')
    made.value.document().setModified(True)
    press(made, "Approve")
    assert answered == [("approve", {"path": "b"}, "")]


@pytest.mark.parametrize("value", ["One line.", "Dear all,\n\nthe well is dry.\n", "\n", {"title": "A\nB"}, ["a\nb"]])
def test_editable_value_is_shown_once(qtbot: QtBot, value: Value) -> None:
    made, _ = card(qtbot, "approval", "Shall it go out?", value, "approve", "reject")

    assert made.value.toPlainText() == to_text(value)
    assert made.reading.isHidden()


def test_command_to_approve_is_shown_completely(qtbot: QtBot) -> None:
    command = "echo start\n" + "rm -r /tmp/x; " * 100 + "\necho end"

    made, _ = card(qtbot, "approval", "May it?", {"command": command}, "approve", "reject", schema={"type": "object"})

    assert made.reading.isVisible()
    assert made.reading.view.toPlainText() == "command:\n    " + command.replace("\n", "\n    ")
    assert made.value.isVisible(), "it can be edited"


@pytest.mark.parametrize("hidden", ["\u202e", "\u200b", "\x1b[2J", "\ufeff", "\u2066", "\u3164", "\x9b"])
def test_hidden_characters_in_a_tool_call_are_visible(qtbot: QtBot, hidden: str) -> None:
    made, answered = card(
        qtbot, "approval", "May it?", {"path": f"a{hidden}b"}, "approve", "reject", schema={"type": "object"}
    )

    seen = (made.value if made.value.isVisible() else made.reading.view).toPlainText()
    assert hidden not in seen
    assert "\\" in seen
    press(made, "Approve")
    assert answered == [("approve", {"path": f"a{hidden}b"}, "")]
