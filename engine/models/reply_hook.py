"""Hook in litellm's HTTP clients that parses a server's replies before litellm does.

litellm parses replies with its own types: it refuses usable shapes, changes texts and invents missing values. So the
hook feeds the server's own JSON to the `ReplyParser` of the call, and passes a placeholder to litellm, which is always
valid. Replies in unknown formats and responses with an error status pass unchanged. Importing this module is slow.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

import httpx

from engine.models.reply_parser import ReplyParser, objects_in
from engine.values import as_object

_MAX_DIGITS: Final = 300
_TEXT: Final = "."  # at most two characters: litellm ends streams that repeat a longer piece
_MODEL: Final = "placeholder"
_TOKENS: Final = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
_DONE: Final = b"[DONE]"

_current: ContextVar[ReplyParser | None] = ContextVar("reply_parser", default=None)


class ReplyUnreadableError(ValueError):
    """A reply, or an event of a stream, that is not JSON."""


class ReportedError(Exception):
    """An error that a server reports with a status of success; `server_errors` reads it like any other.

    Attributes:
        body: The body of an error response.
        response: The response.
    """

    def __init__(self, error: Any, response: httpx.Response) -> None:
        super().__init__("the server reported an error")
        self.body = {"error": error}
        self.response = response


@dataclass(frozen=True, slots=True)
class _Format:
    """A server's format, with its placeholders.

    Attributes:
        paths: Ends of the paths of requests whose replies have this format.
        feed: Feeds a reply or a chunk to a parser.
        whole: Placeholder for a whole reply.
        start: Start of the placeholder for a stream.
        piece: Placeholder for one event of a stream.
        end: End of the placeholder for a stream.
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
    feed=ReplyParser.feed_openai,
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
    feed=ReplyParser.feed_ollama,
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
    feed=ReplyParser.feed_anthropic,
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
    """Install the hook in every HTTP client that litellm creates from now on."""
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
def feed_replies_to(parser: ReplyParser) -> Generator[None]:
    """Feed the replies to requests made inside the context to a parser."""
    token = _current.set(parser)
    try:
        yield
    finally:
        _current.reset(token)


async def on_response(response: httpx.Response) -> None:
    """Feed a reply to the parser of the call, and replace it by the placeholder."""
    parser = _current.get()
    path = response.request.url.path
    format_ = next((one for one in _FORMATS if path.endswith(one.paths)), None)
    if parser is None or format_ is None or not response.is_success:
        return
    parser.is_fed = True
    # The placeholder is not compressed.
    original = httpx.Response(
        response.status_code, headers=response.headers, stream=response.stream, request=response.request
    )
    for name in ("content-encoding", "content-length", "transfer-encoding"):
        response.headers.pop(name, None)
    request = _request_body(response.request)
    fed = _feed(format_, parser, original)
    if request.get("stream") is True:
        response.headers["content-type"] = format_.content_type
        response.stream = _PlaceholderStream(_pieces(format_, request.get("model"), fed), original)
        return
    async for _ in fed:
        pass
    await original.aclose()
    response.headers["content-type"] = "application/json"
    response.stream = httpx.ByteStream(_with_model(json.dumps(format_.whole).encode(), request.get("model")))


def _request_body(request: httpx.Request) -> dict[str, Any]:
    try:
        return as_object(json.loads(request.content))
    except (ValueError, httpx.RequestNotRead):
        return {}


def _with_model(placeholder: bytes, model: Any) -> bytes:
    """The placeholder with the name of the requested model, whose price litellm looks up."""
    return placeholder.replace(
        json.dumps(_MODEL).encode(), json.dumps(model if isinstance(model, str) else "").encode()
    )


async def _feed(format_: _Format, parser: ReplyParser, original: httpx.Response) -> AsyncGenerator[None]:
    """Feed everything that the server sends to the parser; yield after each object."""
    try:
        async with contextlib.aclosing(_bodies(original)) as bodies:
            async for body in bodies:
                error = _find_error(body)
                if error is not None:
                    parser.failure = ReportedError(error, original)
                    return
                format_.feed(parser, body)
                yield
    except ReplyUnreadableError as unreadable:
        parser.failure = unreadable


class _PlaceholderStream(httpx.AsyncByteStream):
    """The stream that litellm reads: a placeholder for each object of the server."""

    def __init__(self, pieces: AsyncGenerator[bytes], original: httpx.Response) -> None:
        self._pieces = pieces
        self._original = original

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces  # the same iterator each time: clients iterate again to read the rest

    async def aclose(self) -> None:
        await self._pieces.aclose()
        await self._original.aclose()


async def _pieces(format_: _Format, model: Any, fed: AsyncGenerator[None]) -> AsyncGenerator[bytes]:
    start, piece, end = (_with_model(part, model) for part in (format_.start, format_.piece, format_.end))
    async with contextlib.aclosing(fed):
        if start:
            yield start
        async for _ in fed:
            yield piece
        yield end


async def _bodies(response: httpx.Response) -> AsyncGenerator[dict[str, Any]]:
    """Yield the JSON objects of a response: a single one, one per line, or server-sent events.

    Raises:
        ReplyUnreadableError: The data is not JSON, or ends in the middle of it.
    """
    async with contextlib.aclosing(_lines(response.aiter_bytes())) as lines:
        async for line in lines:
            if line.removeprefix(b"data:").strip() == _DONE:
                return
            if line.startswith(b"data:"):
                body = await _event_data(line.removeprefix(b"data:"), lines)
            elif line.lstrip().startswith((b"{", b"[")):
                body = await _unframed(line, lines)
            else:
                continue  # white space, a comment, another field of an event, HTML
            for one in objects_in(body):
                yield one


async def _event_data(data: bytes, lines: AsyncIterator[bytes]) -> Any:
    """Parse an event's data, which may have several lines."""
    if not data.strip().startswith((b"{", b"[")):
        return None
    with contextlib.suppress(ReplyUnreadableError):
        return _json(data)  # some servers omit the empty line after an event
    async for line in lines:
        if not line.startswith(b"data:"):
            break
        data += b"\n" + line.removeprefix(b"data:")
    return _json(data)


async def _unframed(line: bytes, lines: AsyncIterator[bytes]) -> Any:
    """Parse JSON outside of an event: a line, or all that follows."""
    with contextlib.suppress(ReplyUnreadableError):
        return _json(line)
    return _json(b"\n".join([line, *[rest async for rest in lines]]))


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """The lines of a text that arrives in chunks."""
    partial: list[bytes] = []
    async for chunk in chunks:
        *complete, rest = chunk.split(b"\n")
        for line in complete:
            yield b"".join([*partial, line]).rstrip(b"\r")
            partial.clear()
        partial.append(rest)
    if last := b"".join(partial):
        yield last


def _json(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8-sig", "replace"), parse_int=_integer)
    except (ValueError, RecursionError):
        raise ReplyUnreadableError("the reply is not JSON") from None


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


_ERROR_KEYS: Final = ("code", "status", "status_code", "type", "message", "detail")


def _find_error(body: dict[str, Any]) -> Any:
    """The error that a body reports instead of a reply, or in addition to one; None without one."""
    reported: list[Any] = [body.get("error"), *(choice.get("error") for choice in objects_in(body.get("choices")))]
    if body.get("object") == "error":
        reported.append(body)
    for error in reported:
        if isinstance(error, str) and error:
            return error
        if any(details.get(key) for details in objects_in(error) for key in _ERROR_KEYS):
            return error
    return None
