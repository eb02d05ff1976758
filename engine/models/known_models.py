"""The models that a person can choose from: built in, in files and of servers on this computer, and of providers.

Both `loopwright models` and the lists in the window show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from engine.errors import Fix
from engine.formatting import format_count, format_money
from engine.models.keys import Keys, KeyStoreError
from engine.models.local_servers import LocalServer, local_server_title
from engine.models.price_list import provider_models
from engine.models.protocol import EMBEDDED_MODEL, RECORDED_PREFIX, SCRIPTED_PREFIX, ModelError, Price
from engine.models.providers import PROVIDERS

_EXAMPLES: Final = {
    "openai": "gpt-4o-mini",
    "anthropic": "claude-haiku-4-5",
    "gemini": "gemini-2.5-flash",
    "mistral": "ministral-14b-latest",
    "groq": "openai/gpt-oss-20b",
    "deepseek": "deepseek-v4-flash",
    "openrouter": "VENDOR/MODEL",
    "together_ai": "openai/gpt-oss-120b",
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
"""A model of each provider."""

_FREE: Final = Price(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model, or an example of a provider's models, for a list.

    Attributes:
        name: Its name for documents and the command line.
        title: The name of its provider, or its own, for people.
        note: What people should know about it; may be empty.
        available: Whether it can be called now; None if only its server knows.
        how_to_get: What is missing or required; may be empty.
        fix: What the program offers for it, as in `EngineError`.
        price: Its price; None if unknown.
        context_tokens: Its context length in tokens; None if unknown.
    """

    name: str
    title: str
    note: str
    available: bool | None
    how_to_get: str
    price: Price | None = None
    context_tokens: int | None = None
    fix: str = ""

    @property
    def is_placeholder(self) -> bool:
        """Whether a part of the name has to be replaced (`openrouter/VENDOR/MODEL`)."""
        return is_placeholder(self.name)

    @property
    def price_text(self) -> str:
        """The price of a million input and output tokens (`$0.15 / $0.60`), or `free`; empty if unknown."""
        if self.price is None:
            return ""
        prices = _token_prices(self.price)
        return " / ".join(format_money(price * 1e6) for price in prices) if any(prices) else "free"

    @property
    def context_text(self) -> str:
        """The context length in tokens (`128,000`); empty if unknown."""
        return "" if self.context_tokens is None else format_count(self.context_tokens)

    @property
    def figures(self) -> str:
        """Price and context length in sentences; empty if unknown."""
        sentences: list[str] = []
        if self.price is not None and self.price_text != "free":
            read, written = (format_money(price * 1e6) for price in _token_prices(self.price))
            sentences.append(f"A million input tokens cost {read}, a million output tokens {written}.")
        if self.context_tokens is not None:
            sentences.append(f"Context length: {self.context_text} tokens.")
        return " ".join(sentences)

    def matches(self, typed: str) -> bool:
        """Whether name and title contain all words of a search text."""
        return matches_model(typed, self.name, self.title)


def _token_prices(price: Price) -> tuple[float, float]:
    return price.input_usd_per_token, price.output_usd_per_token


def is_placeholder(name: str) -> bool:
    """Whether a part of a model's name has to be replaced (`openrouter/VENDOR/MODEL`)."""
    return name.rpartition("/")[2] == "MODEL"


def matches_model(typed: str, *names: str) -> bool:
    """Whether the names of a model contain all words of a search text."""
    known = " ".join(names).casefold()
    return all(word in known for word in typed.casefold().split())


def known_models(keys: Keys, servers: Sequence[LocalServer] | None = None) -> list[KnownModel]:
    """List the models that can be called, and what the others require.

    Looks for keys, also in the system's keyring, and for files of models, which may take a while; uses no network.

    Args:
        keys: The user's keys.
        servers: The servers that were found on this computer; None if nobody has searched.
    """
    return [
        built_in_model(),
        *gguf_models(),
        *(model for server in servers or () for model in _served_by(server)),
        *(model for example in known_examples(keys) for model in _models_like(example, servers)),
        KnownModel("openai/MODEL", "Any OpenAI-compatible server", "", None, "Give its address as api_base."),
        KnownModel(
            f"{SCRIPTED_PREFIX}FILE", "Scripted", "its replies come from a file", True, "See docs/scripted-model.md."
        ),
        KnownModel(
            f"{RECORDED_PREFIX}RUN", "Recorded", "its replies come from an earlier run", True, "See docs/history.md."
        ),
    ]


def gguf_models() -> list[KnownModel]:
    """The models in GGUF files on this computer, without the built-in model. Reads the start of each file."""
    from engine.models.demo_weights import FILE
    from engine.models.gguf_files import list_gguf_models

    entries = [entry for entry in list_gguf_models() if entry.file.path.name != FILE]
    missing, fix = _missing_runtime() if entries else ("", "")
    models: list[KnownModel] = []
    for entry in entries:
        title = f"{entry.file.source} (GGUF file)"
        if entry.header is None:
            models.append(KnownModel(entry.file.model, title, "", False, entry.problem))
            continue
        note, context = entry.header.summary, entry.header.context_tokens
        models.append(KnownModel(entry.file.model, title, note, not missing, missing, _FREE, context, fix))
    return models


def known_examples(keys: Keys) -> list[KnownModel]:
    """An example of each provider, and whether it can be called; looks for keys like `known_models`."""
    return [_known_example(prefix, keys) for prefix in _EXAMPLES]


def models_of_provider(prefix: str) -> list[KnownModel]:
    """The models of a provider with a key, its example first; at least the example.

    Args:
        prefix: The prefix of the names of its models (`openai`).
    """
    example = example_of(prefix)
    listed = sorted(provider_models(prefix), key=lambda model: model.name != example.name)
    models = [KnownModel(one.name, example.title, "", True, "", one.price, one.context_tokens) for one in listed]
    return models or [example]


def example_of(prefix: str) -> KnownModel:
    """The example of a provider with a key."""
    return KnownModel(f"{prefix}/{_EXAMPLES[prefix]}", PROVIDERS[prefix].title, "", True, "")


def _models_like(example: KnownModel, servers: Sequence[LocalServer] | None) -> list[KnownModel]:
    """All models of the provider of an example, which replace it if they are known."""
    prefix = example.name.partition("/")[0]
    if example.available:
        return models_of_provider(prefix)
    return [] if servers is not None and local_server_title(example.name) else [example]


def _served_by(server: LocalServer) -> Iterator[KnownModel]:
    for name in server.models:
        yield KnownModel(name, server.title, "runs on your own computer", True, "", _FREE)
    if server.problem:
        yield KnownModel(f"{server.prefix}/MODEL", server.title, "runs on your own computer", False, server.problem)


def built_in_model() -> KnownModel:
    """The built-in model, and what is missing if it cannot be called."""
    from engine.models.demo_weights import find_weights
    from engine.models.embedded import EMBEDDED_NOTE

    try:
        find_weights()
    except ModelError as error:
        missing, fix = str(error), error.fix
    else:
        missing, fix = _missing_runtime()
    return KnownModel(EMBEDDED_MODEL, "Built-in demo model (135M)", EMBEDDED_NOTE, not missing, missing, _FREE, fix=fix)


def _missing_runtime() -> tuple[str, str]:
    """What is missing to run models on this computer, with its fix; empty texts if nothing is."""
    from engine.models.embedded import find_runtime

    try:
        find_runtime()
    except ModelError as error:
        return str(error), error.fix
    return "", ""


def _known_example(prefix: str, keys: Keys) -> KnownModel:
    example, provider = example_of(prefix), PROVIDERS[prefix]
    if provider.local:
        return replace(example, note="runs on your own computer", available=None, how_to_get=f"Start {provider.title}.")
    try:
        if keys.get(provider.name) is not None:
            return example
    except KeyStoreError as error:
        return replace(example, available=False, how_to_get=str(error), fix=error.fix)
    return replace(example, available=False, how_to_get="Add a key.", fix=Fix.ADD_KEY.of(provider.name))
