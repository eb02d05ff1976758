"""Loads litellm once, off the event loop, with everything of it switched off that is not a model call.

litellm takes seconds to import, and would on its own fetch price lists, read `.env` files and print advice. It also
keeps clients and a background task for each event loop; they are given back here when the last model of that loop is
closed.
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
from types import ModuleType
from typing import Any

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
