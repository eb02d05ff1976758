"""What model servers do differently from one another, and how each difference is handled: one table.

`docs/providers.md` is made from it, and each row is tested against a server that behaves like that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Side = Literal["request", "error", "reply"]


@dataclass(frozen=True, slots=True)
class Quirk:
    """One difference.

    Attributes:
        id: Its name; for a change to a request that of `request_form.Change`.
        side: Which part of a call it is about.
        what: What the server does.
        servers: Where it is seen.
        handling: What the program makes of it.
    """

    id: str
    side: Side
    what: str
    servers: str
    handling: str


_LEFT_OUT: Final = "The setting is left out from then on, with a warning."

QUIRKS: Final[tuple[Quirk, ...]] = (
    Quirk(
        "no_system_role",
        "request",
        "Refuses system messages.",
        "Gemma templates in vLLM, llama.cpp and SGLang; Gemma at Google; o1-preview",
        "The system prompt becomes the start of the first user message, with a warning.",
    ),
    Quirk(
        "joined_roles",
        "request",
        "Wants user and assistant messages to alternate.",
        "Mistral and Gemma templates in vLLM, llama.cpp and LM Studio",
        "Neighbouring messages of the same role are joined, with a warning.",
    ),
    Quirk(
        "max_completion_tokens",
        "request",
        "Refuses `max_tokens` and wants `max_completion_tokens`.",
        "OpenAI's and Azure's reasoning models",
        "The limit is sent under the other name, with a warning.",
    ),
    Quirk(
        "max_tokens",
        "request",
        "Refuses `max_completion_tokens` and wants `max_tokens`.",
        "Older OpenAI-compatible servers",
        "The limit is sent under the other name, with a warning.",
    ),
    Quirk(
        "no_stream_options",
        "request",
        "Refuses `stream_options`.",
        "Older vLLM, LocalAI, Azure AI and Mistral deployments",
        "It is left out, with a warning; token counts that the stream lacks are estimated.",
    ),
    Quirk(
        "no_stream",
        "request",
        "Refuses to stream.",
        "Gateways; some reasoning models",
        "The reply is asked for as a whole, with a warning.",
    ),
    Quirk("no_seed", "request", "Refuses `seed`.", "Anthropic, Perplexity, Mistral on Azure", _LEFT_OUT),
    Quirk(
        "no_top_p",
        "request",
        "Refuses `top_p`, or `top_p` beside `temperature`.",
        "OpenAI's reasoning models; Claude 4.1 and later; Claude with extended thinking",
        _LEFT_OUT,
    ),
    Quirk("no_stop", "request", "Refuses `stop`.", "OpenAI's reasoning models, Grok 4, Perplexity", _LEFT_OUT),
    Quirk(
        "no_temperature",
        "request",
        "Takes no `temperature` but its own.",
        "OpenAI's reasoning models, recent Claude models, Claude with extended thinking, Kimi",
        _LEFT_OUT,
    ),
    Quirk("no_reasoning_effort", "request", "Refuses `reasoning_effort`.", "Models that do not reason", _LEFT_OUT),
    Quirk(
        "tools_in_words",
        "request",
        "Refuses tools.",
        "Small models in Ollama, vLLM without `--enable-auto-tool-choice`, llama.cpp without `--jinja`, Gemma at "
        "Google, some routes of OpenRouter",
        "The tools are described in the prompt, and calls are read from the text, with a warning.",
    ),
    Quirk(
        "json_object",
        "request",
        "Refuses a JSON Schema, but knows JSON mode.",
        "DeepSeek, older OpenAI models, some gateways",
        "JSON mode is used and the schema is part of the prompt, with a warning.",
    ),
    Quirk(
        "schema_in_words",
        "request",
        "Refuses `response_format`.",
        "Older OpenAI-compatible servers",
        "JSON is asked for in the prompt, with a warning.",
    ),
    Quirk(
        "error_text",
        "error",
        'Sends `{"error": "text"}`.',
        "Ollama, Text Generation Inference, LM Studio",
        "The text is part of the error message.",
    ),
    Quirk(
        "error_message",
        "error",
        'Sends `{"error": {"message": …}}`, or a list of these.',
        "OpenAI and most others; Gemini (list)",
        "The message is part of the error message.",
    ),
    Quirk(
        "error_detail",
        "error",
        'Sends `{"detail": …}`: a text, or one object for each wrong field.',
        "FastAPI servers: vLLM, Mistral, Azure AI, LiteLLM proxies",
        "The fields and what is wrong with them are part of the error message.",
    ),
    Quirk(
        "error_plain_message",
        "error",
        'Sends `{"message": …}` or `{"errors": […]}`.',
        "Cohere, vLLM, AWS, Cloudflare",
        "The messages are part of the error message.",
    ),
    Quirk(
        "error_behind_gateway",
        "error",
        "Hides the real error in another one.",
        "OpenRouter (`metadata.raw`), proxies that put JSON into a text",
        "Both are part of the error message.",
    ),
    Quirk(
        "error_page",
        "error",
        "Sends a web page or plain text.",
        "Proxies, load balancers, Cloudflare",
        "The title of the page, or its text without markup, is part of the error message.",
    ),
    Quirk(
        "error_in_success",
        "error",
        "Sends an error with the status 200, or in the middle of a stream.",
        "OpenRouter, older llama.cpp, gateways",
        "It is an error of the kind that its code or its wording tells.",
    ),
    Quirk(
        "context_length_anywhere",
        "error",
        "Reports a request that is too long with any status.",
        "llama.cpp (400 and 500), Ollama (400), proxies (413), Text Generation Inference (422)",
        "It is recognised by the wording or by status 413; the message names the settings that shorten a request.",
    ),
    Quirk(
        "tokens_per_minute",
        "error",
        "Reports a request that is longer than its limit of tokens a minute as a rate limit.",
        "OpenAI (429), Groq (413)",
        "It counts as too long, since trying again cannot help.",
    ),
    Quirk(
        "quota_that_passes",
        "error",
        "Uses the same words for a limit a minute and for an account without credit.",
        "Gemini",
        "With a time to wait it is a rate limit, which is tried again; without one it is not.",
    ),
    Quirk(
        "no_credit_in_any_status",
        "error",
        "Reports an account without credit as 400, 402, 403 or 429.",
        "Anthropic (400), DeepSeek and OpenRouter (402), xAI (403), OpenAI (429)",
        "It is recognised by the wording and not tried again.",
    ),
    Quirk(
        "wrong_key_in_bad_request",
        "error",
        "Reports a wrong key as 400.",
        "Gemini, xAI",
        "It counts as a refused key, and the message says where to put the right one.",
    ),
    Quirk(
        "unknown_model_in_bad_request",
        "error",
        "Reports an unknown or retired model as 400 or 500.",
        "DeepSeek, OpenRouter, Mistral, Groq",
        "It counts as a model that is not there.",
    ),
    Quirk(
        "wait_in_body",
        "error",
        "Says in the error text how long to wait.",
        "Groq, OpenAI, Gemini (`retryDelay`)",
        "The next attempt waits that long.",
    ),
    Quirk(
        "content_parts",
        "reply",
        "Sends the text as a list of parts.",
        "Mistral, proxies for Anthropic, Cohere",
        "The parts are joined; parts with reasoning are kept apart from the answer.",
    ),
    Quirk(
        "think_tags",
        "reply",
        "Puts the model's reasoning into the text, between `<think>` tags.",
        "DeepSeek R1, Qwen and others in Ollama, LM Studio and llama.cpp",
        "The reasoning is kept apart from the answer.",
    ),
    Quirk(
        "reasoning_field",
        "reply",
        "Has a field of its own for reasoning: `reasoning_content`, `reasoning`, `thinking`.",
        "DeepSeek, vLLM, OpenRouter, Ollama",
        "The reasoning is kept apart from the answer.",
    ),
    Quirk(
        "no_finish_reason",
        "reply",
        "Does not say why a reply ended.",
        "Small OpenAI-compatible servers",
        "A reply that ended in good form is complete.",
    ),
    Quirk(
        "finish_spelling",
        "reply",
        "Has other words for why a reply ended: `max_tokens`, `eos`, `SAFETY`.",
        "Gateways for Anthropic and Gemini, Text Generation Inference",
        "They are read as the usual ones.",
    ),
    Quirk(
        "odd_usage",
        "reply",
        "Counts no tokens, or counts them as text or as null.",
        "Small OpenAI-compatible servers, proxies",
        "The counts are estimated and marked as estimates.",
    ),
    Quirk(
        "refusal",
        "reply",
        "Puts a refusal into a field of its own, with no text.",
        "OpenAI",
        "The refusal is kept as such and never taken for an answer.",
    ),
    Quirk(
        "tool_arguments",
        "reply",
        "Sends the arguments of a tool call as an object instead of a text.",
        "Ollama, gateways",
        "Both are read.",
    ),
    Quirk(
        "function_call",
        "reply",
        "Sends the old `function_call` instead of `tool_calls`.",
        "Older OpenAI-compatible servers",
        "It is read as a tool call.",
    ),
    Quirk(
        "whole_reply_to_stream",
        "reply",
        "Sends a whole reply although a stream was asked for.",
        "Gateways, caches",
        "It is read like any other reply.",
    ),
)
