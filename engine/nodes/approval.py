"""The `approval` node: a person approves, rejects or edits a value."""

from __future__ import annotations

import asyncio
from typing import Final, Literal

from pydantic import Field

from engine.expr import Template, compile_template
from engine.formatting import format_timeout
from engine.nodes.context import APPROVE, REJECT, Answer, NodeContext
from engine.nodes.spec import (
    Category,
    NamedText,
    NodeConfig,
    NodeError,
    NodeSpec,
    Outputs,
    Port,
    PortType,
    TextKind,
    named_ports,
)
from engine.values import Value

_PORTS: Final = {APPROVE: "approved", REJECT: "rejected"}
_COMMENT_PORT: Final = "comment"


class ApprovalConfig(NodeConfig):
    """Settings of an `approval` node."""

    message: str = Field(
        default="Is this right?",
        min_length=1,
        title="Question",
        description="The question to the person. {{name}} inserts the value of the port with that name.",
        json_schema_extra={"widget": "prompt"},
    )
    answer_within_s: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        title="Answer timeout (seconds)",
        description="How long to wait for the person. Leave empty for no limit; a run can wait for days.",
        json_schema_extra={"group": "more"},
    )
    when_unanswered: Literal["fail", "approve", "reject"] = Field(
        default="fail",
        title="When nobody answers",
        description=("What happens after that time: the node fails, or continues as if this were the answer."),
        json_schema_extra={"group": "more", "labels": {"fail": "Fail", "approve": "Approve", "reject": "Reject"}},
    )


def _texts(config: ApprovalConfig) -> tuple[NamedText, ...]:
    return (NamedText("message", TextKind.TEMPLATE, config.message),)


def _inputs(config: ApprovalConfig) -> tuple[Port, ...]:
    return (
        Port("input", help="The value to approve.", required=True, many=True),
        *named_ports(_texts(config), beside=("input",)),
    )


async def _run(context: NodeContext[ApprovalConfig]) -> Outputs:
    message: Template = context.prepared
    value = context.inputs["input"]
    answer = await _answer(context, message.render(context.scope), value)
    if answer.choice not in _PORTS:
        raise NodeError(f'"{answer.choice}" is neither {APPROVE} nor {REJECT}.', "Answer with one of the two.")
    left = value if answer.value is None else answer.value
    return {_PORTS[answer.choice]: left, _COMMENT_PORT: answer.comment}


async def _answer(context: NodeContext[ApprovalConfig], message: str, value: Value) -> Answer:
    within_s, otherwise = context.config.answer_within_s, context.config.when_unanswered
    try:
        async with asyncio.timeout(within_s):
            return await context.ask("approval", message, value=value, choices=(APPROVE, REJECT))
    except TimeoutError as error:
        if within_s is None:
            raise
        unanswered = f"Nobody answered within {format_timeout(within_s)}."
        if otherwise == "fail":
            raise NodeError(unanswered, "Resume the run to be asked again, or allow more time.") from error
        context.warn(f"{unanswered} It counts as {otherwise}.")
        return Answer(otherwise, comment=unanswered)


def _recorded(outputs: Outputs) -> Value:
    choice = next((choice for choice, port in _PORTS.items() if port in outputs), None)
    return {
        "choice": choice,
        "value": outputs.get(_PORTS[choice]) if choice is not None else None,
        "comment": outputs.get(_COMMENT_PORT),
    }


SPEC = NodeSpec(
    type="approval",
    title="Approval",
    category=Category.LOGIC,
    help="Waits until a person approves, rejects or edits a value.",
    icon="mdi6.account-check",
    config=ApprovalConfig,
    inputs=_inputs,
    outputs=lambda _config: (
        Port("approved", help="The value, if it was approved; edited or unchanged.", branch=True),
        Port("rejected", help="The value, if it was rejected; edited or unchanged.", branch=True),
        Port(_COMMENT_PORT, PortType.TEXT, "The comment of the person; may be empty."),
    ),
    run=_run,
    prepare=lambda config: compile_template(config.message),
    texts=_texts,
    summary=lambda config: config.message,
    recorded=_recorded,
    recorded_members=("choice", "value", "comment"),
    synonyms=("human", "review", "confirm", "ask a person"),
)
