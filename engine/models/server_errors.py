"""Reads the error responses of model servers: the sentence in them, and what kind of failure it tells of.

Every server has its own JSON around the sentence, and its own wording. What it says is data: one short line of plain
text comes out of it, whatever goes in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any, Final, cast

from engine.models.base import ModelErrorKind
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
