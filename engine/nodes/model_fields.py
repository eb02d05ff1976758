"""The settings of every node that calls a model, and how they become a call."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field

from engine.models.protocol import Message, Reply, ToolDefinition
from engine.nodes.cache_field import CacheMode
from engine.nodes.context import NodeContext
from engine.nodes.extra_parameters import ExtraParameters
from engine.nodes.spec import ModelChoice, NodeConfig
from engine.values import Value

MAX_TOKENS_DEFAULT = 1024


class ModelFields(NodeConfig):
    """Settings shared by the node types that call a model."""

    model: str | None = Field(
        default=None,
        title="Model",
        description=("Full name of the model, such as openai/gpt-4o-mini. Leave empty for the workflow's model."),
        json_schema_extra={"widget": "model"},
    )
    api_base: str | None = Field(
        default=None,
        title="Server address",
        description=(
            "Address of an OpenAI-compatible server, such as http://localhost:8080/v1. Leave empty for the provider's."
        ),
        json_schema_extra={"group": "more"},
    )
    temperature: float | None = Field(
        default=None,
        ge=0,
        le=2,
        title="Temperature",
        description="Lower is more predictable, higher more varied. Leave empty for the model's default.",
    )
    max_tokens: int | None = Field(
        default=MAX_TOKENS_DEFAULT,
        ge=1,
        title="Max tokens",
        description=("Maximum length of the reply. Also used to estimate a call's worst-case cost against the budget."),
    )
    seed: int | None = Field(
        default=None,
        title="Seed",
        description="The same seed gives the same reply, if the model supports it.",
        json_schema_extra={"group": "more"},
    )
    top_p: float | None = Field(
        default=None,
        gt=0,
        le=1,
        title="Top P",
        description=(
            "Samples only from the most likely tokens whose probabilities add up to this value. Leave empty for the "
            "model's default."
        ),
        json_schema_extra={"group": "more"},
    )
    stop: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        default_factory=list[str],
        max_length=16,
        title="Stop sequences",
        description="Texts that end the reply; the reply does not include them. Many providers accept at most four.",
        json_schema_extra={"widget": "lines", "group": "more"},
    )
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = Field(
        default=None,
        title="Reasoning effort",
        description="How much a reasoning model thinks before it answers. Leave empty for the model's default.",
        json_schema_extra={"group": "more"},
    )
    extra_parameters: ExtraParameters | None = Field(
        default=None,
        title="Extra parameters",
        description=(
            'Other parameters of the provider as a JSON object, sent unchanged ({"top_k": 40}). Keys and other secrets '
            "are refused."
        ),
        json_schema_extra={"widget": "json", "group": "more"},
    )
    fallback_models: list[Annotated[str, Field(min_length=1)]] = Field(
        default_factory=list[str],
        max_length=8,
        title="Fallback models",
        description="Models to use instead, in order, when the model fails and its retries are used up.",
        json_schema_extra={"widget": "models", "group": "more"},
    )
    on_cut_off: Literal["warn", "continue", "fail"] = Field(
        default="warn",
        title="When a reply is truncated",
        description=(
            "What to do when a reply reaches its token limit. warn: use the partial reply, with a warning. continue: "
            "ask the model for the rest, at most five times. fail: the node fails."
        ),
        json_schema_extra={"group": "more"},
    )
    allow_empty: bool = Field(
        default=False,
        title="Allow empty replies",
        description="Accept a reply without text as an empty text. If off, such a reply fails and is retried.",
        json_schema_extra={"group": "more"},
    )
    cache: CacheMode = Field(
        default="off",
        title="Cache replies",
        description=(
            "off: always call the model. repeatable: at temperature 0, reuse the stored reply to an "
            "identical request at no cost. always: at any temperature. Needs the history."
        ),
        json_schema_extra={"group": "more"},
    )
    retries: int = Field(
        default=2,
        ge=0,
        le=20,
        title="Retries",
        description=("Number of retries after a temporary failure, such as an overload or a lost connection."),
        json_schema_extra={"group": "more"},
    )

    @cached_property
    def choice(self) -> ModelChoice:
        """The model that these settings name."""
        return ModelChoice(self.model or None, self.api_base or None, tuple(self.fallback_models))

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
        top_p=config.top_p,
        stop=tuple(config.stop),
        reasoning_effort=config.reasoning_effort,
        extra_parameters=config.extra_parameters or None,
    )
