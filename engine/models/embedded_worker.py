"""The child process in which the built-in demo model runs.

It is started as a file by an isolated interpreter, so it knows nothing of the engine and imports as little as it can.
It holds the native runtime, whose crashes and hangs must not be the program's: the parent ends it at will, and it ends
by itself when the parent is gone.

A message is one line of JSON. The first line from the parent holds the settings; then come requests, one at a time:

- in: `{"do": "complete", "id": 1, "body": {…}}`, `{"do": "cancel", "id": 1}`
- out: `{"tell": "ready"}` or `{"tell": "fatal", "message": …}` once, then for each request any number of
  `{"tell": "text", "id": 1, "text": …}` and one of `done`, `cancelled`, `failed`.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import queue
import secrets
import signal
import sys
import threading
from pathlib import Path
from typing import Any, Protocol, cast

Message = dict[str, Any]

PROMPT_BATCH_TOKENS = 32
"""Only between two batches of a prompt can the runtime be stopped: so small a one takes 0.2 s, and costs no speed."""


class Server(Protocol):
    """What is used of the runtime's server."""

    def handle_chat_completions(self, body: str, tell: Any, /) -> None:
        """Answer one request; hand each piece of the answer to `tell`, and stop when that returns True."""
        ...


class FatalError(Exception):
    """The model cannot be started at all; the text says why."""


class Pipe:
    """The two pipes to the parent."""

    def __init__(self) -> None:
        self._reader = os.fdopen(os.dup(0), "rb")
        self._writer = os.fdopen(os.dup(1), "wb")
        # Whatever the native code prints must not end up between our messages.
        os.dup2(2, 1)

    def read(self) -> Message | None:
        """Wait for the parent's next message; None when the parent is gone."""
        line = self._reader.readline()
        return cast("Message", json.loads(line)) if line.endswith(b"\n") else None

    def tell(self, **message: Any) -> None:
        """Send a message to the parent; end the process if there is none any more."""
        try:
            self._writer.write(json.dumps(message).encode() + b"\n")
            self._writer.flush()
        except OSError:
            leave()


def leave() -> None:
    """End the process at once: tidying up while the runtime generates would crash it."""
    os._exit(0)


def check_weights(file: Path, expected_sha256: str) -> None:
    """Refuse weights that are not the ones this program was made for.

    Raises:
        FatalError: The file cannot be read, or its content is another.
    """
    try:
        with file.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise FatalError(f"its weights cannot be read from {file} ({error.strerror})") from error
    if found != expected_sha256:
        raise FatalError(f"its weights in {file} are damaged or not the expected ones (their SHA-256 is {found})")


def start_server(settings: Message) -> Server:
    """Load the runtime and the weights.

    The runtime insists on an HTTP server. It gets a socket that nobody else can reach: in a folder of our own, removed
    from there as soon as it listens, and behind a key that is never told. On Windows, which may know no such sockets,
    it is a free port of the loopback address behind the same kind of key.

    Raises:
        FatalError: The runtime is missing or refuses to start.
    """
    sys.path.append(settings["runtime"])
    socket_file = Path(settings["socket_folder"]) / "s.sock"
    try:
        runtime: Any = importlib.import_module("xllamacpp")
        parameters = runtime.CommonParams()
        parameters.model.path = settings["weights"]
        parameters.hostnames = ["127.0.0.1" if os.name == "nt" else str(socket_file)]
        parameters.port = 0
        parameters.api_keys = [secrets.token_hex(32)]
        parameters.ui = False
        parameters.endpoint_slots = False
        parameters.verbosity = 0
        parameters.warmup = False
        parameters.prefill_assistant = False
        parameters.n_parallel = 1
        parameters.n_ctx = settings["context_tokens"]
        parameters.n_batch = parameters.n_ubatch = PROMPT_BATCH_TOKENS
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = settings["threads"]
        # It would otherwise keep the state of past prompts, up to 8 GiB of them.
        parameters.cache_ram_mib = 0
        server = cast("Server", runtime.Server(parameters))
    except Exception as error:
        raise FatalError(f"its runtime does not start ({one_line(error)})") from error
    socket_file.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        socket_file.parent.rmdir()  # so that a parent that is killed leaves nothing behind
    # A server that is dropped before its first request blocks for good, and the first request is slower than the rest.
    server.handle_chat_completions('{"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}', ignore)
    return server


def ignore(_piece: str) -> bool:
    """Take a piece of a reply and go on."""
    return False


def one_line(error: Exception) -> str:
    """Return an error's text without line breaks, cut to what fits into a sentence."""
    return " ".join(str(error).split())[:300]


class Worker:
    """Answers the parent's requests one after the other."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._requests: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._cancelled_id = 0

    def listen(self) -> None:
        """Take in the parent's messages, in a thread of its own, so that a request can be cancelled while it runs."""
        while (message := self._pipe.read()) is not None:
            if message["do"] == "cancel":
                self._cancelled_id = message["id"]
            else:
                self._requests.put(message)
        leave()

    def serve(self, server: Server) -> None:
        """Answer requests for as long as the parent lives."""
        while True:
            request = self._requests.get()
            self._answer(server, request["id"], request["body"])

    def _answer(self, server: Server, request_id: int, body: Message) -> None:
        outcome: Message = {"finish": "", "input_tokens": 0, "output_tokens": 0}
        failure: Message = {}

        def take(piece: str) -> bool:
            if self._cancelled_id == request_id:
                return True
            try:
                if text := read_chunk(json.loads(piece), outcome, failure):
                    self._pipe.tell(tell="text", id=request_id, text=text)
            except Exception as error:  # the runtime swallows what its callback raises
                failure.update(type="unreadable", message=one_line(error))
            return bool(failure)

        try:
            server.handle_chat_completions(json.dumps(body), take)
        except Exception as error:  # whatever the runtime raises, the parent must hear
            failure.update(type="refused", message=one_line(error))
        if self._cancelled_id == request_id:
            self._pipe.tell(tell="cancelled", id=request_id)
        elif failure:
            self._pipe.tell(tell="failed", id=request_id, error=failure)
        else:
            self._pipe.tell(tell="done", id=request_id, **outcome)


def read_chunk(chunk: Message, outcome: Message, failure: Message) -> str:
    """Return the text in one chunk of a streamed reply.

    Args:
        chunk: What the runtime gave.
        outcome: Takes up how the reply ended and the tokens that it used.
        failure: Takes up the error, where the chunk is one.
    """
    if "error" in chunk:
        failure.update(chunk["error"])
        return ""
    if usage := chunk.get("usage"):
        outcome["input_tokens"] = usage["prompt_tokens"]
        outcome["output_tokens"] = usage["completion_tokens"]
    text = ""
    for choice in chunk["choices"]:
        text += choice["delta"].get("content") or ""
        outcome["finish"] = choice["finish_reason"] or outcome["finish"]
    return text


def end_with_parent() -> None:
    """Have the kernel end this process with the parent: the pipe's end says so too, unless a fork holds it open."""
    if sys.platform == "linux":
        import ctypes

        parent_death_signal = 1
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)


def main() -> None:
    """Run until the parent ends the process or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    pipe = Pipe()
    settings = pipe.read()
    if settings is None:
        return
    worker = Worker(pipe)
    threading.Thread(target=worker.listen, daemon=True).start()
    try:
        check_weights(Path(settings["weights"]), settings["sha256"])
        server = start_server(settings)
    except FatalError as error:
        pipe.tell(tell="fatal", message=str(error))
        leave()
        return
    pipe.tell(tell="ready")
    worker.serve(server)


if __name__ == "__main__":
    main()
