"""What a person decides for the whole program, declared once: the dialog's forms are made from this.

No Qt here, no file, and no key: keys lie in the system's keyring, the environment or this session's memory.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from engine.errors import EngineError
from engine.models.model_names import check_model_name
from engine.models.providers import origin_of
from engine.nodes.iteration_cap import MAX_ITERATIONS_CAP

RECENT: Final = 12
"""How many files and models are remembered."""


class OwnServer(BaseModel):
    """A model on a server that speaks like OpenAI's, at a place that the program does not know by itself.

    Attributes:
        model: How documents call the model (`openai/my-model`).
        address: Where it is served (`http://localhost:8080/v1`).
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


class Choices(BaseModel):
    """All that is decided. A field's `page` says where the dialog shows it; one without a page has no form."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)

    default_model: str | None = Field(
        default=None,
        title="Default model",
        description="What a model node calls where neither it nor its document names a model.",
    )
    max_iterations_cap: int = Field(
        default=MAX_ITERATIONS_CAP,
        ge=1,
        le=10_000,
        title="Most iterations of a loop",
        description="No loop goes on longer, whatever its document says.",
        json_schema_extra={"page": "runs"},
    )
    budget_usd: float | None = Field(
        default=None,
        ge=0,
        title="Budget of a run in US dollars",
        description="For documents that have none of their own. A call that does not fit is not made.",
        json_schema_extra={"page": "runs"},
    )
    budget_tokens: int | None = Field(
        default=None,
        ge=0,
        title="Budget of a run in tokens",
        description="For documents that have none of their own. Tokens in and out count together.",
        json_schema_extra={"page": "runs"},
    )
    keep_runs: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        title="Runs that are kept",
        description="Beyond that, the oldest go when a run has ended. Pinned ones stay.",
        json_schema_extra={"page": "history", "widget": "late"},
    )
    keep_megabytes: int | None = Field(
        default=2_000,
        ge=1,
        le=1_000_000,
        title="Megabytes for the history",
        description="Beyond that, the oldest runs go. Pinned ones stay.",
        json_schema_extra={"page": "history", "widget": "late"},
    )
    notify_when_done: bool = Field(
        default=True,
        title="Tell me when a run has ended",
        description="With a message of the system, while another window is in front.",
        json_schema_extra={"page": "runs"},
    )
    theme: Literal["system", "dark", "light"] = Field(
        default="system",
        title="Colours",
        description="The system's choice is also followed when it changes.",
        json_schema_extra={"page": "looks", "labels": {"system": "Like the system", "dark": "Dark", "light": "Light"}},
    )
    text_scale: float = Field(
        default=1.0,
        ge=1.0,
        le=2.0,
        title="Size of texts",
        description="Controls and icons grow with them.",
        json_schema_extra={"page": "looks", "widget": "percent"},
    )
    recent_files: tuple[str, ...] = Field(default=(), max_length=RECENT)
    recent_models: tuple[str, ...] = Field(default=(), max_length=RECENT)
    servers: tuple[OwnServer, ...] = ()
    local_models: tuple[str, ...] = ()
    providers_with_key: tuple[str, ...] = ()
    window_geometry: str = ""
    window_state: str = ""
    learned: tuple[str, ...] = ()

    @field_validator("default_model")
    @classmethod
    def _is_a_name(cls, model: str | None) -> str | None:
        return None if model is None else _checked_model(model)


def fault(name: str, value: object) -> str:
    """What is wrong with a value for a choice, in one sentence; empty where nothing is."""
    try:
        Choices.model_validate({name: value})
    except ValidationError as error:
        told = error.errors()[0]
        words = told["msg"].removeprefix("Input should be ")
        words = words.replace("greater than or equal to", "at least").replace("less than or equal to", "at most")
        return words if told["type"] == "refused" else f"This must be {words}."
    return ""


def _checked_model(model: str) -> str:
    try:
        check_model_name(model)
    except EngineError as error:
        raise _refusal(error) from None
    return model


def _refusal(error: EngineError) -> PydanticCustomError:
    return PydanticCustomError("refused", "{sentence}", {"sentence": str(error)})
