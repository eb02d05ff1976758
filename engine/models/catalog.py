"""The catalog of models: finds a model by its name.

It checks names, suggests corrections, and knows all kinds of models, also those that plugins add. A kind is imported
when the first model of it is used, so a run never pays for the others.

A plugin's model is trusted no more than a server: whatever it raises becomes a `ModelError`, and whatever it returns a
`Reply` with the right types.
"""

from __future__ import annotations

import difflib
import os
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from engine.models.keys import Keys, KeyStoreError
from engine.models.protocol import (
    EMBEDDED_MODEL,
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
    ToolCall,
    Usage,
    clean_request,
    estimated_usage,
)
from engine.models.providers import PROVIDERS, Provider
from engine.models.reply_text import ReplyText
from engine.models.tool_calls import PartialCalls
from engine.values import Value, clean_text, map_texts

if TYPE_CHECKING:
    from engine.models.embedded import EmbeddedModel
    from engine.models.protocol import Model


class PluginModel:
    """A plugin's model, held to the protocol.

    Args:
        model: What the plugin made.
        name: How documents call it (`mine:small`).
        keys: The user's keys, none of which may appear in a reply.
    """

    def __init__(self, model: Model, name: str, keys: Keys) -> None:
        self._model = model
        self._name = name
        self._keys = keys

    @property
    def name(self) -> str:
        """The name by which documents and people call it."""
        return self._name

    @property
    def note(self) -> str:
        """What a person should know before trusting it."""
        return self._model.note

    async def price(self) -> Price | None:
        """What it costs, as the plugin says."""
        return await self._model.price()

    async def close(self) -> None:
        """Close the plugin's model."""
        await self._model.close()

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Make one call.

        Raises:
            ModelError: The call gave no usable reply, or the plugin failed (`BAD_REPLY`).
        """
        streamed = ReplyText(self._keys, on_text)

        def add(piece: Any) -> None:
            if isinstance(piece, str):
                streamed.add(piece)

        try:
            reply: Any = await self._model.complete(clean_request(request), None if on_text is None else add)
        except ModelError as error:
            error.message, error.remedy = self._cleaned(error.message), self._cleaned(error.remedy)
            error.partial = streamed.text or self._cleaned(error.partial)
            raise
        except Exception as error:
            raise self._failure(f"failed ({type(error).__name__})", streamed.text) from error
        streamed.finish()
        if not isinstance(reply, Reply):
            raise self._failure("returned something that is no reply")
        return self._read(reply, request)

    def _read(self, reply: Reply, request: Request) -> Reply:
        """The reply with its parts checked; what is missing or of another type is replaced."""
        said: Any = reply  # its types are only declared
        texts = ReplyText(self._keys)
        parts = (said.text, said.reasoning, said.refusal)
        for part, add in zip(parts, (texts.add, texts.add_reasoning, texts.add_refusal), strict=True):
            if isinstance(part, str):
                add(part)
        texts.finish()
        cost, calls = said.cost_usd, self._read_calls(said.tool_calls)
        return replace(
            reply,
            text=texts.text,
            reasoning=texts.reasoning,
            refusal=texts.refusal,
            finish=said.finish if isinstance(said.finish, Finish) else Finish.OTHER,
            usage=said.usage
            if _is_usage(said.usage)
            else estimated_usage(request, texts.text, texts.reasoning, tool_calls=calls),
            model=self._cleaned(said.model) if isinstance(said.model, str) else "",
            cost_usd=float(cost) if type(cost) in {int, float} and 0 <= cost <= 1e9 else None,
            tool_calls=calls,
        )

    def _read_calls(self, calls: Any) -> tuple[ToolCall, ...]:
        partial = PartialCalls()
        if isinstance(calls, (list, tuple)):
            partial.take(list(cast("list[Any]", calls)))
        return tuple(
            ToolCall(
                self._cleaned(call.id),
                self._cleaned(call.name),
                cast("dict[str, Value] | str", map_texts(call.arguments, self._cleaned)),
            )
            for call in partial.whole(())
        )

    def _cleaned(self, text: str) -> str:
        return self._keys.redact_reply(clean_text(text))

    def _failure(self, what: str, partial: str = "") -> ModelError:
        return ModelError(
            ModelErrorKind.BAD_REPLY,
            f"The model {self._name!r} of a plugin {what}.",
            "Report it to whoever makes the plugin, or choose another model.",
            partial=partial,
        )


def _is_usage(usage: Any) -> bool:
    counts = (usage.input_tokens, usage.output_tokens) if isinstance(usage, Usage) else (None,)
    return all(type(count) is int and count >= 0 for count in counts)


_PREFIX: Final = re.compile(r"[a-z][a-z0-9_-]{1,30}")
_OWN: Final = frozenset({"embedded", "scripted", "recorded"})
_MAKERS: dict[str, Callable[[str], Model]] = {}


def added_prefixes() -> Mapping[str, Callable[[str], Model]]:
    """What makes a model, by prefix without its colon; read-only."""
    return MappingProxyType(_MAKERS)


def can_be_prefix(prefix: str) -> bool:
    """Whether models that a plugin adds may have that prefix."""
    return _PREFIX.fullmatch(prefix) is not None and prefix not in _OWN


def add_models(prefix: str, make: Callable[[str], Model]) -> None:
    """Add models; documents call them `PREFIX:NAME`.

    Args:
        prefix: Small letters, digits, hyphens and underscores.
        make: Makes the model of a name without the prefix; raises `ModelError` where there is none.

    Raises:
        ValueError: It cannot be a prefix, or another has it.
    """
    if not can_be_prefix(prefix):
        raise ValueError(f"no plugin can have models with the prefix {prefix!r}")
    if _MAKERS.get(prefix, make) is not make:
        raise ValueError(f"there are models with the prefix {prefix!r} already")
    _MAKERS[prefix] = make


def split_added(name: str) -> tuple[str, str] | None:
    """Prefix and rest of the name of an added model; None where it is none."""
    prefix, _, rest = name.partition(":")
    return (prefix, rest) if prefix in _MAKERS and rest else None


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
""".split()  # noqa: SIM905 - 196 quoted words on a line each are no easier to compare
)
"""The providers that the pinned version of litellm knows. A test compares them with its own lists."""

_FAMILIES = {
    "gpt-": "openai",
    "chatgpt-": "openai",
    "o1-": "openai",
    "o3-": "openai",
    "o4-": "openai",
    "claude": "anthropic",
    "gemini": "gemini",
    "mistral": "mistral",
    "ministral": "mistral",
    "codestral": "mistral",
    "deepseek-chat": "deepseek",
    "deepseek-reasoner": "deepseek",
    "grok": "xai",
    "command-": "cohere",
    "deepseek": "ollama_chat",
    "gemma": "ollama_chat",
    "llama": "ollama_chat",
    "phi": "ollama_chat",
    "qwen": "ollama_chat",
}
"""How the names of well-known models begin, and who serves them; the first that fits decides."""

_HOW_TO_WRITE = f"Write it as PROVIDER/MODEL (openai/gpt-4o-mini, ollama_chat/llama3.2), or take {EMBEDDED_MODEL}."


def check_model_name(name: str) -> None:
    """Refuse a name that cannot be that of a model; whether the model exists, only its provider knows.

    Raises:
        ModelError: It is none (kind `NOT_FOUND`); the remedy says what may have been meant.
    """
    if not name.strip():
        raise ModelError(ModelErrorKind.NOT_FOUND, "The name of the model is empty.", _HOW_TO_WRITE)
    prefix, colon, rest = name.partition(":")
    if name == EMBEDDED_MODEL or (prefix + colon in {SCRIPTED_PREFIX, RECORDED_PREFIX} and rest):
        return
    if split_added(name) is not None:
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
    """What was probably meant; empty where nothing suggests itself."""
    name = name.strip()[:200]
    lower = name.lower()
    if lower.startswith("scripted"):
        return f"{SCRIPTED_PREFIX}FILE"
    if lower.startswith("recorded"):
        return f"{RECORDED_PREFIX}RUN"
    if lower.startswith("embedded") or "smollm" in lower:
        return EMBEDDED_MODEL
    if "/" in name:
        return _guess_prefix(name)
    head, colon, tail = name.partition(":")
    if head.lower() in LITELLM_PREFIXES and tail[:1].isalpha():
        return f"{head.lower()}/{tail}"
    provider = next((provider for start, provider in _FAMILIES.items() if lower.startswith(start)), "")
    if provider and colon:
        provider = "ollama_chat"  # only there does a colon stand between name and size
    return f"{provider}/{name}" if provider else ""


def _guess_prefix(name: str) -> str:
    """What was probably meant by PREFIX/MODEL."""
    prefix, _, model = name.partition("/")
    similar = difflib.get_close_matches(prefix.lower(), sorted(LITELLM_PREFIXES), n=1, cutoff=0.7)
    if not prefix or not model:
        return ""
    # The names that routers over many vendors use begin with the vendor.
    return f"{similar[0]}/{model}" if similar else f"openrouter/{name}"


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
