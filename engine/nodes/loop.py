"""The `loop` node: where the part that runs again and again begins.

Only its declaration; `engine.runner.loop` runs it. Its other end is the `exit` node.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from engine.document.problems import Severity
from engine.nodes.spec import (
    Category,
    FieldProblem,
    NamedText,
    NodeConfig,
    NodeSpec,
    Port,
    PortType,
    TextKind,
)
from engine.nodes.texts import text_problems

MAX_ITERATIONS_DEFAULT: Final = 5
MAX_ITERATIONS_CAP: Final = 50
"""The most iterations that a file can ask for. The app and the command line may raise it, a file may not."""

ITERATION_NAMES: Final = frozenset({"output", "similarity", "cost_usd", "elapsed_s"})
"""What `until` and `score` may name of the iteration just ended, beside `nodes.ID` and `loop.…`."""


class LoopConfig(NodeConfig):
    """Settings of a `loop` node."""

    max_iterations: int = Field(
        default=MAX_ITERATIONS_DEFAULT,
        title="At most",
        description="How many iterations at the most, whatever else is asked for; 1 to 50.",
    )
    exit_condition: Literal["max_iterations", "evaluator", "stable_output"] = Field(
        default="max_iterations",
        title="Stop when",
        description=(
            "max_iterations: the count is reached. evaluator: a router in the loop chooses 'done'. "
            "stable_output: the result stops changing."
        ),
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
    on_max_iterations: Literal["return_last", "return_best", "return_with_flag", "fail"] = Field(
        default="return_last",
        title="If the count comes first",
        description=(
            "When another condition was asked for and not met in time. return_last: the last result. "
            "return_best: the one with the highest score. return_with_flag: the last one, with a warning. "
            "fail: the run ends."
        ),
        json_schema_extra={"group": "more"},
    )
    score: str = Field(
        default="",
        title="Score",
        description="A CEL expression that gives a number for each iteration; the highest is the best.",
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


def _texts(config: LoopConfig) -> tuple[NamedText, ...]:
    after = frozenset({"loop", "nodes"})
    texts = (
        NamedText("until", TextKind.EXPRESSION, config.until, ITERATION_NAMES, ports=False, namespaces=after),
        NamedText("score", TextKind.EXPRESSION, config.score, ITERATION_NAMES, ports=False, namespaces=after),
        NamedText("condition", TextKind.EXPRESSION, config.condition),
    )
    return tuple(text for text in texts if text.text.strip())


def _check(config: LoopConfig) -> list[FieldProblem]:
    problems = list(text_problems(_texts(config)))
    for field, choice in (("on_max_iterations", config.on_max_iterations), ("on_budget", config.on_budget)):
        if choice == "return_best" and not config.score.strip():
            problems.append(
                FieldProblem(
                    "no-score",
                    field,
                    "Which iteration is the best cannot be told: nothing gives it a score.",
                    "Write an expression into Score, or choose return_last.",
                )
            )
    if config.on_max_iterations != "return_last" and not asks_for_more_than_the_count(config):
        problems.append(
            FieldProblem(
                "no-effect",
                "on_max_iterations",
                "It has no effect: the loop is asked for nothing but the count.",
                "Choose another condition to stop at, or return_last.",
                Severity.WARNING,
            )
        )
    return problems


def asks_for_more_than_the_count(config: LoopConfig) -> bool:
    """Whether another condition than the count was asked for, so that the count can come first."""
    return config.exit_condition != "max_iterations" or config.until.strip() != ""


def range_problem(max_iterations: int, cap: int = MAX_ITERATIONS_CAP) -> FieldProblem | None:
    """The warning about a count outside 1 to the cap; None where it lies inside."""
    if 1 <= max_iterations <= cap:
        return None
    return FieldProblem(
        "iterations-clamped",
        "max_iterations",
        f"{max_iterations} lies outside 1 to {cap}; at most {min(max(max_iterations, 1), cap)} iterations are run.",
        f"Choose a number from 1 to {cap}.",
        Severity.WARNING,
    )


def _summary(config: LoopConfig) -> str:
    most = f"at most {config.max_iterations}"
    return most if config.exit_condition == "max_iterations" else f"{config.exit_condition.replace('_', ' ')} · {most}"


SPEC = NodeSpec(
    type="loop",
    title="Loop",
    category=Category.LOGIC,
    help="Begins the part that runs again and again; its Exit ends it.",
    icon="mdi6.autorenew",
    config=LoopConfig,
    inputs=lambda _config: (Port("input", help="What the first iteration starts from.", required=True, many=True),),
    outputs=lambda _config: (
        Port("body", help="Into the loop: what this iteration starts from."),
        Port("output", help="After the loop: the final result."),
        Port("iterations", PortType.LIST, "After the loop: a record of every iteration."),
        Port("count", PortType.NUMBER, "After the loop: how many iterations ran."),
        Port("exit_reason", PortType.TEXT, "After the loop: why it stopped."),
        Port(
            "converged", PortType.BOOLEAN, "After the loop: whether something else than count, money or time ended it."
        ),
    ),
    run=None,
    texts=_texts,
    check=_check,
    summary=_summary,
)
