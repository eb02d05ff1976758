"""The store of what a person decides for the whole program: a file of JSON in the system's folder for settings.

It knows what can be decided from `app.settings.preferences_schema`, and nothing of what comes of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, from_json
from PySide6.QtCore import QObject, QTimer, Signal

from app.settings.preferences_schema import RECENT, Choices
from app.theme.style import style
from engine.errors import EngineError
from engine.formatting import format_json
from engine.nodes.iteration_cap import set_shown_cap
from engine.safe_file_io import read_text_file, replace_file

VERSION: Final = 1
FILE_NAME: Final = "preferences.json"
MAX_BYTES: Final = 1_000_000
SAVE_AFTER_MS: Final = 400


class PreferenceError(EngineError):
    """A preference that cannot be."""


class Preferences(QObject):
    """What a person has decided. Each choice is an attribute, such as `preferences.theme`; see `Choices` for them all.

    A change is saved a moment later by itself; `save` does it at once.

    Signals:
        changed: Something is another now; the names of the choices.
        refused: The file cannot be read or written; the text says what and why, and the program goes on.

    Attributes:
        choices: All choices as they are now.
        path: The file.
        notice: What was wrong with the file when it was read, in one sentence; empty where nothing was.
    """

    changed = Signal(frozenset)
    refused = Signal(str)

    def __init__(self, path: Path | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.path = path or _usual_path()
        self.choices = Choices()
        self.notice = ""
        self._refusal = ""
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SAVE_AFTER_MS)
        self._timer.timeout.connect(self.save)
        self.load()
        set_shown_cap(self.choices.max_iterations_cap)

    def __getattr__(self, name: str) -> Any:
        if name in Choices.model_fields:
            return getattr(self.choices, name)
        raise AttributeError(f"There is no preference {name!r}.")

    def set(self, **changes: object) -> None:
        """Decide something.

        Args:
            **changes: The choices by name.

        Raises:
            PreferenceError: A value cannot be; then nothing is changed.
        """
        unknown = changes.keys() - Choices.model_fields.keys()
        if unknown:
            raise AttributeError(f"There is no preference {min(unknown)!r}.")
        try:
            after = Choices.model_validate(dict(self.choices) | changes)
            after.model_dump_json()
        except ValidationError as error:
            first = error.errors()[0]
            raise PreferenceError(f"{first['loc'][0]} cannot be set: {first['msg']}.") from None
        except PydanticSerializationError:
            raise PreferenceError(f"{min(changes)} cannot be set: it holds signs that no file can hold.") from None
        names = _differences(self.choices, after)
        if names:
            self.choices = after
            set_shown_cap(after.max_iterations_cap)
            self._timer.start()
            self.changed.emit(names)

    def remember_file(self, path: Path) -> None:
        """Put a file at the head of the recent ones."""
        with suppress(PreferenceError):  # a name that no text can hold
            self.set(recent_files=_first(str(path.absolute()), self.choices.recent_files))

    def forget_file(self, path: Path) -> None:
        """Take a file from the recent ones."""
        self.set(recent_files=tuple(file for file in self.choices.recent_files if file != str(path.absolute())))

    def remember_model(self, name: str) -> None:
        """Put a model at the head of those used of late."""
        with suppress(PreferenceError):
            self.set(recent_models=_first(name, self.choices.recent_models))

    def has_learned(self, what: str) -> bool:
        """Whether the person has already been shown something."""
        return what in self.choices.learned

    def learn(self, what: str) -> None:
        """Note that the person has been shown something, and needs it no more."""
        if not self.has_learned(what):
            self.set(learned=(*self.choices.learned, what))

    def load(self) -> None:
        """Read the file. What cannot be read counts as not decided, and the file is kept beside."""
        self.notice = ""
        before = self.choices
        try:
            content = _read(self.path)
            self.choices = Choices() if content is None else self._understood(content)
        except OSError as error:
            self.choices = Choices()
            reason = error.strerror or type(error).__name__
            self.notice = f"The settings in {self.path} cannot be read ({reason}); the usual ones count."
        names = _differences(before, self.choices)
        if names:
            self.changed.emit(names)

    def save(self) -> None:
        """Write the file at once: all of it, or the old one stays."""
        self._timer.stop()
        text = format_json({"version": VERSION} | self.choices.model_dump(mode="json"), ascii_only=True) + "\n"
        try:
            _write(self.path, text)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            self._refuse(f"The settings cannot be saved in {self.path} ({reason}); they count until the program ends.")
        else:
            self._refusal = ""

    def _understood(self, content: str) -> Choices:
        """Read what is right in the file; of what is not the usual choice counts."""
        try:
            found: Any = from_json(content)
        except ValueError:
            found = None
        version = found.get("version") if isinstance(found, dict) else None
        if type(version) is not int or version < 1:
            self._set_aside("broken", "are damaged")
            return Choices()
        if version > VERSION:
            self._set_aside("newer", "come from a newer version of the program")
            return Choices()
        known = {name: value for name, value in found.items() if name in Choices.model_fields}
        try:
            return Choices.model_validate_json(json.dumps(known))
        except ValidationError as error:
            wrong = {str(part["loc"][0]) for part in error.errors()}
            self._set_aside("broken", f"are partly damaged ({', '.join(sorted(wrong))})")
            right = {name: value for name, value in known.items() if name not in wrong}
            return Choices.model_validate_json(json.dumps(right))

    def _set_aside(self, kind: str, what: str) -> None:
        beside = self.path.with_suffix(f".{kind}.json")
        where = f"the old file is kept as {beside.name}"
        try:
            self.path.replace(beside)
        except OSError:
            where = "the old file could not be put aside"
        self.notice = f"The settings in {self.path} {what}: the usual ones count instead, and {where}."

    def _refuse(self, sentence: str) -> None:
        if sentence != self._refusal:  # told once, and not at each change
            self._refusal = sentence
            self.refused.emit(sentence)


def _usual_path() -> Path:
    import platformdirs

    return platformdirs.user_config_path("loopwright", appauthor=False) / FILE_NAME


def _differences(before: Choices, after: Choices) -> frozenset[str]:
    return frozenset(name for name in Choices.model_fields if getattr(before, name) != getattr(after, name))


def _first(name: str, others: Iterable[str]) -> tuple[str, ...]:
    return (name, *(other for other in others if other != name))[:RECENT]


def _read(path: Path) -> str | None:
    try:
        return read_text_file(path, MAX_BYTES)
    except FileNotFoundError:
        return None
    except ValueError:
        return ""  # not text, or too large: damaged


def _write(path: Path, text: str) -> None:
    # Not forced onto the disk, which may take longer than the window may stand still. Should the power fail in that
    # second, the worst is a damaged file, and that is an ordinary case for `load`.
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, text.encode(), wait_for_disk=False)


PUT_ON_AFTER_MS: Final = 80
"""A slider that is drawn gives many sizes; each would lay out every window anew."""


class _Looks(QObject):
    """The one follower of some preferences; it lives as long as they do."""

    def __init__(self, preferences: Preferences) -> None:
        super().__init__(preferences)
        self._preferences = preferences
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(PUT_ON_AFTER_MS)
        self._timer.timeout.connect(self.put_on)
        preferences.changed.connect(self._follow)

    def put_on(self) -> None:
        choices = self._preferences.choices
        style().choose(choices.theme, choices.text_scale)

    def _follow(self, names: frozenset[str]) -> None:
        if names & {"theme", "text_scale"}:
            self._timer.start()


def follow_looks(preferences: Preferences) -> None:
    """Put on the theme and the size of texts, and follow every change of them; once is enough, more do no harm."""
    if preferences.findChild(_Looks) is None:
        _Looks(preferences).put_on()
