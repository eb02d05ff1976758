"""The `loop` node: starts the loop body, which runs repeatedly.

This is its declaration; `engine.runner.loop_run` runs it. The body ends at the `exit` node.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Any, Final, Literal

from pydantic import Field, GetJsonSchemaHandler
from pydantic.config import JsonDict
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from engine.document.problems import FieldProblem, Severity
from engine.exits import MAX_ITERATIONS_CAP, clamped, shown_cap
from engine.exits.condition import Need
from engine.exits.loop_conditions import KEY, Condition, condition_problems, condition_specs, read_conditions
from engine.exits.max_iterations import MAX_ITERATIONS
from engine.nodes.judge import JudgeConfig, judge_text
from engine.nodes.spec import Category, NamedText, NodeConfig, NodeSpec, Port, PortType, TextKind, uses

MAX_ITERATIONS_DEFAULT: Final = 5

ITERATION_NAMES: Final = frozenset({"output", "similarity", "cost_usd", "elapsed_s"})
"""Names for `until` and `score` about the completed iteration, besides `nodes.ID` and `loop.…`."""

_ENDING_LABELS: Final[JsonDict] = {
    "return_last": "Return the last result",
    "return_best": "Return the best result",
    "fail": "Fail",
}


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

`LoopConfig.conditions` reads it. So an unknown condition, such as one of a disabled plugin, is a problem, and the other
settings of the loop can still be read.
"""


class LoopConfig(NodeConfig):
    """Settings of a `loop` node."""

    stop_when: list[StopCondition] = Field(
        default_factory=list[StopCondition],
        max_length=20,
        title="Stop",
        description="When the loop stops, checked after each iteration. 'Max iterations' always caps the loop.",
        json_schema_extra={"widget": "conditions"},
    )
    stop_mode: Literal["any", "all"] = Field(
        default="any",
        title="Conditions needed",
        description=(
            "any: The first condition that holds stops the loop. all: All must hold after the same iteration."
        ),
        json_schema_extra={"hidden": True},  # the editor of the conditions shows it as "or" and "and"
    )
    judge: JudgeConfig | None = Field(
        default=None,
        title="Judge",
        description="The reviewer: a model that scores each result and decides whether the loop is done.",
        json_schema_extra={
            "shown_when": [
                {"stop_when[].condition": "judge"},
                {"stop_when[].condition": "plateau"},
                {"stop_when[].condition": "score"},
                {"on_max_iterations": "return_best"},
                {"on_budget": "return_best"},
                {"on_timeout": "return_best"},
            ]
        },
    )
    evaluator: str | None = Field(
        default=None,
        title="Evaluator",
        description=(
            "Id of the router that decides. Leave empty for the only router whose branch 'done' leads to the exit."
        ),
        json_schema_extra={"shown_when": {"stop_when[].condition": "evaluator"}, "widget": "router"},
    )
    max_iterations: int = Field(
        default=MAX_ITERATIONS_DEFAULT,
        title="Max iterations",
        description="The loop stops after this many at the latest, from 1 to 50.",
    )
    feedback_mode: Literal["replace", "append", "append_window"] = Field(
        default="replace",
        title="Feedback mode",
        description=(
            "What the next iteration gets. replace: The next iteration gets only the feedback. Usually that is the "
            "result; connect the exit's port 'feedback' to choose another value. append: The next iteration gets the "
            "input of this one, followed by the feedback. append_window: The next iteration gets the loop's original "
            "input, followed by the latest feedback."
        ),
        json_schema_extra={
            "labels": {
                "replace": "Replace: only the latest",
                "append": "Append: everything so far",
                "append_window": "Append: the latest few",
            }
        },
    )
    append_window: int = Field(
        default=3,
        ge=1,
        le=1000,
        title="Window size",
        description="Number of feedback texts that follow the original input.",
        json_schema_extra={"shown_when": {"feedback_mode": "append_window"}},
    )
    on_max_iterations: Literal["return_last", "return_best", "return_with_flag", "fail"] = Field(
        default="return_last",
        title="At max iterations",
        description=(
            "Applies if no other condition was met. return_best: The result with the highest score, if no other "
            "condition was met."
        ),
        json_schema_extra={
            "group": "more",
            "labels": {**_ENDING_LABELS, "return_with_flag": "Return the last result, with a warning"},
        },
    )
    score: str = Field(
        default="",
        title="Score",
        description=(
            "A CEL expression for the score of an iteration; the highest is the best. Leave empty for "
            "the judge's score."
        ),
        json_schema_extra={"widget": "expression", "group": "more"},
    )
    output_mode: Literal["final", "last_iteration", "all_iterations"] = Field(
        default="final",
        title="Output mode",
        description=(
            "What the loop returns. last_iteration: An object with the output of each node, by id. all_iterations: "
            "A list with one result per iteration."
        ),
        json_schema_extra={
            "group": "more",
            "labels": {
                "final": "Final result",
                "last_iteration": "All nodes of the last iteration",
                "all_iterations": "Results of all iterations",
            },
        },
    )
    inject_feedback: bool = Field(
        default=True,
        title="Include iteration info",
        description=(
            "Adds the iteration number and the previous result to the prompt of the first model node. "
            "Turn it off if your prompts contain them."
        ),
        json_schema_extra={"group": "more"},
    )
    condition: str = Field(
        default="",
        title="Run only if",
        description=("Checked once, on the input. If it is false, the loop is skipped and the input passed through."),
        json_schema_extra={"widget": "comparison", "group": "more"},
    )
    delay_s: float = Field(
        default=0.0,
        ge=0,
        le=86400,
        title="Delay between iterations (seconds)",
        description="Delay before each iteration except the first.",
        json_schema_extra={"group": "more"},
    )
    budget_usd: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        title="Budget (USD)",
        description="Budget of this loop, within the budget of the run.",
        json_schema_extra={"group": "more"},
    )
    on_budget: Literal["return_last", "return_best", "fail"] = Field(
        default="return_last",
        title="When the budget is used up",
        description=(
            "Whether the loop has a result then. return_last: The result of the last complete iteration. "
            "return_best: The result with the highest score."
        ),
        json_schema_extra={"group": "more", "labels": _ENDING_LABELS},
    )
    on_timeout: Literal["fail", "return_last", "return_best"] = Field(
        default="fail",
        title="On timeout",
        description=(
            "What happens when the loop takes longer than its timeout. return_last: The result of the last complete "
            "iteration. return_best: The result with the highest score."
        ),
        json_schema_extra={"group": "more", "labels": _ENDING_LABELS},
    )
    memory: Literal["fresh", "accumulate", "window"] = Field(
        default="fresh",
        title="Model memory",
        description=(
            "What model nodes see of their own earlier iterations. accumulate: Model nodes see all their earlier "
            "prompts and replies. window: Model nodes see their latest prompts and replies."
        ),
        json_schema_extra={
            "group": "more",
            "labels": {"fresh": "Nothing", "accumulate": "All earlier iterations", "window": "The latest iterations"},
        },
    )
    memory_window: int = Field(
        default=3,
        ge=1,
        le=1000,
        title="Memory window",
        description="Number of earlier iterations that model nodes see.",
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
        return frozenset(need for condition in self.conditions for need in condition.needs)

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
        return Need.SIMILARITY in self.needs or uses(_texts(self), "similarity")

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


def _texts(config: LoopConfig) -> tuple[NamedText, ...]:
    after = frozenset({"loop", "nodes"})
    texts = [
        NamedText(field, TextKind.EXPRESSION, text, ITERATION_NAMES, ports=False, namespaces=after)
        for field, text in config.expressions
    ]
    if config.condition.strip():
        texts.append(NamedText("condition", TextKind.EXPRESSION, config.condition))
    judge = None if config.judge is None else judge_text(config.judge, ITERATION_NAMES)
    return tuple(texts) if judge is None or not judge.text.strip() else (*texts, judge)


def _check(config: LoopConfig) -> Iterator[FieldProblem]:
    yield from condition_problems(config.stop_when, "stop_when")
    yield from _judge_problems(config)
    if not config.has_score:
        for leaf in config.leaf_conditions:
            if Need.SCORE in leaf.spec.needs:
                message = f'"{leaf.spec.label}" needs a score, but iterations have none.'
                remedy = "Write criteria for the judge, or an expression into Score."
                yield FieldProblem("no-score", f"{leaf.field}.{KEY}", message, remedy)
    endings = {
        "on_max_iterations": config.on_max_iterations,
        "on_budget": config.on_budget,
        "on_timeout": config.on_timeout,
    }
    for field, choice in endings.items():
        if choice == "return_best" and not config.has_score:
            message = "The best iteration is unknown: iterations have no score."
            remedy = "Write an expression into Score, set a judge, or choose 'Return the last result'."
            yield FieldProblem("no-score", field, message, remedy)
    if config.on_max_iterations in {"fail", "return_with_flag"} and not config.can_fall_short:
        message = "It has no effect: the loop has no condition but 'Max iterations'."
        remedy = "Choose under 'Stop' when the loop stops, or choose 'Return the last result'."
        yield FieldProblem("no-effect", "on_max_iterations", message, remedy, Severity.WARNING)


def _judge_problems(config: LoopConfig) -> Iterator[FieldProblem]:
    if Need.JUDGE in config.needs and not config.has_judge:
        yield FieldProblem("no-criteria", "judge", "The judge has no criteria.", "Write criteria, or a rubric.")
    if config.judge is None:
        return
    seen: set[str] = set()
    for place, criterion in enumerate(config.judge.rubric):
        if criterion.name in seen:
            field = f"judge.rubric.{place}.name"
            yield FieldProblem("duplicate-name", field, f'Two criteria are called "{criterion.name}".', "Rename one.")
        seen.add(criterion.name)
    if config.judge.rubric and not any(criterion.weight for criterion in config.judge.rubric):
        message = "Every criterion has the weight 0, so there is no total."
        yield FieldProblem("no-weight", "judge.rubric", message, "Give one of them a weight.")


def range_problem(max_iterations: int, cap: int = MAX_ITERATIONS_CAP) -> FieldProblem | None:
    """The warning about a maximum outside 1 to the cap, or None."""
    if 1 <= max_iterations <= cap:
        return None
    return FieldProblem(
        "iterations-clamped",
        "max_iterations",
        f"{max_iterations} is outside 1 to {cap}; at most {clamped(max_iterations, cap)} iterations are run.",
        f"Choose a number from 1 to {cap}.",
        Severity.WARNING,
    )


def _summary(config: LoopConfig) -> str:
    most = f"at most {clamped(config.max_iterations, shown_cap())}"
    if len(config.stop_when) > 1:
        return f"{config.stop_mode} of {len(config.stop_when)} conditions · {most}"
    names, specs = [str(entry.get(KEY, "")) for entry in config.stop_when], condition_specs()
    labels = [(specs[name].card_label if name in specs else "") or name.replace("_", " ") for name in names]
    return " · ".join([most, *labels])


_INPUTS = (Port("input", help="The input of the first iteration.", required=True, many=True),)
_OUTPUTS = (
    Port("body", help="Into the loop: the iteration input."),
    Port("output", help="After the loop: the final result."),
    Port("iterations", PortType.LIST, "After the loop: a record of every iteration."),
    Port("count", PortType.NUMBER, "After the loop: the number of iterations."),
    Port("exit_reason", PortType.TEXT, "After the loop: the exit reason."),
    Port("converged", PortType.BOOLEAN, "After the loop: whether a condition that is more than a limit ended it."),
)

SPEC = NodeSpec(
    type="loop",
    title="Loop",
    category=Category.LOGIC,
    help="Starts the loop body, which repeats until a stop condition is met.",
    icon="mdi6.autorenew",
    config=LoopConfig,
    inputs=lambda _config: _INPUTS,
    outputs=lambda _config: _OUTPUTS,
    run=None,
    texts=_texts,
    check=_check,
    summary=_summary,
    model=lambda config: config.judge.choice if config.judge is not None and config.judge.is_set else None,
    model_field="judge.model",
    synonyms=("repeat", "while", "until", "for", "iterate", "refine", "cycle"),
)
