"""Untrusted texts are escaped for display."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.text_sanitizing import harmless, one_line, quoted


def test_terminal_sequences_are_escaped():
    assert harmless("a\x1b]0;title\x07b\x9b2J\rc\x00") == "a\\x1b]0;title\\x07b\\x9b2J\\rc\\x00"


def test_direction_marks_are_escaped():
    assert harmless("user\u202egnp.exe") == "user\\u202egnp.exe"


def test_lone_surrogates_are_escaped():
    assert harmless("\ud83d!") == "\\ud83d!"


def test_a_value_is_quoted_as_truncated_json():
    values = [None, True, 2.5, "a\nb", {"a": [1, "ü"]}]
    assert [quoted(value) for value in values] == ["null", "true", "2.5", '"a\\nb"', '{"a":[1,"ü"]}']
    assert quoted("x" * 1_000_000) == f'"{"x" * 28}…{"x" * 28}"'


def test_ordinary_text_is_unchanged():
    text = "Ünï\tcode 👩‍🔬 \n [bold]not markup[/bold] :smile:"
    assert harmless(text) == text
    assert harmless("a\r\nb") == "a\nb"


@given(st.text(st.characters(), max_size=200))
def test_no_text_leaves_a_control_character_or_fails_to_encode(text: str):
    shown = harmless(text)
    assert not [sign for sign in shown if (ord(sign) < 32 and sign not in "\t\n") or 127 <= ord(sign) < 160]
    shown.encode("utf-8")


def test_a_long_text_on_one_line_is_truncated_with_dots():
    assert one_line("a  b\nc", 10) == "a b c"
    assert one_line("word " * 50, 20) == "word word word wo..."
    assert one_line(" " * 1000 + "x", 10) == "..."
