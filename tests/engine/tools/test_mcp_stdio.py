"""MCP servers as real child processes: valid ones, and ones that die, hang or send invalid data."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.tools.mcp_settings import McpServer
from engine.tools.mcp_tools import Listing, ask_server, served_tools
from engine.tools.tool import AnyTool, ToolContext, ToolError
from tests.engine.semantics.kit import settle
from tests.wording import mentions

mcp_connection = pytest.importorskip("engine.tools.mcp_connection", reason="needs the extra mcp")
HERE = Path(__file__).parent


def sdk(**more: Any) -> McpServer:
    return McpServer(command=sys.executable, args=[str(HERE / "mcp_sdk_server.py")], **more)


def raw(behavior: str, **more: Any) -> McpServer:
    return McpServer(command=sys.executable, args=[str(HERE / "mcp_raw_server.py"), behavior], **more)


_listings: dict[str, Listing] = {}


async def tools_of(server: McpServer) -> dict[str, AnyTool]:
    """The tools of a server by name; the listing is cached per command."""
    how = server.summary
    if how not in _listings:
        _listings[how] = await ask_server("sample", server)
    return {tool.name: tool for tool in served_tools("sample", server, _listings[how])}


@asynccontextmanager
async def context() -> AsyncGenerator[ToolContext]:
    """The context of the tools of one run, closed at the end."""
    made = ToolContext()
    yield made
    await made.sessions.close()


async def call(tool: AnyTool, given: ToolContext, **arguments: Any) -> Any:
    return await tool.run(tool.parameters.model_validate(arguments), given)


async def gone(process: int) -> None:
    async with asyncio.timeout(10):
        while _is_alive(process):  # noqa: ASYNC110 - it may be no child of this process any more
            await asyncio.sleep(0)


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_server_tools_are_listed_with_their_parameters() -> None:
    tools = await tools_of(sdk())
    assert list(tools) == [
        f"sample/{name}" for name in ["add", "describe", "environment", "fail", "process", "much", "die"]
    ]
    add = tools["sample/add"]
    assert (add.title, add.help, add.output_type) == ("Add numbers (sample)", "Adds two numbers.", "any")
    assert set(add.parameters.model_fields) == {"a", "b"}
    schema = add.parameters.model_json_schema()
    assert schema["required"] == ["a"]
    assert schema["properties"]["b"]["default"] == 1
    assert {name for name, tool in tools.items() if tool.idempotent} == {"sample/add", "sample/environment"}


async def test_calls_share_one_server_process_for_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOOPWRIGHT_TEST_TOKEN", "s3cret-token")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody")
    tools = await tools_of(sdk(env={"API_TOKEN": "Bearer ${LOOPWRIGHT_TEST_TOKEN}"}))
    async with context() as given:
        assert await call(tools["sample/add"], given, a=41) == 42
        assert await call(tools["sample/add"], given, a="40", b=2) == 42
        assert await call(tools["sample/describe"], given, subject={"a": "b"}) == {"subject": {"a": "b"}, "tags": None}
        assert await call(tools["sample/environment"], given, name="OPENAI_API_KEY") == "(not set)"
        assert await call(tools["sample/environment"], given, name="API_TOKEN") == "Bearer s3cret-token"
        processes = set(await asyncio.gather(*(call(tools["sample/process"], given) for _ in range(5))))
        assert len(processes) == 1
        assert processes != {os.getpid()}
        with pytest.raises(ToolError, match=r'The tool "sample/fail" failed: .*the reason'):
            await call(tools["sample/fail"], given, reason="the reason")
        with pytest.raises(ToolError, match='"sample/much" returned more than 1,000,000 bytes'):
            await call(tools["sample/much"], given, count=1_500_000)
        assert await call(tools["sample/process"], given) in processes
    await gone(processes.pop())


async def test_server_that_dies_during_a_call_is_restarted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOOPWRIGHT_TEST_TOKEN", "s3cret-token")
    server = raw("die", env={"API_TOKEN": "${LOOPWRIGHT_TEST_TOKEN}", "HAS_DIED": str(tmp_path / "has-died")})
    (tool,) = (await tools_of(server)).values()
    async with context() as given:
        with pytest.raises(ToolError, match=r'disconnected during the call of "work"\.') as caught:
            await call(tool, given)
        assert caught.value.retryable
        assert "out of memory" in str(caught.value)
        assert "s3cret-token" not in str(caught.value)
        assert await call(tool, given) == "done"


@pytest.mark.parametrize(
    ("behavior", "parts"),
    [
        ("flood", '"sample" disconnected … "work": … more than 8,000,000'),
        ("huge", '"sample/work" … more than 1,000,000 bytes'),
        ("rubbish", '"sample" refused … "work"'),
        ("infinite", '"sample/work" … not finite'),
        ("hang", '"sample" did not answer "work" within 0.5 s'),
    ],
)
async def test_misbehaving_server_is_a_specific_error(
    behavior: str, parts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_connection, "_EXIT_TIMEOUT_S", 0.1)
    await tools_of(raw(behavior))
    (tool,) = (await tools_of(raw(behavior, timeout_s=0.5 if behavior == "hang" else 60))).values()
    async with context() as given:
        with pytest.raises(ToolError) as caught:
            await call(tool, given)
        assert mentions(str(caught.value), parts), caught.value


async def test_tool_with_an_invalid_schema_is_left_out() -> None:
    listing = await ask_server("sample", raw("odd"))
    assert listing.tools == ()
    (left_out,) = listing.left_out
    assert mentions(left_out, '"work" cannot be used: … description'), left_out


async def test_stray_output_and_pictures_are_handled() -> None:
    (tool,) = (await tools_of(raw("chatty"))).values()
    async with context() as given:
        assert await call(tool, given) == "done\n[image, image/png, 4 characters of Base64]"


async def test_text_truncated_inside_a_character_is_accepted() -> None:
    (tool,) = (await tools_of(raw("half", timeout_s=2))).values()
    async with context() as given:
        assert await call(tool, given) == "smile: \ufffd"


async def test_lone_surrogate_in_arguments_is_replaced() -> None:
    tools = await tools_of(sdk(timeout_s=2))
    async with context() as given:
        subject = {"a": "ok", "b": "\ud83d"}
        assert await call(tools["sample/describe"], given, subject=subject) == {
            "subject": {"a": "ok", "b": "\ufffd"},
            "tags": None,
        }
        assert await call(tools["sample/add"], given, a=1) == 2


async def test_server_that_ends_between_calls_is_restarted() -> None:
    (tool,) = (await tools_of(raw("once"))).values()
    async with context() as given:
        first = await call(tool, given)
        await gone(first)
        await settle()
        assert await call(tool, given) not in {first, None}


async def test_tool_failure_shows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPWRIGHT_TEST_TOKEN", "s3cret-token")
    (tool,) = (await tools_of(raw("complain", env={"API_TOKEN": "${LOOPWRIGHT_TEST_TOKEN}"}))).values()
    async with context() as given:
        with pytest.raises(ToolError, match=r"failed: 401 at https://example\.org/") as caught:
            await call(tool, given)
    assert "s3cret-token" not in str(caught.value)


async def test_handshake_timeout_fails_all_waiting_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = mcp_connection.McpConnection("sample", raw("deaf"))
    monkeypatch.setattr(mcp_connection, "_CONNECT_TIMEOUT_S", 0.3)
    first = asyncio.create_task(server.call("work", {}))
    await asyncio.sleep(0)
    monkeypatch.setattr(mcp_connection, "_CONNECT_TIMEOUT_S", 60.0)
    second = asyncio.create_task(server.call("work", {}))
    await asyncio.wait({first, second})
    assert [task.cancelled() for task in (first, second)] == [False, False]
    assert {type(task.exception()) for task in (first, second)} == {ToolError}
    await server.close()


async def test_handshake_timeout_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_connection, "_CONNECT_TIMEOUT_S", 0.3)
    with pytest.raises(ToolError, match=r'"sample" .* handshake within 0\.3 s'):
        await ask_server("sample", raw("deaf"))


async def test_program_that_is_not_a_server_is_an_error_with_its_output() -> None:
    server = McpServer(command=sys.executable, args=["-c", "import sys; sys.exit('this is no server')"])
    with pytest.raises(ToolError, match=r'The MCP server "sample" disconnected during connecting.*this is no server'):
        await ask_server("sample", server)


async def test_missing_program_is_an_error() -> None:
    with pytest.raises(ToolError, match=r'"sample" cannot be started: .* "no-such-program"'):
        await ask_server("sample", McpServer(command="no-such-program"))


async def test_unset_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_TOKEN", raising=False)
    with pytest.raises(ToolError, match="needs NO_SUCH_TOKEN"):
        await ask_server("sample", sdk(env={"TOKEN": "${NO_SUCH_TOKEN}"}))


async def test_canceling_a_call_ends_the_process_with_the_run(tmp_path: Path) -> None:
    (tool,) = (await tools_of(raw("hang"))).values()
    async with context() as given:
        task = asyncio.create_task(call(tool, given))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert [one for one in asyncio.all_tasks() if "MCP" in one.get_name()] == []


async def test_missing_extra_is_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.delitem(sys.modules, "engine.tools.mcp_connection")
    with pytest.raises(ToolError, match="need the package mcp") as caught:
        await ask_server("sample", sdk())
    assert caught.value.fix == "install:mcp"
