"""Which models the servers on this machine have: Ollama, LM Studio, llama.cpp, asked only when somebody wants to know.

They are asked where their models would be called: on their usual ports, or where the environment sends them. Nothing of
the user's is sent, and what they say is not believed to be small, quick or well-formed. No Qt here.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import from_json

from engine.models.providers import AddressError, Provider, origin_of, provider_named

if TYPE_CHECKING:
    import httpx

LIMIT_S: Final = 1.5
MAX_BYTES: Final = 2_000_000
MAX_MODELS: Final = 200
_NAME: Final = re.compile(r"[A-Za-z0-9_@~][A-Za-z0-9_.:@+/-]{0,199}")


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server that has been asked.

    Attributes:
        title: What people call it.
        address: Where it was asked.
        models: What documents call its models.
        problem: Why it gave none, in a sentence; empty where it answered well.
        is_running: Whether anything is there at all.
    """

    title: str
    address: str
    models: tuple[str, ...]
    problem: str = ""
    is_running: bool = True


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a kind of server is asked: which prefix its models' names have, its title and where its list of models is."""

    prefix: str
    title: str
    path: str


_KINDS: Final = (
    _Kind("ollama_chat", "Ollama", "/api/tags"),
    _Kind("lm_studio", "LM Studio", "/models"),
    _Kind("llamafile", "llama.cpp", "/models"),
)


async def find_local_servers(environment: Mapping[str, str] = os.environ) -> list[LocalServer]:
    """Ask all kinds of servers at the same time; it takes no longer than `LIMIT_S` and never fails."""
    import httpx

    async with httpx.AsyncClient(trust_env=False, timeout=LIMIT_S, headers={"Accept-Encoding": "identity"}) as client:
        return list(await asyncio.gather(*(_ask(client, kind, environment) for kind in _KINDS)))


async def _ask(client: httpx.AsyncClient, kind: _Kind, environment: Mapping[str, str]) -> LocalServer:
    import httpx

    address = _address(provider_named(kind.prefix), environment)
    try:
        origin_of(address)
        async with asyncio.timeout(LIMIT_S):
            content = await _read(client, address.rstrip("/") + kind.path)
    except AddressError as error:
        return LocalServer(kind.title, address, (), str(error))
    except (httpx.ConnectError, httpx.ConnectTimeout):
        return LocalServer(kind.title, address, (), f"{kind.title} is not running at {address}.", False)
    except (TimeoutError, httpx.TimeoutException):
        return LocalServer(kind.title, address, (), f"{kind.title} at {address} did not answer in time.")
    except (httpx.HTTPError, httpx.InvalidURL):
        return LocalServer(kind.title, address, (), f"What runs at {address} did not answer like {kind.title}.")
    names = None if content is None else _names(content)
    if names is None:
        return LocalServer(kind.title, address, (), f"What runs at {address} did not answer like {kind.title}.")
    problem = "" if names else f"{kind.title} runs at {address} but has no model yet."
    return LocalServer(kind.title, address, tuple(f"{kind.prefix}/{name}" for name in names), problem)


def _address(provider: Provider, environment: Mapping[str, str]) -> str:
    chosen = next((environment[name] for name in provider.address_variables if environment.get(name)), None)
    # By number: `localhost` may be looked up at two places, one after the other.
    return chosen or provider.addresses[0].replace("//localhost", "//127.0.0.1")


async def _read(client: httpx.AsyncClient, address: str) -> bytes | None:
    """The body of a good answer of ordinary size; None for any other."""
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
    """The models' names in Ollama's or in OpenAI's form; None where it is neither."""
    try:
        told: Any = from_json(content)
    except ValueError:
        return None
    if not isinstance(told, dict):
        return None
    entries, key = (told.get("models"), "name") if "data" not in told else (told["data"], "id")
    if not isinstance(entries, list):
        return None
    named = [str(entry.get(key, "")) for entry in entries if isinstance(entry, dict)]
    return list(dict.fromkeys(filter(None, map(_callable_name, named))))[:MAX_MODELS]


def _callable_name(name: str) -> str:
    """The name as it can be called: llama.cpp may give the path of a file, and minds only that there is a name."""
    short = re.split(r"[/\\]", name)[-1] if name.startswith(("/", ".")) or "\\" in name else name
    return short if _NAME.fullmatch(short) else ""
