"""The settings of a `loop` node."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from engine.nodes.judge import JudgeConfig
from engine.nodes.loop_exits import ListedCondition
from engine.nodes.spec import NodeConfig

MAX_ITERATIONS_DEFAULT: Final = 5

ITERATION_NAMES: Final = frozenset({"output", "similarity", "cost_usd", "elapsed_s"})
"""What `until` and `score` may name of the iteration just ended, beside `nodes.ID` and `loop.…`."""


class LoopConfig(NodeConfig):
    """Settings of a `loop` node."""

    max_iterations: int = Field(
        default=MAX_ITERATIONS_DEFAULT,
        title="At most",
        description="How many iterations at the most, whatever else is asked for; 1 to 50.",
    )
    exit_condition: Literal["max_iterations", "evaluator", "stable_output", "judge"] = Field(
        default="max_iterations",
        title="Stop when",
        description=(
            "max_iterations: the count is reached. evaluator: a router in the loop chooses 'done'. "
            "stable_output: the result stops changing. judge: a model that is asked about each result says it is done."
        ),
        json_schema_extra={"shown_when": {"exit_conditions": []}},
    )
    judge: JudgeConfig | None = Field(
        default=None,
        title="Judge",
        description="Who is asked about each result, and by what it decides. A judge scores every iteration.",
        json_schema_extra={
            "shown_when": [
                {"exit_condition": "judge"},
                {"exit_conditions[].condition": "judge"},
                {"exit_conditions[].condition": "plateau"},
                {"on_max_iterations": "return_best"},
                {"on_budget": "return_best"},
                {"on_timeout": "return_best"},
            ]
        },
    )
    feedback_mode: Literal["replace", "append", "append_window"] = Field(
        default="replace",
        title="Next iteration starts from",
        description=(
            "replace: the feedback alone. append: the input so far and the feedback below it. "
            "append_window: the first input and the last few feedbacks."
        ),
    )
    append_window: int = Field(
        default=3,
        ge=1,
        le=1000,
        title="Feedbacks kept",
        description="How many of the last feedbacks 'append_window' keeps.",
        json_schema_extra={"shown_when": {"feedback_mode": "append_window"}},
    )
    evaluator: str | None = Field(
        default=None,
        title="Evaluator",
        description="Id of the router that decides. Empty: the only router whose branch 'done' leads to the exit.",
        json_schema_extra={"shown_when": {"exit_condition": "evaluator"}, "widget": "router"},
    )
    stability_threshold: float = Field(
        default=0.95,
        ge=0,
        le=1,
        title="Similarity to stop at",
        description="1 means identical. It stops when a result is at least this similar to the one before.",
        json_schema_extra={"shown_when": {"exit_condition": "stable_output"}},
    )
    stability_patience: int = Field(
        default=1,
        ge=1,
        le=50,
        title="Times in a row",
        description="How many times in a row the result must be that similar.",
        json_schema_extra={"shown_when": {"exit_condition": "stable_output"}},
    )
    until: str = Field(
        default="",
        title="Or as soon as",
        description="A CEL expression, checked first after each iteration: size(output) < 500, nodes.check == 'fine'.",
        json_schema_extra={"widget": "expression", "group": "more"},
    )
    exit_conditions: list[ListedCondition] = Field(
        default_factory=list[ListedCondition],
        max_length=12,
        title="Several conditions",
        description="A list of conditions to stop at, instead of the one above. 'At most' holds in any case.",
        json_schema_extra={"group": "more"},
    )
    exit_when: Literal["any", "all"] = Field(
        default="any",
        title="Of several conditions",
        description="any: the first that holds stops the loop. all: they must hold after the same iteration.",
        json_schema_extra={"group": "more"},
    )
    on_max_iterations: Literal["return_last", "return_best", "return_with_flag", "fail"] = Field(
        default="return_last",
        title="If the count comes first",
        description=(
            "return_last: the last result. return_best: the one with the highest score. Where another condition was "
            "asked for and not met in time: return_with_flag: the last one, with a warning. fail: the run ends."
        ),
        json_schema_extra={"group": "more"},
    )
    score: str = Field(
        default="",
        title="Score",
        description=(
            "A CEL expression that gives each iteration a number; the highest is the best. Empty: the judge's score."
        ),
        json_schema_extra={"widget": "expression", "group": "more"},
    )
    output_mode: Literal["final", "last_iteration", "all_iterations"] = Field(
        default="final",
        title="What comes out",
        description=(
            "final: the result. last_iteration: what every node of the last iteration gave, by id. "
            "all_iterations: the results of all iterations."
        ),
        json_schema_extra={"group": "more"},
    )
    inject_feedback: bool = Field(
        default=True,
        title="Tell the model about the iteration",
        description=(
            "The first model node is told which iteration this is, of how many, and what the last one gave. "
            "Switch it off where a prompt says so itself."
        ),
        json_schema_extra={"group": "more"},
    )
    condition: str = Field(
        default="",
        title="Only if",
        description="A CEL expression on the input; false skips the loop and passes the input through.",
        json_schema_extra={"widget": "expression", "group": "more"},
    )
    delay_s: float = Field(
        default=0.0,
        ge=0,
        le=86400,
        title="Pause between iterations in seconds",
        description="How long to wait before each iteration but the first.",
        json_schema_extra={"group": "more"},
    )
    budget_usd: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        title="Budget in US dollars",
        description="The most that this loop may spend, within the budget of the run.",
        json_schema_extra={"group": "more"},
    )
    on_budget: Literal["return_last", "return_best", "fail"] = Field(
        default="return_last",
        title="If the budget ends",
        description=(
            "return_last: the last whole iteration's result. return_best: the one with the highest score. "
            "fail: the run ends."
        ),
        json_schema_extra={"group": "more"},
    )
    on_timeout: Literal["fail", "return_last", "return_best"] = Field(
        default="fail",
        title="If the time is up",
        description=(
            "fail: the run ends. return_last: the last whole iteration's result. "
            "return_best: the one with the highest score."
        ),
        json_schema_extra={"group": "more"},
    )
    memory: Literal["fresh", "accumulate", "window"] = Field(
        default="fresh",
        title="Models remember",
        description=(
            "What the model nodes in the loop see of their own earlier iterations. fresh: nothing. "
            "accumulate: all of their prompts and replies. window: the last few."
        ),
        json_schema_extra={"group": "more"},
    )
    memory_window: int = Field(
        default=3,
        ge=1,
        le=1000,
        title="Iterations remembered",
        description="How many of the last iterations 'window' keeps.",
        json_schema_extra={"group": "more", "shown_when": {"memory": "window"}},
    )

    def asks_for(self, condition: str) -> bool:
        """Whether the loop is to stop at that condition."""
        if self.exit_conditions:
            return any(one.condition == condition for one in self.exit_conditions)
        return self.exit_condition == condition

    @property
    def stability(self) -> tuple[float, int] | None:
        """The similarity at which the loop stops and how many times in a row; None where it does not stop for that."""
        listed = next((one for one in self.exit_conditions if one.condition == "stable_output"), None)
        if listed is not None:
            return listed.threshold, listed.patience
        return (self.stability_threshold, self.stability_patience) if self.asks_for("stable_output") else None

    @property
    def has_judge(self) -> bool:
        """Whether a judge is asked about each iteration."""
        return self.judge is not None and self.judge.is_set

    @property
    def has_score(self) -> bool:
        """Whether anything gives iterations a score."""
        return bool(self.score.strip()) or self.has_judge


def asks_for_more_than_the_count(config: LoopConfig) -> bool:
    """Whether another condition than the count was asked for, so that the count can come first."""
    names = [one.condition for one in config.exit_conditions] or [config.exit_condition]
    return bool(set(names) - {"max_iterations"}) or config.until.strip() != ""
