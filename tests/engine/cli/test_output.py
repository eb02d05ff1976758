from __future__ import annotations

import io
import json
import sys

import pytest

from engine.cli.output import Screen, prepare_streams, write_json


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")


def test_pipe_gets_no_colors_and_no_wrapped_lines():
    stream = io.StringIO()
    screen = Screen(stream)
    screen.line("x" * 500, style="bold red")
    screen.table(("A", "B"), [("1", "word " * 100), ("2", "y")])
    assert stream.getvalue() == f"{'x' * 500}\nA  B\n1  {('word ' * 100).rstrip()}\n2  y\n"
    assert not screen.interactive


def test_terminal_gets_colors(plain_terminal: None):
    stream = Terminal()
    screen = Screen(stream)
    screen.line("red", style="red")
    assert stream.getvalue() == "\x1b[31mred\x1b[0m\n"
    assert screen.interactive


def test_no_color_is_respected(plain_terminal: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    Screen(stream).line("red", style="red")
    assert stream.getvalue() == "red\n"


def test_dumb_terminal_has_no_live_display(plain_terminal: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERM", "dumb")
    assert not Screen(Terminal()).interactive


def test_a_table_wraps_on_a_terminal(plain_terminal: None):
    stream = Terminal()
    Screen(stream).table(("A", "B"), [("name", "word " * 30)])
    assert len(stream.getvalue().splitlines()) > 3


def test_markup_in_a_cell_stays_text():
    stream = io.StringIO()
    Screen(stream).table(("A",), [("[red]x[/red] :smile:",)])
    assert "[red]x[/red] :smile:" in stream.getvalue()


def test_json_is_one_ascii_line_and_preserves_lone_surrogates(capsys: pytest.CaptureFixture[str]):
    write_json({"a": "é\ud83d\n"})
    written = capsys.readouterr().out
    assert written.isascii()
    assert written.count("\n") == 1
    assert json.loads(written) == {"a": "é\ud83d\n"}


@pytest.mark.parametrize(
    ("on_windows", "chosen", "written"),
    [(True, "", "ü日".encode()), (True, "cp1252", b"\xfc\\u65e5"), (False, "", b"\xfc\\u65e5")],
)
def test_pipe_gets_utf_8_on_windows_unless_another_encoding_is_chosen(
    monkeypatch: pytest.MonkeyPatch, on_windows: bool, chosen: str, written: bytes
):
    monkeypatch.delenv("PYTHONIOENCODING", raising=False)
    if chosen:
        monkeypatch.setenv("PYTHONIOENCODING", chosen)
    pipe = io.BytesIO()
    stream = io.TextIOWrapper(pipe, encoding="cp1252", newline="")
    monkeypatch.setattr(sys, "stdout", stream)
    prepare_streams(on_windows=on_windows)
    stream.write("ü日")
    stream.flush()
    assert pipe.getvalue() == written
