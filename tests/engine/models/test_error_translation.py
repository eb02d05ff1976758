"""Translation of errors that a server on loopback cannot cause."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest

from engine.models.keys import NO_KEY, Endpoint, Keys
from engine.models.protocol import ModelErrorKind
from engine.models.providers import provider_named
from engine.models.server_errors import translate
from tests.wording import mentions

OPENAI = Endpoint(provider_named("openai"), None, "sk-1", "OpenAI", "Put a valid one somewhere.")
ADDRESS = httpx.Request("POST", "http://localhost/")


class RateLimitError(Exception):
    """Stands for litellm's class of this name, with a response of the server."""

    def __init__(self, text: str = "", **headers: str) -> None:
        super().__init__(text)
        self.response = httpx.Response(429, headers={name.replace("_", "-"): value for name, value in headers.items()})


class BadRequestError(Exception):
    """Stands for litellm's class of this name."""


class AuthenticationError(Exception):
    """Stands for litellm's class of this name."""


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("0", 0.0), ("7", 7.0), (" 2.5 ", 2.5), ("-1", None), ("soon", None), ("nan", None), ("1e9", None)],
)
def test_retry_after_number_is_parsed(value: str, seconds: float | None) -> None:
    error = translate(RateLimitError(retry_after=value), "m", OPENAI, Keys({}))

    assert (error.kind, error.retry_after) == (ModelErrorKind.RATE_LIMIT, seconds)


def test_retry_after_date_is_parsed() -> None:
    now = datetime.now(UTC)
    later = translate(
        RateLimitError(retry_after=format_datetime(now + timedelta(hours=1), usegmt=True)), "m", OPENAI, Keys({})
    )
    past = translate(
        RateLimitError(retry_after=format_datetime(now - timedelta(hours=1), usegmt=True)), "m", OPENAI, Keys({})
    )

    assert later.retry_after == pytest.approx(3600, abs=60)
    assert past.retry_after == 0.0


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (httpx.ReadTimeout("slow", request=ADDRESS), ModelErrorKind.TIMEOUT),
        (httpx.ConnectError("no such host", request=ADDRESS), ModelErrorKind.CONNECTION),
        (httpx.RemoteProtocolError("cut", request=ADDRESS), ModelErrorKind.CONNECTION),
        (ConnectionResetError(), ModelErrorKind.CONNECTION),
        (httpx.HTTPStatusError("500", request=ADDRESS, response=httpx.Response(500)), ModelErrorKind.SERVER),
        (AttributeError("a bug of litellm's"), ModelErrorKind.BAD_REPLY),
    ],
)
def test_cause_of_an_error_decides_its_kind(cause: Exception, kind: ModelErrorKind) -> None:
    error = RuntimeError("litellm.InternalServerError: Connection error.")
    error.__cause__ = RuntimeError("between")
    error.__cause__.__context__ = cause

    assert translate(error, "m", OPENAI, Keys({})).kind is kind


def test_cycle_of_causes_ends() -> None:
    error, other = RuntimeError("one"), RuntimeError("other")
    error.__cause__, other.__cause__ = other, error

    assert translate(error, "m", OPENAI, Keys({})).kind is ModelErrorKind.BAD_REPLY


def test_server_text_becomes_one_short_line_without_keys() -> None:
    keys = Keys({"OPENAI_API_KEY": "sk-secret"})
    keys.get("openai")
    raw = "litellm.BadRequestError: OpenAIException - Bad\n\x1b[31m request of sk-secret " + "x" * 1000

    error = translate(BadRequestError(raw), "m", OPENAI, keys)

    assert error.message.startswith("OpenAI refused the request: Bad [31m request of … xxx")
    assert error.message.isprintable()
    assert len(error.message) < 350


def test_error_without_server_text_is_a_whole_sentence() -> None:
    assert translate(BadRequestError(), "m", OPENAI, Keys({})).message == "OpenAI refused the request."


def test_refused_key_has_a_remedy() -> None:
    error = translate(AuthenticationError("no"), "m", OPENAI, Keys({}))

    assert mentions(error.message, "OpenAI refused the key")
    assert "key" in error.remedy
    assert error.fix == f"add_key:{OPENAI.key_name}"


class APIError(Exception):
    """Stands for the class of this name of the openai package: an error in a stream, without a status."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.body = {"error": {"type": kind, "message": message}}


@pytest.mark.parametrize(
    ("type_", "message", "kind"),
    [
        ("server_error", "Please set your api key", ModelErrorKind.AUTHENTICATION),
        ("server_error", "Your quota is used up", ModelErrorKind.RATE_LIMIT),
        ("server_error", "Rate limit reached for this api key", ModelErrorKind.RATE_LIMIT),
        ("not_found_error", "No such thing", ModelErrorKind.NOT_FOUND),
        ("invalid_request_error", "Wrong", ModelErrorKind.BAD_REQUEST),
        ("server_error", "Wrong", ModelErrorKind.SERVER),
    ],
)
def test_wording_decides_the_kind_of_an_error_without_status(type_: str, message: str, kind: ModelErrorKind) -> None:
    assert translate(APIError(type_, message), "m", OPENAI, Keys({})).kind is kind


@pytest.mark.parametrize("type_", ["permission_error", "forbidden"])
def test_missing_permission_without_status_does_not_ask_for_a_key(type_: str) -> None:
    error = translate(APIError(type_, "Your account may not use this model"), "m", OPENAI, Keys({}))

    assert error.kind is ModelErrorKind.AUTHENTICATION
    assert mentions(error.message, "OpenAI does not allow this")
    assert not error.fix


def test_refusal_by_litellm_itself_keeps_its_kind() -> None:
    error = translate(BadRequestError("Tool call id 'a' not found in messages"), "m", OPENAI, Keys({}))

    assert error.kind is ModelErrorKind.BAD_REQUEST
    assert "Tool call id 'a' not found" in error.message


def test_missing_key_is_not_called_refused() -> None:
    place = Endpoint(
        provider_named("openai"), "http://localhost/v1", NO_KEY, "The server at localhost", "host:localhost"
    )

    error = translate(AuthenticationError("no"), "m", place, Keys({}))

    assert error.kind is ModelErrorKind.AUTHENTICATION
    assert mentions(error.message, "localhost requires a key, … none"), error.message
    assert "key" in error.remedy
    assert error.fix == "add_key:host:localhost"
