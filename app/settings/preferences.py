"""The user's settings and what the window remembers, as the window sees them, and the appearance.

The settings are declared in `engine.settings`, and the command line shares their file. The forms of the Settings dialog
are generated from the declarations.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pydantic import Field, ValidationError
from pydantic_core import PydanticSerializationError
from PySide6.QtCore import QObject, QTimer, Signal

from app.document_file import FileFingerprint, FileWatcher
from app.theme.style import reading_mode, style
from engine.errors import EngineError, Fix
from engine.exits import set_shown_cap
from engine.settings import (
    SETTINGS,
    LoadedSettings,
    SettingsBusyError,
    SettingsError,
    Source,
    UserSettings,
    change_settings,
    load_settings,
    reset_settings,
    settings_path,
)

MAX_RECENT: Final = 12
"""Number of recent files and models to remember."""

FIXED_NOTE: Final = "Set outside of Loopwright, so it can't be changed here."


class PreferenceValues(UserSettings):
    """The user's settings, and what the window remembers."""

    recent_files: tuple[str, ...] = Field(default=(), max_length=MAX_RECENT)
    recent_models: tuple[str, ...] = Field(default=(), max_length=MAX_RECENT)
    model_files: tuple[str, ...] = ()
    local_models: tuple[str, ...] = ()
    providers_with_key: tuple[str, ...] = ()
    window_geometry: str = ""
    window_state: str = ""
    learned: tuple[str, ...] = ()


SAVE_DELAY_MS: Final = 400
MAX_SILENT_ATTEMPTS: Final = 10
"""Attempts to save while another program changes the file, before that is reported."""


class PreferenceError(EngineError):
    """An invalid preference."""


class Preferences(QObject):
    """The preferences. Each is also an attribute, such as `preferences.theme`; see `PreferenceValues`.

    Changes are saved after a short delay; `save` saves immediately.

    Signals:
        changed: Preferences changed; their names.
        notice_changed: The new `notice`.
        save_failed: The file cannot be written; the message for the user.

    Attributes:
        values: All current values.
        is_unreadable: Whether the file cannot be read. It is not overwritten then.
        notice: What was wrong with the file when it was last read, for the user; empty if nothing was.
    """

    changed = Signal(frozenset)
    notice_changed = Signal(str)
    save_failed = Signal(str)

    def __init__(self, path: Path | None = None) -> None:
        super().__init__()
        self.path = path or settings_path()
        self.values = PreferenceValues()
        self.is_unreadable = False
        self.notice = ""
        self._fixed: frozenset[str] = frozenset()
        self._unsaved: dict[str, Any] = {}
        self._last_failure = ""
        self._has_read = False
        self._busy_attempts = 0
        self._timer = QTimer(self, singleShot=True, interval=SAVE_DELAY_MS)
        self._timer.timeout.connect(self.save)
        self.load()

    def __getattr__(self, name: str) -> Any:
        if name in PreferenceValues.model_fields:
            return getattr(self.values, name)
        raise AttributeError(f"There is no preference {name!r}.")

    def is_fixed(self, name: str) -> bool:
        """Return whether a setting has its value from the environment. A change applies without that value only."""
        return name in self._fixed

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
            valid = PreferenceValues.model_validate(changes)
            valid.model_dump_json()
        except ValidationError as error:
            first = error.errors()[0]
            raise PreferenceError(f"Cannot set {first['loc'][0]}: {first['msg']}.") from None
        except PydanticSerializationError:
            raise PreferenceError(f"Cannot set {min(changes)}: it contains characters that cannot be saved.") from None
        given = {name: getattr(valid, name) for name in changes}
        new = {name: value for name, value in given.items() if self.is_fixed(name) or value != getattr(self, name)}
        if new:
            self._unsaved |= new
            self._timer.start()
            self._apply({name: value for name, value in new.items() if not self.is_fixed(name)})

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
        """Read the file and the environment. Changes that are not saved yet stay.

        Invalid values are replaced by defaults. A file that cannot be read changes nothing.
        """
        loaded = load_settings(PreferenceValues, self.path)
        self.is_unreadable = loaded.unreadable is not None
        self._has_read |= not self.is_unreadable
        self._note(_notice(loaded, "current" if self._has_read else "default"))
        self._fixed = frozenset(name for name, source in loaded.sources.items() if source is Source.ENVIRONMENT)
        names = self._fixed if self.is_unreadable else PreferenceValues.model_fields
        self._apply({name: getattr(loaded.values, name) for name in names if self._is_current(name)})

    def _note(self, notice: str) -> None:
        if notice != self.notice:
            self.notice = notice
            self.notice_changed.emit(notice)

    def _is_current(self, name: str) -> bool:
        return name in self._fixed or name not in self._unsaved

    def save(self, *, lock_timeout_s: float = 0.0) -> None:
        """Write all changes now, and read those that other programs have made.

        Args:
            lock_timeout_s: How long to wait for another program that changes the file, in seconds. Afterwards, the
                changes are saved a little later.
        """
        self._timer.stop()
        if not self._unsaved:
            return
        defaults = PreferenceValues()
        removed = [name for name, value in self._unsaved.items() if value == getattr(defaults, name)]
        stored = PreferenceValues.model_construct(**self._unsaved).model_dump(mode="json", include=set(self._unsaved))
        changes = {name: value for name, value in stored.items() if name not in removed}
        try:
            # Without waiting for the disk, which could block the window.
            change_settings(self.path, changes, removed, wait_for_disk=False, lock_timeout_s=lock_timeout_s)
        except SettingsBusyError as error:
            self._timer.start()
            self._busy_attempts += 1
            if self._busy_attempts == MAX_SILENT_ATTEMPTS:
                self._report_failure(f"{error.message} Your changes are saved when it has finished.")
        except SettingsError as error:
            self.is_unreadable = error.fix == Fix.RESET_SETTINGS
            self._report_failure(f"{error.message} Changes apply until you quit.")
        else:
            self._last_failure = ""
            self._busy_attempts = 0
            self._unsaved = {}
            self.load()

    def reset_file(self) -> None:
        """Replace a file that cannot be read, which is renamed, and save the changes."""
        try:
            reset_settings(self.path, lock_timeout_s=0)
        except SettingsError as error:
            self._report_failure(str(error))
            return
        self.load()
        self.save()

    def _apply(self, values: dict[str, Any]) -> None:
        changed = {name: value for name, value in values.items() if value != getattr(self.values, name)}
        self.values = self.values.model_copy(update=changed)
        set_shown_cap(self.values.max_iterations_cap)
        if changed:
            self.changed.emit(frozenset(changed))

    def _report_failure(self, message: str) -> None:
        if message != self._last_failure:  # report it once, not at each change
            self._last_failure = message
            self.save_failed.emit(message)


def _notice(loaded: LoadedSettings[PreferenceValues], which: str) -> str:
    if loaded.unreadable is not None:
        return f"{loaded.unreadable.message} The {which} settings apply, and changes are not saved."
    names = [one.name for one in loaded.invalid]
    wrong = [str(SETTINGS[name].title) if name in SETTINGS else name.replace("_", " ") for name in names]
    return f"Invalid settings have their default values: {', '.join(wrong)}." if wrong else ""


def _first(name: str, others: Iterable[str]) -> tuple[str, ...]:
    return (name, *(other for other in others if other != name))[:MAX_RECENT]


def follow_settings_file(preferences: Preferences) -> None:
    """Follow changes that other programs make to the settings; calling it again has no effect."""
    if preferences.findChild(FileWatcher) is not None:
        return
    with suppress(OSError):  # without a folder, there is nothing to follow
        preferences.path.parent.mkdir(parents=True, exist_ok=True)
    watcher = FileWatcher(preferences.path, FileFingerprint.of(preferences.path), preferences)
    watcher.changed.connect(preferences.load)
    watcher.gone.connect(preferences.load)


APPLY_DELAY_MS: Final = 80
"""Delay that avoids a new layout of every window for each step of the text size slider."""


def apply_appearance(preferences: Preferences) -> None:
    """Apply theme and text size now and after every change."""

    def apply() -> None:
        values = preferences.values
        style().choose(values.theme, values.text_scale, gradually=True)

    def follow(names: frozenset[str]) -> None:
        if names & {"theme", "text_scale"}:
            timer.start()

    timer = QTimer(preferences, singleShot=True, interval=APPLY_DELAY_MS)
    timer.timeout.connect(apply)
    preferences.changed.connect(follow)
    apply()


class _ReadingModeFollower(QObject):
    """Keeps the choice between formatted and plain results and its preference equal. A child of the preferences."""

    def __init__(self, preferences: Preferences) -> None:
        super().__init__(preferences)
        self._preferences = preferences
        reading_mode().changed.connect(self._remember)
        preferences.changed.connect(self.apply)

    def apply(self) -> None:
        reading_mode().choose(is_formatted=self._preferences.formatted_results)

    def _remember(self) -> None:
        self._preferences.set(formatted_results=reading_mode().is_formatted)


def follow_reading_mode(preferences: Preferences) -> None:
    """Apply the stored choice between formatted and plain results, and store each change; calling it again is fine."""
    if preferences.findChild(_ReadingModeFollower) is None:
        _ReadingModeFollower(preferences).apply()
