"""The `loop` node: where the part that runs again and again begins.

Only its declaration; `engine.runner.loop_run` runs it. Its other end is the `exit` node.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.document.problems import Severity
from engine.errors import EngineError
from engine.nodes.added_conditions import added_conditions
from engine.nodes.iteration_cap import MAX_ITERATIONS_CAP, clamped, shown_cap
from engine.nodes.judge import judge_text
from engine.nodes.loop_config import ITERATION_NAMES, LoopConfig, asks_for_more_than_the_count
from engine.nodes.loop_exits import ListedCondition
from engine.nodes.spec import (
    Category,
    FieldProblem,
    NamedText,
    NodeSpec,
    Port,
    PortType,
    TextKind,
)
from engine.nodes.texts import text_problems
from engine.text_sanitizing import shown


def _texts(config: LoopConfig) -> tuple[NamedText, ...]:
    after = frozenset({"loop", "nodes"})
    texts = (
        NamedText("until", TextKind.EXPRESSION, config.until, ITERATION_NAMES, ports=False, namespaces=after),
        NamedText("score", TextKind.EXPRESSION, config.score, ITERATION_NAMES, ports=False, namespaces=after),
        NamedText("condition", TextKind.EXPRESSION, config.condition),
    )
    listed = (
        NamedText(
            f"exit_conditions.{place}.until",
            TextKind.EXPRESSION,
            one.until,
            ITERATION_NAMES,
            ports=False,
            namespaces=after,
        )
        for place, one in enumerate(config.exit_conditions)
        if one.condition == "until"
    )
    judge = () if config.judge is None else (judge_text(config.judge, ITERATION_NAMES),)
    return tuple(text for text in (*texts, *listed, *judge) if text.text.strip())


def _check(config: LoopConfig) -> list[FieldProblem]:
    problems = [*text_problems(_texts(config)), *_judge_problems(config), *_listed_problems(config)]
    endings = {
        "on_max_iterations": config.on_max_iterations,
        "on_budget": config.on_budget,
        "on_timeout": config.on_timeout,
    }
    for field, choice in endings.items():
        if choice == "return_best" and not config.has_score:
            problems.append(
                FieldProblem(
                    "no-score",
                    field,
                    "Which iteration is the best cannot be told: nothing gives it a score.",
                    "Write an expression into Score, set a judge, or choose return_last.",
                )
            )
    only_when_not_met = config.on_max_iterations in {"fail", "return_with_flag"}
    if only_when_not_met and not asks_for_more_than_the_count(config):
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


def _judge_problems(config: LoopConfig) -> Iterator[FieldProblem]:
    if config.asks_for("judge") and not config.has_judge:
        yield FieldProblem(
            "no-criteria", "judge", "It says nowhere by what the judge decides.", "Write its criteria, or a rubric."
        )
    if config.judge is None:
        return
    seen: set[str] = set()
    for place, criterion in enumerate(config.judge.rubric):
        if criterion.name in seen:
            field = f"judge.rubric.{place}.name"
            yield FieldProblem("duplicate-name", field, f'Two criteria are called "{criterion.name}".', "Rename one.")
        seen.add(criterion.name)
    if config.judge.rubric and not any(criterion.weight for criterion in config.judge.rubric):
        yield FieldProblem(
            "no-weight", "judge.rubric", "Every criterion has the weight 0, so there is no total.", "Weigh one of them."
        )


def _listed_problems(config: LoopConfig) -> Iterator[FieldProblem]:
    if config.exit_conditions and config.exit_condition != "max_iterations":
        yield FieldProblem(
            "no-effect",
            "exit_condition",
            "It has no effect: the list of several conditions counts.",
            "Choose max_iterations here, or empty the list.",
            Severity.WARNING,
        )
    for place, one in enumerate(config.exit_conditions):
        field = f"exit_conditions.{place}"
        if one.condition == "plateau" and not config.has_score:
            message = "Whether the score rises cannot be told: nothing gives an iteration one."
            yield FieldProblem(
                "no-score", f"{field}.condition", message, "Write an expression into Score, or set a judge."
            )
        if one.condition == "until" and not one.until.strip():
            yield FieldProblem("no-expression", f"{field}.until", "The expression is missing.", "Write it.")
        if one.condition == "plugin":
            yield from _added_problems(one, field)


def _added_problems(one: ListedCondition, field: str) -> Iterator[FieldProblem]:
    added = added_conditions().get(one.plugin_condition)
    if added is None:
        known = ", ".join(added_conditions()) or "none, for no plugin that is enabled adds one"
        message = f'There is no exit condition "{shown(one.plugin_condition)}".'
        remedy = f"Enable the plugin that adds it. There are: {known}."
        yield FieldProblem("unknown-condition", f"{field}.plugin_condition", message, remedy)
        return
    try:
        added.make(one.plugin_settings)
    except EngineError as error:
        yield FieldProblem("bad-condition-settings", f"{field}.plugin_settings", error.message, error.remedy)
    except Exception as error:  # whatever a plugin raises
        yield FieldProblem(
            "plugin-failed",
            f"{field}.plugin_settings",
            f'The exit condition "{added.name}" of a plugin failed: {type(error).__name__}.',
            "Report it to whoever makes the plugin.",
        )


def range_problem(max_iterations: int, cap: int = MAX_ITERATIONS_CAP) -> FieldProblem | None:
    """The warning about a count outside 1 to the cap; None where it lies inside."""
    if 1 <= max_iterations <= cap:
        return None
    return FieldProblem(
        "iterations-clamped",
        "max_iterations",
        f"{max_iterations} lies outside 1 to {cap}; at most {clamped(max_iterations, cap)} iterations are run.",
        f"Choose a number from 1 to {cap}.",
        Severity.WARNING,
    )


def _summary(config: LoopConfig) -> str:
    most = f"at most {clamped(config.max_iterations, shown_cap())}"
    if config.exit_conditions:
        return f"{config.exit_when} of {len(config.exit_conditions)} conditions · {most}"
    return most if config.exit_condition == "max_iterations" else f"{config.exit_condition.replace('_', ' ')} · {most}"


_INPUTS = (Port("input", help="What the first iteration starts from.", required=True, many=True),)
_OUTPUTS = (
    Port("body", help="Into the loop: what this iteration starts from."),
    Port("output", help="After the loop: the final result."),
    Port("iterations", PortType.LIST, "After the loop: a record of every iteration."),
    Port("count", PortType.NUMBER, "After the loop: how many iterations ran."),
    Port("exit_reason", PortType.TEXT, "After the loop: why it stopped."),
    Port("converged", PortType.BOOLEAN, "After the loop: whether something else than count, money or time ended it."),
)

SPEC = NodeSpec(
    type="loop",
    title="Loop",
    category=Category.LOGIC,
    help="Begins the part that runs again and again; its Exit ends it.",
    icon="mdi6.autorenew",
    config=LoopConfig,
    inputs=lambda _config: _INPUTS,
    outputs=lambda _config: _OUTPUTS,
    run=None,
    texts=_texts,
    check=_check,
    summary=_summary,
    model=lambda config: config.judge.choice if config.judge is not None and config.judge.is_set else None,
)
