"""What a person may set up for a server, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from engine.tools.base import ToolError
from engine.tools.mcp.settings import McpServer, filled_in, variables_of

SECRET = "looks like a secret"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "either a command or an address"),
        ({"command": "npx", "url": "https://example.org"}, "either a command or an address"),
        ({"command": "  "}, "either a command or an address"),
        ({"url": "ftp://example.org"}, "This is no address"),
        ({"url": "https://user:word@example.org"}, "This is no address"),
        ({"url": "https://[::1"}, "This is no address"),
        ({"url": "https://example.org:port"}, "This is no address"),
        ({"command": "npx", "env": {"GITHUB_TOKEN": "ghp_1234"}}, SECRET),
        ({"url": "https://example.org", "headers": {"Authorization": "Bearer 1234"}}, SECRET),
        ({"url": "http://example.org", "headers": {"X-Trace": "1"}}, "sent to an https:// address only"),
        ({"command": "npx", "timeout_s": 0}, "greater than 0"),
        ({"command": "npx", "args": "-y"}, "list"),
    ],
)
def test_what_cannot_be_or_should_not_be_is_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        McpServer.model_validate(settings)
    assert sentence in caught.value.errors()[0]["msg"]


def test_what_other_programs_write_beside_is_passed_over() -> None:
    server = McpServer.model_validate({"type": "stdio", "command": "npx", "args": ["-y", "x"], "disabled": False})
    assert server.summary == "npx -y x"


def test_variables_are_put_in_when_they_are_needed() -> None:
    environment = {"TOKEN": "s3cret", "SHORT": "ab"}
    assert filled_in("sample", "Bearer ${TOKEN} ${SHORT} $TOKEN", environment) == "Bearer s3cret ab $TOKEN"
    with pytest.raises(ToolError, match='"sample" needs MISSING, which is neither in the environment nor in the keyr'):
        filled_in("sample", "${MISSING}", environment)
    server = McpServer(command="x", args=["${SHORT}"], env={"API_KEY": "${TOKEN}", "MODE": "${SHORT}"})
    assert variables_of(server) == ["SHORT", "TOKEN"]


def test_the_fingerprint_is_that_of_what_is_started_and_not_of_the_time_limit() -> None:
    one = McpServer(command="x")
    assert one.fingerprint == McpServer(command="x", timeout_s=5).fingerprint
    assert one.fingerprint != McpServer(command="x", args=["y"]).fingerprint
