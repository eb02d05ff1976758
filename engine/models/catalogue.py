"""From a model's name to the model: the one place that knows all kinds of models.

The kinds are imported when the first of them is asked for, so that a run on one never pays for the others.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.models.base import Model, ModelError, ModelErrorKind
from engine.models.keys import Keys, KeyStoreError
from engine.models.model_names import (
    EMBEDDED_MODEL,
    RECORDED_PREFIX,
    SCRIPTED_PREFIX,
    added_prefixes,
    check_model_name,
    split_added,
)
from engine.models.providers import PROVIDERS, Provider

if TYPE_CHECKING:
    from engine.models.embedded import EmbeddedModel

__all__ = ["EMBEDDED_MODEL", "MODEL_VARIABLE", "KnownModel", "Models", "default_model_name", "known_models"]

MODEL_VARIABLE = "LOOPWRIGHT_MODEL"

_EXAMPLES = {
    "openai": "gpt-4o-mini",
    "anthropic": "claude-haiku-4-5",
    "gemini": "gemini-2.5-flash",
    "mistral": "ministral-14b-latest",
    "groq": "openai/gpt-oss-20b",
    "deepseek": "deepseek-chat",
    "openrouter": "VENDOR/MODEL",
    "together_ai": "meta-llama/Llama-3.3-70B-Instruct-Turbo",
    "xai": "grok-4.3",
    "cohere": "command-a-03-2025",
    "perplexity": "sonar",
    "fireworks_ai": "accounts/fireworks/models/llama-v3p1-8b-instruct",
    "cerebras": "gpt-oss-120b",
    "ollama_chat": "llama3.2",
    "lm_studio": "MODEL",
    "llamafile": "MODEL",
    "hosted_vllm": "MODEL",
}
"""A model of each provider that `loopwright models` lists."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model, or an example of a provider's models, as a list shows it.

    Attributes:
        name: How documents and the command line call it.
        title: How people call it.
        note: What they should know about it; empty where there is nothing.
        available: Whether it can be called now; None where only its server knows.
        how_to_get: What is missing, or what else it takes; empty where there is nothing.
    """

    name: str
    title: str
    note: str
    available: bool | None
    how_to_get: str


class Models:
    """The models of one run: asked for by name, made once, closed together.

    A scripted or recorded model remembers what it has said, so each run has a `Models` of its own. The built-in model's
    process is shared by all of them and ends with the last.

    Args:
        keys: Where keys come from.
        recorded: Makes the model that plays a run of that id, or of that file, once more; None where there is no
            history. Handed in, because models know no store.
    """

    def __init__(self, keys: Keys | None = None, recorded: Callable[[str], Model] | None = None) -> None:
        self.keys = keys or Keys()
        self._recorded = recorded
        self._models: dict[tuple[str, str | None], Model] = {}

    def get(self, name: str, api_base: str | None = None) -> Model:
        """Return the model of that name.

        Args:
            name: `embedded:smollm2-135m`, `scripted:FILE`, `recorded:RUN` or litellm's name (`openai/gpt-4o-mini`).
            api_base: The address of its server, for models that are called over the network; the others ignore it.

        Raises:
            ModelError: No model can have that name (`NOT_FOUND`), or a script or a recorded run cannot be read.
        """
        check_model_name(name)
        if name == EMBEDDED_MODEL or name.startswith((SCRIPTED_PREFIX, RECORDED_PREFIX)) or split_added(name):
            api_base = None
        key = (name, api_base)
        if key not in self._models:
            self._models[key] = self._make(name, api_base)
        return self._models[key]

    async def close(self) -> None:
        """Close all models that were asked for; each of them, also where closing another one fails."""
        models, self._models = self._models, {}
        async with AsyncExitStack() as stack:
            for (name, _), model in models.items():
                stack.push_async_callback(_SHARED.give_back if name == EMBEDDED_MODEL else model.close)

    def _make(self, name: str, api_base: str | None) -> Model:
        if name == EMBEDDED_MODEL:
            return _SHARED.borrow()
        if name.startswith(SCRIPTED_PREFIX):
            from engine.models.scripted import ScriptedModel

            return ScriptedModel(Path(name.removeprefix(SCRIPTED_PREFIX)))
        if name.startswith(RECORDED_PREFIX):
            return self._make_recorded(name.removeprefix(RECORDED_PREFIX))
        added = split_added(name)
        if added is not None:
            from engine.models.checked_model import PluginModel

            return PluginModel(_make_added(*added), name, self.keys)
        from engine.models.litellm_adapter import LiteLLMModel

        return LiteLLMModel(name, api_base=api_base, keys=self.keys)

    def _make_recorded(self, run: str) -> Model:
        if self._recorded is None:
            raise ModelError(
                ModelErrorKind.UNAVAILABLE,
                f"The run {run[:200]!r} cannot be played: there is no history here.",
                "Give the models a history, as `loopwright run` does.",
            )
        return self._recorded(run)


def _make_added(prefix: str, name: str) -> Model:
    """Let a plugin make its model; whatever it raises becomes a sentence."""
    try:
        return added_prefixes()[prefix](name)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(
            ModelErrorKind.UNAVAILABLE,
            f"The plugin that adds models {prefix}:… could not make {name[:100]!r} ({type(error).__name__}).",
            "Report it to whoever makes the plugin.",
        ) from error


class _SharedEmbedded:
    """The one built-in model of this program: loading its weights once is enough."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: EmbeddedModel | None = None
        self._borrowers = 0

    def borrow(self) -> EmbeddedModel:
        """Return the model; each call asks for one `give_back`."""
        from engine.models.embedded import EmbeddedModel

        with self._lock:
            self._borrowers += 1
            self._model = self._model or EmbeddedModel()
            return self._model

    async def give_back(self) -> None:
        """Close the model if nobody else has it."""
        with self._lock:
            self._borrowers -= 1
            model = None if self._borrowers else self._model
            if model:
                self._model = None
        if model:
            await model.close()


_SHARED = _SharedEmbedded()


def default_model_name(environment: Mapping[str, str] = os.environ) -> str:
    """The model where neither document nor command line names one: the user's (LOOPWRIGHT_MODEL), else the built-in."""
    return environment.get(MODEL_VARIABLE, "").strip() or EMBEDDED_MODEL


def known_models(keys: Keys) -> list[KnownModel]:
    """List what can be called, or could with what is missing.

    Looks for keys, also in the system's keyring, which may take a while; uses no network.
    """
    return [
        _known_embedded(),
        *known_examples(keys),
        KnownModel("openai/MODEL", "Any server that speaks like OpenAI's", "", None, "Give its address as api_base."),
        KnownModel(
            f"{SCRIPTED_PREFIX}FILE", "Scripted", "its replies come from a file", True, "See docs/scripted-model.md."
        ),
        KnownModel(
            f"{RECORDED_PREFIX}RUN", "Recorded", "its replies come from an earlier run", True, "See docs/history.md."
        ),
    ]


def known_examples(keys: Keys) -> list[KnownModel]:
    """An example of each provider, and whether it can be called; looks for keys as `known_models` does."""
    return [_known_of(prefix, PROVIDERS[prefix], keys) for prefix in _EXAMPLES]


def _known_embedded() -> KnownModel:
    from engine.models.embedded import EMBEDDED_NOTE, find_runtime, find_weights

    missing = ""
    try:
        find_weights()
        find_runtime()
    except ModelError as error:
        missing = str(error)
    return KnownModel(EMBEDDED_MODEL, "Built-in demo model (135M)", EMBEDDED_NOTE, not missing, missing)


def _known_of(prefix: str, provider: Provider, keys: Keys) -> KnownModel:
    name = f"{prefix}/{_EXAMPLES[prefix]}"
    if provider.local:
        return KnownModel(name, provider.title, "runs on your own machine", None, f"Start {provider.title}.")
    try:
        available = keys.get(provider.name) is not None
    except KeyStoreError as error:
        return KnownModel(name, provider.title, "", False, str(error))
    missing = f"Put a key into {provider.key_variables[0]} or the system keyring."
    return KnownModel(name, provider.title, "", available, "" if available else missing)
