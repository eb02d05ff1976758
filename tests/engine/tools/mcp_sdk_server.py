"""A well-behaved MCP server written with the SDK: over its standard input, or by HTTP where a port is asked for.

Started as a program of its own by the tests; by HTTP it writes the port that it was given on the first line.
"""

import os
import socket
import sys

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

server = MCPServer("sample")


@server.tool(title="Add numbers", annotations=ToolAnnotations(idempotent_hint=True))
def add(a: int, b: int = 1) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def describe(subject: dict[str, str], tags: list[str] | None = None) -> dict[str, object]:
    """Describes a subject."""
    return {"subject": subject, "tags": tags}


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def environment(name: str) -> str:
    """Returns an environment variable."""
    return os.environ.get(name, "(not set)")


@server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=False))
def fail(reason: str) -> str:
    """Fails."""
    raise ToolError(reason)


@server.tool()
def process() -> int:
    """Returns the server's process id."""
    return os.getpid()


@server.tool()
def much(count: int) -> str:
    """Returns a long text."""
    return "x" * count


@server.tool()
def die() -> str:
    """Ends the server in the middle of the call."""
    sys.stderr.write("out of memory, token=s3cret-token\n")
    sys.stderr.flush()
    os._exit(3)


if __name__ == "__main__":
    if "--http" in sys.argv:
        import uvicorn

        listening = socket.create_server(("127.0.0.1", 0))
        sys.stdout.write(f"{listening.getsockname()[1]}\n")
        sys.stdout.flush()
        config = uvicorn.Config(server.streamable_http_app(), log_level="error")
        uvicorn.Server(config).run(sockets=[listening])
    else:
        server.run("stdio")
