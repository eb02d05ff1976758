"""Stores the preferences in a JSON file in the user's configuration folder, and applies theme and text size."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, from_json
from PySide6.QtCore import QObject, QTimer, Signal

from app.settings.preferences_schema import MAX_RECENT, PreferenceValues
from app.theme.style import style
from engine.errors import EngineError
from engine.exits.max_iterations import set_shown_cap
from engine.formatting import format_json
from engine.safe_file_io import read_text_file, replace_file

VERSION: Final = 1
FILE_NAME: Final = "preferences.json"
MAX_BYTES: Final = 1_000_000
SAVE_DELAY_MS: Final = 400


class PreferenceError(EngineError):
    """An invalid preference."""


class Preferences(QObject):
    """The preferences. Each is also an attribute, such as `preferences.theme`; see `PreferenceValues`.

    Changes are saved after a short delay; `save` saves immediately.

    Signals:
        changed: Preferences changed; their names.
        save_failed: The file cannot be written; the message for the user.

    Attributes:
        values: All current values.
        path: The file.
        notice: What was wrong with the file when it was read, in one sentence; empty if nothing was.
    """

    changed = Signal(frozenset)
    save_failed = Signal(str)

    def __init__(self, path: Path | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.path = path or _default_path()
        self.values = PreferenceValues()
        self.notice = ""
        self._last_failure = ""
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SAVE_DELAY_MS)
        self._timer.timeout.connect(self.save)
        self.load()
        set_shown_cap(self.values.max_iterations_cap)

    def __getattr__(self, name: str) -> Any:
        if name in PreferenceValues.model_fields:
            return getattr(self.values, name)
        raise AttributeError(f"There is no preference {name!r}.")

    def set(self, **changes: object) -> None:
        """Change preferences.

        Args:
            **changes: New values by name.

        Raises:
            PreferenceError: A value is invalid; nothing is changed.
        """
        unknown = changes.keys() - PreferenceValues.model_fields.keys()
        if unknown:
            raise AttributeError(f"There is no preference {min(unknown)!r}.")
        try:
            after = PreferenceValues.model_validate(dict(self.values) | changes)
            after.model_dump_json()
        except ValidationError as error:
            first = error.errors()[0]
            raise PreferenceError(f"Cannot set {first['loc'][0]}: {first['msg']}.") from None
        except PydanticSerializationError:
            raise PreferenceError(f"Cannot set {min(changes)}: it contains characters that cannot be saved.") from None
        names = _differences(self.values, after)
        if names:
            self.values = after
            set_shown_cap(after.max_iterations_cap)
            self._timer.start()
            self.changed.emit(names)

    def remember_file(self, path: Path) -> None:
        """Move a file to the top of the recent files."""
        with suppress(PreferenceError):  # a file name that is not valid text
            self.set(recent_files=_first(str(path.absolute()), self.values.recent_files))

    def forget_file(self, path: Path) -> None:
        """Remove a file from the recent files."""
        self.set(recent_files=tuple(file for file in self.values.recent_files if file != str(path.absolute())))

    def remember_model(self, name: str) -> None:
        """Move a model to the top of the recent models."""
        with suppress(PreferenceError):
            self.set(recent_models=_first(name, self.values.recent_models))

    def has_learned(self, what: str) -> bool:
        """Return whether the user has already seen a hint."""
        return what in self.values.learned

    def learn(self, what: str) -> None:
        """Remember that the user has seen a hint."""
        if not self.has_learned(what):
            self.set(learned=(*self.values.learned, what))

    def load(self) -> None:
        """Read the file. Invalid values are replaced by defaults, and a damaged file is renamed."""
        self.notice = ""
        before = self.values
        try:
            content = _read(self.path)
            self.values = PreferenceValues() if content is None else self._parse(content)
        except OSError as error:
            self.values = PreferenceValues()
            reason = error.strerror or type(error).__name__
            self.notice = f"Cannot read the settings in {self.path} ({reason}). The default settings apply."
        names = _differences(before, self.values)
        if names:
            self.changed.emit(names)

    def save(self) -> None:
        """Write the file now: either completely or not at all."""
        self._timer.stop()
        text = format_json({"version": VERSION} | self.values.model_dump(mode="json"), ascii_only=True) + "\n"
        try:
            _write(self.path, text)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            self._report_failure(f"Cannot save the settings in {self.path} ({reason}). They apply until you quit.")
        else:
            self._last_failure = ""

    def _parse(self, content: str) -> PreferenceValues:
        """Return the valid values of the file and defaults for the others."""
        try:
            found: Any = from_json(content)
        except ValueError:
            found = None
        version = found.get("version") if isinstance(found, dict) else None
        if type(version) is not int or version < 1:
            self._rename_file("broken", "are damaged")
            return PreferenceValues()
        if version > VERSION:
            self._rename_file("newer", "come from a newer version of the program")
            return PreferenceValues()
        known = {name: value for name, value in found.items() if name in PreferenceValues.model_fields}
        try:
            return PreferenceValues.model_validate_json(json.dumps(known))
        except ValidationError as error:
            wrong = {str(part["loc"][0]) for part in error.errors()}
            self._rename_file("broken", f"are partly damaged ({', '.join(sorted(wrong))})")
            right = {name: value for name, value in known.items() if name not in wrong}
            return PreferenceValues.model_validate_json(json.dumps(right))

    def _rename_file(self, kind: str, what: str) -> None:
        backup = self.path.with_suffix(f".{kind}.json")
        outcome = f"The old file was renamed to {backup.name}."
        try:
            self.path.replace(backup)
        except OSError:
            outcome = "The old file could not be renamed."
        self.notice = f"The settings in {self.path} {what}. The default settings apply instead. {outcome}"

    def _report_failure(self, message: str) -> None:
        if message != self._last_failure:  # report it once, not at each change
            self._last_failure = message
            self.save_failed.emit(message)


def _default_path() -> Path:
    import platformdirs

    return platformdirs.user_config_path("loopwright", appauthor=False) / FILE_NAME


def _differences(before: PreferenceValues, after: PreferenceValues) -> frozenset[str]:
    return frozenset(name for name in PreferenceValues.model_fields if getattr(before, name) != getattr(after, name))


def _first(name: str, others: Iterable[str]) -> tuple[str, ...]:
    return (name, *(other for other in others if other != name))[:MAX_RECENT]


def _read(path: Path) -> str | None:
    try:
        return read_text_file(path, MAX_BYTES)
    except FileNotFoundError:
        return None
    except ValueError:
        return ""  # not text, or too large: damaged


def _write(path: Path, text: str) -> None:
    # No fsync, because it could block the window. After a power failure the file may be damaged, which `load` handles.
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, text.encode(), wait_for_disk=False)


APPLY_DELAY_MS: Final = 80
"""Delay that avoids a new layout of every window for each step of the text size slider."""


class _AppearanceApplier(QObject):
    """Applies theme and text size whenever they change. A child of the preferences."""

    def __init__(self, preferences: Preferences) -> None:
        super().__init__(preferences)
        self._preferences = preferences
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(APPLY_DELAY_MS)
        self._timer.timeout.connect(self.apply)
        preferences.changed.connect(self._follow)

    def apply(self) -> None:
        values = self._preferences.values
        style().choose(values.theme, values.text_scale)

    def _follow(self, names: frozenset[str]) -> None:
        if names & {"theme", "text_scale"}:
            self._timer.start()


def apply_appearance(preferences: Preferences) -> None:
    """Apply theme and text size now and after every change; calling it again has no effect."""
    if preferences.findChild(_AppearanceApplier) is None:
        _AppearanceApplier(preferences).apply()
