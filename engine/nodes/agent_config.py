"""The settings of an agent."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from engine.nodes.output_key import OutputKey
from engine.nodes.prompts import PromptFields

MAX_TURNS: Final = 50
"""The most turns that an agent may be given."""

TOOL_CALLING: Final = "tool_calling"


class AgentConfig(PromptFields, OutputKey):
    """Settings of an `agent` node."""

    tools: list[str] = Field(
        default_factory=list[str],
        title="Tools",
        description="The tools that the agent may call.",
        json_schema_extra={"widget": "tools"},
    )
    max_turns: int = Field(
        default=10,
        ge=1,
        le=MAX_TURNS,
        title="Max turns",
        description="Maximum number of turns (model calls).",
    )
    on_max_turns: Literal["return_last", "flag", "fail"] = Field(
        default="return_last",
        title="When turns run out",
        description=(
            "return_last: return the last text of the model. flag: the same, with a warning. fail: the node fails."
        ),
        json_schema_extra={"group": "more"},
    )
    require_approval: list[str] = Field(
        default_factory=list[str],
        title="Require approval",
        description="Tools that need a person's approval before each call.",
        json_schema_extra={"widget": "tools", "group": "more"},
    )
    reply_schema: dict[str, Any] | None = Field(
        default=None,
        title="Structured reply",
        description=("A JSON Schema that the final answer must match; the output is JSON. Leave empty for text."),
        json_schema_extra={"widget": "json", "group": "more"},
    )
    tool_timeout_s: float = Field(
        default=60.0,
        gt=0,
        le=86_400,
        title="Tool timeout (seconds)",
        description="Timeout of a tool call. The agent receives an error and continues.",
        json_schema_extra={"group": "more"},
    )
    turn_strategy: str = Field(
        default=TOOL_CALLING,
        title="Turn strategy",
        description="How the agent takes its turns: tool_calling, single_call, or a plugin's strategy.",
        json_schema_extra={"widget": "turn_strategy", "group": "more"},
    )
