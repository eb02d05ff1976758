"""Names of models and tools in other programs, and their names here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.text_sanitizing import shown

_PROVIDER_BY_MODEL_PREFIX: Final = {
    "claude": "anthropic",
    "gpt": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "gemini": "gemini",
    "mistral": "mistral",
    "deepseek": "deepseek",
}
_PROVIDERS: Final = {"google": "gemini", "azure_openai": "azure", "ollama": "ollama_chat", "local": "openai"}

_TOOL_SYNONYMS: Final = {
    "web_search": ("websearch",),
    "search_files": ("search", "file_search", "file_glob", "knowledge_base", "grep", "glob"),
    "http_get": ("http", "http_request", "web_fetch", "fetch"),
    "read_file": ("file_read", "read"),
    "write_file": ("file_write", "write"),
    "shell": ("shell_exec", "bash", "exec"),
    "python": ("code",),
}
_AGENT_TOOL_SYNONYMS: Final = {
    "send_note": ("send_message",),
    "ask_person": ("ask_user", "ask_human"),
    "exit_loop": ("exitloop", "escalate"),
}

MAIN_TOOL_PORT: Final[Mapping[str, str]] = {
    "web_search": "query",
    "search_files": "query",
    "http_get": "url",
    "read_file": "path",
    "write_file": "text",
    "shell": "command",
    "python": "code",
}
"""By tool, the port for the single input that foreign tools have."""


def _by_synonym(synonyms: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    return {name: tool for tool, others in synonyms.items() for name in (tool, *others)}


TOOLS: Final[Mapping[str, str]] = _by_synonym(_TOOL_SYNONYMS)
"""Tools for tool nodes, by foreign name."""

AGENT_TOOLS: Final[Mapping[str, str]] = _by_synonym({**_TOOL_SYNONYMS, **_AGENT_TOOL_SYNONYMS})
"""Tools for agents, by foreign name."""


def map_tool(name: str, table: Mapping[str, str]) -> str:
    """The tool's name here; empty if it has no counterpart."""
    return table.get(name.strip().lower().replace("-", "_"), "")


def map_model(name: str, provider: str = "") -> tuple[str, str]:
    """The model's name here, with its provider as a prefix, and a sentence for the report."""
    if "/" in name or name.startswith(("scripted:", "embedded:", "recorded:")):
        return name, f"{shown(name, 80)}."
    known = provider.lower().replace("-", "_")
    chosen = _PROVIDERS.get(known, known) or next(
        (owner for prefix, owner in _PROVIDER_BY_MODEL_PREFIX.items() if name.lower().startswith(prefix)), ""
    )
    if not chosen:
        return name, f"{shown(name, 80)}; check whether it needs a provider prefix."
    return f"{chosen}/{name}", f"{shown(f'{chosen}/{name}', 80)}."
