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
from html.parser import HTMLParser
from http import HTTPStatus
from typing import Any, Final, cast

from engine.models.keys import NO_KEY, Destination, Keys
from engine.models.protocol import ModelError, ModelErrorKind
from engine.values import TooDeepError, Value, compact_json

_LONGEST_READ: Final = 100_000
_DEEPEST: Final = 6
_TEXT_KEYS: Final = (
    "error",
    "message",
    "detail",
    "details",
    "errors",
    "msg",
    "error_message",
    "error_description",
    "errormessage",
    "title",
    "reason",
)
"""Where servers put the sentence, the most telling first; small letters."""
_CODE_KEYS: Final = ("code", "type", "status", "error_type", "error_code", "errortype", "reason", "param", "error")
_WORDS_OF_A_CODE: Final = 2
_UNTELLING: Final = frozenset({"provider returned error", "upstream error", "error", "bad request"})
"""Sentences of gateways that pass on another server's error, which stands beside them."""


@dataclass(frozen=True, slots=True)
class ServerError:
    """An error response.

    Attributes:
        text: The sentence, as one line without markup; empty where there is none.
        codes: Its codes and types in small letters (`context_length_exceeded`, `429`).
        seconds: How long it asks to wait; None where it says nothing.
    """

    text: str = ""
    codes: frozenset[str] = frozenset()
    seconds: float | None = None

    @property
    def status(self) -> int | None:
        """An HTTP status among the codes: some servers send errors with the status 200, or in a stream."""
        return next((int(code) for code in self.codes if re.fullmatch(r"[45]\d\d", code)), None)


def read_error(body: object) -> ServerError:
    """Read the body of an error response: JSON (as text, bytes or parsed), HTML or plain text."""
    value: Any = _parsed(body)
    texts = list(dict.fromkeys(text for text in _texts(value, _DEEPEST) if text))
    text = "; ".join(texts)
    if not text and isinstance(value, (dict, list)):
        try:
            text = compact_json(cast("Value", value))
        except (TooDeepError, ValueError, TypeError):
            text = ""
    codes = frozenset(code.lower() for code in _codes(value, _DEEPEST))
    return ServerError(" ".join(text.split()), codes, _seconds(cast("object", value), text))


def _parsed(body: object) -> object:
    if isinstance(body, (bytes, bytearray)):
        body = bytes(body).decode("utf-8", "replace")
    if not isinstance(body, str):
        return body
    text = body[:_LONGEST_READ].strip().removeprefix("data:").strip()
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
        place = ".".join(str(step) for step in found["loc"] if step != "body")
        yield f"{place}: {found['msg']}" if place else found["msg"]
        return
    said = [list(_texts(found.get(key), depth - 1)) for key in _TEXT_KEYS]
    said = [texts for texts in said if any(texts)]
    if said:
        # A code or a status stands where others have the sentence.
        best = next((texts for texts in said if len(" ".join(texts).split()) > _WORDS_OF_A_CODE), said[0])
        yield from best
        if best[0].lower() in _UNTELLING:
            yield from _texts(_passed_on(found), depth - 1)
        return
    if all(isinstance(item, (str, list)) for item in found.values()) and depth < _DEEPEST:  # messages by field
        for key, item in list(found.items())[:5]:
            yield from (f"{key}: {text}" for text in _texts(item, depth - 1))


def _passed_on(found: dict[str, Any]) -> object:
    """The error of the server behind a gateway (OpenRouter puts it into `metadata.raw`)."""
    metadata = found.get("metadata")
    return _parsed(cast("dict[str, object]", metadata).get("raw")) if isinstance(metadata, dict) else None


def _plain(text: str, depth: int) -> Iterator[str]:
    """The sentence in a text: JSON in it is read, markup is taken off."""
    text = text.strip()
    if text[:1] in {"{", "["} and depth < _DEEPEST:
        inner = _parsed(text)
        if not isinstance(inner, str):
            yield from _texts(inner, depth - 1)
            return
    if re.match(r"<(!doctype|\?xml|[a-z][a-z0-9]*[\s>/])", text, re.IGNORECASE):
        text = _visible(text)
    yield text


def _codes(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str) and depth < _DEEPEST:
        value = _parsed(value)
    if depth <= 0 or isinstance(value, str):
        return
    if isinstance(value, list):
        for item in cast("list[object]", value)[:5]:
            yield from _codes(item, depth - 1)
    elif isinstance(value, dict):
        for key, item in cast("dict[Any, Any]", value).items():
            if str(key).lower() in _CODE_KEYS and isinstance(item, (str, int)) and not isinstance(item, bool):
                if re.fullmatch(r"[\w.:/-]{1,80}", str(item)):
                    yield str(item)
            elif isinstance(item, (dict, list)) or str(key).lower() in {"error", "message", "raw"}:
                yield from _codes(item, depth - 1)


class _VisibleText(HTMLParser):
    """Collects the title of a page and the text that a browser would show."""

    _HIDDEN: Final = frozenset({"script", "style", "template", "noscript", "svg"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.by_tag: dict[str, list[str]] = {}
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self._HIDDEN or tag in {"title", "h1"}:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            del self._open[self._open.index(tag) :]

    def handle_data(self, data: str) -> None:
        tag = self._open[-1] if self._open else "text"
        if tag not in self._HIDDEN and data.strip():
            self.by_tag.setdefault(tag, []).append(data.strip())


def _visible(page: str) -> str:
    """The title of a web page, else its first heading, else its text."""
    parser = _VisibleText()
    parser.feed(page)
    parser.close()
    return next((" ".join(parser.by_tag[tag]) for tag in ("title", "h1", "text") if parser.by_tag.get(tag)), "")


_WAIT: Final = re.compile(
    r"\b(?:try again|retry|wait)\b[^.\d]{0,40}?(?:(\d+)h)?\s?(?:(\d+)m(?!s))?\s?"
    r"(\d+(?:\.\d+)?)\s?(ms|milliseconds|s|seconds?)\b",
    re.IGNORECASE,
)
_WHOLE_SECONDS: Final = re.compile(r"(\d+(?:\.\d+)?)s")


def _seconds(value: object, text: str) -> float | None:
    """How long to wait, from Google's `retryDelay` or from the sentence (`try again in 1m2.5s`)."""
    delay = _find(value, "retryDelay", _DEEPEST)
    if isinstance(delay, str) and (match := _WHOLE_SECONDS.fullmatch(delay)):
        return float(match[1])
    if match := _WAIT.search(text):
        seconds = float(match[3]) / (1000 if match[4].lower().startswith("m") else 1)
        return int(match[1] or 0) * 3600 + int(match[2] or 0) * 60 + seconds
    return None


def _find(value: object, name: str, depth: int) -> object:
    if depth <= 0:
        return None
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value)
        if name in entries:
            return entries[name]
        value = list(entries.values())
    if isinstance(value, list):
        items = cast("list[object]", value)
        return next((found for item in items if (found := _find(item, name, depth - 1)) is not None), None)
    return None


# Wordings of real servers. The first kind with one that is found decides, so the order matters: a limit of tokens a
# minute speaks of tokens and of length too.
_WORDINGS: Final[tuple[tuple[ModelErrorKind, tuple[str, ...]], ...]] = (
    (
        ModelErrorKind.CONTEXT_LENGTH,
        (
            # OpenAI, Groq: longer than the limit of tokens a minute, so it never fits
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
            # Google says the same of its limits a minute, and when to try again.
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
# A wording says more than these statuses, which servers send for anything.
_ROUGH: Final = frozenset({400, 403, 404, 409, 413, 422, 424, 429})


def kind_of_error(error: ServerError, status: int | None) -> ModelErrorKind | None:
    """What kind of failure an error response tells of, by its wording and its status; None where nothing tells."""
    status = status if status is not None and status >= 400 else error.status
    said = " ".join((error.text[:4000], *sorted(error.codes)))
    by_words = next((kind for kind, pattern in _PATTERNS if pattern.search(said)), None)
    if status is None:
        return by_words
    by_status = _BY_STATUS.get(status, ModelErrorKind.SERVER if status >= 500 else ModelErrorKind.BAD_REQUEST)
    if by_words is None or by_words is by_status:
        return by_status
    is_telling = status in _ROUGH or status >= 500 or by_words is ModelErrorKind.CONTEXT_LENGTH
    return by_words if is_telling else by_status


_LONGEST_DETAIL = 300
_DEEPEST_CHAIN = 12

# The first name that is found anywhere among an error's classes decides; the more special ones stand first.
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
_BROKEN_OFF = frozenset(
    {ModelErrorKind.CONNECTION, ModelErrorKind.TIMEOUT, ModelErrorKind.SERVER, ModelErrorKind.BAD_REPLY}
)

_WAITING = frozenset({ModelErrorKind.RATE_LIMIT, ModelErrorKind.SERVER, ModelErrorKind.TIMEOUT})
_MAY_BE_FORM = frozenset({ModelErrorKind.BAD_REQUEST, ModelErrorKind.NOT_FOUND, ModelErrorKind.SERVER})
_FIRST_ERROR = 400
_FORBIDDEN = 403
_KNOWN_STATUSES = frozenset(HTTPStatus)

_SHORTER = (
    "Shorten the input, limit what a loop appends ('Window size', `append_window`) and what its models remember "
    "('Model memory', `memory`), lower 'Max tokens' (`max_tokens`), or choose a model with a longer "
    "context."
)
_SENTENCES: dict[ModelErrorKind, tuple[str, str]] = {
    ModelErrorKind.AUTHENTICATION: ("{who} refused the key{detail}.", "{key_remedy}"),
    ModelErrorKind.NOT_FOUND: (
        "{who} does not know the model {model!r}{detail}.",
        "Check the model's name and the server's address; `loopwright models` lists the models that are known.",
    ),
    ModelErrorKind.BAD_REQUEST: (
        "{who} refused the request{detail}.",
        "Change the setting or the text that it names, or choose another model.",
    ),
    ModelErrorKind.CONTEXT_LENGTH: (
        "The request is longer than the model {model!r} of {who_inside} can read{detail}.",
        _SHORTER,
    ),
    ModelErrorKind.CONTENT_FILTER: (
        "The content filter of {who_inside} refused the text{detail}.",
        "Change the prompt or the input, or choose another model.",
    ),
    ModelErrorKind.RATE_LIMIT: (
        "{who} accepts no more requests for now{wait}{detail}.",
        "Wait a little, run fewer calls at the same time, or raise the limit with the provider.",
    ),
    ModelErrorKind.TIMEOUT: (
        "{who} took too long to answer{detail}.",
        "Try again, allow more time, or choose a faster model.",
    ),
    ModelErrorKind.CONNECTION: (
        "{who} {connection}.",
        "Check the network, and that the server runs at the address given.",
    ),
    ModelErrorKind.SERVER: (
        "{who} reported a failure of its own{detail}.",
        "Try again later, or choose another model.",
    ),
    ModelErrorKind.BAD_REPLY: (
        "{who} answered with something that is no reply of a model{detail}.",
        "Check that the address is that of a model server, and try again.",
    ),
    ModelErrorKind.INTERRUPTED: (
        "{who} broke off in the middle of its reply{detail}.",
        "Try again; if it happens again, check the network, or choose another model.",
    ),
    ModelErrorKind.UNAVAILABLE: (
        "{who} says that the account has no credit left{detail}.",
        "Top it up with the provider, or choose another model.",
    ),
}
# The same kind for whoever decides what to do next, but not the same thing to do for a person.
_NO_KEY_SENTENCE = ("{who} asks for a key, and there is none for it{detail}.", "{key_remedy}")
_FORBIDDEN_SENTENCE = (
    "{who} does not allow this{detail}.",
    "Ask the provider what the account may do, or choose another model.",
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that was refused, perhaps for its form.

    Attributes:
        text: What the server, or litellm, said.
        codes: The codes and types in it, in small letters.
        is_bad_request: Whether the failure is plainly about the request.
    """

    text: str
    codes: frozenset[str]
    is_bad_request: bool


def translate(error: Exception, model: str, place: Destination, keys: Keys, partial: str = "") -> ModelError:
    """Make a `ModelError` of an error that litellm raised.

    Args:
        error: What it raised.
        model: The model's name without its provider.
        place: Where the request went.
        keys: Strikes keys out of what the server said.
        partial: The text that had arrived.
    """
    error = _inside_of_stream_error(error)
    said, status = _said(error)
    kind = _kind(error, said, status)
    if partial and kind in _BROKEN_OFF:
        kind = ModelErrorKind.INTERRUPTED
    return model_error(
        kind,
        model,
        place,
        detail=_detail(said.text or _words_of_litellm(error, kind, status), keys),
        retry_after=_retry_after(error, said) if kind in _WAITING else None,
        partial=partial,
        reached=not any("ConnectError" in _class_names(link) for link in _chain(error)),
        sentence=_special_sentence(kind, status, place),
    )


def refusal(error: Exception) -> Refusal | None:
    """What a server, or litellm for it, refused; None where the failure is not about the request's form."""
    error = _inside_of_stream_error(error)
    said, status = _said(error)
    kind = _kind(error, said, status)
    if kind not in _MAY_BE_FORM:
        return None
    return Refusal(said.text or str(error), said.codes, kind is ModelErrorKind.BAD_REQUEST)


def _special_sentence(kind: ModelErrorKind, status: int | None, place: Destination) -> tuple[str, str] | None:
    if kind is not ModelErrorKind.AUTHENTICATION:
        return None
    if status == _FORBIDDEN:
        return _FORBIDDEN_SENTENCE
    return _NO_KEY_SENTENCE if place.api_key == NO_KEY else None


def model_error(
    kind: ModelErrorKind,
    model: str,
    place: Destination,
    *,
    detail: str = "",
    retry_after: float | None = None,
    partial: str = "",
    reached: bool = True,
    sentence: tuple[str, str] | None = None,
) -> ModelError:
    """Make a `ModelError` with the usual sentence for its kind, or with a more exact one."""
    message, remedy = sentence or _SENTENCES[kind]
    facts = {
        "who": place.title,
        "who_inside": place.title[0].lower() + place.title[1:] if place.title.startswith("The ") else place.title,
        "model": model,
        "detail": f": {detail}" if detail else "",
        "wait": "" if retry_after is None else f" and asks to wait {retry_after:g} s",
        "connection": "closed the connection before it had answered" if reached else "could not be reached",
        "key_remedy": place.key_remedy,
    }
    return ModelError(kind, message.format(**facts), remedy.format(**facts), retry_after=retry_after, partial=partial)


def _inside_of_stream_error(error: Exception) -> Exception:
    """What litellm wrapped because it happened after the stream had begun."""
    inside = getattr(error, "original_exception", None)
    return inside if isinstance(inside, Exception) else error


def _chain(error: BaseException) -> Iterator[BaseException]:
    following: BaseException | None = error
    for _ in range(_DEEPEST_CHAIN):
        if following is None:
            return
        yield following
        following = following.__cause__ or following.__context__


def _class_names(error: BaseException) -> set[str]:
    return {class_.__name__ for class_ in type(error).__mro__}


def _said(error: Exception) -> tuple[ServerError, int | None]:
    """What the server said, and the HTTP status that it said it with; None where no response came."""
    status: int | None = None
    found = ServerError()
    for link in _chain(error):
        response = getattr(link, "response", None)
        code = getattr(response, "status_code", None)
        if isinstance(code, int) and code >= _FIRST_ERROR and "HTTPStatusError" in _class_names(link):
            status = code
        if not found.text:
            read = (read_error(body) for body in (getattr(link, "body", None), _text_of(response)) if body)
            found = next((said for said in read if said.text), found)
    return found, status


def _text_of(response: object) -> str:
    """The body of a response; empty where it was not read, or is a stand-in that litellm made."""
    try:
        text = getattr(response, "text", "")
    except Exception:  # a stream that was not read
        return ""
    return text if isinstance(text, str) else ""


def _kind(error: Exception, said: ServerError, status: int | None) -> ModelErrorKind:
    chain = [_class_names(link) for link in _chain(error)]
    by_class = next((kind for name, kind in _KINDS_BY_CLASS.items() if any(name in names for names in chain)), None)
    if status is not None or said.text or by_class is ModelErrorKind.BAD_REQUEST:
        text = said if said.text else ServerError(str(error), said.codes)
        told = kind_of_error(text, status)
        if told is not None:
            return told
    if by_class is not None:
        return by_class
    if any(names & _UNREADABLE for names in chain):
        return ModelErrorKind.BAD_REPLY
    if any(names & _BROKEN_CONNECTION for names in chain):
        return ModelErrorKind.CONNECTION
    return ModelErrorKind.SERVER if said.text else ModelErrorKind.BAD_REPLY


def _words_of_litellm(error: Exception, kind: ModelErrorKind, status: int | None) -> str:
    """What stands in for the server's words where it sent none: the status, or what litellm refused by itself."""
    if status is not None:
        return f"HTTP {status} {HTTPStatus(status).phrase}" if status in _KNOWN_STATUSES else f"HTTP {status}"
    if kind is not ModelErrorKind.BAD_REQUEST:
        return ""
    text = re.sub(r"^(litellm\.\w+: |\w+Error: |\w+Exception - )+", "", str(error))
    return text.split(" To drop these, set ", 1)[0]  # litellm's advice to programmers


def _detail(text: str, keys: Keys) -> str:
    """What was said, fit to stand in a sentence: one short line of printable characters, without keys."""
    text = keys.redact("".join(sign if sign.isprintable() else " " for sign in text))
    text = " ".join(text.split()).rstrip(".")
    return text if len(text) <= _LONGEST_DETAIL else f"{text[:_LONGEST_DETAIL]}…"


def _retry_after(error: Exception, said: ServerError) -> float | None:
    """Seconds to wait: from a header (a number, or a date as RFC 9110 allows), else from what the server said."""
    for link in _chain(error):
        headers = getattr(getattr(link, "response", None), "headers", None)
        value = headers.get("retry-after") if headers is not None else None
        if not isinstance(value, str):
            continue
        if re.fullmatch(r"\d{1,9}(\.\d+)?", value.strip()):
            return float(value)
        with contextlib.suppress(ValueError, OverflowError):
            return max(0.0, round(parsedate_to_datetime(value).timestamp() - time.time(), 1))
    return said.seconds
