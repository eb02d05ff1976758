"""The exit condition `until`: an expression about the iteration is true."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from engine.exits.condition import (
    ConditionConfig,
    ConditionSpec,
    Evidence,
    PythonTest,
    is_true,
    quote_expression,
    stateless,
)
from engine.expr import compile_expression

UNTIL: Final = "until"


class UntilConfig(ConditionConfig):
    """Settings of the condition `until`."""

    expression: str = Field(
        default="",
        title="Condition",
        description="What must be true of the iteration, such as: output contains done.",
        json_schema_extra={"widget": "comparison"},
    )


def _text(config: UntilConfig, evidence: Evidence, before: str = "", after: str = "") -> str:
    return f"{before}{quote_expression(config.expression)}{after}{evidence.values_in(config.expression)}"


SPEC = ConditionSpec(
    name=UNTIL,
    label="When a condition is true",
    card_label="condition",
    help="Stops when a condition on the iteration is true. First in the list, it is checked before the judge.",
    config=UntilConfig,
    make=stateless(
        UNTIL, lambda config, iteration: is_true(UNTIL, compile_expression(config.expression), iteration.scope)
    ),
    explain=lambda config, evidence: _text(config, evidence, before="until "),
    explain_stop=lambda config, evidence: _text(config, evidence, after=" became true"),
    explain_unmet=lambda config, evidence: _text(config, evidence, after=" was false"),
    exit_reason_label="the 'until' expression became true",
    expressions=("expression",),
    precedes_judge=True,
    to_python=lambda config, writer: PythonTest(writer.expression(config.expression)),
)
