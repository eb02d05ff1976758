"""The `router` node: chooses exactly one branch and passes its input on there, unchanged.

In a loop with the condition `evaluator`, the router whose branch `done` leads to the exit decides whether the loop
continues. A verdict that cannot be read never counts as `done`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from engine.exits.evaluator import DONE
from engine.expr import Expression, Template, compile_expression, compile_template
from engine.models.protocol import Message
from engine.nodes.context import NodeContext
from engine.nodes.model_calls import MODEL_FIELDS, ContextFullError, ModelFields, UnreadableReplyError, ask
from engine.nodes.spec import (
    Category,
    FieldProblem,
    NamedText,
    NodeError,
    NodeSpec,
    Outputs,
    Port,
    PortType,
    TextKind,
)
from engine.nodes.structured_replies import read_branch
from engine.text_sanitizing import quoted
from engine.values import Value, to_text

CONTINUE: Final = "continue"
ELSE: Final = "else"
_REASON_PORT: Final = "reason"
_REASON_LENGTH: Final = 300
_TAKEN_NAMES: Final = frozenset({_REASON_PORT, "error"})


class Branch(BaseModel):
    """A branch that a router can choose."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=40, title="Name", description="Name of its port.")
    description: str = Field(
        default="",
        title="When",
        description="When the model should choose it, in a few words.",
        json_schema_extra={"shown_when": {"node.mode": "model"}},
    )
    when: str = Field(
        default="",
        title="Rule",
        description="The first branch whose rule is true is chosen. An expression, or else for the last branch.",
        json_schema_extra={"widget": "rule", "shown_when": {"node.mode": "rules"}},
    )


def _default_branches() -> list[Branch]:
    return [
        Branch(name=DONE, description="the criteria are met"),
        Branch(name=CONTINUE, description="the criteria are not met yet"),
    ]


class RouterConfig(ModelFields):
    """Settings of a `router` node."""

    model_config = ConfigDict(
        json_schema_extra={"shown_when": {key: {"mode": "model"} for key in sorted(MODEL_FIELDS)}}
    )

    mode: Literal["model", "rules"] = Field(
        default="model",
        title="Decided by",
        description="model: A model decides by the criteria. rules: The first true rule decides, without a model.",
        json_schema_extra={"group": "first", "labels": {"model": "Model", "rules": "Rules"}},
    )
    criteria: str = Field(
        default="",
        title="Criteria",
        description="The criteria for the model's decision, in plain words. The value is always included.",
        json_schema_extra={"widget": "prompt", "group": "first", "shown_when": {"mode": "model"}},
    )
    branches: list[Branch] = Field(
        default_factory=_default_branches,
        min_length=1,
        max_length=20,
        title="Branches",
        description="The branches to choose from. Each is a port.",
        json_schema_extra={"group": "first"},
    )
    max_tokens: int | None = Field(
        default=300,
        ge=1,
        title="Max tokens",
        description="Maximum length of the verdict and its reason.",
        json_schema_extra={"group": "more"},
    )


@dataclass(frozen=True, slots=True)
class _Rule:
    branch: str
    text: str
    condition: Expression | None


def _texts(config: RouterConfig) -> tuple[NamedText, ...]:
    if config.mode == "model":
        return (NamedText("criteria", TextKind.TEMPLATE, config.criteria),)
    return tuple(
        NamedText(f"branches.{index}.when", TextKind.EXPRESSION, branch.when)
        for index, branch in enumerate(config.branches)
        if branch.when.strip() not in {ELSE, ""}
    )


def _outputs(config: RouterConfig) -> tuple[Port, ...]:
    branches = tuple(Port(branch.name, help=branch.description, branch=True) for branch in config.branches)
    return (*branches, Port(_REASON_PORT, PortType.TEXT, "Why this branch was chosen."))


def _check(config: RouterConfig) -> Iterator[FieldProblem]:
    if config.mode == "model" and not config.criteria.strip():
        message = "The model has no criteria for its decision."
        yield FieldProblem("no-criteria", "criteria", message, "Write the criteria.")
    seen: set[str] = set()
    for index, branch in enumerate(config.branches):
        place = f"branches.{index}"
        if branch.name in seen:
            message = f'Two branches are called "{branch.name}".'
            yield FieldProblem("duplicate-branch", f"{place}.name", message, "Rename one.")
        seen.add(branch.name)
        if branch.name in _TAKEN_NAMES:
            message = f'A branch cannot be called "{branch.name}".'
            yield FieldProblem("bad-branch", f"{place}.name", message, "Rename it.")
        if config.mode == "rules":
            yield from _rule_problems(branch, f"{place}.when", is_last=index == len(config.branches) - 1)


def _rule_problems(branch: Branch, field: str, *, is_last: bool) -> Iterator[FieldProblem]:
    rule = branch.when.strip()
    if not rule:
        message = f'The branch "{branch.name}" has no rule.'
        yield FieldProblem("no-rule", field, message, "Write an expression, or else for the last branch.")
    if rule == ELSE and not is_last:
        yield FieldProblem("early-else", field, "Only the last branch may be else.", "Move it to the end.")


def _prepare(config: RouterConfig) -> Template | tuple[_Rule, ...]:
    if config.mode == "model":
        return compile_template(config.criteria)
    return tuple(
        _Rule(branch.name, branch.when, None if branch.when.strip() == ELSE else compile_expression(branch.when))
        for branch in config.branches
    )


async def _run(context: NodeContext[RouterConfig]) -> Outputs:
    prepared: Template | tuple[_Rule, ...] = context.prepared
    if isinstance(prepared, Template):
        branch, reason = await _by_model(context, prepared)
    else:
        branch, reason = _by_rules(context, prepared)
    return {branch: context.inputs["input"], _REASON_PORT: reason}


def _by_rules(context: NodeContext[RouterConfig], rules: Sequence[_Rule]) -> tuple[str, str]:
    for rule in rules:
        if rule.condition is None:
            return rule.branch, "no other rule was true"
        verdict = rule.condition.evaluate(context.scope)
        if not isinstance(verdict, bool):
            raise NodeError(
                f'The rule of the branch "{rule.branch}" returned {quoted(verdict)}, not true or false.',
                "Write a condition, such as size(input) < 500.",
            )
        if verdict:
            return rule.branch, f"the rule {rule.text} was true"
    raise NodeError("No rule of the router was true.", "Give the last branch the rule else.")


async def _by_model(context: NodeContext[RouterConfig], criteria: Template) -> tuple[str, str]:
    config = context.config
    names = [branch.name for branch in config.branches]
    messages = router_question(config, criteria.render(context.scope), to_text(context.inputs["input"]))
    try:
        return await ask(context, config, messages, verdict_schema(names), partial(read_branch, names=names), "verdict")
    except UnreadableReplyError as error:
        unreadable, failure = error, str(error).rstrip(".")
    fallback = fallback_branch(names)
    if fallback is None and isinstance(unreadable, ContextFullError):
        raise unreadable.error
    if fallback is None:
        raise NodeError(
            f"The model's verdict could not be read, asked twice: {failure}.",
            "Simplify the criteria, or use a stronger model.",
            retryable=True,
        )
    context.warn(f'The verdict could not be read ({failure}); it counts as "{fallback}".')
    return fallback, f"the verdict could not be read, which counts as {fallback}"


def fallback_branch(names: Sequence[str]) -> str | None:
    """The branch for an unreadable verdict: `continue`, else the only branch besides `done`; never `done`."""
    if CONTINUE in names:
        return CONTINUE
    others = [name for name in names if name != DONE]
    return others[0] if DONE in names and len(others) == 1 else None


def verdict_schema(names: Sequence[str]) -> dict[str, Value]:
    """The JSON Schema of a model's verdict."""
    return {
        "type": "object",
        "properties": {
            "reason": {"type": "string", "maxLength": _REASON_LENGTH},
            "branch": {"type": "string", "enum": list(names)},
        },
        "required": ["reason", "branch"],
        "additionalProperties": False,
    }


def router_question(config: RouterConfig, criteria: str, value: str) -> list[Message]:
    """The messages that ask a model to choose a branch."""
    branches = "\n".join(
        f"- {branch.name}" + (f": {branch.description}" if branch.description else "") for branch in config.branches
    )
    names = " or ".join(json.dumps(branch.name) for branch in config.branches)
    return [
        Message(
            "system",
            "You decide which way a piece of work goes. Judge only by the criteria. "
            f'Answer with a JSON object: {{"reason": one short sentence, "branch": {names}}}.',
        ),
        Message("user", f"Criteria:\n{criteria}\n\nBranches:\n{branches}\n\nThe work:\n{value}"),
    ]


def _recorded(outputs: Outputs) -> Value:
    branch = next((name for name in outputs if name not in _TAKEN_NAMES), None)
    return {
        "selected_branch": branch,
        "value": None if branch is None else outputs[branch],
        "reason": outputs.get(_REASON_PORT),
    }


def _summary(config: RouterConfig) -> str:
    names = " / ".join(branch.name for branch in config.branches)
    return f"{names} · {config.model_summary if config.mode == 'model' else 'by rules'}"


SPEC = NodeSpec(
    type="router",
    title="Router",
    category=Category.LOGIC,
    help="Selects one branch, by a model or by rules, and passes its input on.",
    icon="mdi6.source-branch",
    config=RouterConfig,
    inputs=lambda _config: (Port("input", help="The value that is judged and passed on.", required=True, many=True),),
    outputs=_outputs,
    run=_run,
    prepare=_prepare,
    texts=_texts,
    check=_check,
    summary=_summary,
    recorded=_recorded,
    recorded_members=("selected_branch", "value", "reason"),
    model=lambda config: config.choice if config.mode == "model" else None,
    synonyms=("if", "else", "switch", "branch", "decision", "condition"),
)
