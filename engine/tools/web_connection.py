"""Connecting to a host of the web that was named by a document or a model, and to no other.

A name is resolved once, every address that it has must be a permitted one, and the connection goes to exactly the
address that was checked, so that a name which answers differently the second time gains nothing. Each connection serves
one request, without cookies. Proxies named in the environment are not used: a proxy would resolve the name itself and
make the check worthless. (Certificates named there, by SSL_CERT_FILE, are.) Knows nothing of what is asked.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.tools.base import ToolError
from engine.tools.sandbox import shown

if TYPE_CHECKING:
    import httpx

_MOST_ADDRESSES_TRIED = 3


@dataclass(frozen=True, slots=True)
class Network:
    """How a name becomes addresses, and which of them may be reached.

    Attributes:
        resolve: Gives the addresses of a host name or a written address, for a port; raises OSError or UnicodeError.
        permits: Says whether an address may be connected to.
    """

    resolve: Callable[[str, int], Awaitable[list[str]]]
    permits: Callable[[str], bool]


async def resolve(host: str, port: int) -> list[str]:
    """Ask the system for the addresses of a host, in the order in which it would try them."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def named(url: str) -> str:
    """An address for an error message, without the query and a name before an `@`: either may be a secret."""
    return shown(url.partition("?")[0].rpartition("@")[2])


def parse_url(text: str, base: httpx.URL | None = None) -> httpx.URL:
    """Read an address, or a redirect's target, which may be relative to `base`.

    Raises:
        ToolError: It is no address of the web, or holds a user name or password.
    """
    import httpx

    try:
        url = httpx.URL(text.strip()) if base is None else base.join(text)
        usable = url.scheme in {"http", "https"} and bool(url.host) and (url.port is None or 0 < url.port < 65536)
    except (httpx.InvalidURL, ValueError) as error:
        raise ToolError(f"The address {named(text)} cannot be read.", "Check how it is written.") from error
    if url.userinfo:
        raise ToolError(
            f"The address {named(text)} has a user name or password in front.", "Leave out what stands before the '@'."
        )
    if not usable:
        raise ToolError(
            f"The address {named(text)} is none of the web.",
            "Begin it with http:// or https:// and the name of a host.",
        )
    return url


@asynccontextmanager
async def answer(url: httpx.URL, network: Network, timeout_s: float) -> AsyncGenerator[httpx.Response]:
    """Connect to a checked address of the host and give its answer, the body unread; close the connection at the end.

    Args:
        url: As `parse_url` gives it.
        network: What may be reached.
        timeout_s: For connecting, shared by the addresses of the host. Reading is bounded by the caller's deadline.

    Raises:
        ToolError: The host is not known, or has an address that is not permitted.
        httpx.HTTPError: The connection fails.
    """
    import httpx

    addresses = await _checked_addresses(url, network)
    verify = await asyncio.to_thread(httpx.create_ssl_context) if url.scheme == "https" else False
    async with httpx.AsyncHTTPTransport(verify=verify, trust_env=False) as transport:
        response = await _first_answer(transport, url, addresses, timeout_s / len(addresses))
        try:
            yield response
        finally:
            await response.aclose()


async def _checked_addresses(url: httpx.URL, network: Network) -> list[str]:
    host = url.raw_host.decode("ascii")
    try:
        addresses = await network.resolve(host, url.port or (443 if url.scheme == "https" else 80))
    except (OSError, UnicodeError) as error:
        raise ToolError(
            f"The host {shown(host)} is not known.",
            "Check its spelling and the connection.",
            retryable=isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN,
        ) from error
    # One inside address among public ones is no accident that deserves the benefit of the doubt.
    if not addresses or not all(network.permits(address) for address in addresses):
        raise ToolError(
            f"The host {shown(host)} is not on the public internet.",
            "Start the run with --allow-private-addresses if it is meant to reach your own network.",
        )
    return addresses[:_MOST_ADDRESSES_TRIED]


async def _first_answer(
    transport: httpx.AsyncHTTPTransport, url: httpx.URL, addresses: list[str], connect_s: float
) -> httpx.Response:
    """Try the addresses in turn until one can be connected to."""
    import httpx

    *others, last = addresses
    for address in others:
        try:
            return await transport.handle_async_request(_request(url, address, connect_s))
        except (httpx.ConnectError, httpx.ConnectTimeout):
            continue
    return await transport.handle_async_request(_request(url, last, connect_s))


def _request(url: httpx.URL, address: str, connect_s: float) -> httpx.Request:
    """Ask `address` for `url`: the Host header and the certificate's name stay those of the host."""
    import httpx

    return httpx.Request(
        "GET",
        url.copy_with(host=address),
        headers={
            "Host": url.netloc.decode("ascii"),
            "User-Agent": "loopwright",
            "Accept": "text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.1",
            "Accept-Encoding": "gzip",
            "Connection": "close",
        },
        extensions={
            "sni_hostname": url.raw_host.decode("ascii").rstrip("."),
            # Reading has no limit of its own: the deadline of the whole call ends it.
            "timeout": {"connect": connect_s},
        },
    )
