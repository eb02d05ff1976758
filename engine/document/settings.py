"""What holds for a whole workflow: the document's `settings`, read and checked.

The document keeps its settings as the file has them, so that a wrong one is a problem to be mended and not a file that
does not open. This module says what they mean.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

MAX_CONCURRENCY_DEFAULT = 4


class ModelPrice(BaseModel):
    """A price that the user states for a model, in US dollars a million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    input_usd_per_million: float = Field(ge=0, allow_inf_nan=False, title="US dollars a million input tokens")
    output_usd_per_million: float = Field(ge=0, allow_inf_nan=False, title="US dollars a million output tokens")


class Settings(BaseModel):
    """The settings of a workflow."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    model: str | None = Field(
        default=None,
        title="Model",
        description="The model of every node that names none. Empty: the program's own default.",
        json_schema_extra={"widget": "model"},
    )
    max_concurrency: int = Field(
        default=MAX_CONCURRENCY_DEFAULT,
        ge=1,
        le=1000,
        title="Nodes at work at once",
        description="How many nodes may be at work at the same time.",
        json_schema_extra={"group": "more"},
    )
    budget_usd: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        title="Budget in US dollars",
        description="The most that one run may spend. A call that does not fit is not made.",
    )
    budget_tokens: int | None = Field(
        default=None,
        ge=0,
        title="Budget in tokens",
        description="The most tokens, in and out together, that one run may use.",
    )
    prices: dict[str, ModelPrice] = Field(
        default_factory=dict,
        title="Prices",
        description="Prices by model name, for models whose price the program does not know.",
        json_schema_extra={"group": "more"},
    )
    allow_unknown_price: bool = Field(
        default=False,
        title="Allow models of unknown price",
        description="Whether a run with a money budget may use a model whose price nobody knows.",
        json_schema_extra={"group": "more"},
    )


def unknown_settings(settings: dict[str, Any]) -> tuple[str, ...]:
    """Keys of a document's settings that this version of the program does not know."""
    return tuple(key for key in settings if key not in Settings.model_fields)
