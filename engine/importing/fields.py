"""Members of foreign files: typed access to values of any type and spelling, and names of models and tools here."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

from engine.models.catalog import usual_provider
from engine.models.providers import provider_named
from engine.text_sanitizing import shown

_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|d)")
_SECONDS_PER_UNIT: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def as_text(value: object) -> str:
    """The value as text; empty for null, objects and lists."""
    if isinstance(value, str):
        return value
    return "" if value is None or isinstance(value, dict | list) else str(value)


def as_number(value: object) -> float | None:
    """The value as a finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def as_integer(value: object) -> int | None:
    """The value as an integer, or None."""
    number = as_number(value)
    return int(number) if number is not None and number.is_integer() else None


def as_seconds(value: object) -> float | None:
    """The value as a number of seconds, or None. Accepts numbers and durations such as `30s` or `1m30s`."""
    number = as_number(value)
    if number is not None or not isinstance(value, str):
        return number
    text = value.strip()
    parts = _DURATION.findall(text)
    if not parts or _DURATION.sub("", text).strip():
        return None
    return sum(float(count) * _SECONDS_PER_UNIT[unit] for count, unit in parts)


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
    if "/" in name or name.startswith(("scripted:", "embedded:", "recorded:", "gguf:")):
        return name, f"{shown(name, 80)}."
    known = provider.lower().replace("-", "_")
    chosen = _PROVIDERS.get(known, known) or usual_provider(name)
    if not chosen or (not known and provider_named(chosen).local):
        return name, f"{shown(name, 80)}; check whether it needs a provider prefix."
    return f"{chosen}/{name}", f"{shown(f'{chosen}/{name}', 80)}."
