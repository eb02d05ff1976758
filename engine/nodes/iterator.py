"""The `iterator` node: starts the part that runs once for each item of a list.

This is its declaration; `engine.runner.iterator_run` runs it. The part ends at the `aggregator` node.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

from pydantic import Field

from engine.formatting import format_count
from engine.nodes.spec import Category, FieldProblem, NamedText, NodeConfig, NodeSpec, Port, PortType, TextKind, uses

MAX_ITEMS: Final = 10_000
"""Maximum number of items, so that a mistake in an expression does not start a million model calls."""


class IteratorConfig(NodeConfig):
    """Settings of an `iterator` node."""

    source: Literal["port", "list", "expression"] = Field(
        default="port",
        title="Items from",
        description=(
            "port: The list at the port 'items'. list: The same items in every run. expression: A list computed "
            "from the value at the port 'items'."
        ),
        json_schema_extra={"labels": {"port": "Input port", "list": "Fixed list", "expression": "Expression"}},
    )
    items: list[Any] = Field(
        default_factory=list,
        max_length=MAX_ITEMS,
        title="Items",
        description="The items, as a JSON list; each may be any JSON value.",
        json_schema_extra={"shown_when": {"source": "list"}},
    )
    expression: str = Field(
        default="items",
        title="Expression",
        description="A CEL expression that gives a list, such as items.services or items.filter(i, i.size > 3).",
        json_schema_extra={"widget": "expression", "shown_when": {"source": "expression"}},
    )
    max_concurrency: int = Field(
        default=0,
        ge=0,
        le=1000,
        title="Max concurrency",
        description=("Number of items that run at the same time. 0: the workflow's limit."),
    )
    on_item_error: Literal["fail", "skip", "collect"] = Field(
        default="fail",
        title="On item error",
        description=(
            "fail: The other items are stopped. skip: The results leave the item out. The port 'failures' lists the "
            "errors. collect: The results keep the item's place. The port 'failures' lists the errors."
        ),
        json_schema_extra={"labels": {"fail": "Fail", "skip": "Skip the item", "collect": "Put null in its place"}},
    )
    on_empty: Literal["pass", "fail"] = Field(
        default="pass",
        title="On empty list",
        description="What to do when there are no items.",
        json_schema_extra={"group": "more", "labels": {"pass": "Continue with an empty result", "fail": "Fail"}},
    )
    condition: str = Field(
        default="",
        title="Run only if",
        description=(
            "Checked once, on the value at 'items'. If it is false, nothing runs and the items are passed through."
        ),
        json_schema_extra={"widget": "comparison", "group": "more"},
    )


def _texts(config: IteratorConfig) -> tuple[NamedText, ...]:
    texts: list[NamedText] = []
    if config.source == "expression":
        texts.append(NamedText("expression", TextKind.EXPRESSION, config.expression))
    if config.condition.strip():
        texts.append(NamedText("condition", TextKind.EXPRESSION, config.condition))
    return tuple(texts)


def _inputs(config: IteratorConfig) -> tuple[Port, ...]:
    kind = PortType.LIST if config.source == "port" else PortType.ANY
    needed = config.source == "port" or uses(_texts(config), "items")
    return (Port("items", kind, "The list of items.", required=needed, gate=True, many=True),)


def _check(config: IteratorConfig) -> Iterator[FieldProblem]:
    if config.source == "list" and not config.items:
        yield FieldProblem(
            "no-items", "items", "The list of items is empty.", "Add an item, or take them from the port."
        )
    if config.source == "expression" and not config.expression.strip():
        yield FieldProblem("no-expression", "expression", "The expression is missing.", "Write it.")


def _summary(config: IteratorConfig) -> str:
    each = f"each of {format_count(len(config.items), 'item')}" if config.source == "list" else "each item"
    at_once = "one at a time" if config.max_concurrency == 1 else f"{config.max_concurrency} at a time"
    return f"{each} · {at_once}" if config.max_concurrency else each


SPEC = NodeSpec(
    type="iterator",
    title="Iterator",
    category=Category.LOGIC,
    help="Starts the part that runs once for each item of a list.",
    icon="mdi6.format-list-numbered",
    config=IteratorConfig,
    inputs=_inputs,
    outputs=lambda _config: (
        Port("item", help="Into the part: the item."),
        Port("index", PortType.NUMBER, "Into the part: the item's number, from 0."),
        Port("iterations", PortType.LIST, "After the last item: a record of every item."),
        Port("count", PortType.NUMBER, "After the last item: the number of items."),
        Port("failures", PortType.LIST, "After the last item: index, item and error of each failure."),
    ),
    run=None,
    texts=_texts,
    check=_check,
    summary=_summary,
    synonyms=("map", "for each", "batch", "items"),
)
