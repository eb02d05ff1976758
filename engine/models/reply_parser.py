"""Reads what litellm returns, whole or chunk by chunk, into a `Reply`.

Types from a server are never trusted. It sends nothing and knows nothing of the request but its texts and tools.
"""

from __future__ import annotations

from typing import Any, Final

from engine.models.base import Finish, ModelError, ModelErrorKind, OnText, Reply, Request, Usage
from engine.models.destination import Destination
from engine.models.litellm_errors import model_error
from engine.models.tool_calls import PartialCalls

_CHARACTERS_PER_TOKEN: Final = 4
_FINISHES: Final = {
    "stop": Finish.STOP,
    "length": Finish.LENGTH,
    "content_filter": Finish.CONTENT_FILTER,
    "tool_calls": Finish.TOOL_CALLS,
}


class ReplyParser:
    """Parses one reply.

    Args:
        name: The model's full name (`openai/gpt-4o-mini`).
        place: Where the request went, for error messages.
        request: What was asked.
        on_text: Receives each piece of a streamed text.
    """

    def __init__(self, name: str, place: Destination, request: Request, on_text: OnText | None = None) -> None:
        self._prefix, self._model = name.split("/", 1)
        self._place = place
        self._request = request
        self._on_text = on_text
        self._pieces: list[str] = []
        self._calls = PartialCalls()
        self._finish = ""
        self._usage: Any = None

    @property
    def partial(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    def read(self, response: Any) -> Reply:
        """Parse a reply that came whole.

        Raises:
            ModelError: It is unusable (`BAD_REPLY`).
        """
        if not response.choices:
            raise self._bad_reply()
        choice: Any = response.choices[0]
        self._calls.take(getattr(choice.message, "tool_calls", None))
        self._pieces.append(choice.message.content or "")
        self._finish = choice.finish_reason or ""
        return self._reply(getattr(response, "usage", None), response)

    def take(self, chunk: Any) -> None:
        """Parse one chunk of a stream."""
        self._usage = getattr(chunk, "usage", None) or self._usage
        if not chunk.choices:
            return
        choice: Any = chunk.choices[0]
        self._finish = choice.finish_reason or self._finish
        self._calls.take(getattr(choice.delta, "tool_calls", None))
        if piece := choice.delta.content or "":
            self._pieces.append(piece)
            if self._on_text is not None:
                self._on_text(piece)

    def end(self, stream: Any) -> Reply:
        """Return the reply of a stream that has ended.

        Raises:
            ModelError: It is unusable (`BAD_REPLY`).
        """
        # litellm makes up the end of a stream in which the server said nothing at all (a web page, for example).
        if not self._pieces and getattr(stream, "received_finish_reason", None) is None:
            raise self._bad_reply()
        # ... and the usage, where no chunk from the server has one.
        given = any(getattr(chunk, "usage", None) is not None for chunk in getattr(stream, "chunks", ()))
        return self._reply(self._usage if given else None, stream)

    def _reply(self, usage: Any, answer: Any) -> Reply:
        text = self.partial
        return Reply(
            text,
            _FINISHES.get(self._finish, Finish.OTHER),
            _usage(usage, self._request, text),
            str(getattr(answer, "model", None) or self._model),
            read_cost_usd(usage, self._prefix),
            self._calls.whole(self._request.tools),
        )

    def _bad_reply(self) -> ModelError:
        return model_error(ModelErrorKind.BAD_REPLY, self._model, self._place)


def _usage(usage: Any, request: Request, text: str) -> Usage:
    """The tokens as the provider counted them; where it did not, an estimate at four characters a token."""
    read, written = getattr(usage, "prompt_tokens", 0) or 0, getattr(usage, "completion_tokens", 0) or 0
    if read or written:
        return Usage(int(read), int(written))
    characters = sum(len(message.text) for message in request.messages)
    return Usage(-(-characters // _CHARACTERS_PER_TOKEN), -(-len(text) // _CHARACTERS_PER_TOKEN), exact=False)


def read_cost_usd(usage: Any, prefix: str) -> float | None:
    """The price in US dollars that the provider gave with a reply. OpenRouter does; others' are litellm's own."""
    cost = getattr(usage, "cost", None) if prefix == "openrouter" else None
    return float(cost) if isinstance(cost, int | float) else None
