"""Settings of a workflow: the document's `settings`, parsed and validated.

The document stores its settings as in the file, so an invalid setting is a problem and does not prevent opening.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

MAX_CONCURRENCY_DEFAULT = 4


class ModelPrice(BaseModel):
    """A user-defined price of a model, in US dollars per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    input_usd_per_million: float = Field(ge=0, allow_inf_nan=False, title="USD per million input tokens")
    output_usd_per_million: float = Field(ge=0, allow_inf_nan=False, title="USD per million output tokens")


class Settings(BaseModel):
    """The settings of a workflow."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    model: str | None = Field(
        default=None,
        title="Model",
        description="Model of nodes without their own. Leave empty for the program's default.",
        json_schema_extra={"widget": "model"},
    )
    max_concurrency: int = Field(
        default=MAX_CONCURRENCY_DEFAULT,
        ge=1,
        le=1000,
        title="Max concurrency",
        description="Maximum number of nodes that run at the same time.",
        json_schema_extra={"group": "more"},
    )
    budget_usd: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        title="Budget (USD)",
        description="Maximum cost of a run. Calls that could exceed it are not made.",
    )
    budget_tokens: int | None = Field(
        default=None,
        ge=0,
        title="Token limit",
        description="Maximum number of tokens of a run, input and output.",
    )
    prices: dict[str, ModelPrice] = Field(
        default_factory=dict,
        title="Prices",
        description="Prices by model name, for models without a known price.",
        json_schema_extra={"group": "more"},
    )
    allow_unknown_price: bool = Field(
        default=False,
        title="Allow unknown prices",
        description="Allow models without a known price even if the run has a budget.",
        json_schema_extra={"group": "more"},
    )


def unknown_settings(settings: dict[str, Any]) -> tuple[str, ...]:
    """Keys in a document's settings that are unknown to this version."""
    return tuple(key for key in settings if key not in Settings.model_fields)
