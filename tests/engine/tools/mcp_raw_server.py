"""A faulty MCP server: a valid handshake, then the behavior of its first argument."""

import json
import os
import sys
import time
from pathlib import Path

BEHAVIOR = sys.argv[1]
TOOL = {"name": "work", "description": "Works.", "inputSchema": {"type": "object", "properties": {}}}

if BEHAVIOR == "odd":
    TOOL["inputSchema"]["properties"]["mean"] = {"type": "number", "default": float("nan")}


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def answer(request, result):
    say(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}))


def refuse(request):
    error = {"code": -32601, "message": "no such method"}
    say(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}))


def greet(request):
    version = request["params"]["protocolVersion"]
    info = {"name": "raw", "version": "1"}
    answer(request, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})


def work(request):
    if BEHAVIOR == "flood":
        for _ in range(100):
            sys.stdout.write("x" * 1_000_000)
        sys.stdout.write("\n")
        sys.stdout.flush()
    elif BEHAVIOR == "huge":
        answer(request, {"content": [{"type": "text", "text": "x" * 2_000_000}]})
    elif BEHAVIOR == "rubbish":
        say("this is no message\n{}\n[1, 2]\nnull")
        answer(request, {"content": "no list of blocks"})
    elif BEHAVIOR == "chatty":
        say("Starting up ...")
        answer(
            request,
            {"content": [{"type": "text", "text": "done"}, {"type": "image", "data": "eA==", "mimeType": "image/png"}]},
        )
    elif BEHAVIOR == "die" and not Path(os.environ["HAS_DIED"]).exists():
        Path(os.environ["HAS_DIED"]).touch()
        sys.stderr.write(f"out of memory, token={os.environ['API_TOKEN']}\n")
        sys.stderr.flush()
        os._exit(3)
    elif BEHAVIOR == "die":
        answer(request, {"content": [{"type": "text", "text": "done"}]})
    elif BEHAVIOR == "once":
        answer(request, {"content": [], "structuredContent": {"result": os.getpid()}})
        TOOL["description"] = "Has worked."
    elif BEHAVIOR == "half":
        cut = "smile: \U0001f600".encode("utf-16-le", "surrogatepass")[:-2].decode("utf-16-le", "surrogatepass")
        answer(request, {"content": [{"type": "text", "text": cut}]})
    elif BEHAVIOR == "infinite":
        answer(request, {"content": [], "structuredContent": {"mean": float("nan")}})
    elif BEHAVIOR == "complain":
        text = f"401 at https://example.org/?token={os.environ['API_TOKEN']}"
        answer(request, {"content": [{"type": "text", "text": text}], "isError": True})
    elif BEHAVIOR == "hang":
        time.sleep(600)


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method = request["method"]
    if method == "initialize" and BEHAVIOR != "deaf":
        greet(request)
    elif method == "tools/list":
        answer(request, {"tools": [TOOL]})
        if TOOL["description"] == "Has worked.":  # a client looks at the list before it believes the first answer
            os._exit(0)
    elif method == "tools/call":
        work(request)
    elif BEHAVIOR != "deaf":
        refuse(request)
