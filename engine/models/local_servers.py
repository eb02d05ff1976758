"""Search for model servers on this computer: Ollama, LM Studio and llama.cpp.

Servers are searched only on request, at their default ports or at the addresses in their environment variables. No
user data is sent, and responses are limited in size and time and are not trusted.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from pydantic_core import from_json

from engine.models.providers import AddressError, origin_of, provider_named
from engine.values import as_list, as_object

if TYPE_CHECKING:
    import httpx


TIMEOUT_S: Final = 1.5
MAX_BYTES: Final = 2_000_000
MAX_MODELS: Final = 200
_NAME: Final = re.compile(r"[A-Za-z0-9_@~][A-Za-z0-9_.:@+/-]{0,199}")


@dataclass(frozen=True, slots=True)
class LocalServer:
    """Result of querying a server.

    Attributes:
        prefix: Prefix of the names of its models.
        title: Name of the server.
        address: Its address.
        models: Names of its models, as used in workflows.
        problem: Why it has no models, in a sentence; empty if it has some.
        is_running: Whether a server responded at all.
    """

    prefix: str
    title: str
    address: str
    models: tuple[str, ...] = ()
    problem: str = ""
    is_running: bool = True


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of server: prefix of its model names, title, and path of its model list."""

    prefix: str
    title: str
    path: str


_KINDS: Final = (
    _Kind("ollama_chat", "Ollama", "/api/tags"),
    _Kind("lm_studio", "LM Studio", "/models"),
    _Kind("llamafile", "llama.cpp", "/models"),
)


def local_server_title(model: str) -> str:
    """The title of the server that is searched for a model of that name; empty if none is."""
    prefix = model.partition("/")[0]
    return next((kind.title for kind in _KINDS if kind.prefix == prefix), "")


async def find_local_servers(environment: Mapping[str, str] = os.environ) -> list[LocalServer]:
    """Query all kinds of servers concurrently. Takes at most `TIMEOUT_S` and never fails."""
    import httpx

    async with httpx.AsyncClient(trust_env=False, timeout=TIMEOUT_S, headers={"Accept-Encoding": "identity"}) as client:
        return list(await asyncio.gather(*(_ask(client, kind, environment) for kind in _KINDS)))


async def _ask(client: httpx.AsyncClient, kind: _Kind, environment: Mapping[str, str]) -> LocalServer:
    import httpx

    provider = provider_named(kind.prefix)
    # `localhost` may resolve to two addresses that are tried one after the other.
    address = provider.address_in(environment) or provider.addresses[0].replace("//localhost", "//127.0.0.1")
    found = partial(LocalServer, kind.prefix, kind.title, address)
    not_this_kind = found(problem=f"The server at {address} is not {kind.title}.")
    try:
        origin_of(address)
        async with asyncio.timeout(TIMEOUT_S):
            content = await _read(client, address.rstrip("/") + kind.path)
    except AddressError as error:
        return found(problem=str(error))
    except (httpx.ConnectError, httpx.ConnectTimeout):
        return found(problem=f"{kind.title} is not running at {address}.", is_running=False)
    except (TimeoutError, httpx.TimeoutException):
        return found(problem=f"{kind.title} at {address} did not respond in time.")
    except (httpx.HTTPError, httpx.InvalidURL):
        return not_this_kind
    names = None if content is None else _names(content)
    if names is None:
        return not_this_kind
    problem = "" if names else f"{kind.title} is running at {address} but has no models."
    return found(tuple(f"{kind.prefix}/{name}" for name in names), problem)


async def _read(client: httpx.AsyncClient, address: str) -> bytes | None:
    """Return the body of a successful response of acceptable size, else None."""
    async with client.stream("GET", address) as response:
        if response.status_code != 200:
            return None
        content = b""
        async for piece in response.aiter_raw():
            content += piece
            if len(content) > MAX_BYTES:
                return None
        return content


def _names(content: bytes) -> list[str] | None:
    """Return the model names of a response in the format of Ollama or OpenAI, else None."""
    try:
        parsed = from_json(content)
    except ValueError:
        return None
    answer = as_object(parsed)
    entries, key = (answer["data"], "id") if "data" in answer else (answer.get("models"), "name")
    names = (_callable_name(str(entry.get(key) or "")) for entry in map(as_object, as_list(entries)))
    return [name for name in dict.fromkeys(names) if name][:MAX_MODELS] if isinstance(entries, list) else None


def _callable_name(name: str) -> str:
    """Return the name to call the model by; llama.cpp may report a file path, but accepts any name."""
    short = re.split(r"[/\\]", name)[-1] if name.startswith(("/", ".")) or "\\" in name else name
    return short if _NAME.fullmatch(short) else ""
