"""The `loop` node: where the part that runs again and again begins.

Only its declaration; `engine.runner.loop_run` runs it. Its other end is the `exit` node.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.document.problems import FieldProblem, Severity
from engine.exits.condition import Need
from engine.exits.registry import KEY, condition_problems
from engine.nodes.iteration_cap import MAX_ITERATIONS_CAP, clamped, shown_cap
from engine.nodes.judge import judge_text
from engine.nodes.loop_config import ITERATION_NAMES, LoopConfig
from engine.nodes.spec import (
    Category,
    NamedText,
    NodeSpec,
    Port,
    PortType,
    TextKind,
)
from engine.nodes.texts import text_problems


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


def _check(config: LoopConfig) -> list[FieldProblem]:
    problems = [
        *condition_problems(config.stop_when, "stop_when"),
        *text_problems(_texts(config)),
        *_judge_problems(config),
        *_need_problems(config),
    ]
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
                    "The best iteration is unknown: iterations have no score.",
                    "Write an expression into Score, set a judge, or choose return_last.",
                )
            )
    if config.on_max_iterations in {"fail", "return_with_flag"} and not config.can_fall_short:
        problems.append(
            FieldProblem(
                "no-effect",
                "on_max_iterations",
                "It has no effect: the loop has no condition but 'Max iterations'.",
                "Add a condition under 'Stop when', or choose return_last.",
                Severity.WARNING,
            )
        )
    return problems


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
        yield FieldProblem(
            "no-weight",
            "judge.rubric",
            "Every criterion has the weight 0, so there is no total.",
            "Give one of them a weight.",
        )


def _need_problems(config: LoopConfig) -> Iterator[FieldProblem]:
    if config.has_score:
        return
    for leaf in config.leaf_conditions:
        if Need.SCORE in leaf.spec.needs:
            message = f'"{leaf.spec.label}" needs a score, but iterations have none.'
            yield FieldProblem(
                "no-score", f"{leaf.field}.{KEY}", message, "Write an expression into Score, or set a judge."
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
    if len(config.stop_when) > 1:
        return f"{config.stop_mode} of {len(config.stop_when)} conditions · {most}"
    names = [str(entry.get(KEY, "")).replace("_", " ") for entry in config.stop_when]
    return " · ".join([*names, most])


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
)
