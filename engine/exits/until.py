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
        title="Expression",
        description="A CEL expression, such as size(output) < 500 or nodes.check == 'fine'.",
        json_schema_extra={"widget": "expression"},
    )


def _explain(config: UntilConfig, evidence: Evidence) -> str:
    return f"until {quote_expression(config.expression)}{evidence.values_in(config.expression)}"


def _explain_stop(config: UntilConfig, evidence: Evidence) -> str:
    return f"{quote_expression(config.expression)} became true{evidence.values_in(config.expression)}"


def _explain_unmet(config: UntilConfig, evidence: Evidence) -> str:
    return f"{quote_expression(config.expression)} was false{evidence.values_in(config.expression)}"


SPEC = ConditionSpec(
    name=UNTIL,
    label="An expression is true",
    help="Stops when an expression about the iteration is true. First in the list, it is checked before the judge.",
    config=UntilConfig,
    make=stateless(
        UNTIL,
        lambda config, iteration: is_true(UNTIL, compile_expression(config.expression), iteration.scope),
    ),
    explain=_explain,
    explain_stop=_explain_stop,
    explain_unmet=_explain_unmet,
    exit_reason_label="the 'until' expression became true",
    expressions=("expression",),
    precedes_judge=True,
    to_python=lambda config, writer: PythonTest(writer.expression(config.expression)),
)
