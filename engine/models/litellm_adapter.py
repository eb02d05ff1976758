"""Models called through litellm: OpenAI, Anthropic, Ollama and every other provider that litellm knows.

One call is one request: retries and deadlines are the runner's. Cancelling the awaiting task closes the connection.

litellm takes seconds to import, and by default fetches price lists, reads `.env` files and prints advice. It is
imported once, in a thread, with all of that switched off. It also keeps clients and a background task for each event
loop; they are closed together with the last model of that loop.

Prices come from litellm's own list and are estimates; `Reply.cost_usd` is better where a provider reports it.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import os
import re
import threading
import warnings
import weakref
from collections.abc import Generator, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any, Final

from engine.models.keys import Destination, Keys, find_destination
from engine.models.protocol import (
    LongPrice,
    ModelError,
    ModelErrorKind,
    OnText,
    Price,
    Reply,
    Request,
    clean_request,
)
from engine.models.providers import AddressError, origin_of, provider_named
from engine.models.quirks import Change, Changes, changed, next_change, response_format, schema_mode, warnings_of
from engine.models.reply_parser import ReplyParser, read_cost_usd
from engine.models.server_errors import Refusal, refusal, translate
from engine.models.tool_calls import call_message, offered, read_in_words
from engine.values import Value

_SETTINGS = {
    "LITELLM_OFFLINE_MODE": "true",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",
}
_NEVER_STARTED = (
    r"coroutine '(OpenAIChatCompletion|BaseLLMHTTPHandler|AnthropicChatCompletion|VertexLLM)\.\w+' was never"
)
_lock = threading.Lock()
_loaded: list[ModuleType] = []
_users: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.WeakSet[object]] = weakref.WeakKeyDictionary()


async def load_litellm() -> ModuleType:
    """Give the litellm module; the first call imports it in a thread, so that the event loop goes on."""
    return _loaded[0] if _loaded else await asyncio.to_thread(_load)


def _load() -> ModuleType:
    with _lock:
        if not _loaded:
            os.environ.update(_SETTINGS)
            litellm = importlib.import_module("litellm")
            # Attributes of the module, so that an import by someone else before ours makes no difference.
            settings: dict[str, object] = {
                "suppress_debug_info": True,
                "telemetry": False,
                "drop_params": False,
                # httpx alone: aiohttp would read a netrc file and send what it finds there.
                "disable_aiohttp_transport": True,
                # litellm would use one client on all event loops; it works on the first of them alone.
                "module_level_aclient": _LoopClient(),
            }
            for name, value in settings.items():
                setattr(litellm, name, value)
            importlib.import_module("engine.models.reply_hook").install_hook()
            # litellm prepares a call in a thread; what it made for one cancelled meanwhile is thrown away unused.
            warnings.filterwarnings("ignore", message=_NEVER_STARTED, category=RuntimeWarning)
            _loaded.append(litellm)
        return _loaded[0]


class _LoopClient:
    """Stands for the running event loop's HTTP client, which is closed with the others of that loop."""

    def __getattr__(self, name: str) -> Any:
        handlers: Any = importlib.import_module("litellm.llms.custom_httpx.http_handler")
        return getattr(handlers.get_async_httpx_client(llm_provider="anthropic"), name)


def use_litellm(user: object) -> None:
    """Note that `user` makes calls on the running event loop."""
    _users.setdefault(asyncio.get_running_loop(), weakref.WeakSet()).add(user)


async def release_litellm(user: object) -> None:
    """Note that `user` makes no more calls; the last one on an event loop closes what litellm keeps open for it."""
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
    # There is one worker for all loops: it is another's when that one called last.
    if task is not None and task.get_loop() is loop:
        await worker.flush()
        await worker.stop()


async def _close_shared_client(litellm: ModuleType) -> None:
    """Close the client that Anthropic's streams use; litellm makes another one, for the next event loop, when asked."""
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


_ABOVE: Final = re.compile(r"(?:input|output)_cost_per_token_above_(\d+)k_tokens")
"""What is dearer in calls of more than so many thousand tokens; for calls of another kind, more follows in the name."""


def local_price(litellm: ModuleType, name: str, api_base: str | None, environment: Mapping[str, str]) -> Price | None:
    """The price of a model.

    0.0 for a provider that runs on the user's own machine. None where nobody knows: a model that the list does not
    have, and any model at another address than its provider's, since what stands there may be anything, a paid one too.

    Args:
        litellm: The module with the list.
        name: The model's full name.
        api_base: The address given for it.
        environment: The user's environment variables, which may send the provider elsewhere.
    """
    prefix, _, model = name.partition("/")
    provider = provider_named(prefix)
    chosen = next((value for variable in provider.address_variables if (value := environment.get(variable))), None)
    address = api_base or chosen
    if provider.local:
        # Ollama's own service is reached like a local one, and is not free.
        return None if address and "ollama.com" in address else Price(0.0, 0.0)
    if address and not _is_own(address, provider.addresses):
        return None
    listed: Mapping[str, Mapping[str, Any]] = litellm.model_cost
    entry = listed.get(name) or listed.get(model) or {}
    if not str(entry.get("litellm_provider", "")).startswith(prefix):
        return None
    read, written = _usd(entry, "input_cost_per_token"), _usd(entry, "output_cost_per_token")
    if read is None or written is None:
        return None
    return Price(read, written, _usd(entry, "input_cost_per_request") or 0.0, _long_prices(entry, read, written))


def _long_prices(entry: Mapping[str, Any], read: float, written: float) -> tuple[LongPrice, ...]:
    """The prices above so many tokens; what is not dearer there has its usual price."""
    steps = sorted({int(found[1]) for key in entry if (found := _ABOVE.fullmatch(key))})
    prices: list[LongPrice] = []
    for thousands in steps:
        read = _usd(entry, f"input_cost_per_token_above_{thousands}k_tokens") or read
        written = _usd(entry, f"output_cost_per_token_above_{thousands}k_tokens") or written
        prices.append(LongPrice(thousands * 1000, read, written))
    return tuple(prices)


def _usd(entry: Mapping[str, Any], key: str) -> float | None:
    value = entry.get(key)
    return float(value) if isinstance(value, int | float) else None


def _is_own(address: str, addresses: tuple[str, ...]) -> bool:
    try:
        return origin_of(address) in {origin_of(own) for own in addresses}
    except AddressError:
        return False


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
_SPEAKS_LIKE_OPENAI = _CALLED_BY_OPENAI_CLIENT | {
    "hosted_vllm",
    "groq",
    "mistral",
    "deepseek",
    "openrouter",
    "xai",
    "together_ai",
    "fireworks_ai",
}
# For these the server is asked, and not litellm's list of what which model takes.
_LEFT_TO_THE_SERVER = ["top_p", "stop", "seed", "reasoning_effort"]
_NAMES_OF_THE_LIMIT = (Change.MAX_COMPLETION_TOKENS, Change.MAX_TOKENS)
# The other parameters of Anthropic's; litellm sends them from the top level, where its own settings stand too.
_EXTRAS_OF_ANTHROPIC = frozenset({"top_k", "thinking", "metadata", "service_tier", "container", "output_config"})


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
        self._changes: Changes = ()

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

        Where a server refuses a setting, a role or a format, the call is made again without it. What worked is
        remembered, and the reply carries a warning.

        Raises:
            ModelError: The call gave no usable reply.
        """
        request = clean_request(request)
        place = await asyncio.to_thread(find_destination, self._name, self._api_base, self._keys, self._environment)
        litellm = await load_litellm()
        use_litellm(self)
        call = _Call(litellm, self._name, place, self._keys)
        changes, known = self._changes, call.changes_known_before(request)
        while True:
            try:
                reply = await call.make(request, (*changes, *known), on_text)
            except _RefusedError as error:
                change = next_change(error.refusal, request, (*changes, *known), streams=on_text is not None)
                if change is None:
                    raise error.failure from None
                changes = (*changes, change)
            else:
                self._changes = (*self._changes, *(change for change in changes if change not in self._changes))
                told = warnings_of(place.title, request, changes, streams=on_text is not None)
                if Change.TOOLS_IN_WORDS in (*changes, *known):
                    reply = read_in_words(reply, request)
                return replace(reply, warnings=(*reply.warnings, *told)) if told else reply

    async def close(self) -> None:
        """Close the connections that no other model of this event loop uses."""
        await release_litellm(self)


class _RefusedError(Exception):
    """The server refused a request; perhaps it takes the same one in another form.

    Attributes:
        failure: The error for the case that it does not.
        refusal: What the server said.
    """

    def __init__(self, failure: ModelError, refused: Refusal) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.refusal = refused


@contextlib.contextmanager
def _billed(parser: ReplyParser) -> Generator[None]:
    """Note on a failure what had come of the reply, which the provider most likely bills."""
    try:
        yield
    except ModelError as error:
        error.usage = parser.usage
        raise


class _Call:
    """One call of a model, made again where it was refused because of its form."""

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

    def changes_known_before(self, request: Request) -> Changes:
        """Changes to a request that litellm knows to be needed: it would put functions of its own in their place."""
        needed: list[Change] = []
        if request.tools and not self.supports("tools"):
            needed.append(Change.TOOLS_IN_WORDS)
        if request.schema is not None and not self.supports("response_format"):
            needed.append(Change.SCHEMA_IN_WORDS)
        return tuple(needed)

    async def make(self, request: Request, changes: Changes, on_text: OnText | None) -> Reply:
        """Make the call, in one form.

        Raises:
            ModelError: The call gave no usable reply.
            _RefusedError: The server refused it; perhaps because of its form.
        """
        from engine.models.reply_hook import feeding

        asked = changed(request, changes)
        arguments = self._arguments(asked, changes)
        parser = ReplyParser(self._name, self._place, self._keys, asked, on_text)
        with feeding(parser), _billed(parser):
            if on_text is not None and Change.NO_STREAM not in changes:
                if Change.NO_STREAM_OPTIONS not in changes:
                    arguments["stream_options"] = {"include_usage": True}
                return await self._stream(arguments, parser)
            with self._translated(parser):
                parser.take(await self._litellm.acompletion(**arguments))
                reply = parser.end()
            parser.pass_on()
            return reply

    @contextlib.contextmanager
    def _translated(self, parser: ReplyParser) -> Generator[None]:
        try:
            yield
        except ModelError:
            raise
        except Exception as error:  # litellm raises classes of a dozen libraries, and bugs of its own
            # Without its cause: that one's text, and its request's headers, may hold the key.
            failure = translate(error, self._model, self._place, self._keys, parser.partial)
            refused = None if parser.has_begun else refusal(error)
            if refused is not None:
                raise _RefusedError(failure, refused) from None
            raise failure from None

    def _arguments(self, request: Request, changes: Changes) -> dict[str, Any]:
        import httpx

        form = None if request.schema is None else response_format(request.schema, schema_mode(changes))
        extra = dict(request.extra_parameters or {})
        arguments: dict[str, Any] = {
            "model": self._name,
            "messages": [call_message(message, request.tools) for message in request.messages],
            "timeout": httpx.Timeout(_READ_TIMEOUT_S, connect=_CONNECT_TIMEOUT_S),
            "max_retries": 0,
            "api_key": self._place.api_key,
            "api_base": self._place.address,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "stop": list(request.stop) or None,
            "reasoning_effort": request.reasoning_effort,
            "seed": request.seed,
            "tools": offered(request.tools),
            "response_format": form,
            "extra_headers": self._blanked_headers(),
        }
        renamed = next((change for change in reversed(changes) if change in _NAMES_OF_THE_LIMIT), None)
        if renamed is not None and request.max_tokens is not None:
            extra[renamed.value] = request.max_tokens  # as it is written here, whatever litellm would make of it
        else:
            arguments["max_tokens"] = request.max_tokens
        if self._prefix in _SPEAKS_LIKE_OPENAI:
            arguments["allowed_openai_params"] = _LEFT_TO_THE_SERVER
        arguments |= self._extras(extra, request)
        return {name: value for name, value in arguments.items() if value is not None}

    def _extras(self, extra: dict[str, Value], request: Request) -> dict[str, Any]:
        """A provider's own parameters, where litellm sends them on unchanged."""
        if not extra:
            return {}
        if self._prefix == "anthropic":
            unknown = next((name for name in extra if name not in _EXTRAS_OF_ANTHROPIC), None)
            if unknown is not None:
                raise ModelError(
                    ModelErrorKind.BAD_REQUEST,
                    f"The extra parameter {unknown[:60]!r} cannot be sent to {self._place.title}.",
                    f"Remove it from 'Extra parameters'. There are: {', '.join(sorted(_EXTRAS_OF_ANTHROPIC))}.",
                )
            return extra
        options = extra.get("options")
        if self._place.provider.name == "ollama" and isinstance(options, dict):
            # They would replace those that litellm makes of the other settings.
            ours: dict[str, Value] = {
                "temperature": request.temperature,
                "top_p": request.top_p,
                "stop": [*request.stop] or None,
                "seed": request.seed,
                "num_predict": request.max_tokens,
            }
            extra["options"] = {**{name: value for name, value in ours.items() if value is not None}, **options}
        return {"extra_body": extra}

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
        with self._translated(parser):
            stream: Any = await self._litellm.acompletion(**arguments, stream=True)
        try:
            while True:
                with self._translated(parser):
                    chunk: Any = await anext(stream, None)
                    if chunk is not None:
                        parser.take(chunk)
                parser.pass_on()
                if chunk is None:
                    break
        finally:
            # litellm leaves the connection open when the task is cancelled.
            await stream.aclose()
        with self._translated(parser):
            reply = parser.end(stream)
        parser.pass_on()
        return reply
