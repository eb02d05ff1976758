"""Turns whatever litellm raises into a `ModelError` that a person can act on.

Many different failures arrive as the same class, so the whole chain of causes is looked at. Classes are told by their
names: litellm, openai, httpx and httpcore each have their own of the same name, and none of them is imported for this.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from engine.models.base import ModelError, ModelErrorKind
from engine.models.endpoint import NO_KEY, Destination
from engine.models.keys import Keys
from engine.models.server_errors import ServerError, kind_of_error, read_error

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
