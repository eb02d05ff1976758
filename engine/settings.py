"""The user's settings: declared once, and stored in one JSON file that the window and the command line share.

The value of a setting is that of its environment variable, else the one in the file, else its default. Options of a
command take precedence over all of them. Only changed settings are in the file. What the file contains otherwise, such
as the settings of a newer version, stays in it.

API keys are not settings: they are in environment variables, in the system keyring or in memory.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError, from_json

from engine.errors import EngineError, Fix, reason_of
from engine.exits import MAX_ITERATIONS_CAP
from engine.formatting import format_json, plain_constraint
from engine.models.catalog import MODEL_VARIABLE, check_model_name
from engine.models.protocol import EMBEDDED_MODEL
from engine.models.providers import origin_of
from engine.safe_file_io import LOCK_TIMEOUT_S, hold_lock, read_text_file, replace_file, user_path
from engine.text_sanitizing import shown
from engine.values import as_object

if TYPE_CHECKING:
    from engine.document.model import Workflow
    from engine.models.gguf_files import GgufSettings

PATH_VARIABLE: Final = "LOOPWRIGHT_SETTINGS"
FILE_NAME: Final = "settings.json"
OLD_FILE_NAME: Final = "preferences.json"
"""The file of earlier versions. It is read while there is no file with settings, and never changed."""
WINDOW_SECTION: Final = "window"
"""The object in the file that holds what only the window remembers, such as the recent files."""
VERSION: Final = 1
MAX_BYTES: Final = 1_000_000

_STORED: Final = "stored"
"""Context of the validation of values that were stored: the plugin with a model may not be loaded yet."""


class SettingsError(EngineError):
    """An invalid setting, or a file of settings that cannot be read or written."""


class SettingsBusyError(SettingsError):
    """Another program is changing the file of the settings."""


class CustomServer(BaseModel):
    """A model on an OpenAI-compatible server that the user added.

    Attributes:
        model: Name of the model in workflows (`openai/my-model`).
        address: Base URL of the server (`http://localhost:8080/v1`).
    """

    model_config = ConfigDict(frozen=True, strict=True)

    model: str
    address: str

    @model_validator(mode="before")
    @classmethod
    def _has_no_other_fields(cls, server: object, info: ValidationInfo) -> object:
        # In the file they may come from a newer version; a new one may be a key, which the file must not contain.
        if info.context != _STORED and isinstance(server, dict):
            others = cast("dict[str, Any]", server).keys() - cls.model_fields
            if others:
                error = SettingsError(
                    f'A server has no field "{shown(min(others), 60)}".',
                    "Fields: model, address. Keys are not stored in the settings.",
                )
                raise _refusal(error)
        return cast("object", server)

    @field_validator("model")
    @classmethod
    def _is_a_name(cls, model: str, info: ValidationInfo) -> str:
        return _checked_model(model, info)

    @field_validator("address")
    @classmethod
    def _is_an_address(cls, address: str) -> str:
        try:
            origin_of(address)
        except EngineError as error:
            raise _refusal(error) from None
        return address


_LOCAL: Final[JsonDict] = {"page": "local models", "widget": "deferred", "placeholder": "Automatic"}


class UserSettings(BaseModel):
    """All settings. A field's `page` is its page in the Settings dialog; some have an own editor there instead."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)

    default_model: str | None = Field(
        default=None,
        title="Default model",
        description="Used by model nodes if neither the node nor its workflow specifies a model. "
        "Empty: the built-in model.",
    )
    servers: tuple[CustomServer, ...] = Field(
        default=(),
        title="Custom servers",
        description="Models on OpenAI-compatible servers, each with its `model` name and the server's `address`.",
    )
    search_local_servers: bool = Field(
        default=False,
        title="Look for models on this computer",
        description="Asks Ollama, LM Studio and llama.cpp for their models when a list of models opens in the window.",
    )
    gguf_context_tokens: int | None = Field(
        default=None,
        ge=256,  # what the runtime gives at least
        le=100_000_000,
        title="Context length (tokens)",
        description="Prompt and reply together, for models in GGUF files. More takes more memory. Empty: 8192, or less "
        "if the model supports less.",
        json_schema_extra=_LOCAL,
    )
    gguf_threads: int | None = Field(
        default=None,
        ge=1,
        le=512,
        title="Processor threads",
        description="For models in GGUF files. At most one for each core is used. Empty: half of the cores.",
        json_schema_extra=_LOCAL,
    )
    gguf_gpu_layers: int | None = Field(
        default=None,
        ge=0,
        le=100_000_000,
        title="Layers on the graphics card",
        description="For models in GGUF files, if the runtime supports it; 0 uses none. Empty: as many as fit.",
        json_schema_extra=_LOCAL,
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
    notify_when_done: bool = Field(
        default=True,
        title="Notify me when a run ends",
        description="Shows a system notification while the window is in the background.",
        json_schema_extra={"page": "runs"},
    )
    keep_runs: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        title="Max runs in the history",
        description="When a run ends in the window, the oldest runs above this number are deleted. Pinned runs are "
        "never deleted.",
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

    @field_validator("default_model")
    @classmethod
    def _is_a_name(cls, model: str | None, info: ValidationInfo) -> str | None:
        return None if model is None else _checked_model(model, info)

    @property
    def model(self) -> str:
        """The default model; the built-in one if none is set."""
        return self.default_model or EMBEDDED_MODEL

    @property
    def gguf(self) -> GgufSettings:
        """How models in GGUF files are run."""
        from engine.models.gguf_files import GgufSettings

        return GgufSettings(self.gguf_context_tokens, self.gguf_threads, self.gguf_gpu_layers)

    @property
    def server_addresses(self) -> dict[str, str]:
        """The addresses of custom servers by model."""
        return {server.model: server.address for server in self.servers}


SETTINGS: Final = UserSettings.model_fields
"""The settings by name."""

WINDOW_SETTINGS: Final = frozenset(
    {
        *("search_local_servers", "notify_when_done", "keep_runs", "keep_megabytes"),
        *("theme", "text_scale", "formatted_results"),
    }
)
"""Settings that have no effect on commands."""

_VARIABLES: Final = {"default_model": MODEL_VARIABLE}
"""Environment variables whose names do not follow from that of the setting."""


def _checked_model(model: str, info: ValidationInfo) -> str:
    if info.context != _STORED:
        try:
            check_model_name(model)
        except EngineError as error:
            raise _refusal(error) from None
    return model


def _refusal(error: EngineError) -> PydanticCustomError:
    return PydanticCustomError("refused", "{sentence}", {"sentence": str(error)})


def variable_of(name: str) -> str:
    """Return the environment variable of a setting."""
    return _VARIABLES.get(name) or f"LOOPWRIGHT_{name.upper()}"


def setting_error(name: str, value: object) -> str:
    """Return why a JSON value is invalid for a setting, in one sentence; empty if it is valid."""
    return next(iter(_validated(UserSettings, {name: value})[1].values()), "")


def parse_setting(name: str, text: str) -> Any:
    """Return the JSON value of a setting from its text: the text itself where a text is valid, else JSON.

    Raises:
        SettingsError: It is invalid.
    """
    value, reason = _parsed(name, text)
    if reason:
        # Lists and objects are not repeated: they may be long, and contain a key by mistake.
        stated = "this value" if text.lstrip().startswith(("[", "{")) else f'the value "{shown(text, 60)}"'
        raise SettingsError(f'The setting "{name}" cannot have {stated}.', reason)
    return value


def _parsed(name: str, text: str, context: str | None = None) -> tuple[Any, str]:
    """Return the value of a text, and why it is invalid."""
    candidates: list[Any] = [text]
    with suppress(ValueError, RecursionError):
        candidates.append(json.loads(text))
    reason = ""
    for value in candidates:
        reason = next(iter(_validated(UserSettings, {name: value}, context)[1].values()), "")
        if not reason:
            return value, ""
    return None, reason


ValuesT = TypeVar("ValuesT", bound=UserSettings)


def _validated(
    model: type[ValuesT], values: Mapping[str, object], context: str | None = None
) -> tuple[ValuesT, dict[str, str]]:
    """Return the valid values, with defaults for the others, and why each of those is invalid."""
    try:
        return model.model_validate_json(json.dumps(values), context=context), {}
    except ValidationError as error:
        reasons = {str(part["loc"][0]) if part["loc"] else "": _reason(part) for part in error.errors()}
    if "" in reasons:  # characters that JSON cannot hold
        reasons = dict.fromkeys(values, reasons[""])
    valid = {name: value for name, value in values.items() if name not in reasons}
    return model.model_validate_json(json.dumps(valid), context=context), reasons


def _reason(part: Any) -> str:
    message, kind = part["msg"], part["type"]
    inside = [f'"{step}"' if isinstance(step, str) else f"item {step + 1}" for step in part["loc"][1:]]
    place = " of ".join(reversed(inside))
    if kind == "refused":
        return message
    if kind == "missing":
        return f"{place} is missing."
    if not message.startswith("Input should be "):
        return "It contains characters that cannot be saved."
    text = plain_constraint(message)
    return f"{place[0].upper()}{place[1:]} {text}." if place else f"{text[0].upper()}{text[1:]}."


class Source(StrEnum):
    """Where the value of a setting comes from."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"


@dataclass(frozen=True, slots=True)
class InvalidSetting:
    """A setting whose value is ignored.

    Attributes:
        name: Its name.
        source: Where the value comes from.
        reason: Why it is invalid, in one sentence.
    """

    name: str
    source: Source
    reason: str


@dataclass(frozen=True, slots=True)
class LoadedSettings(Generic[ValuesT]):
    """The settings that apply.

    Attributes:
        values: The values.
        sources: Where the values that are not defaults come from, by name.
        invalid: The values that are ignored.
        unreadable: Why the file cannot be read; None if it can. Then nothing of it applies, and it is not overwritten.
    """

    values: ValuesT
    sources: Mapping[str, Source]
    invalid: tuple[InvalidSetting, ...] = ()
    unreadable: SettingsError | None = None

    def source(self, name: str) -> Source:
        """Return where the value of a setting comes from."""
        return self.sources.get(name, Source.DEFAULT)


def settings_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the file of the settings: the one in LOOPWRIGHT_SETTINGS, else the one in the user's settings folder."""
    return user_path(PATH_VARIABLE, FILE_NAME, environment=environment)


def load_settings(
    model: type[ValuesT], path: Path | None = None, environment: Mapping[str, str] = os.environ
) -> LoadedSettings[ValuesT]:
    """Return the settings that apply. Never fails, and writes nothing.

    Args:
        model: `UserSettings`, or a model that adds what the window remembers.
        path: The file; None for the user's.
        environment: The environment variables.
    """
    unreadable = None
    content: dict[str, Any] = {}
    try:
        content = _read(path or settings_path(environment))
    except SettingsError as error:
        unreadable = error
    sections = content | as_object(content.get(WINDOW_SECTION))
    found = {name: value for name, value in content.items() if name in SETTINGS}
    found |= {name: sections[name] for name in model.model_fields if name not in SETTINGS and name in sections}
    _, wrong = _validated(model, found, _STORED)
    invalid = [InvalidSetting(name, Source.FILE, reason) for name, reason in wrong.items()]
    stored = {name: value for name, value in found.items() if name not in wrong}
    given: dict[str, Any] = {}
    for name in SETTINGS:
        text = environment.get(variable_of(name), "").strip()
        if text:
            value, reason = _parsed(name, text, _STORED)
            if reason:
                invalid.append(InvalidSetting(name, Source.ENVIRONMENT, reason))
            else:
                given[name] = value
    values, _ = _validated(model, stored | given, _STORED)
    sources = dict.fromkeys(stored, Source.FILE) | dict.fromkeys(given, Source.ENVIRONMENT)
    return LoadedSettings(values, sources, tuple(invalid), unreadable)


def change_settings(
    path: Path,
    changes: Mapping[str, Any],
    removed: Iterable[str] = (),
    *,
    wait_for_disk: bool = True,
    lock_timeout_s: float = LOCK_TIMEOUT_S,
) -> None:
    """Change settings in the file; everything else in it stays. Processes that do so at the same time lose nothing.

    Args:
        path: The file.
        changes: New JSON values by name. Names that are no settings are remembered for the window.
        removed: Names to remove, so that their defaults apply.
        wait_for_disk: Whether to wait until the content survives a power failure.
        lock_timeout_s: How long to wait for other programs that change the file, in seconds.

    Raises:
        SettingsBusyError: Another program is changing the file all that time.
        SettingsError: The file cannot be read and is left unchanged, or it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with hold_lock(path, lock_timeout_s):
            content = _read_to_change(path)
            window = as_object(content.pop(WINDOW_SECTION, None))
            for name in removed:
                (content if name in SETTINGS else window).pop(name, None)
            for name, value in changes.items():
                (content if name in SETTINGS else window)[name] = value
            _write(path, content | ({WINDOW_SECTION: window} if window else {}), wait_for_disk=wait_for_disk)
    except (OSError, ValueError) as error:
        raise _not_written(path, error) from error


def reset_settings(path: Path, *, lock_timeout_s: float = LOCK_TIMEOUT_S) -> Path | None:
    """Reset all settings to their defaults. What the window remembers stays, if the file can be read.

    Args:
        path: The file.
        lock_timeout_s: How long to wait for other programs that change the file, in seconds.

    Returns:
        The new name of a file that could not be read; None if it could.

    Raises:
        SettingsBusyError: Another program is changing the file all that time.
        SettingsError: The file cannot be written.
    """
    backup = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with hold_lock(path, lock_timeout_s):
            try:
                content = _read_to_change(path)
            except SettingsError:
                content, backup = {}, _free_backup(path)
                path.replace(backup)
            _write(path, {name: value for name, value in content.items() if name not in SETTINGS})
    except (OSError, ValueError) as error:
        raise _not_written(path, error) from error
    return backup


def _free_backup(path: Path) -> Path:
    """Return a name for a file that cannot be read: `settings.broken.json`, or `settings.broken-2.json`."""
    names = (path.with_suffix(f".broken{f'-{number}' if number > 1 else ''}.json") for number in itertools.count(1))
    return next(name for name in names if not os.path.lexists(name))


def _read_to_change(path: Path) -> dict[str, Any]:
    try:
        return _read(path)
    except SettingsError:
        if os.path.lexists(path):
            raise
        return {}  # what cannot be read is the file of an earlier version, which stays


def _read(path: Path) -> dict[str, Any]:
    """Return the content of the file, else of that of an earlier version; empty if there is neither."""
    for file in (path, path.with_name(OLD_FILE_NAME)):
        try:
            text = read_text_file(file, MAX_BYTES)
            content: Any = from_json(text, allow_inf_nan=False) if text.strip() else {}
            found = _object(content)
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise _unreadable(f"The settings in {file} cannot be read: {shown(reason_of(error))}.") from error
        version = found.get("version")
        if isinstance(version, int) and version > VERSION:
            raise _unreadable(f"The settings in {file} come from a newer version of the program.")
        return found if file == path else _converted(found)
    return {}


def _object(content: Any) -> dict[str, Any]:
    if isinstance(content, dict):
        return cast("dict[str, Any]", content)
    raise ValueError("it is not a JSON object")


def _converted(old: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the content of the file of earlier versions, which had all values, in one object."""
    defaults = UserSettings().model_dump(mode="json")
    changed = {name: value for name, value in old.items() if name in SETTINGS and value != defaults[name]}
    window = {name: value for name, value in old.items() if name not in SETTINGS and name != "version"}
    return changed | {WINDOW_SECTION: window}


def _write(path: Path, content: Mapping[str, Any], *, wait_for_disk: bool = True) -> None:
    text = format_json({"version": VERSION, **content}, ascii_only=True) + "\n"
    replace_file(path, text.encode(), wait_for_disk=wait_for_disk)


def _unreadable(message: str) -> SettingsError:
    return SettingsError(message, "Correct the file, or reset the settings.", fix=Fix.RESET_SETTINGS)


def _not_written(path: Path, error: Exception) -> SettingsError:
    if isinstance(error, TimeoutError):
        return SettingsBusyError(f"Another program is changing the settings in {path}.", "Try again.")
    return SettingsError(f"The settings cannot be saved in {path}: {shown(reason_of(error))}.", "Check the folder.")


def budget_limit(workflow: Workflow, name: str, default: float | None) -> float | None:
    """Return a budget: the document's own, else the user's default.

    Args:
        workflow: The document.
        name: `budget_usd` or `budget_tokens`.
        default: The budget in the user's settings.
    """
    stated = workflow.settings.get(name)
    return stated if isinstance(stated, int | float) and not isinstance(stated, bool) else default


def run_defaults(values: UserSettings, workflow: Workflow) -> dict[str, Any]:
    """Return the options of a new run of a document, by their names in `RunOptions`, that the settings determine."""
    tokens = budget_limit(workflow, "budget_tokens", values.budget_tokens)
    return {
        "default_model": values.model,
        "budget_usd": budget_limit(workflow, "budget_usd", values.budget_usd),
        "budget_tokens": None if tokens is None else int(tokens),
        "max_iterations_cap": values.max_iterations_cap,
    }
