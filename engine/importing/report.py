"""Import report: what became of each member of a foreign file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from engine.importing.fields import FieldReader
from engine.text_sanitizing import one_line, shown

_MAX_LINE_LENGTH: Final = 400
_PLACE_SEPARATOR: Final = re.compile(r" |, ")
_NO_COUNTERPART: Final = "It has no counterpart here."


class Outcome(StrEnum):
    """What became of a member of the file."""

    CARRIED_OVER = "carried over"
    CHANGED = "changed"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class ReportEntry:
    """One line of the report.

    Attributes:
        outcome: What became of the member.
        place: Where it is in the foreign file: `step dev_cycle, loop.until`.
        message: One sentence: what it has become, or why it was left out.
    """

    outcome: Outcome
    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.outcome}: {self.place}: {self.message}"


class ImportReport:
    """Collects the lines of the report while a converter runs."""

    def __init__(self) -> None:
        self._entries: list[ReportEntry] = []
        self._last_at: dict[str, int] = {}
        """Index of the last entry for each place."""
        self._parents: set[str] = set()
        """Places that contain a reported place: `step a` for `step a, loop`."""

    def carried_over(self, place: str, message: str) -> None:
        """Report a member that means the same here."""
        self._add(Outcome.CARRIED_OVER, place, message)

    def changed(self, place: str, message: str) -> None:
        """Report a member that was translated, or means nearly the same."""
        self._add(Outcome.CHANGED, place, message)

    def left_out(self, place: str, message: str) -> None:
        """Report a member that the workflow does not contain."""
        self._add(Outcome.LEFT_OUT, place, message)

    def left_out_keys(self, place: str, keys: Iterable[object], reason: str = _NO_COUNTERPART) -> None:
        """Report keys of an object that were left out, one line each."""
        for key in keys:
            self.left_out(f"{place}, {shown(key, 60)}" if place else shown(key, 60), reason)

    def report_rest(self, place: str, fields: FieldReader, separator: str = ", ") -> None:
        """Report the members of an object that no line mentions yet, each under the name that the file uses.

        Args:
            place: Where the object is.
            fields: Its members.
            separator: Between the place and the name of a member.
        """
        last_at = self._last_at
        prefix = f"{place}{separator}" if place else ""
        renamed: dict[str, str] = {}
        for name, first_name in fields.read.items():
            here, canonical = (one_line(f"{prefix}{shown(key, 60)}", _MAX_LINE_LENGTH) for key in (name, first_name))
            if here in last_at:
                continue
            if canonical in last_at and (first_name in fields.read or canonical in renamed):
                self.carried_over(here, "It repeats another setting.")
            elif canonical in last_at:
                index = last_at[canonical]
                self._entries[index] = replace(self._entries[index], place=here)
                renamed[canonical] = here
            elif here not in self._parents:
                self.left_out(here, "It has no effect here.")
        for canonical, here in renamed.items():
            last_at[here] = last_at.pop(canonical)
        for key in fields.unread:
            self.left_out(f"{prefix}{shown(key, 60)}", _NO_COUNTERPART)

    def add_nested(self, place: str, inner: ImportReport) -> None:
        """Append the report of a nested workflow, with `place` before each of its places."""
        for entry in inner.entries:
            self._add(entry.outcome, f"{place}: {entry.place}" if entry.place else place, entry.message)

    @property
    def entries(self) -> tuple[ReportEntry, ...]:
        """All lines, in the order of the file."""
        return tuple(self._entries)

    def _add(self, outcome: Outcome, place: str, message: str) -> None:
        entry = ReportEntry(outcome, one_line(place, _MAX_LINE_LENGTH), one_line(message, _MAX_LINE_LENGTH))
        self._last_at[entry.place] = len(self._entries)
        self._parents.update(entry.place[: found.start()] for found in _PLACE_SEPARATOR.finditer(entry.place))
        self._entries.append(entry)
