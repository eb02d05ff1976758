"""The `exit` node: ends a loop body. This is its declaration; `engine.runner.loop_run` runs it."""

from __future__ import annotations

from pydantic import Field

from engine.nodes.spec import Category, NodeConfig, NodeSpec, Port


class ExitConfig(NodeConfig):
    """Settings of an `exit` node."""

    loop: str = Field(
        default="",
        title="Loop",
        description="Id of its loop. Optional if only one loop is possible.",
        json_schema_extra={"widget": "loop"},
    )


_INPUTS = (
    Port("input", help="The iteration's result.", many=True),
    Port("feedback", help="The input of the next iteration; without it, the result.", many=True),
)
_OUTPUTS = (Port("output", help="The final result, after the loop."),)

SPEC = NodeSpec(
    type="exit",
    title="Exit",
    category=Category.LOGIC,
    help="Ends the body of a loop.",
    icon="mdi6.exit-to-app",
    config=ExitConfig,
    inputs=lambda _config: _INPUTS,
    outputs=lambda _config: _OUTPUTS,
    run=None,
    summary=lambda config: config.loop,
)
