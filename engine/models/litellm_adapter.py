"""Models called through litellm: OpenAI, Anthropic, Ollama and every other provider that litellm knows.

One call is one request: retries and deadlines belong to the runner. Cancelling the awaiting task closes the connection.

litellm takes seconds to import, and by default fetches price lists, reads `.env` files and prints advice. It is
imported once, in a thread, with all of that switched off. It also opens clients and a background task for each event
loop, which are closed with the last model of that loop.

Prices come from litellm's own list and are estimates; `Reply.cost_usd` is more accurate if the provider reports it.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import os
import threading
import warnings
import weakref
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

from engine.models.keys import Endpoint, Keys, find_endpoint
from engine.models.price_list import price_entries, price_of_entry
from engine.models.protocol import (
    ModelError,
    ModelErrorKind,
    OnText,
    Price,
    Reply,
    Request,
    clean_request,
    estimated_usage,
)
from engine.models.providers import AddressError, origin_of, provider_named
from engine.models.quirks import Change, Changes, apply_changes, change_warnings, next_change, response_format
from engine.models.reply_parser import ReplyParser
from engine.models.server_errors import refusal_words, translate
from engine.models.token_count import counted_tokens, token_counter
from engine.models.tool_calls import openai_message, openai_tools, parse_written_calls
from engine.values import Value

_SETTINGS = {"LITELLM_OFFLINE_MODE": "true", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}
_NEVER_STARTED = (
    r"coroutine '(OpenAIChatCompletion|BaseLLMHTTPHandler|AnthropicChatCompletion|VertexLLM)\.\w+' was never"
)
_lock = threading.Lock()
_loaded: list[ModuleType] = []
_users: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.WeakSet[object]] = weakref.WeakKeyDictionary()


async def load_litellm() -> ModuleType:
    """The litellm module; the first call imports it in a thread, so that the event loop is not blocked."""
    return _loaded[0] if _loaded else await asyncio.to_thread(_load)


def _load() -> ModuleType:
    with _lock:
        if not _loaded:
            os.environ.update(_SETTINGS)
            litellm: Any = importlib.import_module("litellm")
            # Attributes of the module, so that an earlier import by other code makes no difference.
            litellm.suppress_debug_info = True
            litellm.telemetry = False
            litellm.drop_params = False
            # Only httpx: aiohttp would read a netrc file and send its contents.
            litellm.disable_aiohttp_transport = True
            # litellm would use one client on all event loops, which works on the first of them only.
            litellm.module_level_aclient = _LoopClient()
            importlib.import_module("engine.models.reply_hook").install_hook()
            # litellm prepares a call in a thread; if the call is cancelled meanwhile, its coroutine is never started.
            warnings.filterwarnings("ignore", message=_NEVER_STARTED, category=RuntimeWarning)
            _loaded.append(litellm)
        return _loaded[0]


class _LoopClient:
    """Proxy of the running event loop's HTTP client, which is closed with the others of that loop."""

    def __getattr__(self, name: str) -> Any:
        handlers: Any = importlib.import_module("litellm.llms.custom_httpx.http_handler")
        return getattr(handlers.get_async_httpx_client(llm_provider="anthropic"), name)


def use_litellm(user: object) -> None:
    """Register `user` as making calls on the running event loop."""
    _users.setdefault(asyncio.get_running_loop(), weakref.WeakSet()).add(user)


async def release_litellm(user: object) -> None:
    """Unregister `user`; the last one on an event loop closes what litellm has opened for it."""
    loop = asyncio.get_running_loop()
    users = _users.get(loop)
    if users is None or user not in users:
        return
    users.discard(user)
    if users:
        return
    await _stop_logging(loop)
    await _close_clients(_loaded[0].in_memory_llm_clients_cache)
    if not any(_users.values()):
        await _close_shared_client(_loaded[0])


async def _stop_logging(loop: asyncio.AbstractEventLoop) -> None:
    from litellm.litellm_core_utils import logging_worker

    worker: Any = logging_worker.GLOBAL_LOGGING_WORKER
    task: asyncio.Task[None] | None = getattr(worker, "_worker_task", None)
    # There is one worker for all loops; it belongs to the loop that called last.
    if task is not None and task.get_loop() is loop:
        await worker.flush()
        await worker.stop()


async def _close_shared_client(litellm: ModuleType) -> None:
    """Close the client of Anthropic's streams; litellm makes another one for the next event loop when needed."""
    handler: Any = vars(litellm).pop("module_level_aclient", None)
    if handler is not None:
        with contextlib.suppress(OSError, RuntimeError):
            await handler.client.aclose()


async def _close_clients(cache: Any) -> None:
    from litellm.caching.evicted_client_closer import running_loop_token

    ending = f"-{running_loop_token()}"
    mine = [key for key in list(cache.cache_dict) if key.endswith(ending)]
    for key in mine:
        client: Any = cache.cache_dict.pop(key)
        cache.ttl_dict.pop(key, None)
        close = getattr(client, "aclose", None) or client.close
        with contextlib.suppress(OSError, RuntimeError):
            closing = close()
            if inspect.isawaitable(closing):
                await closing


def local_price(
    listed: Mapping[str, Mapping[str, Any]], name: str, api_base: str | None, environment: Mapping[str, str]
) -> Price | None:
    """The price of a model.

    0.0 for a provider that runs on the user's own computer. None if unknown: for a model that is not in the list, and
    for any model at another address than its provider's, which may be anything, even a paid service.

    Args:
        listed: litellm's list.
        name: The model's full name.
        api_base: The address given for it.
        environment: The user's environment variables, which may contain another address for the provider.
    """
    prefix, _, model = name.partition("/")
    provider = provider_named(prefix)
    address = api_base or provider.address_in(environment)
    if provider.local:
        # Ollama's cloud service is called like a local one, and is not free.
        return None if address and "ollama.com" in address else Price(0.0, 0.0)
    if address and not _is_one_of(address, provider.addresses):
        return None
    entry = listed.get(name) or listed.get(model) or {}
    if not str(entry.get("litellm_provider", "")).startswith(prefix):
        return None
    return price_of_entry(entry)


def _is_one_of(address: str, addresses: tuple[str, ...]) -> bool:
    try:
        return origin_of(address) in {origin_of(own) for own in addresses}
    except AddressError:
        return False


# For each read. The engine sets a deadline for the whole call. A model may think for minutes before it replies.
_READ_TIMEOUT_S = 600.0
_CONNECT_TIMEOUT_S = 15.0
_ACCOUNT_HEADERS = (
    ("OPENAI_ORGANIZATION", "OpenAI-Organization"),
    ("OPENAI_ORG_ID", "OpenAI-Organization"),
    ("OPENAI_PROJECT_ID", "OpenAI-Project"),
)
# litellm has its own client for the other providers.
_CALLED_BY_OPENAI_CLIENT = frozenset({"openai", "perplexity", "cerebras", "lm_studio", "llamafile"})
_OPENAI_COMPATIBLE = _CALLED_BY_OPENAI_CLIENT.union(
    ("hosted_vllm", "groq", "mistral", "deepseek", "openrouter", "xai", "together_ai", "fireworks_ai")
)
# For these the server decides, and not litellm's list of which model accepts what.
_DECIDED_BY_SERVER = ["top_p", "stop", "seed", "reasoning_effort"]
_REFUSAL_KINDS = frozenset({ModelErrorKind.BAD_REQUEST, ModelErrorKind.NOT_FOUND, ModelErrorKind.SERVER})
_TOKEN_LIMIT_CHANGES = (Change.MAX_COMPLETION_TOKENS, Change.MAX_TOKENS)
# Further parameters of Anthropic; litellm reads them from the top level, which also has its own settings.
_ANTHROPIC_EXTRAS = frozenset({"top_k", "thinking", "metadata", "service_tier", "container", "output_config"})


class LiteLLMModel:
    """A model that litellm calls.

    Args:
        name: litellm's name for it (`openai/gpt-4o-mini`, `ollama_chat/llama3.2`).
        api_base: The address of its server; None for that of the user's environment, else the provider's own.
        keys: The user's keys.
        environment: The user's environment variables; by default those of the process.
    """

    def __init__(
        self, name: str, *, api_base: str | None = None, keys: Keys, environment: Mapping[str, str] | None = None
    ) -> None:
        self._name = name
        self._api_base = api_base
        self._keys = keys
        self._environment = os.environ if environment is None else environment
        self._changes: Changes = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r}, api_base={self._api_base!r})"

    @property
    def name(self) -> str:
        """The name that litellm uses."""
        return self._name

    @property
    def note(self) -> str:
        """Empty: there is nothing to note."""
        return ""

    async def price(self) -> Price | None:
        """Its price in litellm's bundled list; None for an unknown model and for a custom server."""
        listed = await asyncio.to_thread(price_entries)
        return local_price(listed, self._name, self._api_base, self._environment)

    async def count_tokens(self, texts: Sequence[str]) -> int | None:
        """Count tokens with the model's tokenizer, or generously if it is unknown; see `counted_tokens`."""
        return await asyncio.to_thread(counted_tokens, self._name, texts)

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Make one call; with `on_text` as a stream.

        If the server refuses a setting, a role or a format, the call is repeated without it. What worked is remembered,
        and the reply carries a warning.

        Raises:
            ModelError: The call gave no usable reply.
        """
        request = clean_request(request)
        endpoint = await asyncio.to_thread(find_endpoint, self._name, self._api_base, self._keys, self._environment)
        litellm = await load_litellm()
        use_litellm(self)
        call = _Call(litellm, self._name, endpoint, self._keys)
        changes, known, streams = self._changes, call.known_changes(request), on_text is not None
        while True:
            try:
                reply = await call.make(request, (*changes, *known), on_text)
            except _RefusedError as error:
                change = next_change(error.failure, error.words, request, (*changes, *known), streams=streams)
                if change is None:
                    raise error.failure from None
                changes = (*changes, change)
            else:
                self._changes = (*self._changes, *(change for change in changes if change not in self._changes))
                warnings = change_warnings(endpoint.title, request, changes, streams=streams)
                if Change.TOOLS_IN_WORDS in (*changes, *known):
                    reply = parse_written_calls(reply, request)
                reply = await self._with_counted_tokens(reply, request)
                return replace(reply, warnings=(*reply.warnings, *warnings)) if warnings else reply

    async def _with_counted_tokens(self, reply: Reply, request: Request) -> Reply:
        """The reply with tokens that its server did not count, counted by the model's tokenizer if that is known."""
        count = None if reply.usage.exact else await asyncio.to_thread(token_counter, self._name)
        if count is None:
            return reply
        written, calls = (reply.text, reply.reasoning), reply.tool_calls
        usage = await asyncio.to_thread(estimated_usage, request, *written, tool_calls=calls, count=count)
        return replace(reply, usage=usage)

    async def close(self) -> None:
        """Close the connections if no other model uses this event loop."""
        await release_litellm(self)


class _RefusedError(Exception):
    """The server refused a request, and may accept it in another form.

    Attributes:
        failure: The error if it does not.
        words: What the server said.
    """

    def __init__(self, failure: ModelError, words: str) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.words = words


class _Call:
    """One call of a model, which may be repeated in another form."""

    def __init__(self, litellm: ModuleType, name: str, endpoint: Endpoint, keys: Keys) -> None:
        self._litellm = litellm
        self._name = name
        self._prefix, self._model = name.split("/", 1)
        self._endpoint = endpoint
        self._keys = keys
        if endpoint.provider.name == "ollama":
            # For a model that is not in its list litellm would first ask a server, and another one than this.
            entry = {
                "litellm_provider": "ollama",
                "mode": "chat",
                "input_cost_per_token": 0.0,
                "output_cost_per_token": 0.0,
            }
            litellm.model_cost.setdefault(f"ollama/{self._model}", entry)

    def known_changes(self, request: Request) -> Changes:
        """Changes that litellm knows to be needed, since it would otherwise use its own replacements."""
        needed: list[Change] = []
        if request.tools and not self._supports("tools"):
            needed.append(Change.TOOLS_IN_WORDS)
        if request.schema is not None and not self._supports("response_format"):
            needed.append(Change.SCHEMA_IN_WORDS)
        return tuple(needed)

    def _supports(self, parameter: str) -> bool:
        """Whether the provider supports a parameter; True if litellm does not know the provider's models."""
        known = self._litellm.get_supported_openai_params(model=self._model, custom_llm_provider=self._prefix)
        return not known or parameter in known

    async def make(self, request: Request, changes: Changes, on_text: OnText | None) -> Reply:
        """Make the call in one form.

        Raises:
            ModelError: The call gave no usable reply.
            _RefusedError: The server refused it, perhaps because of its form.
        """
        from engine.models.reply_hook import feed_replies_to

        sent = apply_changes(request, changes)
        arguments = self._arguments(sent, changes)
        parser = ReplyParser(self._name, self._endpoint, self._keys, sent, on_text)
        try:
            with feed_replies_to(parser):
                if on_text is None or Change.NO_STREAM in changes:
                    return await self._complete(arguments, parser)
                if Change.NO_STREAM_OPTIONS not in changes:
                    arguments["stream_options"] = {"include_usage": True}
                return await self._stream(arguments, parser)
        except ModelError as error:
            error.usage = parser.usage  # of the partial reply, which the provider most likely bills
            raise

    @contextlib.contextmanager
    def _translated_errors(self, parser: ReplyParser) -> Generator[None]:
        try:
            yield
        except ModelError:
            raise
        except Exception as error:  # litellm raises classes of a dozen libraries, and has bugs
            # Without its cause, whose text and request headers may contain the key.
            failure = translate(error, self._model, self._endpoint, self._keys, parser.partial)
            if failure.kind in _REFUSAL_KINDS and not parser.has_begun:
                raise _RefusedError(failure, refusal_words(error)) from None
            raise failure from None

    def _arguments(self, request: Request, changes: Changes) -> dict[str, Any]:
        import httpx

        extra = dict(request.extra_parameters or {})
        arguments: dict[str, Any] = {
            "model": self._name,
            "messages": [openai_message(message, request.tools) for message in request.messages],
            "timeout": httpx.Timeout(_READ_TIMEOUT_S, connect=_CONNECT_TIMEOUT_S),
            "max_retries": 0,
            "api_key": self._endpoint.api_key,
            "api_base": self._endpoint.address,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "stop": list(request.stop) or None,
            "reasoning_effort": request.reasoning_effort,
            "seed": request.seed,
            "tools": openai_tools(request.tools),
            "response_format": None if request.schema is None else response_format(request.schema, changes),
            "extra_headers": self._blank_headers(),
        }
        renamed = next((change for change in reversed(changes) if change in _TOKEN_LIMIT_CHANGES), None)
        if renamed is not None and request.max_tokens is not None:
            extra[renamed.value] = request.max_tokens  # under exactly this name, whatever litellm would choose
        else:
            arguments["max_tokens"] = request.max_tokens
        if self._prefix in _OPENAI_COMPATIBLE:
            arguments["allowed_openai_params"] = _DECIDED_BY_SERVER
        arguments |= self._extras(extra, request)
        return {name: value for name, value in arguments.items() if value is not None}

    def _extras(self, extra: dict[str, Value], request: Request) -> dict[str, Any]:
        """The provider's own parameters, in the place from which litellm sends them unchanged."""
        if not extra:
            return {}
        if self._prefix == "anthropic":
            unknown = next((name for name in extra if name not in _ANTHROPIC_EXTRAS), None)
            if unknown is not None:
                raise ModelError(
                    ModelErrorKind.BAD_REQUEST,
                    f"The extra parameter {unknown[:60]!r} cannot be sent to {self._endpoint.title}.",
                    f"Remove it from 'Extra parameters'. Possible are: {', '.join(sorted(_ANTHROPIC_EXTRAS))}.",
                )
            return extra
        options = extra.get("options")
        if self._endpoint.provider.name == "ollama" and isinstance(options, dict):
            # They would replace the options that litellm derives from the other settings.
            ours: dict[str, Value] = {
                "temperature": request.temperature,
                "top_p": request.top_p,
                "stop": [*request.stop] or None,
                "seed": request.seed,
                "num_predict": request.max_tokens,
            }
            extra["options"] = {**{name: value for name, value in ours.items() if value is not None}, **options}
        return {"extra_body": extra}

    def _blank_headers(self) -> dict[str, str] | None:
        """Empty values for headers that the OpenAI client would take from the user's environment.

        They identify the user's account at OpenAI, and custom ones may contain secrets: no other server may get them.
        """
        if self._prefix not in _CALLED_BY_OPENAI_CLIENT or (self._prefix == "openai" and not self._endpoint.foreign):
            return None
        blank = {name: "" for variable, name in _ACCOUNT_HEADERS if os.environ.get(variable)}
        for line in os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines():
            if name := line.partition(":")[0].strip():
                blank[name] = f"Bearer {self._endpoint.api_key}" if name.lower() == "authorization" else ""
        return blank or None

    async def _complete(self, arguments: dict[str, Any], parser: ReplyParser) -> Reply:
        with self._translated_errors(parser):
            parser.feed(await self._litellm.acompletion(**arguments))
            reply = parser.end()
        parser.emit_text()
        return reply

    async def _stream(self, arguments: dict[str, Any], parser: ReplyParser) -> Reply:
        with self._translated_errors(parser):
            stream: Any = await self._litellm.acompletion(**arguments, stream=True)
        try:
            while True:
                with self._translated_errors(parser):
                    chunk: Any = await anext(stream, None)
                    if chunk is not None:
                        parser.feed(chunk)
                parser.emit_text()
                if chunk is None:
                    break
        finally:
            # If the task is cancelled, litellm leaves the connection open.
            await stream.aclose()
        with self._translated_errors(parser):
            reply = parser.end(stream)
        parser.emit_text()
        return reply
