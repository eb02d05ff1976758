"""The tool `web_search`, against a search engine on this computer."""

from __future__ import annotations

import html
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from engine.tools.tool import ToolContext, ToolError
from engine.tools.web_tools import WEB_SEARCH

ddgs = pytest.importorskip("ddgs.ddgs")


class Engine(BaseHTTPRequestHandler):
    """Sends the HTML page of a search engine."""

    hits: ClassVar[list[tuple[str, str, str]]] = []
    status: ClassVar[int] = 200
    asked: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.asked.append(self.rfile.read(int(self.headers["content-length"])).decode())
        body = "".join(
            f'<div class="body"><h2>{html.escape(title)}</h2><a href="{html.escape(url)}">{html.escape(text)}</a></div>'
            for title, url, text in self.hits
        )
        page = f"<html><body>{body}</body></html>".encode()
        self.send_response(self.status)
        self.send_header("content-length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_arguments: Any) -> None:
        """Do not log."""


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Engine]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    from ddgs.engines.duckduckgo import Duckduckgo

    here = type("Here", (Duckduckgo,), {"search_url": f"http://127.0.0.1:{server.server_port}/"})
    monkeypatch.setitem(ddgs.ENGINES, "text", {"here": here})
    Engine.hits, Engine.status, Engine.asked = [], 200, []
    yield Engine
    server.shutdown()
    server.server_close()
    thread.join()


async def search(**parameters: Any) -> Any:
    return await WEB_SEARCH.run(WEB_SEARCH.parameters(**parameters), ToolContext())


async def test_results_have_title_url_and_text(engine: type[Engine]) -> None:
    engine.hits = [("Tides of the sea", "https://example.org/tides?a=1&b=2", "The moon & the tides")]
    assert await search(query="tides", region="de-de") == [
        {"title": "Tides of the sea", "url": "https://example.org/tides?a=1&b=2", "text": "The moon & the tides"}
    ]
    assert "q=tides" in engine.asked[0]
    assert "l=de-de" in engine.asked[0]


async def test_missing_part_of_a_result_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    hit = {"title": "Tides", "href": "https://example.org/", "body": None}
    monkeypatch.setattr(ddgs.DDGS, "text", lambda *_query, **_how: [hit])
    assert await search(query="tides") == [{"title": "Tides", "url": "https://example.org/", "text": ""}]


async def test_number_of_results_is_limited(engine: type[Engine]) -> None:
    engine.hits = [(f"Tides {n}", f"https://example.org/{n}", "tides " + "x" * 5000) for n in range(20)]
    found = await search(query="tides", max_results=3)
    assert len(found) == 3
    assert all(len(one["text"]) == 2000 for one in found)


@pytest.mark.usefixtures("engine")
async def test_no_results_are_an_empty_list() -> None:
    assert await search(query="tides") == []


async def test_unreachable_engine_is_a_retryable_error(engine: type[Engine], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ddgs.ENGINES["text"]["here"], "search_url", "http://127.0.0.1:1/")
    with pytest.raises(ToolError, match="No search engine responded") as caught:
        await search(query="tides")
    assert caught.value.retryable
    assert engine.asked == []


async def test_missing_extra_is_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ddgs.ddgs", None)
    with pytest.raises(ToolError, match="needs the package ddgs") as caught:
        await search(query="tides")
    assert caught.value.fix == "install:web"
