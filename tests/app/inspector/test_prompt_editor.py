"""Prompts: highlighting, completion, preview and the larger window."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QHelpEvent, QTextCharFormat
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton, QToolTip

from app.inspector.prompt_editor import NO_RUN, PromptEditor, TemplateEdit
from app.inspector.template_variables import Variable
from engine.document.operations import SetConfig
from tests.app.inspector.conftest import Bench, OpenInspector, refine

Key = Qt.Key


def looks(edit: TemplateEdit) -> list[tuple[str, str]]:
    """The highlighted ranges with their styles."""
    text = edit.text()
    return [(text[span.start : span.end], span.style) for span in edit.highlighter.spans() if span.style != "brace"]


def underline_at(edit: TemplateEdit, word: str) -> QTextCharFormat.UnderlineStyle:
    """The underline style of a word."""
    block = edit.document().findBlock(edit.text().index(word))
    start = edit.text().index(word) - block.position()
    formats = [found for found in block.layout().formats() if found.start <= start < found.start + found.length]
    return formats[0].format.underlineStyle() if formats else QTextCharFormat.UnderlineStyle.NoUnderline


def at_merge(open_inspector: OpenInspector) -> tuple[Bench, PromptEditor]:
    bench = open_inspector(refine())
    bench.select("merge")
    editor = bench.editor("template")
    editor.edit.setFocus()
    QTest.keyClick(editor.edit, Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    return bench, editor


def test_known_variables_are_colored_and_unknown_ones_underlined(open_inspector: OpenInspector) -> None:
    bench, editor = at_merge(open_inspector)
    assert looks(editor.edit) == [("loop.input", "known"), ("draft", "known"), ("critique", "known")]
    QTest.keyClicks(editor.edit, " {{loop.lst}} {{nobody}}")
    bench.analyzed()
    bench.qtbot.waitUntil(lambda: ("nobody", "unconnected") in looks(editor.edit))
    assert ("loop.lst", "unknown") in looks(editor.edit)
    wave = QTextCharFormat.UnderlineStyle.WaveUnderline
    assert underline_at(editor.edit, "loop.lst") == wave
    assert underline_at(editor.edit, "nobody") == wave
    assert underline_at(editor.edit, "draft") == QTextCharFormat.UnderlineStyle.NoUnderline
    bench.qtbot.waitUntil(lambda: bench.problems("template") != [])
    assert "`loop.lst` cannot be filled in" in bench.problems("template")[0]


def test_connected_variables_stay_known_while_a_placeholder_is_open(open_inspector: OpenInspector) -> None:
    bench, editor = at_merge(open_inspector)
    QTest.keyClicks(editor.edit, " {{lo")
    bench.analyzed()
    assert ("draft", "known") in looks(editor.edit)
    assert ("loop.input", "known") in looks(editor.edit)
    assert bench.page.header.problems.texts == []


def test_placeholder_over_several_lines_is_highlighted(open_inspector: OpenInspector) -> None:
    bench, editor = at_merge(open_inspector)
    bench.session.do(SetConfig(("template",), {"merge": "{{critique}}\n{{\ndraft\n}}"}))
    block = editor.edit.document().findBlockByNumber(2)
    assert block.text() == "draft"
    assert block.layout().formats()[0].length == 5
    assert [found.length for found in block.next().layout().formats()] == [2]


def test_surrogate_pairs_do_not_shift_highlighting(open_inspector: OpenInspector) -> None:
    bench, editor = at_merge(open_inspector)
    bench.session.do(SetConfig(("template",), {"merge": "😀😀 {{draft}} {{critique}}"}))
    formats = editor.edit.document().firstBlock().layout().formats()
    assert [(found.start, found.length) for found in formats][:3] == [(5, 2), (7, 5), (12, 2)]


def test_completion_by_keyboard(open_inspector: OpenInspector) -> None:
    bench, editor = at_merge(open_inspector)
    names = editor.edit.completions
    QTest.keyClicks(editor.edit, " {{")
    assert names.isVisible()
    assert names.texts[:4] == ["draft", "critique", "input", "loop.iteration"]
    QTest.keyClicks(editor.edit, "loop.l")
    assert names.texts == ["loop.last.draft", "loop.last.critique", "loop.last.merge"]
    QTest.keyClick(editor.edit, Key.Key_Down)
    QTest.keyClick(editor.edit, Key.Key_Return)
    assert not names.isVisible()
    assert bench.config("merge")["template"].endswith(" {{loop.last.critique}}")
    assert editor.edit.textCursor().atEnd()
    QTest.keyClicks(editor.edit, "!")
    assert not names.isVisible()


def test_completion_wraps_around_and_handles_tab_and_escape(open_inspector: OpenInspector) -> None:
    bench, editor = at_merge(open_inspector)
    names = editor.edit.completions
    before = bench.config("merge")["template"]
    QTest.keyClicks(editor.edit, " {{loop.l")
    QTest.keyClick(editor.edit, Key.Key_Up)
    assert names.chosen is not None
    assert names.chosen.text == "loop.last.merge"
    QTest.keyClick(editor.edit, Key.Key_Escape)
    assert not names.isVisible()
    QTest.keyClick(editor.edit, Key.Key_Space, Qt.KeyboardModifier.ControlModifier)
    assert names.isVisible()
    QTest.keyClick(editor.edit, Key.Key_Tab)
    assert bench.config("merge")["template"] == before + " {{loop.last.draft}}"
    assert editor.edit.hasFocus()


def test_existing_braces_are_not_closed_twice(open_inspector: OpenInspector) -> None:
    bench, editor = at_merge(open_inspector)
    bench.session.do(SetConfig(("template",), {"merge": "{{dr }} x {{critique}}"}))
    cursor = editor.edit.textCursor()
    cursor.setPosition(4)
    editor.edit.setTextCursor(cursor)
    editor.edit.complete()
    QTest.keyClick(editor.edit, Key.Key_Return)
    assert bench.config("merge")["template"] == "{{draft }} x {{critique}}"
    assert editor.edit.textCursor().position() == len("{{draft }}")


def test_variable_can_be_inserted_by_mouse(open_inspector: OpenInspector) -> None:
    bench, editor = at_merge(open_inspector)
    QTest.mouseClick(editor.insert, Qt.MouseButton.LeftButton)
    names = editor.edit.completions
    assert names.isVisible()
    place = names.visualRect(names.model().index(1, 0)).center()
    QTest.mouseClick(names.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert bench.config("merge")["template"].endswith("{{critique}}{{critique}}")


def test_leaving_the_field_closes_the_completion(open_inspector: OpenInspector) -> None:
    bench, editor = at_merge(open_inspector)
    QTest.keyClicks(editor.edit, " {{")
    assert editor.edit.completions.isVisible()
    bench.page.header.title.setFocus()
    assert not editor.edit.completions.isVisible()


def test_no_completion_outside_placeholders(open_inspector: OpenInspector) -> None:
    _, editor = at_merge(open_inspector)
    QTest.keyClicks(editor.edit, " loop.")
    assert not editor.edit.completions.isVisible()
    QTest.keyClick(editor.edit, Key.Key_Tab)
    assert not editor.edit.hasFocus()


def test_expression_completes_without_braces(open_inspector: OpenInspector) -> None:
    bench = open_inspector(refine())
    bench.select("loop")
    bench.session.do(SetConfig(("stop_when",), {"loop": [{"condition": "until"}]}))
    edit = bench.editor("stop_when").entries[0].rows.rows["expression"].editor.edit
    edit.setFocus()
    QTest.keyClicks(edit, "size(out")
    assert edit.completions.texts == ["output"]
    QTest.keyClick(edit, Key.Key_Return)
    QTest.keyClicks(edit, ") < 9")
    assert bench.config("loop")["stop_when"] == [{"condition": "until", "expression": "size(output) < 9"}]
    assert looks(edit) == [("output", "known")]


def test_variable_shows_its_help_as_tool_tip(open_inspector: OpenInspector) -> None:
    _, editor = at_merge(open_inspector)
    cursor = editor.edit.textCursor()
    cursor.setPosition(editor.edit.text().index("draft") + 2)
    editor.edit.setTextCursor(cursor)
    place = editor.edit.viewport().mapTo(editor.edit, editor.edit.cursorRect().center())
    QApplication.sendEvent(editor.edit, QHelpEvent(QEvent.Type.ToolTip, place, editor.edit.mapToGlobal(place)))
    assert "From Draft." in QToolTip.text()
    QToolTip.hideText()


def test_preview_without_a_run_says_what_to_do(open_inspector: OpenInspector) -> None:
    _, editor = at_merge(open_inspector)
    editor.preview.click()
    assert editor.filled.isVisible()
    assert editor.filled.view.text() == NO_RUN


def test_preview_uses_the_selected_iteration(open_inspector: OpenInspector, refine_script: Path) -> None:
    bench, editor = at_merge(open_inspector)
    editor.preview.click()
    bench.run(refine_script, task="a note")
    assert editor.filled.view.text() == "a note: three / fine"
    bench.session.shown.look_at("loop", 1)
    assert editor.filled.view.text() == "a note: two / shorter"
    QTest.keyClicks(editor.edit, " {{loop.last.draft}}, {{loop.iteration}}, {{size(draft)}}, {{nobody}}")
    assert editor.filled.view.text() == "a note: two / shorter one, 2, 3, —"
    editor.preview.click()
    assert not editor.filled.isVisible()


def test_larger_window_and_field_stay_in_sync(open_inspector: OpenInspector) -> None:
    bench, editor = at_merge(open_inspector)
    before = editor.edit.text()
    editor.expand.click()
    window = editor.larger_window
    assert window is not None
    bench.qtbot.waitUntil(window.isActiveWindow)
    QTest.keyClick(window.edit, Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClicks(window.edit, " more")
    assert bench.config("merge")["template"] == before + " more"
    assert editor.edit.text() == before + " more"
    QTest.keyClick(window.edit, Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert window.edit.text() == before
    QTest.keyClick(window, Key.Key_Escape)
    assert editor.larger_window is None


def test_larger_window_inserts_variables_and_closes_by_mouse(open_inspector: OpenInspector) -> None:
    bench, editor = at_merge(open_inspector)
    editor.expand.click()
    window = editor.larger_window
    assert window is not None
    bench.qtbot.waitUntil(window.isActiveWindow)
    assert window.edit.hasFocus()
    QTest.keyClick(window.edit, Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClick(window.edit, Key.Key_Return)
    QTest.mouseClick(window.insert, Qt.MouseButton.LeftButton)
    assert window.edit.completions.isVisible()
    chosen = window.edit.completions.chosen
    assert chosen is not None
    QTest.keyClick(window.edit, Key.Key_Return)
    assert bench.config("merge")["template"].endswith(f"\n{{{{{chosen.text}}}}}")
    (close,) = (button for button in window.findChildren(QPushButton) if button.text() == "Close")
    QTest.mouseClick(close, Qt.MouseButton.LeftButton)
    assert editor.larger_window is None


def test_completion_popup_shows_whole_rows(open_inspector: OpenInspector) -> None:
    _bench, editor = at_merge(open_inspector)
    QTest.mouseClick(editor.insert, Qt.MouseButton.LeftButton)
    listed = editor.edit.completions
    assert len(listed.texts) > 7
    assert listed.viewport().height() == 7 * listed.sizeHintForRow(0)


def test_completions_that_start_with_the_text_come_first() -> None:
    from app.inspector.prompt_editor import matching_variables

    names = [Variable(("loop", "index"), ""), Variable(("index",), ""), Variable(("other",), "")]
    assert [name.text for name in matching_variables(names, "ind")] == ["index", "loop.index"]
    assert [name.text for name in matching_variables(names, "index")] == ["loop.index"]
    assert matching_variables(names, "") == names


def test_a_long_preview_shows_its_beginning(open_inspector: OpenInspector, write_script: Callable[..., Any]) -> None:
    bench, editor = at_merge(open_inspector)
    editor.preview.click()
    bench.run(write_script(draft="x" * 300_000, critique="fine"), task="a note")
    assert not editor.filled.is_complete
    assert len(editor.filled.text) > 300_000


def test_narrow_prompt_buttons_show_only_icons(open_inspector: OpenInspector) -> None:
    _bench, editor = at_merge(open_inspector)
    styles = Qt.ToolButtonStyle
    assert editor.insert.toolButtonStyle() is styles.ToolButtonTextBesideIcon
    editor.resize(160, editor.height())
    for button, name in ((editor.insert, "Insert variable"), (editor.preview, "Preview"), (editor.expand, "Expand")):
        assert button.toolButtonStyle() is styles.ToolButtonIconOnly
        assert button.accessibleName().startswith(name)
    editor.resize(400, editor.height())
    assert editor.expand.toolButtonStyle() is styles.ToolButtonTextBesideIcon


def test_an_unfinished_placeholder_is_no_problem_until_the_field_is_left(one_node: Callable[..., Bench]) -> None:
    bench = one_node("llm", prompt="Hi")
    editor = bench.editor("prompt")
    editor.edit.setFocus()
    QTest.keyClicks(editor.edit, "{{")
    bench.analyzed()
    assert bench.problems("prompt") == []
    editor.edit.clearFocus()
    [text] = bench.problems("prompt")
    assert "{{" in text
