"""Import report: what became of each member of a foreign file. A `FieldReader` reads members and reports them."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from engine.importing.fields import as_integer, as_number, as_seconds, as_text, map_model
from engine.text_sanitizing import one_line, shown

_MAX_LINE_LENGTH: Final = 400
_PLACE_SEPARATOR: Final = re.compile(r" |, ")
_MAX_TOKENS: Final = 10_000_000
_MIN_TOP_P: Final = 1e-6
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


class _Report(ABC):
    """Reports what became of the members of a file."""

    def carried_over(self, place: str, message: str) -> None:
        """Report a member that means the same here."""
        self.add(Outcome.CARRIED_OVER, place, message)

    def changed(self, place: str, message: str) -> None:
        """Report a member that was translated, or means nearly the same."""
        self.add(Outcome.CHANGED, place, message)

    def left_out(self, place: str, message: str) -> None:
        """Report a member that the workflow does not contain."""
        self.add(Outcome.LEFT_OUT, place, message)

    def mapped(self, place: str, message: str, *, is_same: bool) -> None:
        """Report a member as carried over if it is the same here, else as changed."""
        self.add(Outcome.CARRIED_OVER if is_same else Outcome.CHANGED, place, message)

    @abstractmethod
    def add(self, outcome: Outcome, place: str, message: str) -> None:
        """Report a member."""


class ImportReport(_Report):
    """Collects the lines of the report while a converter runs."""

    def __init__(self) -> None:
        self._entries: list[ReportEntry] = []
        self._places: set[str] = set()
        self._parents: set[str] = set()
        """Places that contain a reported place: `step a` for `step a, loop`."""

    def left_out_keys(self, place: str, keys: Iterable[object], reason: str = _NO_COUNTERPART) -> None:
        """Report keys of an object that were left out, one line each."""
        for key in keys:
            self.left_out(f"{place}, {shown(key, 60)}" if place else shown(key, 60), reason)

    def add_rest(self, prefix: str, read: Mapping[str, str]) -> None:
        """Report those of the members that were read that no line mentions yet; see `FieldReader.read`."""
        for name, used in read.items():
            here, place_used = (one_line(f"{prefix}{key}", _MAX_LINE_LENGTH) for key in (name, used))
            if here in self._places:
                continue
            if place_used in self._places:
                self.carried_over(here, "It repeats another setting.")
            elif here not in self._parents:
                self.left_out(here, "It has no effect here.")

    def add_nested(self, place: str, inner: ImportReport) -> None:
        """Append the report of a nested workflow, with `place` before each of its places."""
        for entry in inner.entries:
            self.add(entry.outcome, f"{place}: {entry.place}" if entry.place else place, entry.message)

    @property
    def entries(self) -> tuple[ReportEntry, ...]:
        """All lines, in the order of the file."""
        return tuple(self._entries)

    def add(self, outcome: Outcome, place: str, message: str) -> None:
        """Add a line, escaped and truncated."""
        entry = ReportEntry(outcome, one_line(place, _MAX_LINE_LENGTH), one_line(message, _MAX_LINE_LENGTH))
        self._places.add(entry.place)
        self._parents.update(entry.place[: found.start()] for found in _PLACE_SEPARATOR.finditer(entry.place))
        self._entries.append(entry)


class FieldReader(_Report):
    """The members of a foreign object. Each is read once, and the report has a line for each.

    Attributes:
        report: The report.
        place: Where the object is: `step dev_cycle`.
        read: The non-empty members that were read, each with the synonym whose value is used.
    """

    def __init__(self, members: Mapping[str, Any], report: ImportReport, place: str, separator: str = ", ") -> None:
        self.report, self.place = report, place
        self._prefix = f"{place}{separator}" if place else ""
        self._unread = dict(members)
        self.read: dict[str, str] = {}
        self._spelling: dict[str, str] = {}
        """By the first name in a call of `pop`, the name in the file."""

    def pop(self, *names: str) -> Any:
        """Return the first member with one of these names that is not null, and mark it and its synonyms as read."""
        found = None
        for name in names:
            value = self._unread.get(name)
            if found is None and value is not None:
                found, self._spelling[names[0]] = value, name
            elif name not in self._unread or value not in (None, "", found):
                continue
            del self._unread[name]
            if value not in (None, "", [], {}):
                self.read[name] = self._spelling[names[0]]
        return found

    def peek(self, *names: str) -> Any:
        """Return the first member with one of these names that is not null, without marking it as read."""
        return next((self._unread[name] for name in names if self._unread.get(name) is not None), None)

    @property
    def unread(self) -> dict[str, Any]:
        """The members that nobody has read."""
        return dict(self._unread)

    def add(self, outcome: Outcome, place: str, message: str) -> None:
        """Report a member of the object under the name that the file uses."""
        self.report.add(outcome, f"{self._prefix}{self._spelling.get(place, place)}", message)

    def pop_seconds(self, config: dict[str, Any], key: str, *names: str, allow_zero: bool = False) -> None:
        """Convert a duration to a setting of a node."""
        given = self.pop(*names)
        seconds = as_seconds(given)
        if seconds is not None and (seconds > 0 or (allow_zero and seconds == 0)):
            config[key] = seconds
            self.carried_over(names[0], f"{key}: {seconds:g}.")
        elif given is not None:
            self.left_out(names[0], f"{shown(given, 40)} is not a duration.")

    def pop_number(self, config: dict[str, Any], key: str, *names: str, low: float = 0, high: float = math.inf) -> None:
        """Convert a number in a range to a setting of a node."""
        given = self.pop(*names)
        number = as_number(given)
        if number is not None and low <= number <= high:
            config[key] = number
            self.carried_over(names[0], f"{key}: {number:g}.")
        elif given is not None:
            self.left_out(names[0], f"{shown(given, 40)} is not a valid number.")

    def pop_count(
        self, config: dict[str, Any], key: str, *names: str, low: int = 1, high: int, is_raised: bool = False
    ) -> None:
        """Convert an integer to a setting of a node, and limit it from above.

        A smaller one than `low` is left out, because other programs write 0 or -1 for no limit. With `is_raised`, it
        becomes `low`.
        """
        given = self.pop(*names)
        count = as_integer(given)
        if count is not None and (count >= low or is_raised):
            config[key] = limited = min(max(count, low), high)
            self.mapped(names[0], f"{key}: {limited}.", is_same=limited == count)
        elif given is not None:
            default = f"; {config[key]} is used" if key in config else ""
            self.left_out(names[0], f"{shown(given, 40)} is not an integer from {low}{default}.")

    def pop_sampling(self, config: dict[str, Any]) -> None:
        """Convert the settings of a model call that all node types with models have."""
        self.pop_number(config, "temperature", "temperature", high=2)
        self.pop_count(config, "max_tokens", "maxTokens", "max_tokens", high=_MAX_TOKENS)
        self.pop_number(config, "top_p", "topP", "top_p", low=_MIN_TOP_P, high=1)

    def pop_model(self, config: dict[str, Any], *provider_names: str) -> None:
        """Convert the name of a model and its provider to the setting `model`."""
        name = as_text(self.pop("model", "modelId", "model_id")).strip()
        provider = as_text(self.pop(*provider_names)).strip()
        if name:
            config["model"], message = map_model(name, provider)
            if provider:
                self.carried_over("provider", "It is the prefix of the model's name.")
            self.mapped("model", message, is_same=config["model"] == name)
        elif provider:
            self.left_out("provider", "No model is given, so the workflow's default is used.")

    def report_rest(self) -> None:
        """Report the members that no line mentions yet."""
        self.report.add_rest(self._prefix, self.read)
        for key in self._unread:
            self.left_out(shown(key, 60), _NO_COUNTERPART)
