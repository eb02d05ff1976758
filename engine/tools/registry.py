"""The tools that come with the program, by name.

Importing this module costs little: what a tool needs beyond the standard library and pydantic, it imports when it runs.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType

from engine.tools.base import AnyTool, ToolError
from engine.tools.http_get import HTTP_GET
from engine.tools.read_file import READ_FILE
from engine.tools.search_files import SEARCH_FILES
from engine.tools.write_file import WRITE_FILE

_ALL: tuple[AnyTool, ...] = (SEARCH_FILES, HTTP_GET, READ_FILE, WRITE_FILE)
_BUILTIN: Mapping[str, AnyTool] = MappingProxyType({tool.name: tool for tool in _ALL})


def builtin_tools() -> Mapping[str, AnyTool]:
    """All built-in tools by name, in the order in which they are offered; read-only."""
    return _BUILTIN


def find_tool(name: str) -> AnyTool:
    """Look a tool up.

    Raises:
        ToolError: There is none of that name; the remedy names the nearest one and all that there are.
    """
    tool = _BUILTIN.get(name)
    if tool is not None:
        return tool
    near = difflib.get_close_matches(name[:100].lower(), _BUILTIN, n=1)
    question = f"Did you mean '{near[0]}'? " if near else ""
    raise ToolError(f"There is no tool called {name[:100]!r}.", f"{question}The tools are: {', '.join(_BUILTIN)}.")
