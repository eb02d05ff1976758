"""The program's preferences: schema, JSON file in the user's configuration folder, and appearance.

The forms of the Settings dialog are generated from the schema. API keys are not preferences: they are in the system
keyring, in environment variables or in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError, PydanticSerializationError, from_json
from PySide6.QtCore import QObject, QTimer, Signal

from app.inspector.reading_mode import reading_mode
from app.theme.style import style
from engine.errors import EngineError
from engine.exits import MAX_ITERATIONS_CAP, set_shown_cap
from engine.formatting import format_json
from engine.models.catalog import check_model_name
from engine.models.providers import origin_of
from engine.safe_file_io import read_text_file, replace_file

MAX_RECENT: Final = 12
"""Number of recent files and models to remember."""


class CustomServer(BaseModel):
    """A model on an OpenAI-compatible server that the user added.

    Attributes:
        model: Name of the model in workflows (`openai/my-model`).
        address: Base URL of the server (`http://localhost:8080/v1`).
    """

    model_config = ConfigDict(frozen=True, strict=True)

    model: str
    address: str

    @field_validator("model")
    @classmethod
    def _is_a_name(cls, model: str) -> str:
        return _checked_model(model)

    @field_validator("address")
    @classmethod
    def _is_an_address(cls, address: str) -> str:
        try:
            origin_of(address)
        except EngineError as error:
            raise _refusal(error) from None
        return address


class PreferenceValues(BaseModel):
    """All preferences. A field's `page` is its page in the Settings dialog; fields without a page are not shown."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)

    default_model: str | None = Field(
        default=None,
        title="Default model",
        description="Used by model nodes if neither the node nor its workflow specifies a model.",
    )
    max_iterations_cap: int = Field(
        default=MAX_ITERATIONS_CAP,
        ge=1,
        le=10_000,
        title="Max iterations per loop",
        description="Upper limit for every loop, whatever its workflow says.",
        json_schema_extra={"page": "runs"},
    )
    budget_usd: float | None = Field(
        default=None,
        ge=0,
        title="Budget per run (USD)",
        description="For workflows without a budget. Calls that would exceed it are not made.",
        json_schema_extra={"page": "runs"},
    )
    budget_tokens: int | None = Field(
        default=None,
        ge=0,
        title="Token limit per run",
        description="For workflows without a token limit. Input and output tokens both count.",
        json_schema_extra={"page": "runs"},
    )
    keep_runs: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        title="Max runs in the history",
        description="When a run ends, the oldest runs above this number are deleted. Pinned runs are never deleted.",
        json_schema_extra={"page": "history", "widget": "deferred"},
    )
    keep_megabytes: int | None = Field(
        default=2_000,
        ge=1,
        le=1_000_000,
        title="Max size of the history (MB)",
        description="The oldest runs above this size are deleted. Pinned runs are never deleted.",
        json_schema_extra={"page": "history", "widget": "deferred"},
    )
    notify_when_done: bool = Field(
        default=True,
        title="Notify me when a run ends",
        description="Shows a system notification while the window is in the background.",
        json_schema_extra={"page": "runs"},
    )
    theme: Literal["system", "dark", "light"] = Field(
        default="system",
        title="Theme",
        description="“System” follows the setting of the operating system.",
        json_schema_extra={"page": "appearance", "labels": {"system": "System", "dark": "Dark", "light": "Light"}},
    )
    text_scale: float = Field(
        default=1.0,
        ge=1.0,
        le=2.0,
        title="Text size",
        description="Controls and icons scale with it.",
        json_schema_extra={"page": "appearance", "widget": "percent"},
    )
    formatted_results: bool = Field(
        default=True,
        title="Formatted results",
        description="Shows Markdown and JSON in results formatted instead of as plain text.",
        json_schema_extra={"page": "appearance"},
    )
    recent_files: tuple[str, ...] = Field(default=(), max_length=MAX_RECENT)
    recent_models: tuple[str, ...] = Field(default=(), max_length=MAX_RECENT)
    servers: tuple[CustomServer, ...] = ()
    search_local_servers: bool = False
    model_files: tuple[str, ...] = ()
    local_models: tuple[str, ...] = ()
    providers_with_key: tuple[str, ...] = ()
    window_geometry: str = ""
    window_state: str = ""
    learned: tuple[str, ...] = ()

    @field_validator("default_model")
    @classmethod
    def _is_a_name(cls, model: str | None) -> str | None:
        return None if model is None else _checked_model(model)


def validation_error(name: str, value: object) -> str:
    """Return why a value is invalid for a preference, in one sentence; empty if it is valid."""
    try:
        PreferenceValues.model_validate({name: value})
    except ValidationError as error:
        details = error.errors()[0]
        text = details["msg"].removeprefix("Input should be ")
        text = text.replace("greater than or equal to", "at least").replace("less than or equal to", "at most")
        return text if details["type"] == "refused" else f"Must be {text}."
    return ""


def _checked_model(model: str) -> str:
    try:
        check_model_name(model)
    except EngineError as error:
        raise _refusal(error) from None
    return model


def _refusal(error: EngineError) -> PydanticCustomError:
    return PydanticCustomError("refused", "{sentence}", {"sentence": str(error)})


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
        self._timer = QTimer(self, singleShot=True, interval=SAVE_DELAY_MS)
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
        self._timer = QTimer(self, singleShot=True, interval=APPLY_DELAY_MS)
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
