"""Names of models: the prefixes that exist, plugins' among them, and suggestions for a name that is wrong.

Names only: nothing is imported, called or looked up elsewhere, so a wrong name is reported at once.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from engine.models.base import ModelError, ModelErrorKind

if TYPE_CHECKING:
    from engine.models.base import Model

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


EMBEDDED_MODEL = "embedded:smollm2-135m"
SCRIPTED_PREFIX = "scripted:"
RECORDED_PREFIX = "recorded:"

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
