"""Settings of MCP servers, and which of them are refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from engine.tools.mcp_settings import McpServer, fill_in, variables_of
from engine.tools.tool import ToolError
from tests.wording import mentions

SECRET = "looks like a secret"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "either a command or"),
        ({"command": "npx", "url": "https://example.org"}, "either a command or"),
        ({"command": "  "}, "either a command or"),
        ({"url": "ftp://example.org"}, "This is not an address"),
        ({"url": "https://user:word@example.org"}, "This is not an address"),
        ({"url": "https://[::1"}, "This is not an address"),
        ({"url": "https://example.org:port"}, "This is not an address"),
        ({"command": "npx", "env": {"GITHUB_TOKEN": "ghp_1234"}}, SECRET),
        ({"url": "https://example.org", "headers": {"Authorization": "Bearer 1234"}}, SECRET),
        ({"url": "http://example.org", "headers": {"X-Trace": "1"}}, "https:// address only"),
        ({"command": "npx", "timeout_s": 0}, "greater than 0"),
        ({"command": "npx", "args": "-y"}, "list"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        McpServer.model_validate(settings)
    assert sentence in caught.value.errors()[0]["msg"]


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (["server", "--api-key", "abc123"], "--api-key"),
        (["server", "--api-key=abc123"], "--api-key"),
        (["server", "-H", "Authorization: Bearer abc"], "Authorization"),
        (["server", "--header=Authorization: Bearer abc"], "Authorization"),
        (["run", "-e", "GITHUB_TOKEN=abc"], "GITHUB_TOKEN"),
        (["run", "--env=SLACK_TOKEN=abc"], "SLACK_TOKEN"),
        (["server", "sk-abcdefghijklmnop"], "sk-…"),
        (["server", "--auth", "Bearer abcdefghijklmnop"], "Bea…"),
        (["server", "--auth=ghp_abcdefghijklmnop"], "--auth"),
        (["server", "postgresql://me:word@localhost/db"], "postgresql://…@"),
        (["server", "--db=postgresql://me:word@localhost/db"], "postgresql://…@"),
        (["clone", "https://abcdef@example.org/x.git"], "https://…@"),
        (["mcp-remote", "https://example.org/mcp?apiKey=abc"], "apiKey"),
    ],
)
def test_plain_text_secret_in_arguments_is_refused(args: list[str], named: str) -> None:
    with pytest.raises(ValidationError) as caught:
        McpServer(command="npx", args=args)
    message = caught.value.errors()[0]["msg"]
    assert mentions(message, f'"{named}" looks like a secret … ${{NAME}}'), message


def test_secret_in_a_query_is_refused() -> None:
    with pytest.raises(ValidationError, match='"api_key" looks like a secret'):
        McpServer(url="https://example.org/mcp?api_key=abc")
    assert McpServer(url="https://example.org/mcp?api_key=${MINE}&page=1").url.endswith("page=1")


@pytest.mark.parametrize(
    "args",
    [
        ["-y", "@modelcontextprotocol/server-filesystem", "notes/keys"],
        ["server", "--api-key", "${MY_KEY}", "--header", "Authorization: Bearer ${TOKEN}"],
        ["server", "--api-key", "--verbose"],
        ["server", "--api-key"],
        ["server", "--max-tokens", "100", "--max-tokens=100", "--key-file", "/etc/key.pem", "--use-keyring", "x"],
        ["server", "postgresql://me:${WORD}@localhost/db", "ssh://git@example.org/x", "https://example.org/a?b=c"],
        ["-c", "import sys; sys.exit(1)"],
        ["[::1", "http://[::1", "a=b", ""],
    ],
)
def test_arguments_without_secrets_are_accepted(args: list[str]) -> None:
    assert McpServer(command="npx", args=args).args == args


def test_unknown_keys_are_ignored() -> None:
    server = McpServer.model_validate({"type": "stdio", "command": "npx", "args": ["-y", "x"], "disabled": False})
    assert server.summary == "npx -y x"


def test_variables_are_replaced_when_needed() -> None:
    environment = {"TOKEN": "s3cret", "SHORT": "ab"}
    assert fill_in("sample", "Bearer ${TOKEN} ${SHORT} $TOKEN", environment) == "Bearer s3cret ab $TOKEN"
    with pytest.raises(ToolError, match='"sample" needs MISSING'):
        fill_in("sample", "${MISSING}", environment)
    server = McpServer(command="x", args=["${SHORT}"], env={"API_KEY": "${TOKEN}", "MODE": "${SHORT}"})
    assert variables_of(server) == ["SHORT", "TOKEN"]


def test_fingerprint_ignores_the_timeout() -> None:
    one = McpServer(command="x")
    assert one.fingerprint == McpServer(command="x", timeout_s=5).fingerprint
    assert one.fingerprint != McpServer(command="x", args=["y"]).fingerprint
