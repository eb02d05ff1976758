"""Strategies for JSON as models write it: dialects of JavaScript and Python, typographic quotes, fences, prose."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[Any]], Any]

QUOTES = ('""', "''", "“”", "‘’", "„“", "«»", "「」", "``")
PROSE = (
    "", "Here is my verdict:", "Sure! I looked at the text.", "It isn't done until it's done.",
    "Note (1), see [a] or {b}.",
    "The score would be 8 of 10, not 9/10.", "Don't quote \"me\" on it.", "**Summary**\n\n- one\n- two",
)  # fmt: skip


def dialect(draw: Draw, value: Any) -> str:
    """A JSON value in some dialect."""
    quotes = draw(st.sampled_from(QUOTES))
    python = draw(st.booleans())
    bare_keys, comments, trailing = draw(st.booleans()), draw(st.booleans()), draw(st.sampled_from(["", ",", ", "]))
    space = draw(st.sampled_from(["", " ", "\n  "]))

    def text(one: str) -> str:
        inside = one.replace("\\", "\\\\").replace(quotes[0], f"\\{quotes[0]}").replace(quotes[1], f"\\{quotes[1]}")
        if quotes[0] == quotes[1]:
            inside = one.replace("\\", "\\\\").replace(quotes[0], f"\\{quotes[0]}")
        return f"{quotes[0]}{inside}{quotes[1]}"

    def comment() -> str:
        return draw(st.sampled_from(["", " /* so */ ", " // it's\n", " # {note}\n"])) if comments else ""

    def written(one: Any) -> str:
        if isinstance(one, dict):
            keys = {key: key if bare_keys and key.isidentifier() else text(key) for key in one}
            members = f",{space}".join(f"{comment()}{keys[key]}: {written(inner)}" for key, inner in one.items())
            return f"{{{space}{members}{trailing if one else ''}{space}}}"
        if isinstance(one, list):
            return f"[{', '.join(map(written, one))}{trailing if one else ''}]"
        if isinstance(one, str):
            return text(one)
        return repr(one) if python else json.dumps(one)

    return written(value)


def around(draw: Draw, text: str) -> str:
    """A text, in a fence or not, with prose around it."""
    fenced = draw(st.sampled_from(["{}", "```json\n{}\n```", "```\n{}```", "`{}`", "~~~\n{}\n~~~"])).replace("{}", text)
    return f"{draw(st.sampled_from(PROSE))}\n{fenced}\n{draw(st.sampled_from(PROSE))}"


def in_case(draw: Draw, name: str) -> str:
    """A name in any case, with punctuation around it."""
    cased = draw(st.sampled_from([str, str.upper, str.title]))(name)
    wide = "".join(chr(ord(sign) + 0xFEE0) if sign.isalnum() and sign.isascii() else sign for sign in cased)
    return draw(st.sampled_from([cased, f" {cased} ", f"**{cased}**", f"{cased}.", f"“{cased}”", f"「{wide}」", wide]))
