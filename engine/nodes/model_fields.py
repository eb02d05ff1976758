"""The settings of every node that calls a model, and how they become a call."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import Any

from pydantic import Field

from engine.models.base import Message, Reply, ToolDefinition
from engine.nodes.cache_field import CacheMode
from engine.nodes.context import NodeContext
from engine.nodes.spec import ModelChoice, NodeConfig
from engine.values import Value

MAX_TOKENS_DEFAULT = 1024


class ModelFields(NodeConfig):
    """Settings shared by the node types that call a model."""

    model: str | None = Field(
        default=None,
        title="Model",
        description="Which model answers, by its full name (openai/gpt-4o-mini). Empty: the workflow's own.",
        json_schema_extra={"widget": "model"},
    )
    api_base: str | None = Field(
        default=None,
        title="Server address",
        description="Address of an OpenAI-compatible server (http://localhost:8080/v1). Empty: the provider's own.",
        json_schema_extra={"group": "more"},
    )
    temperature: float | None = Field(
        default=None,
        ge=0,
        le=2,
        title="Temperature",
        description="0 gives the likeliest words, higher values more variety. Empty: the model's own.",
    )
    max_tokens: int | None = Field(
        default=MAX_TOKENS_DEFAULT,
        ge=1,
        title="Most tokens in the reply",
        description="Where the reply is cut off. With a budget, this is what a call is reckoned to cost at most.",
    )
    seed: int | None = Field(
        default=None,
        title="Seed",
        description="The same seed gives the same reply where the model can do that.",
        json_schema_extra={"group": "more"},
    )
    cache: CacheMode = Field(
        default="off",
        title="Use earlier replies again",
        description=(
            "off: the model is asked each time. repeatable: at temperature 0 an earlier reply to the very same request "
            "is used again and costs nothing. always: at any temperature. Needs the history."
        ),
        json_schema_extra={"group": "more"},
    )
    retries: int = Field(
        default=2,
        ge=0,
        le=20,
        title="Retries",
        description="How often a call is made again after a failure that may pass (overload, a lost connection).",
        json_schema_extra={"group": "more"},
    )

    @property
    def choice(self) -> ModelChoice:
        """The model that these settings name."""
        return ModelChoice(self.model or None, self.api_base or None)

    @property
    def model_summary(self) -> str:
        """Model and temperature in a few words, for the canvas."""
        parts = [self.model.rpartition("/")[2] if self.model else "default model"]
        if self.temperature is not None:
            parts.append(f"temperature {self.temperature:g}")
        return " · ".join(parts)


def call_model(
    context: NodeContext[Any],
    config: ModelFields,
    messages: Iterable[Message],
    *,
    schema: dict[str, Value] | None = None,
    tools: tuple[ToolDefinition, ...] = (),
) -> Awaitable[Reply]:
    """Make one model call with a node's model settings.

    Args:
        context: The node that calls.
        config: Its model settings.
        messages: The conversation.
        schema: A JSON Schema that the reply must follow; None for free text.
        tools: The tools that the model may call.

    Raises:
        ModelError: The call returned no usable reply.
        BudgetError: It does not fit the remaining budget; no call was made.
    """
    return context.complete(
        config.choice,
        messages,
        temperature=config.temperature,
        max_tokens=config.max_tokens,
        schema=schema,
        seed=config.seed,
        tools=tools,
    )
