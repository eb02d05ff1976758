"""Expressions of the steps form in the words of ours.

Both are CEL. There a step's output is `steps.ID.content` as a text and `steps.ID.result` as JSON, ids may hold a
hyphen, and a loop's own words are `content`, `result`, `status`, `iteration`. What is in quotes is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from engine.document.wording import shown

_QUOTED: Final = r"""[rR]?'(?:\\.|[^'\\])*'|[rR]?"(?:\\.|[^"\\])*\""""
_MEMBER: Final = r"\s*\.\s*(?P<member>[A-Za-z_]\w*)"
_OWN: Final = r"(?<![\w.])(?P<own>content|result|status|iteration)\b(?!\s*\()"

_STATUS_TEST: Final = re.compile(r"""\s*[!=]=\s*(?:'(\w*)'|"(\w*)")""")
_STATUSES: Final = frozenset({"completed", "skipped"})
"""What the status of a step can be after it; here one that fails ends the run."""

REWRITE: Final = "Nothing here means the same; write the expression anew. Until then the workflow does not run."
"""What a report says of an expression that is kept as it was, so that its node has a problem."""

Resolve = Callable[[str | None, str], str]
"""Given a step's foreign id (None for the loop's own words) and the member, our words. Raises `CannotSayError`."""


class CannotSayError(Exception):
    """An expression that names what nothing here stands for; the text says what."""


def rewritten(expression: str, ids: Iterable[str], resolve: Resolve) -> str:
    """The expression in our words.

    Args:
        expression: The foreign one.
        ids: The ids of the steps that it may name.
        resolve: Gives our words for a member of a step.

    Raises:
        CannotSayError: It names something that nothing here stands for.
    """
    known = "|".join(re.escape(step) for step in sorted(ids, key=len, reverse=True)) or r"(?!)"
    plain = rf"(?<![\w.])steps\s*\.\s*(?P<step>{known})(?![\w-]){_MEMBER}"
    in_brackets = rf"(?<![\w.])steps\s*\[\s*['\"](?P<named>{known})['\"]\s*\]\s*\.\s*(?P<of_named>[A-Za-z_]\w*)"
    other = r"(?<![\w.])(?P<unknown>steps\b[\w.\-\s\[\]'\"]{0,80})"
    words = re.compile(f"(?P<quoted>{_QUOTED})|{plain}|{in_brackets}|{other}|{_OWN}")

    def ours(found: re.Match[str]) -> str:
        if found["quoted"] is not None:
            return found[0]
        if found["unknown"] is not None:
            raise CannotSayError(f'"{shown(found["unknown"].strip(), 60)}" names no step that can be seen from there')
        step = found["step"] if found["step"] is not None else found["named"]
        member = found["own"] or found["member"] or found["of_named"]
        if member == "status":
            _check_status(expression[found.end() :])
        return resolve(step, member)

    return words.sub(ours, expression)


def _check_status(rest: str) -> None:
    """Refuse a status that is compared with anything but what it can be here; `rest`: what stands after it."""
    test = _STATUS_TEST.match(rest)
    if test is None or (test[1] or test[2]) not in _STATUSES:
        raise CannotSayError("the status of a step is `completed` or `skipped` here: one that fails ends the run")


def steps_named(expression: str, ids: Iterable[str]) -> list[str]:
    """The ids of the steps that an expression names, in its order.

    Raises:
        CannotSayError: It names a step that is not among them.
    """
    found: list[str] = []

    def note(step: str | None, _member: str) -> str:
        if step is not None:
            found.append(step)
        return ""

    rewritten(expression, ids, note)
    return list(dict.fromkeys(found))
