"""The registry of tools: built-in ones, and those that MCP servers and plugins add.

Importing this module is cheap: a tool imports what it needs beyond the standard library and pydantic when it runs.
Opening a document adds nothing; the program adds at its start what the person has set up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from engine.errors import did_you_mean
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
    """The built-in tools by name, in the order of lists; read-only."""
    return _BUILTIN


def all_tools() -> Mapping[str, AnyTool]:
    """The built-in tools and the added ones, by name; read-only."""
    return _known


def set_tools(owner: str, tools: Iterable[AnyTool]) -> None:
    """Set the tools of an owner, in place of those that it had before.

    Args:
        owner: A server or a plugin.
        tools: The tools; an empty iterable removes those that it had.

    Raises:
        ToolError: Another owner has a tool of the same name; then nothing changes.
    """
    global _known  # noqa: PLW0603 - the tools are those of the whole program
    added = {**_added, owner: tuple(tools)}
    known = dict(_BUILTIN)
    for name, group in added.items():
        for tool in group:
            if tool.name in known:
                raise ToolError(
                    f'A tool "{tool.name}" already exists, and {name} has another with that name.',
                    "Rename one of them, or remove it.",
                )
            known[tool.name] = tool
    _added[owner] = added[owner]
    _known = MappingProxyType(known)


def find_tool(name: str) -> AnyTool:
    """The tool of that name.

    Raises:
        ToolError: There is none; the remedy suggests the most similar name and lists all tools.
    """
    known = _known
    if name not in known:
        raise unknown_tool(name, known)
    return known[name]


def unknown_tool(name: str, known: Iterable[str]) -> ToolError:
    """The error about a tool that is not among the known ones."""
    names = list(known)
    remedy = f"{did_you_mean(name, names)} The tools are: {', '.join(names)}.".lstrip()
    return ToolError(f'There is no tool "{name[:100]}".', remedy)
