"""Node type that shortens a text. Palette, card, form, checks and reference page come from this declaration alone."""

from __future__ import annotations

from pydantic import Field

from engine.nodes.context import NodeContext
from engine.nodes.spec import Category, NodeConfig, NodeError, NodeSpec, Outputs, Port, PortType


class ShortenConfig(NodeConfig):
    """Settings of a `shorten` node: each field becomes a row of the form, with its title, help and limits."""

    words: int = Field(default=50, ge=1, le=10_000, title="Words", description="Maximum number of words.")


async def _run(context: NodeContext[ShortenConfig]) -> Outputs:
    text = context.inputs.get("input")
    if not isinstance(text, str):
        # Users read both: what is wrong, and what to do.
        raise NodeError("Only a text can be shortened.", "Connect a text to the node.")
    words = text.split()
    return {"output": " ".join(words[: context.config.words]), "left_out": max(0, len(words) - context.config.words)}


SHORTEN = NodeSpec(
    type="shorten",
    title="Shorten",
    category=Category.LOGIC,
    help="Keeps the first words of a text.",
    icon="mdi6.content-cut",
    config=ShortenConfig,
    inputs=lambda _config: (Port("input", PortType.TEXT, "The text.", required=True),),
    outputs=lambda _config: (
        Port("output", PortType.TEXT, "The first words."),
        Port("left_out", PortType.NUMBER, "How many words were left out."),
    ),
    run=_run,
    summary=lambda config: f"at most {config.words} words",
)
