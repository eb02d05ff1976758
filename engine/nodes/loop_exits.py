"""The exit conditions that a loop may list: what each is, and what must be said about it."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

ConditionName = Literal[
    "evaluator",
    "judge",
    "until",
    "stable_output",
    "plateau",
    "oscillation",
    "max_iterations",
    "budget",
    "time",
    "plugin",
]
NO_CONVERGENCE: Final = frozenset({"max_iterations", "budget", "time"})
"""Conditions that end a loop without its having got anywhere by itself."""


def _shown(*names: str) -> dict[str, Any]:
    return {"shown_when": [{"condition": name} for name in names]}


class ListedCondition(BaseModel):
    """One of the conditions that a loop lists."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    condition: ConditionName = Field(
        title="Stop when",
        description=(
            "evaluator: a router in the loop chooses 'done'. judge: the judge says it is done. "
            "until: an expression is true. stable_output: the result stops changing. "
            "plateau: the best score has not risen for a while. "
            "oscillation: the result comes back to an earlier one. max_iterations: so many iterations were made. "
            "budget: so much was spent. time: so much time has passed. plugin: a condition that a plugin adds."
        ),
    )
    until: str = Field(
        default="",
        title="Expression",
        description="A CEL expression, such as size(output) < 500 or nodes.check == 'fine'.",
        json_schema_extra={"widget": "expression", **_shown("until")},
    )
    threshold: float = Field(
        default=0.95,
        ge=0,
        le=1,
        title="Similarity",
        description="1 means identical. How similar a result must be to the one before, or to an earlier one.",
        json_schema_extra=_shown("stable_output", "oscillation"),
    )
    patience: int = Field(
        default=1,
        ge=1,
        le=50,
        title="Times in a row",
        description="How many times in a row it must hold; for a plateau, iterations without a rise.",
        json_schema_extra=_shown("stable_output", "plateau"),
    )
    epsilon: float = Field(
        default=0.0,
        ge=0,
        allow_inf_nan=False,
        title="Least rise",
        description="A best score that rises by no more than this has not risen.",
        json_schema_extra=_shown("plateau"),
    )
    count: int = Field(
        default=3,
        ge=1,
        le=1000,
        title="Iterations",
        description="How many.",
        json_schema_extra=_shown("max_iterations"),
    )
    budget_usd: float = Field(
        default=1.0,
        ge=0,
        allow_inf_nan=False,
        title="US dollars",
        description="The loop stops after the iteration in which it has spent this much.",
        json_schema_extra=_shown("budget"),
    )
    seconds: float = Field(
        default=60.0,
        gt=0,
        allow_inf_nan=False,
        title="Seconds",
        description="The loop stops after the iteration in which this much time has passed.",
        json_schema_extra=_shown("time"),
    )
    plugin_condition: str = Field(
        default="",
        title="The plugin's condition",
        description="Its name, as the plugin calls it.",
        json_schema_extra=_shown("plugin"),
    )
    plugin_settings: dict[str, Any] = Field(
        default_factory=dict[str, Any],
        title="Its settings",
        description="A JSON object, as the plugin describes it.",
        json_schema_extra={"widget": "json", **_shown("plugin")},
    )
