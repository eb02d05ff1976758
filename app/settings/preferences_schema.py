"""Schema of the program's preferences, from which the forms of the Settings dialog are generated.

API keys are not preferences: they are in the system keyring, in environment variables or in memory.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from engine.errors import EngineError
from engine.exits.max_iterations import MAX_ITERATIONS_CAP
from engine.models.catalog import check_model_name
from engine.models.providers import origin_of

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
    recent_files: tuple[str, ...] = Field(default=(), max_length=MAX_RECENT)
    recent_models: tuple[str, ...] = Field(default=(), max_length=MAX_RECENT)
    servers: tuple[CustomServer, ...] = ()
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
