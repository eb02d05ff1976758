"""The name of a model elsewhere, as models are called here: with the provider before it."""

from __future__ import annotations

from typing import Final

from engine.document.wording import shown

_BEGINNINGS: Final = {
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


def model_name(name: str, provider: str = "") -> tuple[str, str]:
    """The name here, and a sentence about it."""
    if "/" in name or name.startswith(("scripted:", "embedded:", "recorded:")):
        return name, f"{shown(name, 80)}."
    known = provider.lower().replace("-", "_")
    chosen = _PROVIDERS.get(known, known) or next(
        (owner for beginning, owner in _BEGINNINGS.items() if name.lower().startswith(beginning)), ""
    )
    if not chosen:
        return name, f"{shown(name, 80)}; look whether it needs its provider before it."
    return f"{chosen}/{name}", f"{shown(f'{chosen}/{name}', 80)}."
