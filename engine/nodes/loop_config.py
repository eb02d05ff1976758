"""The settings of a `loop` node."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Final, Literal

from pydantic import Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from engine.exits.condition import Need
from engine.exits.max_iterations import MAX_ITERATIONS
from engine.exits.registry import KEY, Condition, condition_specs, read_conditions
from engine.expr import compile_expression
from engine.nodes.judge import JudgeConfig
from engine.nodes.spec import NodeConfig

MAX_ITERATIONS_DEFAULT: Final = 5

ITERATION_NAMES: Final = frozenset({"output", "similarity", "cost_usd", "elapsed_s"})
"""What `until` and `score` may name of the iteration just ended, beside `nodes.ID` and `loop.…`."""


class _ConditionSchema:
    """The JSON Schema of a listed condition: one alternative for each known condition."""

    @staticmethod
    def __get_pydantic_json_schema__(_core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        alternatives: list[JsonSchemaValue] = []
        for spec in condition_specs().values():
            schema = handler.resolve_ref_schema(handler(spec.config.__pydantic_core_schema__))
            about = {"title": spec.label, "description": spec.help}
            key = {"const": spec.name, "type": "string", "title": "Condition"}
            properties = {KEY: key, **schema.get("properties", {})}
            required = [KEY, *schema.get("required", [])]
            alternatives.append({**schema, **about, "properties": properties, "required": required})
        return {"oneOf": alternatives}


StopCondition = Annotated[dict[str, Any], _ConditionSchema]
"""An entry of `stop_when`: `condition` names it, the other keys are its settings.

It is read by `LoopConfig.conditions`: an unknown one, such as that of a plugin that is not enabled, is a problem and
not a loop that cannot be read.
"""


class LoopConfig(NodeConfig):
    """Settings of a `loop` node."""

    max_iterations: int = Field(
        default=MAX_ITERATIONS_DEFAULT,
        title="At most",
        description="How many iterations at the most, whatever else is asked for; 1 to 50.",
    )
    stop_when: list[StopCondition] = Field(
        default_factory=list[StopCondition],
        max_length=20,
        title="Stop when",
        description=(
            "The conditions at which the loop stops, checked in order after each iteration. Without any it stops only "
            "at 'Max iterations', which always caps the loop."
        ),
        json_schema_extra={"widget": "conditions"},
    )
    stop_mode: Literal["any", "all"] = Field(
        default="any",
        title="Conditions needed",
        description=(
            "any: The first condition that holds stops the loop. all: All must hold after the same iteration."
        ),
        json_schema_extra={"shown_when": {"stop_when[1]": True}},
    )
    judge: JudgeConfig | None = Field(
        default=None,
        title="Judge",
        description="Who is asked about each result, and by what it decides. A judge scores every iteration.",
        json_schema_extra={
            "shown_when": [
                {"stop_when[].condition": "judge"},
                {"stop_when[].condition": "plateau"},
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
        json_schema_extra={"shown_when": {"stop_when[].condition": "evaluator"}, "widget": "router"},
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

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions of `stop_when`, without entries that are faulty."""
        return read_conditions(self.stop_when, "stop_when")

    @property
    def leaf_conditions(self) -> tuple[Condition, ...]:
        """The same, with the conditions inside groups in place of the groups."""
        return tuple(leaf for condition in self.conditions for leaf in condition.leaves)

    @cached_property
    def needs(self) -> frozenset[Need]:
        """What the loop must provide for its conditions."""
        return frozenset[Need]().union(*(condition.needs for condition in self.conditions))

    @cached_property
    def expressions(self) -> tuple[tuple[str, str], ...]:
        """The CEL expressions of its conditions and its score: field and text; empty ones are left out."""
        own = (pair for condition in self.conditions for pair in condition.expressions)
        return tuple((field, text) for field, text in (*own, ("score", self.score)) if text.strip())

    @property
    def names_nodes(self) -> bool:
        """Whether one of these expressions reads outputs of the body's nodes."""
        return any("nodes." in text for _, text in self.expressions)

    @cached_property
    def compares_results(self) -> bool:
        """Whether the similarity of each result to the previous one is needed."""
        named = any(("similarity",) in compile_expression(text).paths for _, text in self.expressions)
        return named or Need.SIMILARITY in self.needs

    @property
    def can_fall_short(self) -> bool:
        """Whether the loop has a condition that it may not meet within its iterations."""
        return any(leaf.spec.reason != MAX_ITERATIONS for leaf in self.leaf_conditions)

    @property
    def has_judge(self) -> bool:
        """Whether a judge scores each iteration."""
        return self.judge is not None and self.judge.is_set

    @property
    def has_score(self) -> bool:
        """Whether iterations have a score."""
        return bool(self.score.strip()) or self.has_judge
