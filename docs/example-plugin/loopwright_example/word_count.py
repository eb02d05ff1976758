"""Tool that tool nodes and agents can call."""

from __future__ import annotations

from pydantic import Field

from engine.tools.tool import Parameters, Text, Tool, ToolContext
from engine.values import Value


class WordCountParameters(Parameters):
    """Parameters of `word_count`: each field is an input port of the tool node."""

    text: Text = Field(title="Text", description="The text to count.")


async def _word_count(parameters: WordCountParameters, _context: ToolContext) -> Value:
    return len(parameters.text.split())


WORD_COUNT = Tool(
    name="word_count",
    title="Count words",
    help="Counts the words of a text.",
    parameters=WordCountParameters,
    output_type="number",
    run=_word_count,
    idempotent=True,  # a second call does no harm, so a resumed run makes it again without asking
)
