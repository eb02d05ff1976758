"""What an import tells: for each thing of the foreign file whether it was carried over, changed, or left behind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Final

from engine.document.importing.values import Fields
from engine.document.model import Workflow
from engine.document.wording import one_line, shown

_WIDTH: Final = 400
_PART: Final = re.compile(r" |, ")


class Fate(StrEnum):
    """What became of a thing."""

    CARRIED = "carried over"
    CHANGED = "changed"
    LEFT = "left out"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the report.

    Attributes:
        fate: What became of it.
        place: Where it stood in the foreign file: `step dev_cycle, loop.until`.
        message: One sentence: what it is now, or why it is not.
    """

    fate: Fate
    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.fate}: {self.place}: {self.message}"


class Report:
    """Collects the lines while a file is read."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._told: dict[str, int] = {}
        """Each place that a line is about, and the last such line."""
        self._around: set[str] = set()
        """What such a place lies in: `step a` of `step a, loop`."""

    def carried(self, place: str, message: str) -> None:
        """Something means the same here."""
        self._add(Fate.CARRIED, place, message)

    def changed(self, place: str, message: str) -> None:
        """Something is here in another way, or means nearly the same."""
        self._add(Fate.CHANGED, place, message)

    def left(self, place: str, message: str) -> None:
        """Something is not here."""
        self._add(Fate.LEFT, place, message)

    def left_keys(self, place: str, keys: Iterable[object], why: str = "Nothing here stands for it.") -> None:
        """Keys of the foreign file that nothing was made of."""
        for key in keys:
            self.left(f"{place}, {shown(key, 60)}" if place else shown(key, 60), why)

    def settle(self, place: str, fields: Fields, joint: str = ", ") -> None:
        """Say what has not been said of an object's members: each is named as the file names it, and none is silent.

        Args:
            place: Where the object stands.
            fields: Its members.
            joint: What stands between the place and the name of a member.
        """
        told = self._told
        before = f"{place}{joint}" if place else ""
        renamed: list[tuple[str, str]] = []
        for name, known_as in fields.used.items():
            here, as_known = (one_line(f"{before}{shown(key, 60)}", _WIDTH) for key in (name, known_as))
            if here not in told and as_known in told and known_as in fields.used:
                self.carried(here, f"It says what {known_as} says.")
            elif here not in told and as_known in told:
                at = told[as_known]
                self._entries[at] = replace(self._entries[at], place=here)
                renamed.append((as_known, here))
            elif here not in told and here not in self._around:
                self.left(here, "Nothing was made of it.")
        for as_known, here in renamed:
            told[here] = told.pop(as_known) if as_known in told else told[here]
        for key in fields.rest:
            self.left(f"{before}{shown(key, 60)}", "Nothing here stands for it.")

    def add_within(self, place: str, inner: Report) -> None:
        """What became of the things inside of one."""
        for entry in inner.entries:
            self._add(entry.fate, f"{place}: {entry.place}" if entry.place else place, entry.message)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All lines, in the file's order."""
        return tuple(self._entries)

    def _add(self, fate: Fate, place: str, message: str) -> None:
        entry = Entry(fate, one_line(place, _WIDTH), one_line(message, _WIDTH))
        self._told[entry.place] = len(self._entries)
        self._around.update(entry.place[: found.start()] for found in _PART.finditer(entry.place))
        self._entries.append(entry)


@dataclass(frozen=True, slots=True)
class Imported:
    """A foreign file as a document of ours.

    Attributes:
        workflow: The document. It may have problems, which its check tells.
        form: What the file was, in words.
        entries: What became of each thing in it.
    """

    workflow: Workflow
    form: str
    entries: tuple[Entry, ...]

    @property
    def summary(self) -> str:
        """How many things were carried over, changed and left out, in a sentence."""
        counts = Counter(entry.fate for entry in self.entries)
        return f"{', '.join(f'{counts[fate]} {fate}' for fate in Fate)}.".capitalize()

    def to_json(self) -> dict[str, object]:
        """The report as a JSON object."""
        entries = [{**asdict(entry), "fate": str(entry.fate)} for entry in self.entries]
        return {"form": self.form, "summary": self.summary, "report": entries}
