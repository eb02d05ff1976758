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
        description="What the agent may do on its own.",
        json_schema_extra={"widget": "tools"},
    )
    max_turns: int = Field(
        default=10,
        ge=1,
        le=MAX_TURNS,
        title="At most",
        description="The most turns (calls of the model) that it may take.",
    )
    on_max_turns: Literal["return_last", "flag", "fail"] = Field(
        default="return_last",
        title="When turns run out",
        description=(
            "return_last: it gives the last text that it wrote. flag: the same, with a warning. fail: the node fails."
        ),
        json_schema_extra={"group": "more"},
    )
    require_approval: list[str] = Field(
        default_factory=list[str],
        title="Ask before",
        description="Tools that are called only after a person has said yes.",
        json_schema_extra={"widget": "tools", "group": "more"},
    )
    reply_schema: dict[str, Any] | None = Field(
        default=None,
        title="Structured reply",
        description="A JSON Schema that the final answer must follow; the output is then JSON. Empty: free text.",
        json_schema_extra={"widget": "json", "group": "more"},
    )
    tool_timeout_s: float = Field(
        default=60.0,
        gt=0,
        le=86_400,
        title="Time limit of a tool in seconds",
        description="The longest that one call of a tool may take; then the agent is told so, and goes on.",
        json_schema_extra={"group": "more"},
    )
    turn_strategy: str = Field(
        default=TOOL_CALLING,
        title="Turn strategy",
        description="How it decides what comes next: tool_calling, single_call, or one of a plugin's.",
        json_schema_extra={"widget": "turn_strategy", "group": "more"},
    )
