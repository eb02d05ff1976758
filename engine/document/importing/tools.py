"""What tools are called elsewhere, what they are called here, and at which port a tool's one input arrives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_NAMES: Final = {
    "web_search": ("websearch",),
    "search_files": ("search", "file_search", "file_glob", "knowledge_base", "grep", "glob"),
    "http_get": ("http", "http_request", "web_fetch", "fetch"),
    "read_file": ("file_read", "read"),
    "write_file": ("file_write", "write"),
    "shell": ("shell_exec", "bash", "exec"),
    "python": ("code",),
}
_OF_AGENTS: Final = {
    "send_note": ("send_message",),
    "ask_person": ("ask_user", "ask_human"),
    "exit_loop": ("exitloop", "escalate"),
}

PORTS: Final[Mapping[str, str]] = {
    "web_search": "query",
    "search_files": "query",
    "http_get": "url",
    "read_file": "path",
    "write_file": "text",
    "shell": "command",
    "python": "code",
}
"""By our name, the port for the one input that a tool has elsewhere."""


def _table(names: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    return {name: ours for ours, others in names.items() for name in (ours, *others)}


TOOLS: Final[Mapping[str, str]] = _table(_NAMES)
"""Our name by the foreign one, for a tool that is called by itself."""

AGENT_TOOLS: Final[Mapping[str, str]] = _table({**_NAMES, **_OF_AGENTS})
"""The same for what an agent may call."""


def our_tool(name: str, table: Mapping[str, str]) -> str:
    """Our name of a tool; empty where there is none."""
    return table.get(name.strip().lower().replace("-", "_"), "")
