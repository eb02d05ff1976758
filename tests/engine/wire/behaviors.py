"""What the wire test server does with a request: one behavior for each model name.

A behavior knows HTTP and the OpenAI chat format, and nothing of the code under test.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

Body = dict[str, Any]
REPLY = "Hello from the wire."
STRUCTURED_REPLY = '{"branch": "done", "reason": "nothing is missing"}'
PARTIAL_REPLY = "Half of the"
PARTIAL_TOKENS = 4
"""What it is charged as: three bytes a token."""
HUGE_REPLY_CHARACTERS = 5_000_000
RETRY_AFTER_S = 7
BRIEF_RETRY_AFTER_S = 0.2
USAGE = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}


Behavior = Callable[["Exchange"], None]


class Exchange:
    """One request and the means to answer it."""

    def __init__(self, handler: BaseHTTPRequestHandler, body: Body, reply: Callable[[Body], str]) -> None:
        self.handler = handler
        self.body = body
        self.reply = reply
        self.abandoned = False

    @property
    def streaming(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def wants_usage(self) -> bool:
        options: Body = self.body.get("stream_options") or {}
        return bool(options.get("include_usage"))

    def send(self, status: int, content: bytes, content_type: str = "application/json", **headers: str) -> None:
        self.handler.send_response(status)
        self.handler.send_header("Content-Type", content_type)
        self.handler.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.end_headers()
        self.handler.wfile.write(content)

    def send_json(self, status: int, content: Any, **headers: str) -> None:
        self.send(status, json.dumps(content).encode(), **headers)

    def refuse(self, status: int, message: str, kind: str, code: str | None = None, **headers: str) -> None:
        self.send_json(status, {"error": {"message": message, "type": kind, "param": None, "code": code}}, **headers)

    def start_stream(self) -> None:
        self.handler.send_response(200)
        self.handler.send_header("Content-Type", "text/event-stream")
        self.handler.send_header("Transfer-Encoding", "chunked")
        self.handler.end_headers()

    def send_chunk(self, data: bytes) -> None:
        self.handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def send_event(self, content: Any) -> None:
        self.send_chunk(f"data: {json.dumps(content)}\n\n".encode())

    def send_piece(self, text: str) -> None:
        self.send_event(self.chunk([{"index": 0, "delta": {"role": "assistant", "content": text}}]))

    def end_stream(self) -> None:
        self.send_chunk(b"data: [DONE]\n\n")
        self.send_chunk(b"")

    def chunk(self, choices: list[Any], **more: Any) -> Body:
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": self.body.get("model", ""),
            "choices": choices,
            **more,
        }

    def answer(self, text: str, *, finish: str = "stop", usage: Body | None = USAGE) -> None:
        """Answer in the requested form: as a stream of words, or whole."""
        if not self.streaming:
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": finish}
            whole = self.chunk([choice]) | {"object": "chat.completion"}
            self.send_json(200, whole if usage is None else whole | {"usage": usage})
            return
        self.start_stream()
        size = max(1, len(text) // 100) if len(text) > 1000 else 6
        for start in range(0, len(text), size):
            self.send_piece(text[start : start + size])
        self.send_event(self.chunk([{"index": 0, "delta": {}, "finish_reason": finish}]))
        if usage is not None and self.wants_usage:
            self.send_event(self.chunk([], usage=usage))
        self.end_stream()

    def hang_up(self) -> None:
        """Close the connection as soon as the handler returns."""
        self.handler.close_connection = True

    def reset(self) -> None:
        """Close the connection with a TCP reset."""
        self.handler.close_connection = True
        self.handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.handler.connection.close()

    def client_left(self, wait_s: float | None) -> bool:
        """Wait until the client closes the connection, or until the timeout."""
        readable, _, _ = select.select([self.handler.connection], [], [], wait_s)
        if not readable:
            return False
        try:
            self.abandoned = self.handler.connection.recv(1) == b""
        except OSError:
            self.abandoned = True
        return self.abandoned


def answer(exchange: Exchange) -> None:
    exchange.answer(exchange.reply(exchange.body))


def structured(exchange: Exchange) -> None:
    exchange.answer(STRUCTURED_REPLY)


def no_schema(exchange: Exchange) -> None:
    """Supports `json_object` only, like some servers."""
    wanted: Body = exchange.body.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        exchange.refuse(400, "'response_format.type' must be 'json_object' or 'text'", "invalid_request_error")
    else:
        exchange.answer(STRUCTURED_REPLY)


def no_response_format(exchange: Exchange) -> None:
    if "response_format" in exchange.body:
        exchange.refuse(400, "Unrecognized request argument supplied: response_format", "invalid_request_error")
    else:
        exchange.answer(STRUCTURED_REPLY)


def tool_calls(exchange: Exchange) -> None:
    """Requests two tool calls at once, and answers normally after their results."""
    if any(message["role"] == "tool" for message in exchange.body["messages"]):
        answer(exchange)
        return
    calls = [
        {"id": "call_a", "type": "function", "function": {"name": "add", "arguments": '{"a": 15, "b": 27}'}},
        {"id": "call_b", "type": "function", "function": {"name": "look", "arguments": "{broken"}},
    ]
    if not exchange.streaming:
        message = {"role": "assistant", "content": None, "tool_calls": calls}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        exchange.send_json(200, exchange.chunk([choice]) | {"object": "chat.completion", "usage": USAGE})
        return
    exchange.start_stream()
    for index, call in enumerate(calls):
        function: Any = call["function"]
        whole, half = function["arguments"], len(function["arguments"]) // 2
        first = call | {"index": index, "function": {"name": function["name"], "arguments": whole[:half]}}
        rest = {"index": index, "function": {"arguments": whole[half:]}}
        for piece in (first, rest):
            exchange.send_event(exchange.chunk([{"index": 0, "delta": {"role": "assistant", "tool_calls": [piece]}}]))
    exchange.send_event(exchange.chunk([{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]))
    exchange.end_stream()


def no_tools(exchange: Exchange) -> None:
    """Refuses tools, like small local models, and calls one in its text."""
    if "tools" in exchange.body:
        exchange.refuse(400, "this model does not support tools", "invalid_request_error")
    else:
        exchange.answer('I add them. {"tool": "add", "arguments": {"a": 15, "b": 27}}')


def unauthorized(exchange: Exchange) -> None:
    """Repeats the key in its answer, like careless servers."""
    sent = exchange.handler.headers.get("Authorization", "")
    exchange.refuse(401, f"Incorrect API key provided: {sent}", "invalid_request_error", "invalid_api_key")


def forbidden(exchange: Exchange) -> None:
    exchange.refuse(403, "Your country is not supported", "forbidden")


def not_found(exchange: Exchange) -> None:
    exchange.refuse(404, "The model does not exist", "invalid_request_error", "model_not_found")


def bad_request(exchange: Exchange) -> None:
    sent = exchange.handler.headers.get("Authorization", "")
    exchange.refuse(400, f"temperature must be\n at most 2 ({sent})", "invalid_request_error")


def rate_limited(exchange: Exchange) -> None:
    exchange.refuse(429, "Slow down", "rate_limit_error", "rate_limit_exceeded", Retry_After=str(RETRY_AFTER_S))


def briefly_limited(exchange: Exchange) -> None:
    exchange.refuse(429, "Slow down", "rate_limit_error", Retry_After=str(BRIEF_RETRY_AFTER_S))


def quota(exchange: Exchange) -> None:
    exchange.refuse(429, "You exceeded your current quota", "insufficient_quota", "insufficient_quota")


def context_length(exchange: Exchange) -> None:
    message = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
    exchange.refuse(400, message, "invalid_request_error", "context_length_exceeded")


def content_filter(exchange: Exchange) -> None:
    message = "The response was filtered due to the prompt triggering our content management policy."
    exchange.refuse(400, message, "invalid_request_error", "content_filter")


def server_error(exchange: Exchange) -> None:
    exchange.refuse(500, "Something broke", "server_error")


def overloaded(exchange: Exchange) -> None:
    exchange.refuse(503, "Overloaded", "server_error", Retry_After=str(RETRY_AFTER_S))


def html(exchange: Exchange) -> None:
    exchange.send(200, b"<!doctype html><html><body>Log in</body></html>", "text/html")


def not_json(exchange: Exchange) -> None:
    exchange.send(200, b'{"choices": [{"message"')


def no_choices(exchange: Exchange) -> None:
    if exchange.streaming:
        exchange.start_stream()
        exchange.end_stream()
    else:
        exchange.send_json(200, exchange.chunk([], usage=USAGE) | {"object": "chat.completion"})


def cut(exchange: Exchange) -> None:
    """Sends the first half and closes the connection."""
    if exchange.streaming:
        exchange.start_stream()
        exchange.send_piece("Half of ")
        exchange.send_piece("the")
    else:
        exchange.handler.send_response(200)
        exchange.handler.send_header("Content-Type", "application/json")
        exchange.handler.send_header("Content-Length", "1000")
        exchange.handler.end_headers()
        exchange.handler.wfile.write(b'{"choices": [')
    exchange.hang_up()


def quiet_end(exchange: Exchange) -> None:
    """Ends a stream properly, but without a finish reason and without [DONE]."""
    exchange.start_stream()
    exchange.send_piece("Half of ")
    exchange.send_piece("the")
    exchange.send_chunk(b"")


def verbatim(exchange: Exchange) -> None:
    """Sends the given reply unchanged: a body, or a whole stream."""
    content_type = "text/event-stream" if exchange.streaming else "application/json"
    exchange.send(200, exchange.reply(exchange.body).encode("utf-8", "surrogateescape"), content_type)


def verbatim_cut(exchange: Exchange) -> None:
    """Sends the given reply, promises more and closes the connection."""
    content = exchange.reply(exchange.body).encode("utf-8", "surrogateescape")
    exchange.handler.send_response(200)
    exchange.handler.send_header("Content-Type", "text/event-stream" if exchange.streaming else "application/json")
    exchange.handler.send_header("Content-Length", str(len(content) + 10))
    exchange.handler.end_headers()
    exchange.handler.wfile.write(content)
    exchange.hang_up()


def echo_key(exchange: Exchange) -> None:
    """Repeats the key in every text of a reply, one character at a time."""
    key = exchange.handler.headers.get("Authorization", "")
    call = {"id": key, "type": "function", "function": {"name": key, "arguments": json.dumps({key: key})}}
    chunks = [{"reasoning_content": key}, {"tool_calls": [{"index": 0, **call}]}, *({"content": sign} for sign in key)]
    _send_in_pieces(exchange, chunks, model=key)


def unclean(exchange: Exchange) -> None:
    """Sends halves of surrogate pairs and NUL in every text of a reply."""
    text = "a \ud83d b \0 c"
    call = {"id": text, "type": "function", "function": {"name": text, "arguments": json.dumps({text: text})}}
    chunks = [
        {"reasoning_content": text},
        {"tool_calls": [{"index": 0, **call}]},
        *({"content": sign} for sign in text),
    ]
    _send_in_pieces(exchange, chunks, model=text)


def _send_in_pieces(exchange: Exchange, deltas: list[Body], *, model: str) -> None:
    exchange.start_stream()
    for delta in deltas:
        exchange.send_event({**exchange.chunk([{"index": 0, "delta": delta}]), "model": model})
    exchange.send_event(exchange.chunk([{"index": 0, "delta": {}, "finish_reason": "stop"}]))
    exchange.end_stream()


def error_in_stream(exchange: Exchange) -> None:
    exchange.start_stream()
    exchange.send_piece(PARTIAL_REPLY)
    exchange.send_event({"error": {"message": "The worker died", "type": "server_error", "code": 500}})
    exchange.end_stream()


def reset(exchange: Exchange) -> None:
    exchange.reset()


def silent(exchange: Exchange) -> None:
    """Never answers; returns when the client has disconnected."""
    exchange.client_left(None)
    exchange.hang_up()


def stalled(exchange: Exchange) -> None:
    """Sends a first piece, then nothing; returns when the client has disconnected."""
    exchange.start_stream()
    exchange.send_piece(PARTIAL_REPLY)
    exchange.client_left(None)
    exchange.hang_up()


def drip(exchange: Exchange) -> None:
    """Sends a piece every hundredth of a second forever, so that no read timeout fires."""
    exchange.start_stream()
    while not exchange.client_left(0.01):
        exchange.send_piece("drip ")
    exchange.hang_up()


def no_usage(exchange: Exchange) -> None:
    exchange.answer(exchange.reply(exchange.body), usage=None)


def truncated(exchange: Exchange) -> None:
    exchange.answer(PARTIAL_REPLY, finish="length")


def huge(exchange: Exchange) -> None:
    exchange.answer("x" * HUGE_REPLY_CHARACTERS)


def refusing(status: int, body: Any, content_type: str = "application/json", **headers: str) -> Behavior:
    """Answers every request with that error response; text and bytes are sent unchanged, anything else as JSON."""
    content = body.encode() if isinstance(body, str) else body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda exchange: exchange.send(status, content, content_type, **headers)


def picky(refusal: Callable[[Body], Any], status: int = 400, text: str | None = None) -> Behavior:
    """Answers with the error body that `refusal` returns for a request; normally if that is None."""

    def behave(exchange: Exchange) -> None:
        refused = refusal(exchange.body)
        if refused is None:
            exchange.answer(exchange.reply(exchange.body) if text is None else text)
        else:
            exchange.send_json(status, {"error": {"message": refused}} if isinstance(refused, str) else refused)

    return behave


BEHAVIORS: dict[str, Callable[[Exchange], None]] = {
    "plain": answer,
    "stream": answer,
    "structured": structured,
    "tool-calls": tool_calls,
    "no-tools": no_tools,
    "no-schema": no_schema,
    "no-response-format": no_response_format,
    "unauthorized": unauthorized,
    "forbidden": forbidden,
    "not-found": not_found,
    "bad-request": bad_request,
    "rate-limited": rate_limited,
    "briefly-limited": briefly_limited,
    "quota": quota,
    "context-length": context_length,
    "content-filter": content_filter,
    "server-error": server_error,
    "overloaded": overloaded,
    "html": html,
    "not-json": not_json,
    "no-choices": no_choices,
    "cut": cut,
    "quiet-end": quiet_end,
    "error-in-stream": error_in_stream,
    "reset": reset,
    "silent": silent,
    "stalled": stalled,
    "drip": drip,
    "verbatim": verbatim,
    "verbatim-cut": verbatim_cut,
    "echo-key": echo_key,
    "unclean": unclean,
    "no-usage": no_usage,
    "truncated": truncated,
    "huge": huge,
}
