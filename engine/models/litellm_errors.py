"""Turns whatever litellm raises into a `ModelError` that a person can act on.

Many different failures arrive as the same class, so the whole chain of causes is looked at. Classes are told by their
names: litellm, openai, httpx and httpcore each have their own of the same name, and none of them is imported for this.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime

from engine.models.base import ModelError, ModelErrorKind
from engine.models.destination import NO_KEY, Destination
from engine.models.keys import Keys

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
# What a server says can be more exact than the class.
_KINDS_BY_WORDS = (
    (ModelErrorKind.RATE_LIMIT, "insufficient_quota", ModelErrorKind.UNAVAILABLE),
    (ModelErrorKind.RATE_LIMIT, "exceeded your current quota", ModelErrorKind.UNAVAILABLE),
    (ModelErrorKind.BAD_REQUEST, "context_length", ModelErrorKind.CONTEXT_LENGTH),
    (ModelErrorKind.BAD_REQUEST, "maximum context length", ModelErrorKind.CONTEXT_LENGTH),
    (ModelErrorKind.BAD_REQUEST, "content_filter", ModelErrorKind.CONTENT_FILTER),
    (ModelErrorKind.BAD_REQUEST, "content management policy", ModelErrorKind.CONTENT_FILTER),
    (ModelErrorKind.BAD_REQUEST, "llm provider not provided", ModelErrorKind.NOT_FOUND),
)
_BROKEN_OFF = frozenset(
    {ModelErrorKind.CONNECTION, ModelErrorKind.TIMEOUT, ModelErrorKind.SERVER, ModelErrorKind.BAD_REPLY}
)

_SENTENCES: dict[ModelErrorKind, tuple[str, str]] = {
    ModelErrorKind.AUTHENTICATION: ("{who} refused the key.", "{key_remedy}"),
    ModelErrorKind.NOT_FOUND: (
        "{who} does not know the model {model!r}.",
        "Check the model's name; `loopwright models` lists those that are known.",
    ),
    ModelErrorKind.BAD_REQUEST: (
        "{who} refused the request{detail}.",
        "Change what it names, or choose another model.",
    ),
    ModelErrorKind.CONTEXT_LENGTH: (
        "The text is longer than the model {model!r} of {who_inside} can read.",
        "Shorten the input or the history, or choose a model with a longer context.",
    ),
    ModelErrorKind.CONTENT_FILTER: (
        "The content filter of {who_inside} refused the text.",
        "Change the prompt or the input, or choose another model.",
    ),
    ModelErrorKind.RATE_LIMIT: (
        "{who} takes no more requests for now{wait}.",
        "Wait a little, run fewer calls side by side, or raise the limit with the provider.",
    ),
    ModelErrorKind.TIMEOUT: (
        "{who} took too long to answer.",
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
        "{who} answered with something that is no reply of a model.",
        "Check that the address is that of a model server, and try again.",
    ),
    ModelErrorKind.INTERRUPTED: (
        "{who} broke off in the middle of its reply.",
        "Try again; if it happens again, check the network, or choose another model.",
    ),
    ModelErrorKind.UNAVAILABLE: (
        "{who} says that the account has no credit left.",
        "Top it up with the provider, or choose another model.",
    ),
}
# The same kind for whoever decides what to do next, but not the same thing to do for a person.
_NO_KEY_SENTENCE = ("{who} asks for a key, and there is none for it.", "{key_remedy}")
_FORBIDDEN_SENTENCE = (
    "{who} does not allow this{detail}.",
    "Ask the provider what the account may do, or choose another model.",
)


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
    kind = _kind(error)
    if partial and kind in _BROKEN_OFF:
        kind = ModelErrorKind.INTERRUPTED
    return model_error(
        kind,
        model,
        place,
        detail=_detail(error, keys),
        retry_after=_retry_after(error),
        partial=partial,
        reached=not any("ConnectError" in _class_names(link) for link in _chain(error)),
        sentence=_special_sentence(error, kind, place),
    )


def _special_sentence(error: Exception, kind: ModelErrorKind, place: Destination) -> tuple[str, str] | None:
    if kind is not ModelErrorKind.AUTHENTICATION:
        return None
    if any("PermissionDeniedError" in _class_names(link) for link in _chain(error)):
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


def speaks_of_response_format(error: Exception) -> bool:
    """Whether the server refused a request because of the form in which the reply was asked for."""
    if _kind(error) is not ModelErrorKind.BAD_REQUEST:
        return False
    text = str(error).lower()
    return any(word in text for word in ("response_format", "response format", "json_schema", "schema", "grammar"))


def speaks_of_tools(error: Exception) -> bool:
    """Whether the server refused a request because it, or the model, knows no tools."""
    return _kind(error) is ModelErrorKind.BAD_REQUEST and "tool" in str(error).lower()


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


def _kind(error: Exception) -> ModelErrorKind:
    chain = [_class_names(link) for link in _chain(error)]
    for name, kind in _KINDS_BY_CLASS.items():
        if any(name in names for names in chain):
            said = f"{error} {getattr(error, 'body', '')}".lower()
            return next((exact for rough, words, exact in _KINDS_BY_WORDS if rough is kind and words in said), kind)
    if any(names & _UNREADABLE for names in chain):
        return ModelErrorKind.BAD_REPLY
    if any(names & _BROKEN_CONNECTION for names in chain):
        return ModelErrorKind.CONNECTION
    answered_with_error = any("HTTPStatusError" in names for names in chain)
    return ModelErrorKind.SERVER if answered_with_error else ModelErrorKind.BAD_REPLY


def _detail(error: Exception, keys: Keys) -> str:
    """What the server said, fit to stand in a sentence: one short line, without keys and without litellm's prefixes."""
    body = getattr(error, "body", None)
    said: object = body.get("message") if isinstance(body, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - a server's JSON
    text = said if isinstance(said, str) else str(error)
    text = re.sub(r"^(litellm\.\w+: |\w+Error: |\w+Exception - )+", "", text)
    text = keys.redact("".join(sign if sign.isprintable() else " " for sign in text))
    text = " ".join(text.split()).rstrip(".")
    return text if len(text) <= _LONGEST_DETAIL else f"{text[:_LONGEST_DETAIL]}…"


def _retry_after(error: Exception) -> float | None:
    """Seconds from a Retry-After header: a number, or a date as RFC 9110 allows."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    value = headers.get("retry-after") if headers is not None else None
    if not isinstance(value, str):
        return None
    if re.fullmatch(r"\d{1,9}(\.\d+)?", value.strip()):
        return float(value)
    try:
        return max(0.0, round(parsedate_to_datetime(value).timestamp() - time.time(), 1))
    except (ValueError, OverflowError):
        return None
