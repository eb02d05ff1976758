"""Reads a server's replies as they come over HTTP, before litellm does.

litellm parses replies with types of its own: it refuses shapes that are perfectly usable, changes texts and makes up
what is missing. So a hook in its HTTP clients feeds the server's own JSON to the `ReplyParser` of the call and hands a
stand-in to litellm, which always is in good form. Replies in formats that are not known here, and refusals by status,
pass unchanged. Import it late: httpx is slow.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, cast

import httpx

from engine.models.reply_parser import ReplyParser

_LONGEST_NUMBER: Final = 300
_TEXT: Final = "."  # two characters or fewer: litellm ends streams in which the same longer piece comes again and again
_MODEL: Final = "stand-in"
_TOKENS: Final = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
_DONE: Final = b"[DONE]"

_current: ContextVar[ReplyParser | None] = ContextVar("reply_parser", default=None)


class ReplyUnreadableError(ValueError):
    """A reply, or an event of a stream, that is no JSON."""


@dataclass(frozen=True, slots=True)
class _Format:
    """A server's format.

    Attributes:
        paths: How the address of a request ends whose reply has this format.
        feed: Feeds a reply or a chunk of one to a parser.
        whole: The stand-in for a reply that came whole.
        start: What begins the stand-in for a stream.
        piece: What stands for one event of it.
        end: What ends it.
    """

    paths: tuple[str, ...]
    feed: Callable[[ReplyParser, dict[str, Any]], None]
    whole: Any
    start: bytes
    piece: bytes
    end: bytes
    content_type: str = "text/event-stream"


def _event(body: Any, name: str = "") -> bytes:
    return (f"event: {name}\n" if name else "").encode() + f"data: {json.dumps(body)}\n\n".encode()


_OPENAI_CHUNK: Final = {"id": _MODEL, "object": "chat.completion.chunk", "created": 0, "model": _MODEL}


def _openai_chunk(delta: dict[str, str], finish: str | None) -> bytes:
    return _event({**_OPENAI_CHUNK, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


_OPENAI: Final = _Format(
    paths=("/chat/completions",),
    feed=ReplyParser.take_openai,
    whole={
        "id": _MODEL,
        "object": "chat.completion",
        "created": 0,
        "model": _MODEL,
        "usage": _TOKENS,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": _TEXT}, "finish_reason": "stop"}],
    },
    start=b"",
    piece=_openai_chunk({"role": "assistant", "content": _TEXT}, None),
    end=_openai_chunk({}, "stop") + _event({**_OPENAI_CHUNK, "choices": [], "usage": _TOKENS}) + b"data: [DONE]\n\n",
)


def _ollama_line(*, done: bool) -> dict[str, Any]:
    line: dict[str, Any] = {"model": _MODEL, "created_at": "2026-01-01T00:00:00Z", "done": done, "response": _TEXT}
    line["message"] = {"role": "assistant", "content": _TEXT}
    return line | ({"done_reason": "stop", "prompt_eval_count": 1, "eval_count": 1} if done else {})


_OLLAMA: Final = _Format(
    paths=("/api/chat", "/api/generate"),
    feed=ReplyParser.take_ollama,
    whole=_ollama_line(done=True),
    start=b"",
    piece=json.dumps(_ollama_line(done=False)).encode() + b"\n",
    end=json.dumps(_ollama_line(done=True)).encode() + b"\n",
    content_type="application/x-ndjson",
)

_ANTHROPIC_MESSAGE: Final[dict[str, Any]] = {
    "id": _MODEL,
    "type": "message",
    "role": "assistant",
    "model": _MODEL,
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
_ANTHROPIC: Final = _Format(
    paths=("/v1/messages",),
    feed=ReplyParser.take_anthropic,
    whole={**_ANTHROPIC_MESSAGE, "content": [{"type": "text", "text": _TEXT}], "stop_reason": "end_turn"},
    start=_event(
        {"type": "message_start", "message": {**_ANTHROPIC_MESSAGE, "content": [], "stop_reason": None}},
        "message_start",
    )
    + _event(
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        "content_block_start",
    ),
    piece=_event(
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": _TEXT}},
        "content_block_delta",
    ),
    end=_event({"type": "content_block_stop", "index": 0}, "content_block_stop")
    + _event(
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 1},
        },
        "message_delta",
    )
    + _event({"type": "message_stop"}, "message_stop"),
)
_FORMATS: Final = (_OPENAI, _OLLAMA, _ANTHROPIC)


def install_hook() -> None:
    """Put the hook into every HTTP client that litellm makes from now on."""
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler  # pyright: ignore[reportMissingTypeStubs]
    from litellm.llms.openai.common_utils import BaseOpenAILLM  # pyright: ignore[reportMissingTypeStubs]

    def hooked(make: Callable[..., Any]) -> Callable[..., Any]:
        def make_hooked(*args: Any, **kwargs: Any) -> Any:
            client = make(*args, **kwargs)
            hooks = client.event_hooks
            client.event_hooks = {**hooks, "response": [*hooks.get("response", ()), on_response]}
            return client

        return make_hooked

    for owner, method in ((AsyncHTTPHandler, "create_client"), (BaseOpenAILLM, "_get_async_http_client")):
        make = hooked(getattr(owner, method))
        setattr(owner, method, make if owner is AsyncHTTPHandler else staticmethod(make))


@contextlib.contextmanager
def feeding(parser: ReplyParser) -> Generator[None]:
    """Feed the replies to requests that are made inside to a parser."""
    token = _current.set(parser)
    try:
        yield
    finally:
        _current.reset(token)


async def on_response(response: httpx.Response) -> None:
    """Feed a reply to the parser of the call, and put the stand-in in its place."""
    parser = _current.get()
    path = response.request.url.path
    known = next((known for known in _FORMATS if path.endswith(known.paths)), None)
    if parser is None or known is None or not response.is_success:
        return
    parser.is_fed = True
    # What comes out of this one is decompressed.
    sent = httpx.Response(
        response.status_code, headers=response.headers, stream=response.stream, request=response.request
    )
    for name in ("content-encoding", "content-length", "transfer-encoding"):
        response.headers.pop(name, None)
    bodies = _Bodies(sent)
    asked = _asked(response.request)
    fed = _feed(known, parser, bodies)
    if asked.get("stream") is True:
        response.headers["content-type"] = known.content_type
        response.stream = _StandInStream(_pieces(known, asked.get("model"), fed), bodies)
        return
    async for _ in fed:
        pass
    await bodies.close()
    response.headers["content-type"] = "application/json"
    response.stream = httpx.ByteStream(_of_model(json.dumps(known.whole).encode(), asked.get("model")))


def _asked(request: httpx.Request) -> dict[str, Any]:
    """The JSON of a request."""
    try:
        body = json.loads(request.content)
    except (ValueError, httpx.RequestNotRead):
        return {}
    return cast("dict[str, Any]", body) if isinstance(body, dict) else {}


def _of_model(stand_in: bytes, model: Any) -> bytes:
    """A stand-in that names the model that was asked: litellm looks up what it costs."""
    return stand_in.replace(json.dumps(_MODEL).encode(), json.dumps(model if isinstance(model, str) else "").encode())


async def _feed(known: _Format, parser: ReplyParser, bodies: _Bodies) -> AsyncGenerator[None]:
    """Feed everything that the server sends to the parser; yields after each piece."""
    try:
        while (body := await bodies.next()) is not None:
            error = _error_in(body)
            if error is not None:
                parser.failure = error.exception(bodies.sent)
                return
            known.feed(parser, body)
            yield
    except ReplyUnreadableError as unreadable:
        parser.failure = unreadable


class _StandInStream(httpx.AsyncByteStream):
    """The stream that litellm sees: a piece for each of the server's."""

    def __init__(self, pieces: AsyncGenerator[bytes], bodies: _Bodies) -> None:
        self._pieces = pieces
        self._bodies = bodies

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces  # the same each time: clients iterate again to read what is left

    async def aclose(self) -> None:
        await self._pieces.aclose()
        await self._bodies.close()


async def _pieces(known: _Format, model: Any, fed: AsyncGenerator[None]) -> AsyncGenerator[bytes]:
    start, piece, end = (_of_model(part, model) for part in (known.start, known.piece, known.end))
    if start:
        yield start
    async for _ in fed:
        yield piece
    yield end


class _Bodies:
    """The JSON objects that a server sends: one, one a line, or as server-sent events."""

    def __init__(self, sent: httpx.Response) -> None:
        self.sent = sent
        self._lines = _lines(sent.aiter_bytes())
        self._waiting: list[dict[str, Any]] = []

    async def next(self) -> dict[str, Any] | None:
        """The next object; None at the end.

        Raises:
            ReplyUnreadableError: What comes is no JSON, or ends in the middle of it.
        """
        while not self._waiting:
            line = await anext(self._lines, None)
            if line is None or line.removeprefix(b"data:").strip() == _DONE:
                return None
            if line.startswith(b"data:"):
                body = await self._event(line.removeprefix(b"data:"))
            elif line.lstrip().startswith((b"{", b"[")):
                body = await self._lone(line)
            else:
                continue  # white space, a comment, another field of an event, a page for people
            self._waiting = _objects(body)
        return self._waiting.pop(0)

    async def _event(self, data: bytes) -> Any:
        """An event's data, which may have several lines."""
        if not data.strip().startswith((b"{", b"[")):
            return None
        with contextlib.suppress(ReplyUnreadableError):
            return _json(data)  # servers leave out the empty line after an event
        async for line in self._lines:
            if not line.startswith(b"data:"):
                break
            data += b"\n" + line.removeprefix(b"data:")
        return _json(data)

    async def _lone(self, line: bytes) -> Any:
        """JSON without a frame: a line, or all that follows."""
        with contextlib.suppress(ReplyUnreadableError):
            return _json(line)
        return _json(b"\n".join([line, *[rest async for rest in self._lines]]))

    async def close(self) -> None:
        """Close the connection, unless the reply has been read to its end."""
        await self._lines.aclose()
        await self.sent.aclose()


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """The lines of a text that comes in chunks."""
    begun: list[bytes] = []
    async for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            yield b"".join([*begun, line]).rstrip(b"\r")
            begun.clear()
        begun.append(rest)
    if last := b"".join(begun):
        yield last


def _json(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8-sig", "replace"), parse_int=_integer)
    except (ValueError, RecursionError):
        raise ReplyUnreadableError("the reply is no JSON") from None


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else float(digits)


def _objects(body: Any) -> list[dict[str, Any]]:
    items: list[Any] = cast("list[Any]", body) if isinstance(body, list) else [body]
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


@dataclass(frozen=True, slots=True)
class _ServerError:
    """An error that a server reports under a status of success."""

    status: int
    type: str
    code: str
    message: str

    def exception(self, sent: httpx.Response) -> Exception:
        """The error as it would have been raised had it come with its status."""
        import openai

        classes: dict[int, type[openai.APIStatusError]] = {
            400: openai.BadRequestError,
            401: openai.AuthenticationError,
            403: openai.PermissionDeniedError,
            404: openai.NotFoundError,
            422: openai.UnprocessableEntityError,
            429: openai.RateLimitError,
        }
        response: Any = httpx.Response(self.status, headers=sent.headers, request=sent.request)
        body = {"message": self.message, "type": self.type, "code": self.code}
        error = classes.get(self.status, openai.InternalServerError)(self.message, response=response, body=body)
        error.__cause__ = httpx.HTTPStatusError(self.message, request=sent.request, response=response)
        return error


def _error_in(body: dict[str, Any]) -> _ServerError | None:
    """The error that a body reports in the place of a reply, or beside one."""
    reported: list[Any] = [body.get("error"), *(choice.get("error") for choice in _objects(body.get("choices")))]
    if body.get("object") == "error":
        reported.append(body)
    for error in reported:
        if isinstance(error, str) and error:
            return _ServerError(_status(None, error), "", "", error)
        for said in _objects(error):
            code = next((said[key] for key in ("code", "status", "status_code") if said.get(key)), None)
            kind = said["type"] if isinstance(said.get("type"), str) else ""
            message = next((said[key] for key in ("message", "detail") if said.get(key)), "")
            message = message if isinstance(message, str) else json.dumps(message)
            if code is not None or kind or message:
                known_code = str(code) if isinstance(code, (str, int)) else ""
                return _ServerError(_status(code, f"{kind} {known_code} {message}"), kind, known_code, message)
    return None


def _status(code: Any, words: str) -> int:
    """The HTTP status that fits an error: the one that it names, else the one that its words speak of."""
    if isinstance(code, str) and code.isascii() and code.isdigit():
        code = int(code[:4])
    if type(code) is int and 400 <= code <= 599:
        return code
    words = words.lower()
    return next((status for status, signs in _STATUS_WORDS if any(sign in words for sign in signs)), 500)


_STATUS_WORDS: Final = (
    (429, ("rate_limit", "rate limit", "too many requests", "quota", "resource_exhausted", "throttl")),
    (401, ("authentication", "invalid_api_key", "unauthorized", "api key", "unauthenticated")),
    (403, ("permission", "forbidden")),
    (404, ("not_found", "not found", "does not exist")),
    (400, ("context_length", "context length", "invalid_request", "invalid_argument", "content_filter", "bad_request")),
    (503, ("overloaded", "unavailable")),
)
