"""Model providers: their addresses, and the environment variables of their keys.

Data and look-ups only: it reads no key and opens no connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from engine.errors import EngineError
from engine.models.protocol import EMBEDDED_MODEL, GGUF_PREFIX

_DEFAULT_PORTS = {"http": 80, "https": 443}
_HOST_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.-:")


class AddressError(EngineError):
    """An address of a model server that cannot be used."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider of models.

    Attributes:
        name: Its name in the keyring and in settings.
        title: Its name in sentences.
        key_variables: Environment variables that may contain its key, the usual one first.
        addresses: Its own addresses, that of its models first; empty for a provider that is not listed.
        address_variables: Environment variables that may contain another address.
        local: Whether it runs on the user's own computer, where no key is needed and nothing costs money.
    """

    name: str
    title: str
    key_variables: tuple[str, ...]
    addresses: tuple[str, ...] = ()
    address_variables: tuple[str, ...] = ()
    local: bool = False

    def address_in(self, environment: Mapping[str, str]) -> str | None:
        """The address to which the user's environment variables send it; None if they do not."""
        return next((value for name in self.address_variables if (value := environment.get(name))), None)


def _cloud(name: str, title: str, address: str, *more_key_variables: str, prefix: str = "") -> Provider:
    stem = prefix or name.upper()
    return Provider(name, title, (f"{stem}_API_KEY", *more_key_variables), (address,), (f"{stem}_API_BASE",))


def _local(name: str, title: str, address: str) -> Provider:
    stem = name.upper()
    return Provider(name, title, (f"{stem}_API_KEY",), (address,), (f"{stem}_API_BASE",), local=True)


_OLLAMA = _local("ollama", "Ollama", "http://localhost:11434")

PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(
        "openai", "OpenAI", ("OPENAI_API_KEY",), ("https://api.openai.com",), ("OPENAI_BASE_URL", "OPENAI_API_BASE")
    ),
    "anthropic": Provider(
        "anthropic",
        "Anthropic",
        ("ANTHROPIC_API_KEY",),
        ("https://api.anthropic.com",),
        ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
    ),
    "gemini": _cloud("gemini", "Gemini", "https://generativelanguage.googleapis.com", "GOOGLE_API_KEY"),
    "mistral": _cloud("mistral", "Mistral", "https://api.mistral.ai"),
    "groq": _cloud("groq", "Groq", "https://api.groq.com"),
    "deepseek": _cloud("deepseek", "DeepSeek", "https://api.deepseek.com"),
    "openrouter": _cloud("openrouter", "OpenRouter", "https://openrouter.ai"),
    "together_ai": _cloud("together_ai", "Together AI", "https://api.together.xyz", prefix="TOGETHERAI"),
    "xai": _cloud("xai", "xAI", "https://api.x.ai"),
    "cohere": _cloud("cohere", "Cohere", "https://api.cohere.com", "CO_API_KEY"),
    "perplexity": _cloud("perplexity", "Perplexity", "https://api.perplexity.ai", "PERPLEXITYAI_API_KEY"),
    "fireworks_ai": _cloud("fireworks_ai", "Fireworks AI", "https://api.fireworks.ai", prefix="FIREWORKS"),
    "cerebras": _cloud("cerebras", "Cerebras", "https://api.cerebras.ai"),
    "ollama": _OLLAMA,
    "ollama_chat": _OLLAMA,
    "lm_studio": _local("lm_studio", "LM Studio", "http://localhost:1234/v1"),
    "llamafile": _local("llamafile", "llamafile", "http://127.0.0.1:8080/v1"),
    "hosted_vllm": _local("hosted_vllm", "vLLM", "http://localhost:8000/v1"),
}
"""Providers with known addresses, by the prefix of their models' names."""


def provider_named(name: str) -> Provider:
    """The provider with that prefix; an unlisted one has no known address."""
    return PROVIDERS.get(name) or Provider(name, name, (f"{name.upper()}_API_KEY",))


def runs_on_own_machine(model: str) -> bool:
    """Whether a model is in a file, or its provider is a server that people run themselves."""
    return model == EMBEDDED_MODEL or model.startswith(GGUF_PREFIX) or provider_named(model.partition("/")[0]).local


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port, to which a key is bound."""

    scheme: str
    host: str
    port: int

    @property
    def name(self) -> str:
        """The host as people write it; the port of https is omitted."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if (self.scheme, self.port) == ("https", 443) else f"{host}:{self.port}"


def origin_of(address: str) -> Origin:
    """Parse the origin of an http or https address.

    Raises:
        AddressError: It is not such an address, or is ambiguous (a user name, a backslash, a space, a non-ASCII host),
            which an attacker could use to get a key sent to another host.
    """
    refusal = AddressError(
        f"{address[:200]!r} is not the address of a model server.",
        "Write it like http://localhost:8080/v1, without a user name or spaces.",
    )
    if not address.isascii() or not address.isprintable() or any(c in address for c in " \\@?#"):
        raise refusal
    try:
        parts: SplitResult = urlsplit(address)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        raise refusal from None
    if parts.scheme not in _DEFAULT_PORTS or not host or not set(host) <= _HOST_CHARACTERS:
        raise refusal
    return Origin(parts.scheme, host, _DEFAULT_PORTS[parts.scheme] if port is None else port)
