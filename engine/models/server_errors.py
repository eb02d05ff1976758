"""Errors of model servers, and of litellm, as a `ModelError` that a person can act on.

Every server has its own JSON around the sentence, and its own wording. What it says is data: one short line of plain
text comes out of it, whatever goes in.

Many different failures arrive as the same class, so the whole chain of causes is searched. Classes are recognized by
name: litellm, openai, httpx and httpcore each have their own of the same name, and none of them is imported for this.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final, cast

from engine.errors import Fix
from engine.formatting import format_timeout
from engine.html_text import page_title
from engine.models.keys import ADD_KEY, NO_KEY, Endpoint, Keys
from engine.models.protocol import ModelError, ModelErrorKind
from engine.values import TooDeepError, Value, as_object, compact_json

_MAX_BODY_LENGTH: Final = 100_000
_MAX_DEPTH: Final = 6
_TEXT_KEYS: Final = (
    *("error", "message", "detail", "details", "errors", "msg", "error_message", "error_description", "errormessage"),
    *("title", "reason"),
)
"""Keys of the sentence, in lower case, the most specific first."""
_CODE_KEYS: Final = (
    *("code", "type", "status", "status_code", "error_type", "error_code", "errortype", "reason", "param", "error"),
)
_MAX_WORDS_OF_CODE: Final = 2
_GENERIC_SENTENCES: Final = frozenset({"provider returned error", "upstream error", "error", "bad request"})
"""Sentences of gateways that pass on another server's error, which is in another field."""


@dataclass(frozen=True, slots=True)
class ServerError:
    """An error response.

    Attributes:
        text: The sentence, as one line without markup; empty if there is none.
        codes: Its codes and types in lower case (`context_length_exceeded`, `429`).
        seconds: How long it asks to wait; None if it does not say.
    """

    text: str = ""
    codes: frozenset[str] = frozenset()
    seconds: float | None = None

    @property
    def words(self) -> str:
        """The text, limited in length, and the codes."""
        return " ".join((self.text[:4000], *sorted(self.codes)))

    @property
    def status(self) -> int | None:
        """An HTTP status among the codes: some servers send errors with status 200, or in a stream."""
        return next((int(code) for code in self.codes if re.fullmatch(r"[45]\d\d", code)), None)


def read_error(body: object) -> ServerError:
    """Parse the body of an error response: JSON (as text, bytes or parsed), HTML or plain text."""
    value: Any = _parsed(body)
    texts = list(dict.fromkeys(text for text in _texts(value, _MAX_DEPTH) if text))
    text = "; ".join(texts)
    if not text and isinstance(value, (dict, list)):
        try:
            text = compact_json(cast("Value", value))
        except (TooDeepError, ValueError, TypeError):
            text = ""
    entries = list(_entries(value))
    codes = frozenset(str(item).lower() for name, item in entries if _is_code(name, item))
    return ServerError(" ".join(text.split()), codes, _seconds(dict(entries).get("retrydelay"), text))


def _parsed(body: object) -> object:
    if isinstance(body, (bytes, bytearray)):
        body = bytes(body).decode("utf-8", "replace")
    if not isinstance(body, str):
        return body
    text = body[:_MAX_BODY_LENGTH].strip().removeprefix("data:").strip()
    if text[:1] in {"{", "["}:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass
    return text


def _texts(value: object, depth: int) -> Iterator[str]:
    """The sentences in a parsed body."""
    if depth <= 0:
        return
    if isinstance(value, str):
        yield from _plain(value, depth)
    elif isinstance(value, list):
        for item in cast("list[object]", value)[:5]:
            yield from _texts(item, depth - 1)
    elif isinstance(value, dict):
        yield from _texts_of_object(
            {str(key).lower(): item for key, item in cast("dict[Any, Any]", value).items()}, depth
        )


def _texts_of_object(found: dict[str, Any], depth: int) -> Iterator[str]:
    if isinstance(found.get("msg"), str) and isinstance(found.get("loc"), list):  # FastAPI's report of one field
        field = ".".join(str(step) for step in found["loc"] if step != "body")
        yield f"{field}: {found['msg']}" if field else found["msg"]
        return
    candidates = [list(_texts(found.get(key), depth - 1)) for key in _TEXT_KEYS]
    candidates = [texts for texts in candidates if any(texts)]
    if candidates:
        # Some servers put a code or a status where others have the sentence.
        sentences = (texts for texts in candidates if len(" ".join(texts).split()) > _MAX_WORDS_OF_CODE)
        best = next(sentences, candidates[0])
        yield from best
        if best[0].lower() in _GENERIC_SENTENCES:
            # The error of the server behind a gateway (OpenRouter's `metadata.raw`).
            yield from _texts(_parsed(as_object(found.get("metadata")).get("raw")), depth - 1)
        return
    if all(isinstance(item, (str, list)) for item in found.values()) and depth < _MAX_DEPTH:  # messages by field
        for key, item in list(found.items())[:5]:
            yield from (f"{key}: {text}" for text in _texts(item, depth - 1))


def _plain(text: str, depth: int) -> Iterator[str]:
    """The sentence in a text: JSON in it is parsed, markup is removed."""
    text = text.strip()
    if text[:1] in {"{", "["} and depth < _MAX_DEPTH:
        inner = _parsed(text)
        if not isinstance(inner, str):
            yield from _texts(inner, depth - 1)
            return
    if re.match(r"<(!doctype|\?xml|[a-z][a-z0-9]*[\s>/])", text, re.IGNORECASE):
        text = page_title(text)
    yield text


def _entries(value: Any, depth: int = _MAX_DEPTH) -> Iterator[tuple[str, object]]:
    """The entries of all objects in a parsed body, with keys in lower case; texts that are JSON are parsed."""
    if isinstance(value, str) and depth < _MAX_DEPTH:
        value = _parsed(value)
    if depth <= 0 or isinstance(value, str):
        return
    if isinstance(value, list):
        for item in cast("list[object]", value)[:5]:
            yield from _entries(item, depth - 1)
    elif isinstance(value, dict):
        for key, item in cast("dict[Any, Any]", value).items():
            name = str(key).lower()
            yield name, item
            if isinstance(item, (dict, list)) or name in {"error", "message", "raw"}:
                yield from _entries(item, depth - 1)


def _is_code(name: str, value: object) -> bool:
    is_plain = isinstance(value, (str, int)) and not isinstance(value, bool)
    return name in _CODE_KEYS and is_plain and re.fullmatch(r"[\w.:/-]{1,80}", str(value)) is not None


_WAIT: Final = re.compile(
    r"\b(?:try again|retry|wait)\b[^.\d]{0,40}?(?:(\d+)h)?\s?(?:(\d+)m(?!s))?\s?"
    r"(\d+(?:\.\d+)?)\s?(ms|milliseconds|s|seconds?)\b",
    re.IGNORECASE,
)
_WHOLE_SECONDS: Final = re.compile(r"(\d+(?:\.\d+)?)s")


def _seconds(delay: object, text: str) -> float | None:
    """How long to wait, from Google's `retryDelay` or from the sentence (`try again in 1m2.5s`)."""
    if isinstance(delay, str) and (match := _WHOLE_SECONDS.fullmatch(delay)):
        return float(match[1])
    if match := _WAIT.search(text):
        seconds = float(match[3]) / (1000 if match[4].lower().startswith("m") else 1)
        return int(match[1] or 0) * 3600 + int(match[2] or 0) * 60 + seconds
    return None


# Wordings of real servers. The first kind with a match decides, so the order matters: an error about a limit of tokens
# per minute mentions tokens and length too.
_WORDINGS: Final[tuple[tuple[ModelErrorKind, tuple[str, ...]], ...]] = (
    (
        ModelErrorKind.CONTEXT_LENGTH,
        (
            # OpenAI, Groq: longer than the limit of tokens per minute, so it never fits
            r"request too large for",
            # OpenAI's code, llama.cpp, LM Studio
            r"context[ _-]?(length|window|size)[ _](is |has been |was )?exceeded",
            r"exceeds? (the )?(model'?s? |available |maximum |allowed )*(context|token limit|sequence length)",
            r"exceed_context_size|string_above_max_length|model_length_exceeded|prompt_too_long",
            # OpenAI, vLLM, OpenRouter, DeepSeek, xAI
            r"(maximum|max) (context|model|sequence|prompt) length",
            # LM Studio, vLLM
            r"context (length|window|size) (of|is) (only )?\(?\d+",
            r"(longer|greater|larger) than (the )?(model'?s? |maximum |max )*(context|model length|sequence)",
            # Anthropic, Bedrock, Mistral
            r"(prompt|input|request|message|text|conversation)s? (is|are|was) too (long|large)",
            r"too long to fit into the model|too long for (this|the|requested) model",
            r"too large for model with \d+ maximum context",
            # Gemini
            r"input token count[^.]{0,60}exceeds",
            # Ollama, Anthropic
            r"input length[^.]{0,60}exceed|exceeds? context (length|window|size|limit)",
            # Text Generation Inference
            r"`?inputs`? (tokens \+ `?max_new_tokens`? )?must (be|have) (<=|less than)",
            # Cohere
            r"too many tokens(?! per| a|/| for)(: total|: the prompt| in|: \d|, |\.|$)",
            r"reduce (the length|your (prompt|message|input))",
            # Kimi, MiniMax, Copilot
            r"exceeded model token limit|context window exceeds limit|token count of \d+ exceeds the limit",
            # llama-cpp-python, LM Studio
            r"requested tokens \(\d+\) exceed|n_keep[^.]{0,30}n_ctx|tokens to keep from the initial prompt",
            r"request entity too large|payload too large",
        ),
    ),
    (
        ModelErrorKind.UNAVAILABLE,
        (
            r"insufficient[ _](quota|balance|credits?|funds)|credit balance is too low|balance is not enough",
            r"(out of|no|requires more|used all (the )?(available )?|exhausted (your |the )?)\s?credits?\b",
            # Google says the same of its limits per minute, and when to retry.
            r"exceeded your current quota(?!.{0,400}(retry in|retrydelay))",
            r"payment[ _]required|billing[ _](hard|limit|not|details|is)|monthly spending limit|spend(ing)? limit",
            r"arrearage|account is (not active|deactivated|suspended)|plan does not include",
        ),
    ),
    (
        ModelErrorKind.AUTHENTICATION,
        (
            r"(invalid|incorrect|missing|expired|wrong|bad|no) (api|x-api|access|auth\w*)[ _-]?(key|token)",
            r"invalid_api_key|authentication_error|api_key_invalid|invalid_authentication",
            r"(api|x-api|access)[ _-]?(key|token)[^.]{0,40}(not valid|is invalid|expired|incorrect|not found|required)",
            r"invalid (credentials|authentication|bearer)|no auth credentials|unauthori[sz]ed|not authenticated",
        ),
    ),
    (
        ModelErrorKind.RATE_LIMIT,
        (
            r"rate[ _-]?limit|too many (requests|concurrent)|throttl|resource[ _]exhausted|quota (exceeded|reached)",
            r"exceeded your current quota|tokens? per (minute|day|hour)|requests? per (minute|day|second)",
            r"capacity exceeded",
        ),
    ),
    (
        ModelErrorKind.CONTENT_FILTER,
        (
            r"content[ _]?(filter|management policy|policy[ _]violation|exists risk|moderation)|responsibleaipolicy",
            r"data_inspection_failed|inappropriate content|safety (system|filter|settings)|usage polic(y|ies)",
            r"prompt[^.]{0,20}(blocked|flagged)|(was|been) flagged|flagged (for|as)",
        ),
    ),
    (
        ModelErrorKind.NOT_FOUND,
        (
            r"model[ _](not[ _](found|exist)|decommissioned|not_supported)|unknown model|invalid model|no such model",
            r"model[^.;]{0,120}?(does not|doesn't|not) exist|model[^;]{0,120}?(is |was )?not found",
            r"(not a valid model|invalid model (id|name))|no endpoints found for|no models? (is |are )?loaded",
            r"model[^;]{0,120}?(has been (decommissioned|deprecated|removed|retired|shut ?down)|is not available)",
            r"not supported by any provider|unable to access (non-serverless )?model|llm provider not provided",
        ),
    ),
    (
        ModelErrorKind.SERVER,
        (
            r"overloaded|loading model|model[^.]{0,80}(is |still )(currently )?loading|temporarily unavailable",
            r"server (is )?(busy|had an error)|service unavailable|no (healthy )?upstream",
        ),
    ),
)
_PATTERNS: Final = tuple((kind, re.compile("|".join(words), re.IGNORECASE)) for kind, words in _WORDINGS)
_BY_STATUS: Final = {
    401: ModelErrorKind.AUTHENTICATION,
    402: ModelErrorKind.UNAVAILABLE,
    403: ModelErrorKind.AUTHENTICATION,
    404: ModelErrorKind.NOT_FOUND,
    405: ModelErrorKind.NOT_FOUND,
    408: ModelErrorKind.TIMEOUT,
    410: ModelErrorKind.NOT_FOUND,
    413: ModelErrorKind.CONTEXT_LENGTH,
    425: ModelErrorKind.SERVER,
    429: ModelErrorKind.RATE_LIMIT,
    498: ModelErrorKind.RATE_LIMIT,
    504: ModelErrorKind.TIMEOUT,
    522: ModelErrorKind.TIMEOUT,
    524: ModelErrorKind.TIMEOUT,
}
# Types and wordings that tell less than a status, and the statuses they stand for in errors without one.
_WITHOUT_STATUS: Final = (
    (403, re.compile(r"permission|forbidden", re.IGNORECASE)),
    (401, re.compile(r"authentication|unauthenticated|api[ _-]?key", re.IGNORECASE)),
    (429, re.compile(r"quota", re.IGNORECASE)),
    (404, re.compile(r"not[ _]found|does not exist", re.IGNORECASE)),
    (400, re.compile(r"invalid_request|invalid_argument|bad_request", re.IGNORECASE)),
)
# A wording is more specific than these statuses, which servers send for anything.
_GENERIC_STATUSES: Final = frozenset({400, 403, 404, 409, 413, 422, 424, 429})


def kind_of_error(error: ServerError, status: int | None) -> ModelErrorKind | None:
    """The kind of failure of an error response, by its wording and status; None if neither indicates one."""
    status = status if status is not None and status >= 400 else error.status
    by_words = next((kind for kind, pattern in _PATTERNS if pattern.search(error.words)), None)
    if status is None:
        return by_words
    by_status = _BY_STATUS.get(status, ModelErrorKind.SERVER if status >= 500 else ModelErrorKind.BAD_REQUEST)
    if by_words is None or by_words is by_status:
        return by_status
    is_specific = status in _GENERIC_STATUSES or status >= 500 or by_words is ModelErrorKind.CONTEXT_LENGTH
    return by_words if is_specific else by_status


_MAX_DETAIL_LENGTH = 300
_MAX_CAUSES = 12

# The first name found among an error's classes decides; more specific ones come first.
_KINDS_BY_CLASS = {
    "ContextWindowExceededError": ModelErrorKind.CONTEXT_LENGTH,
    "ContentPolicyViolationError": ModelErrorKind.CONTENT_FILTER,
    "PaymentRequiredError": ModelErrorKind.UNAVAILABLE,
    "AuthenticationError": ModelErrorKind.AUTHENTICATION,
    "PermissionDeniedError": ModelErrorKind.AUTHENTICATION,
    "NotFoundError": ModelErrorKind.NOT_FOUND,
    "RateLimitError": ModelErrorKind.RATE_LIMIT,
    "Timeout": ModelErrorKind.TIMEOUT,
    "APITimeoutError": ModelErrorKind.TIMEOUT,
    "TimeoutException": ModelErrorKind.TIMEOUT,
    "TimeoutError": ModelErrorKind.TIMEOUT,
    "UnprocessableEntityError": ModelErrorKind.BAD_REQUEST,
    "BadRequestError": ModelErrorKind.BAD_REQUEST,
}
_BROKEN_CONNECTION = frozenset({"TransportError", "NetworkError", "ProtocolError", "OSError"})
_UNREADABLE = frozenset({"JSONDecodeError", "APIResponseValidationError", "ValidationError"})
_INTERRUPTIONS = frozenset(
    {ModelErrorKind.CONNECTION, ModelErrorKind.TIMEOUT, ModelErrorKind.SERVER, ModelErrorKind.BAD_REPLY}
)

_KINDS_WITH_WAIT = frozenset({ModelErrorKind.RATE_LIMIT, ModelErrorKind.SERVER, ModelErrorKind.TIMEOUT})

_SHORTEN = (
    "Shorten the input, limit what a loop appends ('Window size', `append_window`) and what its models remember "
    "('Model memory', `memory`), lower 'Max tokens' (`max_tokens`), or choose a model with a longer "
    "context."
)
_SENTENCES: dict[ModelErrorKind, tuple[str, str]] = {
    ModelErrorKind.AUTHENTICATION: ("{who} refused the key{detail}.", ADD_KEY),
    ModelErrorKind.NOT_FOUND: (
        "{who} does not know the model {model!r}{detail}.",
        "Check the model's name and the server's address, or choose another model.",
    ),
    ModelErrorKind.BAD_REQUEST: (
        "{who} refused the request{detail}.",
        "Change the setting or the text that it names, or choose another model.",
    ),
    ModelErrorKind.CONTEXT_LENGTH: (
        "The request is longer than the model {model!r} of {who_inside} can read{detail}.",
        _SHORTEN,
    ),
    ModelErrorKind.CONTENT_FILTER: (
        "The content filter of {who_inside} refused the text{detail}.",
        "Change the prompt or the input, or choose another model.",
    ),
    ModelErrorKind.RATE_LIMIT: (
        "{who} accepts no more requests at the moment{wait}{detail}.",
        "Wait a little, run fewer calls at the same time, or raise the limit with the provider.",
    ),
    ModelErrorKind.TIMEOUT: (
        "{who} took too long to respond{detail}.",
        "Try again, allow more time, or choose a faster model.",
    ),
    ModelErrorKind.CONNECTION: (
        "{who} {connection}.",
        "Check the network, and that the server runs at the address given.",
    ),
    ModelErrorKind.SERVER: ("{who} reported an internal error{detail}.", "Try again later, or choose another model."),
    ModelErrorKind.BAD_REPLY: (
        "{who} sent a response that is not a model's reply{detail}.",
        "Check that the address is that of a model server, and try again.",
    ),
    ModelErrorKind.INTERRUPTED: (
        "{who} disconnected in the middle of its reply{detail}.",
        "Try again; if it happens again, check the network, or choose another model.",
    ),
    ModelErrorKind.UNAVAILABLE: (
        "{who} reports that the account has no credit left{detail}.",
        "Top it up with the provider, or choose another model.",
    ),
}
_FIXES = {ModelErrorKind.NOT_FOUND: Fix.CHOOSE_MODEL, ModelErrorKind.UNAVAILABLE: Fix.CHOOSE_MODEL}
# The same kinds, but other remedies for a person.
_NO_KEY_SENTENCE = ("{who} requires a key, and there is none for it{detail}.", ADD_KEY)
_FORBIDDEN_SENTENCE = (
    "{who} does not allow this{detail}.",
    "Ask the provider what the account may do, or choose another model.",
)


def translate(error: Exception, model: str, endpoint: Endpoint, keys: Keys, partial: str = "") -> ModelError:
    """Turn an error that litellm raised into a `ModelError`.

    Args:
        error: The error.
        model: The model's name without its provider.
        endpoint: Where the request went.
        keys: Redacts keys in the server's text.
        partial: The text that had arrived.
    """
    error, response, status, kind = _classify(error)
    if partial and kind in _INTERRUPTIONS:
        kind = ModelErrorKind.INTERRUPTED
    sentence: tuple[str, str] | None = None
    if kind is ModelErrorKind.AUTHENTICATION and status == HTTPStatus.FORBIDDEN:
        sentence = _FORBIDDEN_SENTENCE
    elif kind is ModelErrorKind.AUTHENTICATION and endpoint.api_key == NO_KEY:
        sentence = _NO_KEY_SENTENCE
    return model_error(
        kind,
        model,
        endpoint,
        detail=_detail(response.text or _fallback_text(error, kind, status), keys),
        retry_after=_retry_after(error, response) if kind in _KINDS_WITH_WAIT else None,
        partial=partial,
        reached=not any("ConnectError" in _class_names(cause) for cause in _causes(error)),
        sentence=sentence,
    )


def refusal_words(error: Exception) -> str:
    """What a server, or litellm for it, said about a request that it refused: a text and codes."""
    error, response, _, _ = _classify(error)
    return " ".join((response.text or str(error), *sorted(response.codes)))


def model_error(
    kind: ModelErrorKind,
    model: str,
    endpoint: Endpoint,
    *,
    detail: str = "",
    retry_after: float | None = None,
    partial: str = "",
    reached: bool = True,
    sentence: tuple[str, str] | None = None,
) -> ModelError:
    """Make a `ModelError` with the usual sentence for its kind, or with a more specific one."""
    message, remedy = sentence or _SENTENCES[kind]
    title = endpoint.title
    values = {
        "who": title,
        "who_inside": title[0].lower() + title[1:] if title.startswith("The ") else title,
        "model": model,
        "detail": f": {detail}" if detail else "",
        "wait": "" if retry_after is None else f" and asks to wait {format_timeout(retry_after)}",
        "connection": "closed the connection before it responded" if reached else "could not be reached",
    }
    fix = Fix.ADD_KEY.of(endpoint.key_name) if remedy == ADD_KEY else _FIXES.get(kind, "")
    text, remedy = message.format(**values), remedy.format(**values)
    return ModelError(kind, text, remedy, fix=fix, retry_after=retry_after, partial=partial)


def _classify(error: Exception) -> tuple[Exception, ServerError, int | None, ModelErrorKind]:
    """The error that litellm may have wrapped in a stream, the server's response, its HTTP status, and the kind."""
    original = getattr(error, "original_exception", None)
    error = original if isinstance(original, Exception) else error
    response, status = _read_response(error)
    names = [_class_names(cause) for cause in _causes(error)]
    by_class = next((kind for name, kind in _KINDS_BY_CLASS.items() if any(name in one for one in names)), None)
    status = response.status if status is None else status
    kind = None
    if status is not None or response.text or by_class is ModelErrorKind.BAD_REQUEST:
        kind = kind_of_error(response if response.text else ServerError(str(error), response.codes), status)
    kind = kind or by_class
    if kind is None:
        status = next((one for one, pattern in _WITHOUT_STATUS if pattern.search(response.words)), None)
        kind = _kind_by_cause(names, response) if status is None else _BY_STATUS.get(status, ModelErrorKind.BAD_REQUEST)
    return error, response, status, kind


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and its causes."""
    cause: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__


def _class_names(error: BaseException) -> set[str]:
    return {class_.__name__ for class_ in type(error).__mro__}


def _read_response(error: Exception) -> tuple[ServerError, int | None]:
    """The server's error response and its HTTP status; None without a response."""
    status: int | None = None
    found = ServerError()
    for cause in _causes(error):
        response = getattr(cause, "response", None)
        code = getattr(response, "status_code", None)
        if isinstance(code, int) and code >= 400 and "HTTPStatusError" in _class_names(cause):
            status = code
        if not found.text:
            read = (read_error(body) for body in (getattr(cause, "body", None), _text_of(response)) if body)
            found = next((one for one in read if one.text), found)
    return found, status


def _text_of(response: object) -> str:
    """The body of a response; empty if it was not read, or litellm made the response."""
    try:
        text = getattr(response, "text", "")
    except Exception:  # a stream that was not read
        return ""
    return text if isinstance(text, str) else ""


def _kind_by_cause(names: list[set[str]], response: ServerError) -> ModelErrorKind:
    """The kind of a failure about which neither the response nor litellm says anything."""
    if any(one & _UNREADABLE for one in names):
        return ModelErrorKind.BAD_REPLY
    if any(one & _BROKEN_CONNECTION for one in names):
        return ModelErrorKind.CONNECTION
    return ModelErrorKind.SERVER if response.text else ModelErrorKind.BAD_REPLY


def _fallback_text(error: Exception, kind: ModelErrorKind, status: int | None) -> str:
    """A text for a server that sent none: the status, or what litellm itself refused."""
    if status is not None:
        return f"HTTP {status} {HTTPStatus(status).phrase}" if status in set(HTTPStatus) else f"HTTP {status}"
    if kind is not ModelErrorKind.BAD_REQUEST:
        return ""
    text = re.sub(r"^(litellm\.\w+: |\w+Error: |\w+Exception - )+", "", str(error))
    return text.split(" To drop these, set ", 1)[0]  # litellm's advice to programmers


def _detail(text: str, keys: Keys) -> str:
    """The text as part of a sentence: one short line of printable characters, without keys."""
    text = keys.redact("".join(c if c.isprintable() else " " for c in text))
    text = " ".join(text.split()).rstrip(".")
    return text if len(text) <= _MAX_DETAIL_LENGTH else f"{text[:_MAX_DETAIL_LENGTH]}…"


def _retry_after(error: Exception, response: ServerError) -> float | None:
    """Seconds to wait: from a header (a number, or a date as RFC 9110 allows), else from the error text."""
    for cause in _causes(error):
        headers = getattr(getattr(cause, "response", None), "headers", None)
        value = headers.get("retry-after") if headers is not None else None
        if not isinstance(value, str):
            continue
        if re.fullmatch(r"\d{1,9}(\.\d+)?", value.strip()):
            return float(value)
        with contextlib.suppress(ValueError, OverflowError):
            return max(0.0, round(parsedate_to_datetime(value).timestamp() - time.time(), 1))
    return response.seconds
