"""The `aggregator` node: combines the results of all items of its iterator.

`engine.runner.iterator_run` runs it after the last item; its port `input` collects the results of the items.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, cast

from pydantic import Field

from engine.expr import Expression, compile_expression
from engine.nodes.context import NodeContext
from engine.nodes.spec import (
    Category,
    FieldProblem,
    NamedText,
    NodeConfig,
    NodeSpec,
    OutputKey,
    Outputs,
    Port,
    PortType,
    TextKind,
    choice_label,
)
from engine.values import Value, compact_json, to_text

RESULT_NAMES: Final = frozenset({"items", "results", "failures"})
"""Names for its expression: all items, their results, and the failures."""


class AggregatorConfig(NodeConfig, OutputKey):
    """Settings of an `aggregator` node."""

    iterator: str = Field(
        default="",
        title="Iterator",
        description="Id of its iterator. Optional if only one iterator is possible.",
        json_schema_extra={"widget": "iterator"},
    )
    mode: Literal["collect", "join", "first", "vote", "expression"] = Field(
        default="collect",
        title="Combine by",
        description=(
            "How the results of the items become one output. join: The results as one text. expression: A CEL "
            "expression on items, results and failures."
        ),
        json_schema_extra={
            "labels": {
                "collect": "List of results",
                "join": "Joined text",
                "first": "First result",
                "vote": "Most frequent result",
                "expression": "Expression",
            }
        },
    )
    separator: str = Field(
        default="\n\n",
        title="Separator",
        description="The text between two results.",
        json_schema_extra={"shown_when": {"mode": "join"}, "widget": "text"},
    )
    expression: str = Field(
        default="results",
        title="Expression",
        description="A CEL expression on items, results and failures, such as results.filter(r, r.score > 0.5).",
        json_schema_extra={"widget": "expression", "shown_when": {"mode": "expression"}},
    )


def _texts(config: AggregatorConfig) -> tuple[NamedText, ...]:
    if config.mode != "expression":
        return ()
    return (NamedText("expression", TextKind.EXPRESSION, config.expression, RESULT_NAMES, ports=False),)


def _check(config: AggregatorConfig) -> Iterator[FieldProblem]:
    if config.mode == "expression" and not config.expression.strip():
        yield FieldProblem("no-expression", "expression", "The expression is missing.", "Write it.")


def _outputs(config: AggregatorConfig) -> tuple[Port, ...]:
    kinds = {"collect": PortType.LIST, "join": PortType.TEXT}
    return (Port("output", kinds.get(config.mode, PortType.ANY), "The combined results of all items."),)


async def _run(context: NodeContext[AggregatorConfig]) -> Outputs:
    expression: Expression | None = context.prepared
    if expression is not None:
        return {"output": expression.evaluate(context.scope)}
    results = cast("list[Value]", context.inputs["results"])
    match context.config.mode:
        case "join":
            return {"output": context.config.separator.join(to_text(result) for result in results)}
        case "first":
            return {"output": next((result for result in results if result is not None), None)}
        case "vote":
            return {"output": most_frequent(results)}
        case _:
            return {"output": results}


def most_frequent(results: list[Any]) -> Any:
    """The most frequent value, or the first of several; null without any.

    White space around a text makes no difference.
    """
    votes: dict[str, list[Any]] = {}
    for result in results:
        if result is not None:
            votes.setdefault(compact_json(result.strip() if isinstance(result, str) else result), []).append(result)
    return max(votes.values(), key=len)[0] if votes else None


SPEC = NodeSpec(
    type="aggregator",
    title="Aggregator",
    category=Category.LOGIC,
    help="Ends the part of an iterator and combines the results.",
    icon="mdi6.set-merge",
    config=AggregatorConfig,
    inputs=lambda _config: (Port("input", help="The result of an item.", many=True),),
    outputs=_outputs,
    run=_run,
    prepare=lambda config: compile_expression(config.expression) if config.mode == "expression" else None,
    texts=_texts,
    check=_check,
    summary=lambda config: choice_label(config, "mode"),
    synonyms=("reduce", "collect", "join"),
)
