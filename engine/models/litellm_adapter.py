"""Models behind litellm: OpenAI, Anthropic, Ollama and whatever else it can call.

One call, one request: no retries and no deadline of its own. Cancelling the awaiting task closes the connection. A
reply is text and tool calls, nothing else. It knows nothing of workflows.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Generator, Mapping
from types import ModuleType
from typing import Any

from engine.models.base import (
    ModelError,
    OnText,
    Price,
    Reply,
    Request,
)
from engine.models.destination import Destination, find_destination
from engine.models.keys import Keys
from engine.models.litellm_errors import speaks_of_response_format, speaks_of_tools, translate
from engine.models.litellm_import import load_litellm, release_litellm, use_litellm
from engine.models.litellm_price import local_price
from engine.models.reply_parser import ReplyParser, read_cost_usd
from engine.models.structured import SchemaMode, response_format, with_instruction
from engine.models.tool_calls import call_message, in_words, offered, read_in_words

__all__ = ["LiteLLMModel", "read_cost_usd"]

# For each read, not for the whole call: the deadline is the engine's. A model may think for minutes before it speaks.
_READ_TIMEOUT_S = 600.0
_CONNECT_TIMEOUT_S = 15.0
_ACCOUNT_HEADERS = (
    ("OPENAI_ORGANIZATION", "OpenAI-Organization"),
    ("OPENAI_ORG_ID", "OpenAI-Organization"),
    ("OPENAI_PROJECT_ID", "OpenAI-Project"),
)
# litellm has its own client for the others.
_CALLED_BY_OPENAI_CLIENT = frozenset({"openai", "perplexity", "cerebras", "lm_studio", "llamafile"})


class LiteLLMModel:
    """A model that litellm calls.

    Args:
        name: litellm's name for it (`openai/gpt-4o-mini`, `ollama_chat/llama3.2`).
        api_base: The address of its server; None for the provider's own, or where the user's environment sends it.
        keys: The user's keys.
        environment: The user's environment variables; those of the process if left out.
    """

    def __init__(
        self, name: str, *, api_base: str | None = None, keys: Keys, environment: Mapping[str, str] | None = None
    ) -> None:
        self._name = name
        self._api_base = api_base
        self._keys = keys
        self._environment = os.environ if environment is None else environment
        self._schema_mode = SchemaMode.JSON_SCHEMA
        self._knows_tools = True

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r}, api_base={self._api_base!r})"

    @property
    def name(self) -> str:
        """The name as litellm knows it."""
        return self._name

    @property
    def note(self) -> str:
        """Nothing: such a model is what its provider says."""
        return ""

    async def price(self) -> Price | None:
        """What it costs by litellm's bundled price list; None for an unknown model and for a server of one's own."""
        return local_price(await load_litellm(), self._name, self._api_base, self._environment)

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Make one call; with `on_text` as a stream.

        Where a server refuses the form in which a structured reply is asked for, or knows no tools, the call is made
        once more in a form that it may know, and that form is kept.

        Raises:
            ModelError: The call gave no usable reply.
        """
        place = await asyncio.to_thread(find_destination, self._name, self._api_base, self._keys, self._environment)
        litellm = await load_litellm()
        use_litellm(self)
        call = _Call(litellm, self._name, place, self._keys)
        if request.tools and self._knows_tools and call.supports("tools"):
            try:
                return await self._made(call, request, on_text)
            except _ToolsRefusedError:
                self._knows_tools = False
        return read_in_words(await self._made(call, in_words(request), on_text), request)

    async def _made(self, call: _Call, request: Request, on_text: OnText | None) -> Reply:
        """Make the call, a structured reply asked for in a form that the server knows."""
        if request.schema is None:
            return await call.make(request, SchemaMode.INSTRUCTION, on_text)
        mode = self._schema_mode if call.supports("response_format") else SchemaMode.INSTRUCTION
        while True:
            try:
                reply = await call.make(request, mode, on_text)
            except _FormatRefusedError:
                mode = mode.simpler
            else:
                self._schema_mode = mode
                return reply

    async def close(self) -> None:
        """Close the connections that no other model of this event loop uses."""
        await release_litellm(self)


class _FormatRefusedError(Exception):
    """The server does not know the form in which a structured reply was asked for; never raised for the plainest."""


class _ToolsRefusedError(Exception):
    """The server, or the model, knows no tools."""


class _Call:
    """One call of a model, or two where the first was refused because of its form."""

    def __init__(self, litellm: ModuleType, name: str, place: Destination, keys: Keys) -> None:
        self._litellm = litellm
        self._name = name
        self._prefix, self._model = name.split("/", 1)
        self._place = place
        self._keys = keys
        if place.provider.name == "ollama":
            # For a model that is not in its list litellm would first ask a server, and not the one given here.
            entry = {
                "litellm_provider": "ollama",
                "mode": "chat",
                "input_cost_per_token": 0.0,
                "output_cost_per_token": 0.0,
            }
            litellm.model_cost.setdefault(f"ollama/{self._model}", entry)

    def supports(self, parameter: str) -> bool:
        """Whether the provider knows a parameter; True where litellm does not know the provider's models."""
        known = self._litellm.get_supported_openai_params(model=self._model, custom_llm_provider=self._prefix)
        return not known or parameter in known

    async def make(self, request: Request, mode: SchemaMode, on_text: OnText | None) -> Reply:
        """Make the call, in one form.

        Raises:
            ModelError: The call gave no usable reply.
            _FormatRefusedError: The server does not know the form.
            _ToolsRefusedError: It knows no tools.
        """
        from engine.models.reply_hook import feeding

        arguments = self._arguments(request, mode)
        parser = ReplyParser(self._name, self._place, self._keys, request, on_text)
        with feeding(parser):
            if on_text is not None:
                return await self._stream(arguments, parser)
            with self._translated(arguments, parser):
                parser.take(await self._litellm.acompletion(**arguments))
                return parser.end()

    @contextlib.contextmanager
    def _translated(self, arguments: dict[str, Any], parser: ReplyParser) -> Generator[None]:
        try:
            yield
        except ModelError:
            raise
        except Exception as error:  # litellm raises classes of a dozen libraries, and bugs of its own
            # Without its cause: that one's text, and its request's headers, may hold the key.
            if "response_format" in arguments and not parser.partial and speaks_of_response_format(error):
                raise _FormatRefusedError from None
            if "tools" in arguments and not parser.partial and speaks_of_tools(error):
                raise _ToolsRefusedError from None
            raise translate(error, self._model, self._place, self._keys, parser.partial) from None

    def _arguments(self, request: Request, mode: SchemaMode) -> dict[str, Any]:
        import httpx

        messages = request.messages
        if request.schema is not None and mode is not SchemaMode.JSON_SCHEMA:
            messages = with_instruction(messages, request.schema)
        arguments: dict[str, Any] = {
            "model": self._name,
            "messages": [call_message(message, request.tools) for message in messages],
            "timeout": httpx.Timeout(_READ_TIMEOUT_S, connect=_CONNECT_TIMEOUT_S),
            "max_retries": 0,
            "api_key": self._place.api_key,
            "api_base": self._place.address,
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
            # 'where the model can do that'
            "seed": request.seed if self.supports("seed") else None,
            "tools": offered(request.tools),
            "response_format": None if request.schema is None else response_format(request.schema, mode),
            "extra_headers": self._blanked_headers(),
        }
        return {name: value for name, value in arguments.items() if value is not None}

    def _blanked_headers(self) -> dict[str, str] | None:
        """Headers that the OpenAI client would take from the user's environment, with nothing in them.

        They name the user's account there, and the custom ones may hold secrets: no business of any other server.
        """
        if self._prefix not in _CALLED_BY_OPENAI_CLIENT or (self._prefix == "openai" and not self._place.foreign):
            return None
        blanked = {name: "" for variable, name in _ACCOUNT_HEADERS if os.environ.get(variable)}
        for line in os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines():
            if name := line.partition(":")[0].strip():
                blanked[name] = f"Bearer {self._place.api_key}" if name.lower() == "authorization" else ""
        return blanked or None

    async def _stream(self, arguments: dict[str, Any], parser: ReplyParser) -> Reply:
        with self._translated(arguments, parser):
            options = {"include_usage": True}
            stream: Any = await self._litellm.acompletion(**arguments, stream=True, stream_options=options)
        try:
            while True:
                with self._translated(arguments, parser):
                    chunk: Any = await anext(stream, None)
                    if chunk is not None:
                        parser.take(chunk)
                parser.pass_on()
                if chunk is None:
                    break
        finally:
            # litellm leaves the connection open when the task is cancelled.
            await stream.aclose()
        with self._translated(arguments, parser):
            reply = parser.end(stream)
        parser.pass_on()
        return reply
