"""The tool `web_search`: asks the public search engines, without a key.

`ddgs` does it, an extra of the program, which is imported when the tool is first used.
"""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import Field

from engine.tools.base import Tool, ToolContext, ToolError
from engine.tools.parameters import Parameters, Text
from engine.tools.sandbox import shown
from engine.values import Value

_LONGEST_TEXT = 2_000


class WebSearchParameters(Parameters):
    """What `web_search` is asked."""

    query: Text = Field(title="Query", description="What to search for.", min_length=1, max_length=1000)
    max_results: int = Field(default=8, title="Max results", description="Maximum number of results.", ge=1, le=50)
    region: str = Field(
        default="us-en",
        title="Region",
        description="Country and language of the results, such as us-en, de-de, fr-fr; wt-wt for none.",
        pattern=r"^[a-z]{2}-[a-z]{2}$",
    )
    timeout_s: int = Field(
        default=10,
        title="Timeout (seconds)",
        description="How long each search engine may take.",
        ge=1,
        le=60,
    )


async def web_search(parameters: WebSearchParameters, _context: ToolContext) -> Value:
    """Search the web: a list of `{title, url, text}`, the best first; empty where nothing is found.

    Raises:
        ToolError: The extra is not installed, or no search engine answered (`retryable`).
    """
    return await asyncio.to_thread(_search, parameters)


def _search(parameters: WebSearchParameters) -> Value:
    try:
        from ddgs.ddgs import DDGS
        from ddgs.exceptions import DDGSException
    except ImportError as error:
        raise ToolError(
            "Searching the web needs the package ddgs, which is not installed.",
            'Install it: pip install "loopwright[web]".',
        ) from error
    try:
        found: list[dict[str, Any]] = DDGS(timeout=parameters.timeout_s).text(
            parameters.query, region=parameters.region, max_results=parameters.max_results
        )
    except DDGSException as error:
        if str(error).startswith("No results"):
            return []
        raise ToolError(
            f"No search engine answered: {shown(str(error)[:100])}.", "Try again in a minute.", retryable=True
        ) from error
    return [_result(one) for one in found[: parameters.max_results]]


def _result(found: dict[str, Any]) -> Value:
    return {
        "title": str(found.get("title", ""))[:_LONGEST_TEXT],
        "url": str(found.get("href", ""))[:_LONGEST_TEXT],
        "text": str(found.get("body", ""))[:_LONGEST_TEXT],
    }


WEB_SEARCH = Tool(
    name="web_search",
    title="Search the web",
    help="Searches the public web and gives titles, addresses and short texts.",
    parameters=WebSearchParameters,
    output_type="list",
    run=web_search,
    idempotent=True,
)
