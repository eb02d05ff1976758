"""The `output` node: a named result of the workflow."""

from __future__ import annotations

from pydantic import Field

from engine.nodes.context import NodeContext
from engine.nodes.spec import Category, NodeConfig, NodeSpec, Outputs, Port


class OutputConfig(NodeConfig):
    """Settings of an `output` node."""

    name: str = Field(
        default="", max_length=100, title="Name", description="Name of the result. Leave empty for the node's id."
    )


async def _run(context: NodeContext[OutputConfig]) -> Outputs:
    # Not a port, since no edge starts at an output, but the run reads its results under this name.
    return {"value": context.inputs["value"]}


SPEC = NodeSpec(
    type="output",
    title="Output",
    category=Category.IO,
    help="A result of the workflow.",
    icon="mdi6.logout",
    config=OutputConfig,
    inputs=lambda _config: (Port("value", help="The result.", required=True, many=True),),
    outputs=lambda _config: (),
    run=_run,
    summary=lambda config: config.name,
    recorded=lambda outputs: outputs.get("value"),
    synonyms=("result", "answer", "end", "return"),
)
