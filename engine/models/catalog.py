"""The catalog of models: finds a model by its name.

It checks names, suggests corrections, and knows all kinds of models, also those that plugins add. A kind is imported
when the first model of it is used, so a run never pays for the others.

A plugin's model is trusted no more than a server: whatever it raises becomes a `ModelError`, and whatever it returns a
`Reply` with the right types.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from engine.models.keys import Keys
from engine.models.protocol import (
    EMBEDDED_MODEL,
    GGUF_PREFIX,
    RECORDED_PREFIX,
    SCRIPTED_PREFIX,
    Finish,
    Model,
    ModelError,
    ModelErrorKind,
    OnText,
    Price,
    Reply,
    Request,
    Usage,
    checked_cost_usd,
    clean_request,
    estimated_usage,
)
from engine.models.reply_text import ReplyText
from engine.models.tool_calls import PartialCalls
from engine.values import clean_text

if TYPE_CHECKING:
    from engine.models.embedded import EmbeddedModel
    from engine.models.gguf_files import GgufSettings


MODEL_VARIABLE: Final = "LOOPWRIGHT_MODEL"


def default_model_name(environment: Mapping[str, str] = os.environ) -> str:
    """The model if neither document nor options name one: that of LOOPWRIGHT_MODEL, else the built-in one."""
    return environment.get(MODEL_VARIABLE, "").strip() or EMBEDDED_MODEL


class Models:
    """The models of one run: found by name, created once, closed together.

    A scripted or recorded model remembers its replies, so each run has a `Models` of its own. All of them share the
    processes of the built-in model and of GGUF files, which end with the last.

    Args:
        keys: The user's keys.
        recorded: Creates the model that replays the run of that id, or of that file; None without a history. An
            argument, because the models do not depend on the store.
        addresses: The addresses of the user's own servers by model, for calls that name no address.

    Attributes:
        keys: The user's keys.
        addresses: As above; can be replaced.
        gguf_settings: Returns how GGUF files are run; None for the defaults. Can be replaced.
    """

    gguf_settings: Callable[[], GgufSettings] | None = None

    def __init__(
        self,
        keys: Keys | None = None,
        recorded: Callable[[str], Model] | None = None,
        addresses: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.keys = keys or Keys()
        self.addresses = addresses
        self._recorded = recorded
        self._models: dict[tuple[str, str | None], Model] = {}

    def get(self, name: str, api_base: str | None = None) -> Model:
        """The model of that name.

        Args:
            name: `embedded:smollm2-135m`, `gguf:NAME`, `gguf:PATH`, `scripted:FILE`, `recorded:RUN` or litellm's name
                (`openai/gpt-4o-mini`).
            api_base: The address of its server, for models that are called over the network; the others ignore it.

        Raises:
            ModelError: No model can have that name (`NOT_FOUND`), or a script or a recorded run cannot be read.
        """
        check_model_name(name)
        api_base = api_base or self.addresses.get(name)
        if name == EMBEDDED_MODEL or name.startswith(_OWN_KINDS) or _split_added(name):
            api_base = None
        key = (name, api_base)
        if key not in self._models:
            self._models[key] = self._create(name, api_base)
        return self._models[key]

    async def close(self) -> None:
        """Close all models that were used, even if closing another one fails."""
        models, self._models = self._models, {}
        async with AsyncExitStack() as stack:
            for (name, _), model in models.items():
                if name in _SHARED:
                    stack.push_async_callback(_SHARED.release, name)
                else:
                    stack.push_async_callback(model.close)

    def _create(self, name: str, api_base: str | None) -> Model:
        if name == EMBEDDED_MODEL or name.startswith(GGUF_PREFIX):
            return _SHARED.acquire(name, self.gguf_settings)
        if name.startswith(SCRIPTED_PREFIX):
            from engine.models.scripted import ScriptedModel

            return ScriptedModel(Path(name.removeprefix(SCRIPTED_PREFIX)))
        if name.startswith(RECORDED_PREFIX):
            run = name.removeprefix(RECORDED_PREFIX)
            if self._recorded is None:
                raise ModelError(
                    ModelErrorKind.UNAVAILABLE,
                    f"The run {run[:200]!r} cannot be replayed: there is no history.",
                    "Give the models a history.",
                )
            return self._recorded(run)
        added = _split_added(name)
        if added is not None:
            return PluginModel(_create_added(*added), name, self.keys)
        from engine.models.litellm_adapter import LiteLLMModel

        return LiteLLMModel(name, api_base=api_base, keys=self.keys)


class _SharedModels:
    """The models of this program that run in processes of their own, so that their weights are loaded once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._models: dict[str, EmbeddedModel] = {}
        self._users: Counter[str] = Counter()

    def __contains__(self, name: str) -> bool:
        return name in self._models

    def acquire(self, name: str, settings: Callable[[], GgufSettings] | None) -> EmbeddedModel:
        """The model of that name; each call requires one `release`."""
        from engine.models.embedded import EmbeddedModel

        with self._lock:
            self._users[name] += 1
            if name not in self._models:
                self._models[name] = EmbeddedModel() if name == EMBEDDED_MODEL else _gguf_model(name, settings)
            return self._models[name]

    async def release(self, name: str) -> None:
        """Close the model if it has no other user."""
        with self._lock:
            self._users[name] -= 1
            model = None if self._users[name] else self._models.pop(name)
        if model:
            await model.close()

    def open_models(self) -> list[EmbeddedModel]:
        """The models that are in use."""
        with self._lock:
            return list(self._models.values())


async def unload_models(files: Iterable[Path]) -> None:
    """End the processes of this program that have loaded one of these files, so that it can be deleted.

    Raises:
        ModelError: A call uses one (`UNAVAILABLE`).
    """
    weights = {str(file.absolute()) for file in files}
    for model in _SHARED.open_models():
        if not await model.unload(weights):
            message = f"A run is using {model.title}."
            raise ModelError(ModelErrorKind.UNAVAILABLE, message, "Wait until the run has ended, or stop it.")


def _gguf_model(name: str, settings: Callable[[], GgufSettings] | None) -> EmbeddedModel:
    from engine.models.gguf_files import GgufSettings
    from engine.models.gguf_model import GgufModel

    return GgufModel(name, settings or GgufSettings)


_SHARED = _SharedModels()

_OWN_KINDS: Final = (SCRIPTED_PREFIX, RECORDED_PREFIX, GGUF_PREFIX)

LITELLM_PREFIXES = frozenset(
    """
a2a a2a_agent abliteration ai21 ai21_chat aiand aihubmix aiml aiohttp_openai amazon_nova anthropic anthropic_text
apertis assemblyai auto_router aws_polly aws_textract azure azure_ai azure_speech azure_text baseten bedrock
bedrock_mantle bespoke bigmodel black_forest_labs bytez cerebras charity_engine chatgpt chutes clarifai
clf_ai_gateway cloudflare codestral cognition cohere cohere_chat cometapi compactifai coralbricks cortecs crusoe
cursor custom custom_openai darkbloom dashscope databricks databricks_agent datarobot deepgram deepinfra deepseek
docker_model_runner dotprompt edenai elevenlabs empiriolabs empower eu_jev fal_ai featherless_ai fireworks_ai
friendliai galadriel gdc gemini gigachat github github_copilot gmi gradient_ai groq helicone heroku hosted_vllm
hostinger_router huggingface humanloop hyperbolic inception inferenceapis infinity jina_ai kyma lambda_ai langflow
langfuse langgraph laya lemonade libertai litellm_agent litellm_proxy llamafile llamagate lm_studio manus maritalk
meta meta_llama microsoft_365_copilot milvus minimax mistral modelscope mongodb moonshot morph nace nadir nano-gpt
nebius neosantara nlp_cloud novita nscale nvidia_nim nvidia_riva oci ollama ollama_chat oobabooga openai openai_like
opencode_go openinfer openrouter opensearch ovhcloud parallel_ai parasail perplexity petals pg_vector pinstripes poe
predibase prism publicai qwen_ai_platform qwencloud ragflow recraft reducto refuseless reka replicate runwayml
s3_vectors sagemaker sagemaker_chat sagemaker_nova sail sambanova sap sarvam scaledown scaleway scx-ai snowflake
soniox stability strands_decider streamlake synthetic tencent tensormesh text-completion-codestral
text-completion-inception text-completion-openai together_ai topaz transcribe triton typesafe v0 valkey veniceai
vercel_ai_gateway vertex_ai vertex_ai_beta vllm volcengine voyage wally wandb watsonx watsonx_text xai xiaomi_mimo
xinference zai zerogpu
""".split()  # noqa: SIM905 - 196 quoted words on separate lines would be harder to compare
)
"""The providers of the pinned version of litellm. A test compares them with its own lists."""

_FAMILIES = {
    "gpt": "openai",
    "chatgpt-": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "claude": "anthropic",
    "gemini": "gemini",
    "mistral": "mistral",
    "ministral": "mistral",
    "codestral": "mistral",
    "deepseek": "deepseek",
    "grok": "xai",
    "command-": "cohere",
    "gemma": "ollama_chat",
    "llama": "ollama_chat",
    "phi": "ollama_chat",
    "qwen": "ollama_chat",
}
"""Beginnings of the names of well-known models, and their providers; the first match decides."""

_HOW_TO_WRITE = f"Write it as PROVIDER/MODEL (openai/gpt-4o-mini, ollama_chat/llama3.2), or use {EMBEDDED_MODEL}."


def check_model_name(name: str) -> None:
    """Refuse an invalid name; only the provider knows whether the model exists.

    Raises:
        ModelError: The name is invalid (`NOT_FOUND`); the remedy suggests a correction.
    """
    if not name.strip():
        raise ModelError(ModelErrorKind.NOT_FOUND, "The name of the model is empty.", _HOW_TO_WRITE)
    prefix, colon, rest = name.partition(":")
    if name == EMBEDDED_MODEL or (prefix + colon in _OWN_KINDS and rest.strip()):
        return
    if _split_added(name) is not None:
        return
    prefix, slash, model = name.partition("/")
    if slash and model and prefix in LITELLM_PREFIXES:
        return
    guess = _guess(name)
    raise ModelError(
        ModelErrorKind.NOT_FOUND,
        f"There is no model {name[:200]!r}.",
        f"Did you mean {guess}? {_HOW_TO_WRITE}" if guess else _HOW_TO_WRITE,
    )


def _guess(name: str) -> str:
    """The name that was probably meant; empty without a guess."""
    name = name.strip()[:200]
    own = _guess_own(name, name.lower())
    if own or "/" in name:
        return own or _guess_provider(name)
    head, _, tail = name.partition(":")
    if head.lower() in LITELLM_PREFIXES and tail[:1].isalpha():
        return f"{head.lower()}/{tail}"
    provider = usual_provider(name)
    return f"{provider}/{name}" if provider else ""


def usual_provider(name: str) -> str:
    """The provider of a well-known model by its name; empty if it is unknown."""
    provider = next((provider for start, provider in _FAMILIES.items() if name.lower().startswith(start)), "")
    return "ollama_chat" if provider and ":" in name else provider  # only Ollama separates name and size by a colon


def _guess_own(name: str, lower: str) -> str:
    """The name of a model of this program that was probably meant; empty without a guess."""
    if lower.startswith("scripted"):
        return f"{SCRIPTED_PREFIX}FILE"
    if lower.startswith("recorded"):
        return f"{RECORDED_PREFIX}RUN"
    if lower.endswith(".gguf") or lower.startswith("gguf"):
        return f"{GGUF_PREFIX}{name[4:].lstrip(':/') or 'FILE' if lower.startswith('gguf') else name}"
    return EMBEDDED_MODEL if lower.startswith("embedded") or "smollm" in lower else ""


def _guess_provider(name: str) -> str:
    prefix, _, model = name.partition("/")
    if not prefix or not model:
        return ""
    similar = difflib.get_close_matches(prefix.lower(), sorted(LITELLM_PREFIXES), n=1, cutoff=0.7)
    # The names of gateways to many vendors start with the vendor.
    return f"{similar[0]}/{model}" if similar else f"openrouter/{name}"


_PREFIX: Final = re.compile(r"[a-z][a-z0-9_-]{1,30}")
_OWN_PREFIXES: Final = frozenset({"embedded", "gguf", "scripted", "recorded"})
_MAKERS: dict[str, Callable[[str], Model]] = {}


def added_prefixes() -> Mapping[str, Callable[[str], Model]]:
    """The makers of plugins' models by prefix, without its colon; read-only."""
    return MappingProxyType(_MAKERS)


def can_be_prefix(prefix: str) -> bool:
    """Whether a plugin's models may have that prefix."""
    return _PREFIX.fullmatch(prefix) is not None and prefix not in _OWN_PREFIXES


def add_models(prefix: str, make: Callable[[str], Model]) -> None:
    """Add models; documents call them `PREFIX:NAME`.

    Args:
        prefix: Lowercase letters, digits, hyphens and underscores.
        make: Creates the model of a name without the prefix; raises `ModelError` if there is none.

    Raises:
        ValueError: The prefix is invalid or already in use.
    """
    if not can_be_prefix(prefix):
        raise ValueError(f"no plugin can have models with the prefix {prefix!r}")
    if _MAKERS.get(prefix, make) is not make:
        raise ValueError(f"there are already models with the prefix {prefix!r}")
    _MAKERS[prefix] = make


def _split_added(name: str) -> tuple[str, str] | None:
    """The prefix and the rest of the name of a plugin's model; None for other models."""
    prefix, _, rest = name.partition(":")
    return (prefix, rest) if prefix in _MAKERS and rest else None


def _create_added(prefix: str, name: str) -> Model:
    try:
        return _MAKERS[prefix](name)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(
            ModelErrorKind.UNAVAILABLE,
            f"The plugin that adds models {prefix}:… could not create {name[:100]!r} ({type(error).__name__}).",
            "Report it to the author of the plugin.",
        ) from error


class PluginModel:
    """A plugin's model, held to the protocol.

    Args:
        model: The model that the plugin created.
        name: Its name in documents (`mine:small`).
        keys: The user's keys, none of which may appear in a reply.
    """

    def __init__(self, model: Model, name: str, keys: Keys) -> None:
        self._model = model
        self._name = name
        self._keys = keys

    @property
    def name(self) -> str:
        """Its name for documents and people."""
        return self._name

    @property
    def note(self) -> str:
        """The plugin's note for people."""
        return self._model.note

    async def price(self) -> Price | None:
        """The plugin's price; None if it is not a valid one.

        Raises:
            ModelError: The plugin failed (`BAD_REPLY`).
        """
        try:
            price = await self._model.price()
            return price if _is_price(price) else None
        except ModelError:
            raise
        except Exception as error:
            raise self._failure(f"failed ({type(error).__name__})") from error

    async def close(self) -> None:
        """Close the plugin's model, whose failure changes nothing any more."""
        with contextlib.suppress(Exception):
            await self._model.close()

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Make one call.

        Raises:
            ModelError: The call gave no usable reply, or the plugin failed (`BAD_REPLY`).
        """
        streamed = ReplyText(self._keys, on_text)

        def add_text(piece: Any) -> None:
            if isinstance(piece, str):
                streamed.add(piece)

        try:
            reply: Any = await self._model.complete(clean_request(request), None if on_text is None else add_text)
        except ModelError as error:
            error.message, error.remedy = self._clean(error.message), self._clean(error.remedy)
            error.partial = streamed.text or self._clean(error.partial)
            raise
        except Exception as error:
            raise self._failure(f"failed ({type(error).__name__})", streamed.text) from error
        streamed.finish()
        if not isinstance(reply, Reply):
            raise self._failure("returned something that is not a reply")
        return self._checked(reply, request)

    def _checked(self, reply: Reply, request: Request) -> Reply:
        """The reply with its fields checked; missing ones and those of another type are replaced."""
        given: Any = reply  # its types are only declared
        texts = ReplyText(self._keys)
        fields = (given.text, given.reasoning, given.refusal)
        for field, add in zip(fields, (texts.add, texts.add_reasoning, texts.add_refusal), strict=True):
            if isinstance(field, str):
                add(field)
        texts.finish()
        calls = PartialCalls()
        given_calls: Any = given.tool_calls
        if isinstance(given_calls, (list, tuple)):
            calls.add(list(cast("list[Any]", given_calls)))
        tool_calls = calls.complete((), self._clean)
        given_warnings: Any = given.warnings
        warnings = cast("Iterable[Any]", given_warnings) if isinstance(given_warnings, (list, tuple)) else ()
        usage = given.usage
        if not _is_usage(usage):
            usage = estimated_usage(request, texts.text, texts.reasoning, tool_calls=tool_calls)
        return replace(
            reply,
            text=texts.text,
            reasoning=texts.reasoning,
            refusal=texts.refusal,
            finish=given.finish if isinstance(given.finish, Finish) else Finish.OTHER,
            usage=usage,
            model=self._clean(given.model) if isinstance(given.model, str) else "",
            cost_usd=checked_cost_usd(given.cost_usd),
            tool_calls=tool_calls,
            warnings=tuple(self._clean(warning) for warning in warnings if isinstance(warning, str)),
        )

    def _clean(self, text: str) -> str:
        return self._keys.redact_reply(clean_text(text))

    def _failure(self, what: str, partial: str = "") -> ModelError:
        return ModelError(
            ModelErrorKind.BAD_REPLY,
            f"The model {self._name!r} of a plugin {what}.",
            "Report it to the author of the plugin, or choose another model.",
            partial=partial,
        )


def _is_price(price: Any) -> bool:
    if not isinstance(price, Price):
        return False
    parts = ((one.input_usd_per_token, one.output_usd_per_token) for one in (price, *price.long))
    return all(checked_cost_usd(number) is not None for number in (price.usd_per_call, *chain.from_iterable(parts)))


def _is_usage(usage: Any) -> bool:
    counts = (usage.input_tokens, usage.output_tokens) if isinstance(usage, Usage) else (None,)
    return all(type(count) is int and count >= 0 for count in counts)
