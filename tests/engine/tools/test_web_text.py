from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.html_text import readable_text
from engine.tools.web_tools import decode_body

PAGE = """<!DOCTYPE html><html><head><title>The  title</title>
<style>p { color: red }</style><script>if (a < b) { alert("<p>no</p>") }</script></head>
<body><!-- a <b>comment</b> > --><h1>Head&shy;ing</h1><p>One <b>bold</b> word,
 &lt;tag&gt; &amp; <a href="x" title="a > b">a link</a>.<br/>Next&nbsp;line</p>
<ul><li>first<li>second</ul><table><tr><td>a</td><td>b</td></tr></table><noscript>none</noscript>
<template><p>hidden</p></template><SCRIPT>x</SCRIPT >end</body></html>"""


def test_page_becomes_visible_text_with_a_line_per_block() -> None:
    assert readable_text(PAGE).split("\n") == [
        "The title",
        "Head\xading",
        "One bold word,",
        "<tag> & a link.",
        "Next line",
        "first",
        "second",
        "a b",
        "end",
    ]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("a<", "a<"),
        ("a<b", "a"),
        ("a <b c='", "a"),
        ("a<!-- never closed", "a"),
        ("a<!-->b-->c", "ab-->c"),
        ("a<?php x ?>b", "ab"),
        ("<p title=it's>fine</p><p>'next'</p>", "fine\n'next'"),
        ("<p title='open>text", "text"),
        ("<script>never closed <p>x", ""),
        ("<scripted>yes</scripted>", "yes"),
        ("&#99999999999999;&#x41;&nosuch;&#" + "9" * 6000, "\ufffdA&nosuch;\ufffd"),
        ("İ<script>x</script>ß", "İß"),
        ("", ""),
    ],
)
def test_broken_markup_is_parsed_as_far_as_possible(page: str, text: str) -> None:
    assert readable_text(page) == text


@given(st.text(alphabet="<>!-/?'\"= abp&#;\n", max_size=200))
def test_no_text_is_an_error(page: str) -> None:
    assert len(readable_text(page)) <= len(page)


HOSTILE = [
    "<!--",
    "<a",
    "<",
    "<!",
    "</",
    "<?",
    "<a b='",
    '<a b="x',
    "&",
    "&#",
    "<![CDATA[",
    "<script",
    "</scrip",
    "<a =",
]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the system has no limit on a process's computing time")
def test_hostile_markup_takes_linear_time() -> None:
    # Linear work on these takes a few seconds, quadratic work many minutes: the system ends the process long before.
    program = f"""
import resource
from engine.html_text import readable_text
resource.setrlimit(resource.RLIMIT_CPU, (90, 90))
for piece in {HOSTILE!r}:
    readable_text(piece * (2_000_000 // len(piece)))
print("done")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "done\n", done.stderr


@pytest.mark.parametrize(
    ("body", "charset", "is_html", "text"),
    [
        ("ü".encode(), "", False, "ü"),
        (b"\xef\xbb\xbf\xc3\xbc", "latin-1", False, "ü"),
        ("ü".encode("utf-16"), "", False, "ü"),
        (b"\xfc", "ISO-8859-1", False, "ü"),
        (b"\xfc", " 'windows-1252' ", False, "ü"),
        (b"\xfc", "", False, "\ufffd"),
        (b"<meta charset='latin1'>\xfc", "", True, "<meta charset='latin1'>ü"),
        (b"<meta charset='latin1'>\xfc", "", False, "<meta charset='latin1'>\ufffd"),
        (b"<meta charset='latin1'>\xc3\xbc", "utf-8", True, "<meta charset='latin1'>ü"),
        ("日本".encode("shift_jis"), "Shift_JIS", False, "日本"),
        (b"abc", "no-such", False, "abc"),
        (b"abc", "a\0b", False, "abc"),
        (b"abc", "\udcff", False, "abc"),
        (b"\\u0041", "unicode_escape", False, "\\u0041"),
        (b"abc", "hex", False, "abc"),
        (b"abc", "idna", False, "abc"),
    ],
)
def test_character_set_of_the_page_is_used_if_valid(body: bytes, charset: str, is_html: bool, text: str) -> None:
    assert decode_body(body, charset, is_html=is_html) == text
