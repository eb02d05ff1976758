from __future__ import annotations

import asyncio
import datetime
import ipaddress
import socket
import ssl
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from engine.tools.tool import ToolContext, ToolError
from engine.tools.web_connection import Network, resolve
from engine.tools.web_tools import HttpGetParameters, fetch, http_get
from engine.values import Value
from tests.engine.tools.web_server import WebServer, serving, unused_port
from tests.examples import examples

ANYWHERE = ToolContext(allow_private_addresses=True)


@pytest.fixture(scope="module")
def web() -> Iterator[WebServer]:
    with serving() as server:
        yield server


async def get(url: str, context: ToolContext = ANYWHERE, **more: float) -> dict[str, Value]:
    given_back = await http_get(HttpGetParameters.model_validate({"url": url, **more}), context)
    assert isinstance(given_back, dict)
    return given_back


async def failure(url: str, context: ToolContext = ANYWHERE, **more: float) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await get(url, context, **more)
    assert "\n" not in str(caught.value)
    assert caught.value.remedy
    return caught.value


def names(table: dict[str, list[str]], *, permitted: set[str]) -> Network:
    """A network with a table of host addresses, a new one per lookup, of which few are permitted."""

    async def look_up(host: str, _port: int) -> list[str]:
        answers = table[host]
        return [answers.pop(0)] if len(answers) > 1 else list(answers)

    return Network(look_up, permitted.__contains__)


# What comes back


async def test_text_is_returned_with_its_address(web: WebServer) -> None:
    assert await get(web.url("/text?a=b#part")) == {
        "url": web.url("/text?a=b#part"),
        "status": 200,
        "content_type": "text/plain",
        "text": "hello ü\n",
        "truncated": False,
    }


@pytest.mark.parametrize(
    ("path", "content_type", "text"),
    [
        ("/html", "text/html", "T\nHi & bye"),
        ("/json", "application/problem+json", '{"a": 1}'),
        ("/latin", "text/plain", "café"),
        ("/untyped", "", "plain"),
        ("/empty", "", ""),
        ("/gzip", "text/plain", "small again"),
        ("/deflate", "text/plain", "small again"),
        ("/unmoved", "text/plain", "stay"),
    ],
)
async def test_every_kind_of_text_is_accepted(web: WebServer, path: str, content_type: str, text: str) -> None:
    page = await get(web.url(path))
    assert (page["content_type"], page["text"]) == (content_type, text)


@pytest.mark.parametrize("path", ["/image", "/untyped_binary"])
async def test_content_that_is_not_text_is_refused(web: WebServer, path: str) -> None:
    error = await failure(web.url(path))
    assert "which is not text" in error.message
    assert not error.retryable


async def test_request_headers_identify_only_the_program(web: WebServer) -> None:
    await get(web.url("/text"))
    _, headers = web.asked[-1]
    assert headers["Host"] == f"127.0.0.1:{web.port}"
    assert headers["User-Agent"] == "loopwright"
    assert set(headers) == {"Host", "User-Agent", "Accept", "Accept-Encoding", "Connection"}


# Errors of the other side


@pytest.mark.parametrize(
    ("code", "phrase", "retryable"),
    [
        (404, "Not Found", False),
        (401, "Unauthorized", False),
        (408, "Request Timeout", True),
        (429, "Too Many Requests", True),
        (500, "Internal Server Error", True),
        (503, "Service Unavailable", True),
    ],
)
async def test_error_status_decides_whether_to_retry(web: WebServer, code: int, phrase: str, retryable: bool) -> None:
    error = await failure(web.url(f"/status?code={code}&key=secret"))
    assert f"/status' responded with {code} ({phrase})." in error.message
    assert error.retryable is retryable
    assert "secret" not in str(error)


async def test_unknown_status_is_reported(web: WebServer) -> None:
    error = await failure(web.url("/odd_status"))
    assert "responded with 599 (unknown status)" in error.message
    assert error.retryable


@pytest.mark.parametrize("path", ["/nonsense", "/cut"])
async def test_response_that_is_not_http_is_an_error(web: WebServer, path: str) -> None:
    error = await failure(web.url(path + "?key=secret"))
    assert "could not be read" in error.message
    assert error.retryable
    assert "secret" not in str(error)


async def test_interrupted_compressed_page_is_an_error(web: WebServer) -> None:
    error = await failure(web.url("/half_gzip"))

    assert "disconnected in the middle" in error.message
    assert error.retryable


async def test_damaged_compression_is_an_error(web: WebServer) -> None:
    assert "damaged data" in (await failure(web.url("/damaged"))).message


async def test_refused_connection_is_an_error() -> None:
    error = await failure(f"http://127.0.0.1:{unused_port()}/")
    assert "could not be read" in error.message
    assert error.retryable


async def test_unknown_host_is_an_error() -> None:
    async def look_up(_host: str, _port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_AGAIN, "try again")

    with pytest.raises(ToolError, match=r"'nowhere.example' is unknown") as caught:
        await fetch(HttpGetParameters(url="http://nowhere.example/"), Network(look_up, lambda _: True))
    assert caught.value.retryable


@pytest.mark.parametrize("host", ["a..b", "a" * 64, "...", "[fe80::1%25nosuch]"])
async def test_invalid_host_is_an_error(host: str) -> None:
    assert "unknown" in (await failure(f"http://{host}/")).message


# Limits


async def test_page_over_the_limit_is_truncated(web: WebServer) -> None:
    assert (await get(web.url("/big"), max_bytes=1000))["truncated"] is False
    page = await get(web.url("/big"), max_bytes=999)
    assert page["truncated"] is True
    assert page["text"] == "ü" * 499


async def test_endless_page_is_truncated_and_the_connection_closed(web: WebServer) -> None:
    web.hung_up.clear()
    page = await get(web.url("/endless"), max_bytes=100_000)
    assert page["text"] == "x" * 100_000
    assert await asyncio.to_thread(web.hung_up.wait, 30)


async def test_decompression_bomb_is_truncated(web: WebServer) -> None:
    tracemalloc.start()
    try:
        page = await get(web.url("/bomb"), max_bytes=1_000_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert page["truncated"] is True
    assert page["text"] == "\0" * 1_000_000
    assert peak < 20_000_000


async def test_doubly_compressed_page_is_refused(web: WebServer) -> None:
    assert "'gzip, gzip'" in (await failure(web.url("/double_bomb"))).message


@pytest.mark.parametrize("path", ["/silence", "/drip"])
async def test_deadline_covers_the_whole_page(web: WebServer, path: str) -> None:
    web.hung_up.clear()
    error = await failure(web.url(path), timeout_s=0.3)
    assert "in full within 0.3 s" in error.message
    assert error.retryable
    assert await asyncio.to_thread(web.hung_up.wait, 30)


async def test_canceling_closes_the_connection(web: WebServer) -> None:
    web.waiting.clear()
    web.hung_up.clear()
    call = asyncio.create_task(get(web.url("/silence")))
    assert await asyncio.to_thread(web.waiting.wait, 30)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await asyncio.to_thread(web.hung_up.wait, 30)


def test_parameter_limits_are_declared() -> None:
    for wrong in ({"max_bytes": 10_000_001}, {"timeout_s": 0}, {"max_redirects": 21}, {"timeout_s": float("nan")}):
        with pytest.raises(ValidationError):
            HttpGetParameters.model_validate({"url": "http://a", **wrong})


# Redirects


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_redirect_is_followed_and_reported(web: WebServer, code: int) -> None:
    page = await get(web.url(f"/redirect?code={code}&to=/text"))
    assert page["url"] == web.url("/text")
    assert page["text"] == "hello ü\n"


async def test_redirect_sends_no_cookie(web: WebServer) -> None:
    await get(web.url("/redirect?to=/text"))
    assert "Cookie" not in web.asked[-1][1]


async def test_number_of_redirects_is_limited(web: WebServer) -> None:
    assert "redirects more than 3 times" in (await failure(web.url("/loop"), max_redirects=3)).message
    assert "redirects more than 0 times" in (await failure(web.url("/redirect?to=/text"), max_redirects=0)).message
    assert (await get(web.url("/redirect?to=/text"), max_redirects=1))["status"] == 200


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://x/", "http://u:p@127.0.0.1/", "http://%5B::1/", "//"])
async def test_redirect_to_an_invalid_address_is_refused(web: WebServer, target: str) -> None:
    error = await failure(web.url(f"/redirect?to={target}"))
    assert "The address" in error.message
    assert not error.retryable


# Which addresses


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.org/",
        "example.org/page",
        "/page",
        "http://",
        "http:///page",
        "http://a:99999/",
        "http://a:0/",
        "http://[::1",
        "http://xn--a/",
        "http://a\x00b/",
        "http://a/\ud800\n:\x01",
        "gopher:x",
        "http://①②⑦.0.0.1/",
        "x" * 8000,
    ],
)
async def test_invalid_web_address_is_refused(url: str) -> None:
    error = await failure(url)
    assert error.message.startswith("The address ")
    assert not error.retryable


async def test_password_in_an_address_is_refused_and_not_shown() -> None:
    error = await failure("http://me:secret@example.org/")
    assert "user name or password" in error.message
    assert "secret" not in str(error)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "127.1",
        "0x7f.1",
        "2130706433",
        "0.0.0.0",
        "10.0.0.1",
        "169.254.169.254",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[fd00::1]",
    ],
)
async def test_private_addresses_are_refused_in_every_notation(web: WebServer, host: str) -> None:
    before = len(web.asked)
    error = await failure(web.url("/text", host=host), ToolContext())
    assert "not on the public internet" in error.message
    assert error.fix == "allow_private_addresses"
    assert len(web.asked) == before


async def test_host_with_one_private_address_is_refused(web: WebServer) -> None:
    async def look_up(_host: str, _port: int) -> list[str]:
        return ["127.0.0.1", "10.0.0.1"]

    with pytest.raises(ToolError, match=r"'mixed.example' is not on the public"):
        await fetch(
            HttpGetParameters(url=web.url("/text", "mixed.example")), Network(look_up, {"127.0.0.1"}.__contains__)
        )


async def test_host_without_addresses_is_refused() -> None:
    with pytest.raises(ToolError, match="not on the public internet"):
        await fetch(HttpGetParameters(url="http://none.example"), names({"none.example": []}, permitted=set()))


async def test_connection_uses_the_checked_address(web: WebServer) -> None:
    network = names({"rebind.example": ["127.0.0.1", "127.0.0.66"]}, permitted={"127.0.0.1"})
    page = await fetch(HttpGetParameters(url=web.url("/text", "rebind.example")), network)
    assert isinstance(page, dict)
    assert page["text"] == "hello ü\n"
    assert page["url"] == web.url("/text", "rebind.example")
    assert web.asked[-1][1]["Host"] == f"rebind.example:{web.port}"


async def test_host_that_becomes_private_between_redirects_is_refused(web: WebServer) -> None:
    network = names({"rebind.example": ["127.0.0.1", "127.0.0.66"]}, permitted={"127.0.0.1"})
    with pytest.raises(ToolError, match=r"'rebind.example' is not on the public"):
        await fetch(HttpGetParameters(url=web.url("/redirect?to=/text", "rebind.example")), network)


async def test_redirect_to_a_private_address_is_refused(web: WebServer) -> None:
    before = len(web.asked)
    network = Network(resolve, {"127.0.0.1"}.__contains__)
    with pytest.raises(ToolError, match=r"'127.0.0.2' is not on the public"):
        await fetch(HttpGetParameters(url=web.url(f"/redirect?to={web.url('/text', '127.0.0.2')}")), network)
    assert len(web.asked) == before + 1


async def test_next_address_is_tried_if_one_fails(web: WebServer) -> None:
    async def look_up(_host: str, _port: int) -> list[str]:
        return ["127.0.0.3", "127.0.0.1", "127.0.0.4"]

    page = await fetch(HttpGetParameters(url=web.url("/text", "many.example")), Network(look_up, lambda _: True))
    assert isinstance(page, dict)
    assert page["status"] == 200


async def test_environment_proxy_is_not_used(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{unused_port()}")
    assert (await get(web.url("/text")))["status"] == 200


@examples(60)
@given(st.text(min_size=1, max_size=60).map("http://".__add__) | st.text(min_size=1, max_size=60))
@example("http://\u2488/")
async def test_any_address_raises_only_tool_errors(url: str) -> None:
    network = Network(lambda _host, _port: resolve("127.0.0.1", 80), lambda _: False)
    with pytest.raises(ToolError):
        await fetch(HttpGetParameters(url=url), network)


# Encrypted connections


_KEY_USES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Files of a certificate authority, and its certificate and key for `secure.example`."""
    pytest.importorskip("cryptography")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    def certificate(
        name: str, key: ec.EllipticCurvePrivateKey, issuer: str, signer: ec.EllipticCurvePrivateKey
    ) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=name == issuer, path_length=None), critical=True)
            # Python 3.13 and newer are strict: a certificate names the keys, and an authority's says that it signs.
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
            .add_extension(
                x509.SubjectAlternativeName([x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.9"))]),
                critical=False,
            )
        )
        if name == issuer:
            signs = dict.fromkeys(_KEY_USES, False) | {"key_cert_sign": True}
            builder = builder.add_extension(x509.KeyUsage(**signs), critical=True)
        return builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    folder = tmp_path_factory.mktemp("authority")
    root, leaf = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    (folder / "root.pem").write_bytes(certificate("test root", root, "test root", root))
    (folder / "leaf.pem").write_bytes(certificate("secure.example", leaf, "test root", root))
    (folder / "leaf.key").write_bytes(
        leaf.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder / "root.pem", folder / "leaf.pem", folder / "leaf.key"


@pytest.fixture
def secure_web(authority: tuple[Path, Path, Path]) -> Iterator[WebServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority[1], authority[2])
    with serving(tls=context) as server:
        yield server


async def fetch_secure(web: WebServer, host: str) -> Value:
    network = names({host: ["127.0.0.1"]}, permitted={"127.0.0.1"})
    return await fetch(HttpGetParameters(url=web.url("/text", host, "https")), network)


async def test_certificate_is_checked_for_the_host_name(
    secure_web: WebServer, authority: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority[0]))
    page = await fetch_secure(secure_web, "secure.example")
    assert isinstance(page, dict)
    assert page["text"] == "hello ü\n"
    with pytest.raises(ToolError, match=r"(?i)certificate"):
        await fetch_secure(secure_web, "other.example")
    with pytest.raises(ToolError, match=r"(?i)certificate"):
        await get(secure_web.url("/text", "127.0.0.1", "https"))


async def test_certificate_of_an_unknown_authority_is_refused(secure_web: WebServer) -> None:
    with pytest.raises(ToolError, match=r"(?i)certificate"):
        await fetch_secure(secure_web, "secure.example")


async def test_missing_certificate_file_is_an_error(
    secure_web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    with pytest.raises(ToolError, match="could not be read"):
        await fetch_secure(secure_web, "secure.example")
