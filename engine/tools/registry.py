"""The tools that there are, by name: those that come with the program, and those that servers and plugins add.

Importing this module costs little: what a tool needs beyond the standard library and pydantic, it imports when it runs.
Nothing is added because a document was opened; whoever starts the program adds what the person has set up.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from engine.tools.code_tools import PYTHON, SHELL
from engine.tools.file_tools import READ_FILE, WRITE_FILE
from engine.tools.search_files import SEARCH_FILES
from engine.tools.tool import AnyTool, ToolError
from engine.tools.web_tools import HTTP_GET, WEB_SEARCH

_ALL: tuple[AnyTool, ...] = (SEARCH_FILES, WEB_SEARCH, HTTP_GET, READ_FILE, WRITE_FILE, PYTHON, SHELL)
_BUILTIN: Mapping[str, AnyTool] = MappingProxyType({tool.name: tool for tool in _ALL})

_added: dict[str, tuple[AnyTool, ...]] = {}
_known: Mapping[str, AnyTool] = _BUILTIN


def builtin_tools() -> Mapping[str, AnyTool]:
    """All built-in tools by name, in the order in which they are offered; read-only."""
    return _BUILTIN


def all_tools() -> Mapping[str, AnyTool]:
    """The built-in tools and those that were added, by name; read-only."""
    return _known


def set_tools(owner: str, tools: Iterable[AnyTool]) -> None:
    """Let these be the tools that someone adds, in place of those that the same one had added before.

    Args:
        owner: Whoever adds them, such as a server or a plugin.
        tools: The tools; none takes away those that it had.

    Raises:
        ToolError: One has the name of a tool that somebody else has; then all stays as it was.
    """
    global _known  # noqa: PLW0603 - which tools there are is a fact of the whole program
    added = {**_added, owner: tuple(tools)}
    known = dict(_BUILTIN)
    for name, group in added.items():
        for tool in group:
            if tool.name in known:
                raise ToolError(
                    f'There is a tool "{tool.name}" already, and {name} has another of that name.',
                    "Rename one, or do without one of the two.",
                )
            known[tool.name] = tool
    _added[owner] = added[owner]
    _known = MappingProxyType(known)


def find_tool(name: str) -> AnyTool:
    """Look a tool up.

    Raises:
        ToolError: There is none of that name; the remedy names the nearest one and all that there are.
    """
    known = _known
    tool = known.get(name)
    if tool is not None:
        return tool
    near = difflib.get_close_matches(name[:100].lower(), known, n=1)
    question = f"Did you mean '{near[0]}'? " if near else ""
    raise ToolError(f"There is no tool called {name[:100]!r}.", f"{question}The tools are: {', '.join(known)}.")
