"""A summary that is rewritten until it is stable, for the screenshots: workflow and replies."""

from __future__ import annotations

from typing import Final

from engine.document.builder import Builder
from engine.document.model import Workflow

_EVERY: Final = "at dusk, wound its clockwork every three hours, and wrote the weather and"
SUMMARIES: Final = (
    "A lighthouse is a tall tower with a lamp that turns and shows ships at sea where the coast is.",
    "For ninety years a keeper lit the lamp each evening, wound its clockwork, and wrote the weather in a book.",
    f"For ninety years a keeper lit the lamp {_EVERY} each passing ship in a book.",
    f"For ninety years the keepers lit the lamp {_EVERY} every passing ship in a book that nobody read.",
    f"For ninety years the keepers lit the lamp {_EVERY} every passing ship in a book that nobody reads now.",
)
"""The replies of the model, by iteration."""


def summary_workflow() -> Workflow:
    """A loop over two model nodes that stops when the summary is stable."""
    flow = Builder("Converging summary")
    text = flow.add("input", id="text", title="Text", default="The keepers' log, 1854 to 1944, in nine volumes.")
    loop = flow.add(
        "loop",
        id="loop",
        title="Until it is stable",
        max_iterations=10,
        stop_when=[{"condition": "stable_output", "threshold": 0.95}],
        inject_feedback=False,
    )
    find = flow.add("llm", id="find_gaps", title="Find gaps", prompt="What does this leave out?\n\n{{input}}")
    rewrite = flow.add("llm", id="rewrite", title="Rewrite", prompt="Rewrite the summary. Mind: {{input}}")
    exit_ = flow.add("exit", id="exit", title="Exit", loop="loop")
    summary = flow.add("output", id="summary", title="Summary")
    flow.connect(text["value"], loop["input"])
    flow.connect(loop["body"], find["input"])
    flow.connect(find["output"], rewrite["input"])
    flow.connect(rewrite["output"], exit_["input"])
    flow.connect(exit_["output"], summary["value"])
    return flow.build()
