"""What a server's answer to a call is worth to a workflow: JSON where it gives some, else its text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from engine.tools.base import ToolError
from engine.values import Value, compact_json

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock

MAX_RESULT_BYTES: Final = 1_000_000
"""The largest result, as compact JSON."""


def result_value(name: str, result: CallToolResult, clean: Callable[[str], str]) -> Value:
    """The value of a call's result.

    Args:
        name: The tool, for errors.
        result: What the server answered.
        clean: Strikes out of what it says about a failure what no error may show.

    Returns:
        Its structured content, without the object that servers put around a plain value; else its texts, one below
        the other, with a remark in the place of each picture or sound.

    Raises:
        ToolError: The tool failed, gave too much, or what is no JSON.
    """
    text = "\n".join(_text(block) for block in result.content)
    if result.is_error:
        raise ToolError(f'The tool "{name}" failed: {clean(text)[:2000].rstrip(".") or "it did not say why"}.')
    value: Value = text if result.structured_content is None else _unwrapped(result.structured_content)
    try:
        size = len(compact_json(value))
    except ValueError as error:
        message = f'The tool "{name}" gave a number that is not finite, which no JSON can hold.'
        raise ToolError(message, "Ask it for something else.") from error
    if size > MAX_RESULT_BYTES:
        raise ToolError(f'The tool "{name}" gave more than {MAX_RESULT_BYTES:,} bytes.', "Ask it for less.")
    return value


def _unwrapped(content: Value) -> Value:
    if isinstance(content, dict) and list(content) == ["result"]:
        return content["result"]
    return content


def _text(block: ContentBlock) -> str:
    if block.type == "text":
        return block.text
    if block.type == "resource":
        text = getattr(block.resource, "text", None)
        return text if isinstance(text, str) else f"[{block.resource.uri}]"
    if block.type == "resource_link":
        return f"[{block.name}: {block.uri}]"
    return f"[{block.type}, {block.mime_type}, {len(block.data):,} characters of Base64]"
