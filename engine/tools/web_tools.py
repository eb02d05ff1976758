"""The tools `http_get`, which fetches a page of the public web as text, and `web_search`.

The size of a page is limited after decompression, and one deadline covers the whole request.

Searching needs no key: `ddgs`, an extra that is imported on first use, asks public search engines.
"""

from __future__ import annotations

import asyncio
import codecs
import re
import zlib
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from pydantic import Field

from engine.errors import Fix
from engine.formatting import format_timeout
from engine.html_text import readable_text
from engine.tools.sandbox import quoted
from engine.tools.tool import Consent, Parameters, Text, Tool, ToolContext, ToolError
from engine.tools.web_connection import Network, is_public, parse_url, redact_url, resolve, send_request
from engine.values import Value

if TYPE_CHECKING:
    import httpx


# The character sets of browsers (WHATWG Encoding Standard), by Python's names. Its other codecs are none, or slow.
_CHARSET = re.compile(
    r"utf-8(?:-sig)?|utf-16(?:-[lb]e)?|ascii|iso8859-\d{1,2}|cp(?:125\d|866|874|932|949)|koi8-[ru]|mac-roman"
    r"|gbk|gb2312|gb18030|big5(?:hkscs)?|euc_(?:jp|kr)|shift_jis|iso2022_jp"
)
_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}charset\s{0,9}=\s{0,9}["']?([\w.:-]{1,40})""", re.IGNORECASE)


def decode_body(body: bytes, charset: str, *, is_html: bool) -> str:
    """Decode a response body.

    The encoding is that of a byte order mark, else the `charset` of the response header, else that of the HTML page,
    else UTF-8. Invalid bytes become U+FFFD.
    """
    if body.startswith(codecs.BOM_UTF8):
        charset = "utf-8-sig"
    elif body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        charset = "utf-16"
    elif not charset and is_html and (meta := _META_CHARSET.search(body[:4096])):
        charset = meta[1].decode("ascii", "replace")
    return body.decode(_codec(charset), "replace")


def _codec(charset: str) -> str:
    try:
        name = codecs.lookup(charset.strip(" '\"")).name
    except (LookupError, ValueError):
        return "utf-8"
    return name if _CHARSET.fullmatch(name) else "utf-8"


_TEXT_TYPES = ("json", "xml", "javascript", "ecmascript", "yaml", "toml", "x-ndjson", "x-www-form-urlencoded", "sql")
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})


class HttpGetParameters(Parameters):
    """Parameters of `http_get`."""

    url: Text = Field(
        title="Address",
        description="A page of the public web, with http:// or https:// and without a user name or password in it.",
        min_length=1,
        max_length=8000,
    )
    max_bytes: int = Field(
        default=1_000_000,
        title="Max bytes",
        description="Maximum size of the page after decompression; the rest is cut off.",
        ge=1,
        le=10_000_000,
    )
    timeout_s: float = Field(
        default=20.0,
        title="Timeout (seconds)",
        description="For name resolution, redirects and the whole page together.",
        gt=0,
        le=300,
    )
    max_redirects: int = Field(
        default=5, title="Max redirects", description="Maximum number of redirects to other addresses.", ge=0, le=20
    )


async def http_get(parameters: HttpGetParameters, context: ToolContext) -> Value:
    """Fetch a page: `{url, status, content_type, text, truncated}`, `url` being the address after redirects.

    HTML is converted to readable text. `truncated` says whether the page was longer than `max_bytes`.

    Raises:
        ToolError: The address is refused or does not respond, the response is an error (`retryable` for 408, 429 and
            5xx) or not text.
    """
    permits = _permit_all if context.allow_private_addresses else is_public
    return await fetch(parameters, Network(resolve, permits))


def _permit_all(_address: str) -> bool:
    return True


async def fetch(parameters: HttpGetParameters, network: Network) -> Value:
    """Fetch a page like `http_get`, through a given network."""
    import httpx

    try:
        async with asyncio.timeout(parameters.timeout_s):
            return await _follow(parameters, network)
    except TimeoutError as error:
        raise ToolError(
            f"The address {redact_url(parameters.url)} did not respond in full "
            f"within {format_timeout(parameters.timeout_s)}.",
            "Try again later, or raise the timeout.",
            retryable=True,
        ) from error
    except (httpx.HTTPError, OSError) as error:
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise ToolError(
            f"The address {redact_url(parameters.url)} could not be read: {reason}.",
            "Check the address and the connection.",
            retryable=True,
        ) from error


async def _follow(parameters: HttpGetParameters, network: Network) -> Value:
    url = parse_url(parameters.url)
    for _ in range(parameters.max_redirects + 1):
        async with send_request(url, network, parameters.timeout_s) as response:
            if not response.has_redirect_location:
                return await _page(url, response, parameters.max_bytes)
            url = parse_url(response.headers["location"], base=url)
    raise ToolError(
        f"The address {redact_url(parameters.url)} redirects more than {parameters.max_redirects} times.",
        "Use the final address, or allow more redirects.",
    )


async def _page(url: httpx.URL, response: httpx.Response, max_bytes: int) -> Value:
    status = response.status_code
    where = f"The address {redact_url(str(url))}"
    if status >= 400:
        phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "unknown status"
        retryable = status in {408, 429} or status >= 500
        remedy = "Try again later." if retryable else "Check the address."
        raise ToolError(f"{where} responded with {status} ({phrase}).", remedy, retryable=retryable)
    header = response.headers.get("content-type", "")
    content_type = header.partition(";")[0].strip().lower()
    body, truncated = await _body(response, where, max_bytes)
    if not _is_text(content_type, body):
        raise ToolError(
            f"{where} returns {quoted(content_type or 'data without a type')}, which is not text.",
            "Use the address of a page of text, HTML or JSON.",
        )
    is_html = content_type in _HTML_TYPES
    text = decode_body(body, response.charset_encoding or "", is_html=is_html)
    if truncated:
        text = text.rstrip("\ufffd")  # part of a character
    if is_html:
        text = await asyncio.to_thread(readable_text, text)
    return {"url": str(url), "status": status, "content_type": content_type, "text": text, "truncated": truncated}


def _is_text(content_type: str, body: bytes) -> bool:
    if not content_type:
        return b"\0" not in body
    return content_type.startswith("text/") or content_type.endswith(_TEXT_TYPES)


async def _body(response: httpx.Response, where: str, max_bytes: int) -> tuple[bytes, bool]:
    """Read and decompress at most `max_bytes`; return them and whether there was more."""
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in {"", "identity", "gzip", "x-gzip", "deflate"}:
        raise ToolError(f"{where} compresses its response by {quoted(encoding)}.", "Use another address.")
    # 32 + 15: zlib tells gzip and deflate apart by their first bytes.
    inflater = zlib.decompressobj(47) if encoding not in {"", "identity"} else None
    body = bytearray()
    async for chunk in response.aiter_raw():
        room = max_bytes + 1 - len(body)
        try:
            body += chunk[:room] if inflater is None else inflater.decompress(chunk, room)
        except zlib.error as error:
            raise ToolError(f"{where} sends damaged data.", "Try again later.", retryable=True) from error
        if len(body) > max_bytes:
            return bytes(body[:max_bytes]), True
    # Compressed data marks its end; the connection alone does not show that it was cut off.
    if inflater is not None and body and not inflater.eof:
        raise ToolError(f"{where} disconnected in the middle of the page.", "Try again later.", retryable=True)
    return bytes(body), False


HTTP_GET = Tool(
    name="http_get",
    title="Get a web page",
    help="Fetches a page of the public web as text; other networks are refused unless the run allows them.",
    parameters=HttpGetParameters,
    output_type="json",
    run=http_get,
    consent=Consent.HOST,
    idempotent=True,
)


_MAX_TEXT_LENGTH = 2_000


class WebSearchParameters(Parameters):
    """Parameters of `web_search`."""

    query: Text = Field(title="Query", description="What to search for.", min_length=1, max_length=1000)
    max_results: int = Field(default=8, title="Max results", description="Maximum number of results.", ge=1, le=50)
    region: str = Field(
        default="us-en",
        title="Region",
        description="Country and language of the results, such as us-en, de-de, fr-fr; wt-wt for any.",
        pattern=r"^[a-z]{2}-[a-z]{2}$",
    )
    timeout_s: int = Field(
        default=10, title="Timeout (seconds)", description="Maximum duration for each search engine.", ge=1, le=60
    )


async def web_search(parameters: WebSearchParameters, _context: ToolContext) -> Value:
    """Search the web: a list of `{title, url, text}`, best first; empty if nothing is found.

    Raises:
        ToolError: The extra is not installed, or no search engine responded (`retryable`).
    """
    return await asyncio.to_thread(_search, parameters)


def _search(parameters: WebSearchParameters) -> Value:
    try:
        from ddgs.ddgs import DDGS
        from ddgs.exceptions import DDGSException
    except ImportError as error:
        raise ToolError(
            "Searching the web needs the package ddgs, which is not installed.",
            "Install it.",
            fix=Fix.INSTALL.of("web"),
        ) from error
    try:
        found: list[dict[str, Any]] = DDGS(timeout=parameters.timeout_s).text(
            parameters.query, region=parameters.region, max_results=parameters.max_results
        )
    except DDGSException as error:
        if str(error).startswith("No results"):
            return []
        raise ToolError(
            f"No search engine responded: {quoted(str(error)[:100])}.", "Try again in a minute.", retryable=True
        ) from error
    keys = {"title": "title", "url": "href", "text": "body"}
    return [
        {name: str(result.get(key) or "")[:_MAX_TEXT_LENGTH] for name, key in keys.items()}
        for result in found[: parameters.max_results]
    ]


WEB_SEARCH = Tool(
    name="web_search",
    title="Search the web",
    help="Searches the public web for titles, addresses and short texts.",
    parameters=WebSearchParameters,
    output_type="list",
    run=web_search,
    idempotent=True,
)
