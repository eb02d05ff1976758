"""HTTP connections to public hosts of the web, and to no others, for addresses from a document or a model.

A name is resolved once, every address of it must be public, and the connection goes to exactly the checked address: a
name that answers differently the second time gains nothing. Each connection serves one request, without cookies.
Proxies from the environment are ignored, because a proxy would resolve the name itself and bypass the check; a
certificate bundle from SSL_CERT_FILE is used.

Public addresses follow the IANA special-purpose address registries (RFC 6890 and its updates). They are listed here
because `ipaddress.is_global` changed between patch releases of Python.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING

from engine.errors import Fix
from engine.tools.sandbox import quoted
from engine.tools.tool import ToolError

if TYPE_CHECKING:
    import httpx

_MAX_ADDRESSES_TRIED = 3


@dataclass(frozen=True, slots=True)
class Network:
    """Name resolution, and which addresses may be reached.

    Attributes:
        resolve: Returns the addresses of a host name or an IP address, for a port; raises OSError or UnicodeError.
        permits: Whether connecting to an address is permitted.
    """

    resolve: Callable[[str, int], Awaitable[list[str]]]
    permits: Callable[[str], bool]


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, in the order in which the system would try them."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def redact_url(url: str) -> str:
    """An address for an error message, without the query and the user name, which may be secrets."""
    return quoted(url.partition("?")[0].rpartition("@")[2])


def parse_url(text: str, base: httpx.URL | None = None) -> httpx.URL:
    """Parse an address, or a redirect's target, which may be relative to `base`.

    Raises:
        ToolError: It is not a web address, or contains a user name or password.
    """
    import httpx

    try:
        url = httpx.URL(text.strip()) if base is None else base.join(text)
        usable = url.scheme in {"http", "https"} and bool(url.host) and (url.port is None or 0 < url.port < 65536)
    except (httpx.InvalidURL, ValueError) as error:
        raise ToolError(f"The address {redact_url(text)} is invalid.", "Check its spelling.") from error
    if url.userinfo:
        raise ToolError(
            f"The address {redact_url(text)} contains a user name or password.", "Remove the part before the '@'."
        )
    if not usable:
        raise ToolError(
            f"The address {redact_url(text)} is not a web address.",
            "Start it with http:// or https:// and the name of a host.",
        )
    return url


@asynccontextmanager
async def send_request(url: httpx.URL, network: Network, timeout_s: float) -> AsyncGenerator[httpx.Response]:
    """Connect to a checked address of the host and yield the response, body unread; close the connection at the end.

    Args:
        url: As `parse_url` returns it.
        network: Which addresses may be reached.
        timeout_s: For connecting, shared by the host's addresses. The caller's deadline limits reading.

    Raises:
        ToolError: The host is unknown, or has an address that is not permitted.
        httpx.HTTPError: The connection fails.
    """
    import httpx

    addresses = await _checked_addresses(url, network)
    verify = await asyncio.to_thread(httpx.create_ssl_context) if url.scheme == "https" else False
    async with httpx.AsyncHTTPTransport(verify=verify, trust_env=False) as transport:
        response = await _first_response(transport, url, addresses, timeout_s / len(addresses))
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
            f"The host {quoted(host)} is unknown.",
            "Check its spelling and the connection.",
            retryable=isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN,
        ) from error
    # A private address among public ones is treated as an attack.
    if not addresses or not all(network.permits(address) for address in addresses):
        raise ToolError(
            f"The host {quoted(host)} is not on the public internet.",
            "If it is meant to reach your own network, allow private addresses.",
            fix=Fix.ALLOW_PRIVATE_ADDRESSES,
        )
    return addresses[:_MAX_ADDRESSES_TRIED]


async def _first_response(
    transport: httpx.AsyncHTTPTransport, url: httpx.URL, addresses: list[str], connect_s: float
) -> httpx.Response:
    """Try the addresses in turn until a connection succeeds."""
    import httpx

    *others, last = addresses
    for address in others:
        try:
            return await transport.handle_async_request(_request(url, address, connect_s))
        except (httpx.ConnectError, httpx.ConnectTimeout):
            continue
    return await transport.handle_async_request(_request(url, last, connect_s))


def _request(url: httpx.URL, address: str, connect_s: float) -> httpx.Request:
    """A request to `address` for `url`; the Host header and the certificate's name stay those of the host."""
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
            # Reading has no timeout of its own: the deadline of the whole call ends it.
            "timeout": {"connect": connect_s},
        },
    )


_NOT_PUBLIC_V4 = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by carriers
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, also the metadata services of clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, with broadcast
    )
)

_GLOBAL_UNICAST_V6 = IPv6Network("2000::/3")
_NOT_PUBLIC_V6 = tuple(
    IPv6Network(block)
    for block in (
        "2001::/23",  # protocol assignments, among them Teredo, which wraps IPv4
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which wraps IPv4
        "3fff::/20",  # documentation
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Whether an IP address (`93.184.216.34`, `2606:2800::1`) belongs to the public internet.

    An IPv6 address that wraps an IPv4 one (IPv4-mapped, NAT64) is judged by that one; other wrappings are not public.

    Raises:
        ValueError: The text is not an IP address.
    """
    parsed = ip_address(address)
    if isinstance(parsed, IPv6Address):
        wrapped = parsed.ipv4_mapped
        if wrapped is None and parsed in _NAT64:
            wrapped = IPv4Address(parsed.packed[-4:])
        if wrapped is None:
            return parsed in _GLOBAL_UNICAST_V6 and not any(parsed in block for block in _NOT_PUBLIC_V6)
        parsed = wrapped
    return not any(parsed in block for block in _NOT_PUBLIC_V4)
