"""Child process that runs a model: the built-in demo model, or a GGUF file.

It is started as a file by an isolated interpreter, so it imports nothing of the engine and as little as possible. It
contains the native runtime, so that crashes and hangs do not affect the program: the parent can end it at any time, and
it ends by itself when the parent is gone.

A message is one line of JSON. The first line from the parent contains the settings; requests follow, one at a time:

- in: `{"do": "complete", "id": 1, "body": {…}}`, `{"do": "count", "id": 2, "body": {"texts": […]}}`,
  `{"do": "cancel", "id": 1}`
- out: `{"tell": "ready"}` or `{"tell": "fatal", "message": …}` once, then for each request any number of
  `{"tell": "text", "id": 1, "text": …}` and `reasoning`, and one of `done`, `cancelled`, `failed`; to `count`,
  `{"tell": "counted", "id": 2, "tokens": …}`.

The runtime's own errors are written to standard error.
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
from typing import Any, cast

Message = dict[str, Any]

PROMPT_BATCH_TOKENS = 32
"""The runtime can be stopped only between two batches of a prompt; one of this size takes 0.2 s and costs no speed."""
ERRORS_ONLY = 1
"""How much the runtime writes to standard error."""
MAX_ERROR_LENGTH = 2000
MAX_CONTEXT_PADDING = 1024
"""By how many tokens the runtime may round up the length of the context."""


class FatalError(Exception):
    """The model cannot be started; the text says why."""


class Pipe:
    """The pipes from and to the parent."""

    def __init__(self) -> None:
        self._reader = os.fdopen(os.dup(0), "rb")
        self._writer = os.fdopen(os.dup(1), "wb")
        # Output of the native code must not get between our messages.
        os.dup2(2, 1)

    def read(self) -> Message | None:
        """Wait for the parent's next message; None if the parent is gone."""
        line = self._reader.readline()
        return cast("Message", json.loads(line)) if line.endswith(b"\n") else None

    def tell(self, **message: Any) -> None:
        """Send a message to the parent; end the process if the parent is gone."""
        try:
            self._writer.write(json.dumps(message).encode() + b"\n")
            self._writer.flush()
        except OSError:
            exit_now()


def exit_now() -> None:
    """End the process at once: cleaning up while the runtime generates would crash it."""
    os._exit(0)


def check_weights(file: Path, expected_sha256: str) -> None:
    """Refuse other weights than the expected ones.

    Raises:
        FatalError: The file cannot be read, or its content differs.
    """
    try:
        with file.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise FatalError(f"its weights cannot be read from {file} ({error.strerror})") from error
    if found != expected_sha256:
        raise FatalError(f"its weights in {file} are damaged or not the expected ones (their SHA-256 is {found})")


def start_server(settings: Message) -> Any:
    """Load the runtime and the weights; return the runtime's server.

    The runtime requires an HTTP server. It gets a socket that nobody else can reach: in a private folder, from which it
    is removed as soon as it listens, and behind a secret key. On Windows, which may not support such sockets, it gets a
    free port of the loopback address, behind the same kind of key.

    Raises:
        FatalError: The runtime is missing or refuses to start.
    """
    sys.path.append(settings["runtime"])
    os.environ["GGML_NO_BACKTRACE"] = "1"  # an assertion that fails would start a debugger for half a minute
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
        parameters.verbosity = ERRORS_ONLY
        parameters.warmup = False
        parameters.prefill_assistant = False
        parameters.n_parallel = 1
        parameters.n_ctx = settings["context_tokens"]
        if settings["gpu_layers"] is not None:  # otherwise as many as fit
            parameters.n_gpu_layers = settings["gpu_layers"]
        if settings["gpu_layers"] == 0 or not has_gpu(runtime):
            parameters.n_batch = parameters.n_ubatch = PROMPT_BATCH_TOKENS
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = settings["threads"]
        # By default it keeps the state of past prompts, up to 8 GiB.
        parameters.cache_ram_mib = 0
        server: Any = runtime.Server(parameters)
    except Exception as error:
        raise FatalError(f"its runtime does not start ({one_line(error)})") from error
    socket_file.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        socket_file.parent.rmdir()  # so that nothing is left behind if the parent is killed
    # A server that is dropped before its first request blocks forever, and the first request is slower than the others.
    with contextlib.suppress(Exception):  # a chat template that refuses it may accept other messages
        server.handle_chat_completions('{"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}', ignore)
    return server


def has_gpu(runtime: Any) -> bool:
    """Whether the runtime can use a graphics card, which reads prompts in larger batches."""
    return any(device["type"].name.endswith("GPU") for device in runtime.get_device_info())


def ignore(_piece: str) -> bool:
    """Ignore a piece of a reply."""
    return False


def one_line(error: Exception) -> str:
    """An error's text without line breaks, truncated to fit into a sentence."""
    return " ".join(str(error).split())[:MAX_ERROR_LENGTH]


class Worker:
    """Answers the parent's requests one at a time."""

    def __init__(self, pipe: Pipe, context_tokens: int) -> None:
        self._pipe = pipe
        self._context_tokens = context_tokens
        self._requests: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._cancelled_id = 0

    def listen(self) -> None:
        """Receive the parent's messages, in a separate thread, so that a running request can be canceled."""
        while (message := self._pipe.read()) is not None:
            if message["do"] == "cancel":
                self._cancelled_id = message["id"]
            else:
                self._requests.put(message)
        exit_now()

    def serve(self, server: Any) -> None:
        """Answer requests until the parent is gone."""
        while True:
            request = self._requests.get()
            if request["do"] == "count":
                self._count(server, request["id"], request["body"]["texts"])
            else:
                self._answer(server, request["id"], request["body"])

    def _count(self, server: Any, request_id: int, texts: list[str]) -> None:
        """Count the tokens of texts.

        The runtime only says how many tokens a prompt has when it refuses one that is too long, before it reads it. So
        the texts follow as many tokens as no context has.
        """
        beginning = [0] * (self._context_tokens + MAX_CONTEXT_PADDING)
        failure: Message = {}

        def take(piece: str) -> bool:
            failure.update(json.loads(piece).get("error", {}))
            return True

        try:
            server.handle_completions(json.dumps({"prompt": [*beginning, *texts], "n_predict": 1}), take)
            tokens = failure["n_prompt_tokens"] - len(beginning)
        except Exception as error:  # whatever the runtime raises, the parent must learn of it
            self._pipe.tell(tell="failed", id=request_id, error={"type": "refused", "message": one_line(error)})
        else:
            self._pipe.tell(tell="counted", id=request_id, tokens=tokens)

    def _answer(self, server: Any, request_id: int, body: Message) -> None:
        outcome: Message = {"finish": "", "input_tokens": 0, "output_tokens": 0}
        failure: Message = {}

        def take(piece: str) -> bool:
            if self._cancelled_id == request_id:
                return True
            try:
                for kind, text in read_chunk(json.loads(piece), outcome, failure).items():
                    self._pipe.tell(tell=kind, id=request_id, text=text)
            except Exception as error:  # the runtime ignores exceptions of its callback
                failure.update(type="unreadable", message=one_line(error))
            return bool(failure)

        try:
            server.handle_chat_completions(json.dumps(body), take)
        except Exception as error:  # whatever the runtime raises, the parent must learn of it
            failure.update(type="refused", message=one_line(error))
        if self._cancelled_id == request_id:
            self._pipe.tell(tell="cancelled", id=request_id)
        elif failure:
            self._pipe.tell(tell="failed", id=request_id, error=failure)
        else:
            self._pipe.tell(tell="done", id=request_id, **outcome)


def read_chunk(chunk: Message, outcome: Message, failure: Message) -> dict[str, str]:
    """Return `text` and `reasoning` in one chunk of a streamed reply, if any; add finish, token counts and error."""
    texts: dict[str, str] = {}
    if "error" in chunk:
        failure.update(chunk["error"])
        return texts
    if usage := chunk.get("usage"):
        outcome["input_tokens"] = usage["prompt_tokens"]
        outcome["output_tokens"] = usage["completion_tokens"]
    for choice in chunk["choices"]:
        for kind, key in (("reasoning", "reasoning_content"), ("text", "content")):
            if piece := choice["delta"].get(key):
                texts[kind] = texts.get(kind, "") + piece
        outcome["finish"] = choice["finish_reason"] or outcome["finish"]
    return texts


def end_with_parent() -> None:
    """Make the kernel end this process with the parent, even if a fork holds the pipe open."""
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
    worker = Worker(pipe, settings["context_tokens"])
    threading.Thread(target=worker.listen, daemon=True).start()
    try:
        if settings["sha256"]:
            check_weights(Path(settings["weights"]), settings["sha256"])
        server = start_server(settings)
    except FatalError as error:
        pipe.tell(tell="fatal", message=str(error))
        return  # a regular end, so that the runtime writes all its messages
    pipe.tell(tell="ready")
    worker.serve(server)


if __name__ == "__main__":
    main()
