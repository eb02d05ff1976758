"""The exit condition `until`: an expression about the iteration is true."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from engine.exits.condition import (
    ConditionConfig,
    ConditionSpec,
    EndedIteration,
    Evidence,
    ExitCondition,
    PythonTest,
    PythonWriter,
    is_true,
    quote_expression,
)
from engine.expr import Expression, compile_expression

UNTIL: Final = "until"


class UntilConfig(ConditionConfig):
    """Settings of the condition `until`."""

    expression: str = Field(
        default="",
        title="Expression",
        description="A CEL expression, such as size(output) < 500 or nodes.check == 'fine'.",
        json_schema_extra={"widget": "expression"},
    )


class Until(ExitCondition):
    """Stops when an expression is true."""

    def __init__(self, expression: Expression) -> None:
        self._expression = expression

    def reason(self, iteration: EndedIteration) -> str | None:
        """Return `until` if the expression is true.

        Raises:
            LoopExpressionError: The expression fails, or returns something else than true or false.
        """
        return UNTIL if is_true(UNTIL, self._expression, iteration.scope) else None


def _explain(config: UntilConfig, evidence: Evidence) -> str:
    return f"until {quote_expression(config.expression)}{evidence.values_in(config.expression)}"


def _explain_stop(config: UntilConfig, evidence: Evidence) -> str:
    return f"{quote_expression(config.expression)} became true{evidence.values_in(config.expression)}"


def _explain_unmet(config: UntilConfig, evidence: Evidence) -> str:
    return f"{quote_expression(config.expression)} was false{evidence.values_in(config.expression)}"


def _to_python(config: UntilConfig, writer: PythonWriter) -> PythonTest:
    return PythonTest(writer.expression(config.expression))


SPEC = ConditionSpec(
    name=UNTIL,
    label="An expression is true",
    help="Stops when an expression about the iteration is true. First in the list, it is checked before the judge.",
    config=UntilConfig,
    make=lambda config: Until(compile_expression(config.expression)),
    explain=_explain,
    explain_stop=_explain_stop,
    explain_unmet=_explain_unmet,
    exit_reason_label="the 'until' expression became true",
    expressions=("expression",),
    precedes_judge=True,
    to_python=_to_python,
)
