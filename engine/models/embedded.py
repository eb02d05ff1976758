"""Built-in demo model: real, local, free, and tiny.

It runs in a child process (`engine.models.embedded_worker`), because the native runtime can crash or hang. The parent
talks to the process over pipes, in threads: the process outlives the event loop that started it, and serves several.
Calls are answered one at a time, in the order in which they arrive. A process that died is replaced at the next call.

The runtime is located without importing it. The child checks the SHA-256 of the weights before it loads them.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import itertools
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from engine.errors import Fix
from engine.models.demo_weights import FILE_SHA256, find_weights
from engine.models.protocol import (
    EMBEDDED_MODEL,
    Finish,
    Message,
    ModelError,
    ModelErrorKind,
    OnText,
    Price,
    Reply,
    Request,
    Usage,
)
from engine.models.reply_text import ReplyText
from engine.models.tool_calls import describe_tools, parse_written_calls
from engine.values import Value, clean_text

EMBEDDED_NOTE = "tiny: good for trying the program, not for good answers"

RUNTIME_PACKAGE = "xllamacpp"

CONTEXT_TOKENS = 4096
DEFAULT_MAX_TOKENS = 512
DEFAULT_TEMPERATURE = 0.2
DEFAULT_TOP_P = 0.9
DEFAULT_SEED = 7

CANCEL_GRACE_S = 0.8
"""How long a canceled call may continue until its process is ended; normally it stops within 0.3 s, at a token."""

_WORKER = Path(__file__).with_name("embedded_worker.py")
_CONTROL_TOKENS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
_FINISHES = {"stop": Finish.STOP, "length": Finish.LENGTH}
_MAX_LINE_BYTES = 1_000_000
_MAX_SOCKET_PATH_BYTES = 100
"""Socket addresses are limited to 104 to 108 bytes, depending on the system."""


def _unavailable(message: str) -> ModelError:
    remedy = "Install it, or choose another model."
    return ModelError(ModelErrorKind.UNAVAILABLE, message, remedy, fix=Fix.INSTALL.of("embedded"))


def find_runtime() -> Path:
    """Find the folder from which the runtime can be imported.

    Raises:
        ModelError: The runtime is not installed (`UNAVAILABLE`).
    """
    specification = importlib.util.find_spec(RUNTIME_PACKAGE)
    if specification is None or not specification.submodule_search_locations:
        raise _unavailable(f"The runtime of the built-in demo model (package {RUNTIME_PACKAGE}) is not installed.")
    return Path(next(iter(specification.submodule_search_locations))).parent


class Failure(BaseModel):
    """Why the runtime gave no reply, in its own words."""

    model_config = ConfigDict(frozen=True)

    type: str = ""
    message: str = ""
    n_prompt_tokens: int | None = None
    n_ctx: int | None = None


class WorkerMessage(BaseModel):
    """A message from the child; `engine.models.embedded_worker` describes the kinds."""

    model_config = ConfigDict(frozen=True)

    tell: Literal["ready", "fatal", "text", "done", "cancelled", "failed"]
    id: int = 0
    text: str = ""
    finish: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    message: str = ""
    error: Failure = Failure()


class Child:
    """A running child process.

    Nothing here blocks the caller: one thread starts the process and reads its messages, one writes to it, and one
    reads its standard error, of which it remembers the last lines.
    """

    def __init__(
        self,
        worker: Path,
        settings: dict[str, Value],
        on_message: Callable[[WorkerMessage], None],
        on_exit: Callable[[str], None],
    ) -> None:
        """Start the process.

        Args:
            worker: The program that it runs.
            settings: Its first message.
            on_message: Receives each message, in order, in the reading thread.
            on_exit: Receives, last and once, a clause that says how the process ended (`it was ended by SIGKILL`).
        """
        self._worker = worker
        self._settings = settings
        self._on_message = on_message
        self._on_exit = on_exit
        self._outgoing: queue.SimpleQueue[dict[str, Value] | None] = queue.SimpleQueue()
        self._last_output: deque[str] = deque(maxlen=5)
        self._process_lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._killed = False
        self._thread = threading.Thread(target=self._run, name="embedded-model", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """The process's id; None before it has started."""
        return self._process.pid if self._process else None

    def send(self, message: dict[str, Value]) -> None:
        """Send a message, after all earlier ones."""
        self._outgoing.put(message)

    def kill(self) -> None:
        """End the process at once."""
        with self._process_lock:
            self._killed = True
            if self._process:
                self._process.kill()

    def join(self) -> None:
        """Wait until the process has ended and `on_exit` was called. Not from within the callbacks."""
        self._thread.join()

    def _run(self) -> None:
        # This thread starts the process, because the kernel ends it with the thread that started it.
        try:
            socket_folder = _private_folder()
            try:
                reason = self._start_and_listen(socket_folder)
            finally:
                shutil.rmtree(socket_folder, ignore_errors=True)
        except OSError as error:
            reason = f"its process does not start ({error.strerror})"
        self._on_exit(reason)

    def _start_and_listen(self, socket_folder: Path) -> str:
        """Run the process to its end; return how it ended."""
        process = self._start(socket_folder)
        assert process.stdin
        assert process.stdout
        assert process.stderr
        helpers = [
            threading.Thread(target=self._write, args=(process.stdin,), daemon=True),
            threading.Thread(target=self._read_error_output, args=(process.stderr,), daemon=True),
        ]
        for helper in helpers:
            helper.start()
        is_valid = self._read(process.stdout)
        process.kill()
        process.wait()
        self._outgoing.put(None)
        for helper in helpers:
            helper.join()
        process.stdout.close()
        process.stderr.close()
        with contextlib.suppress(OSError):
            process.stdin.close()
        if not is_valid:
            return "it wrote something that is not a message"
        last_output = " ".join(self._last_output)[-500:]
        addition = f"; its last output was: {last_output}" if last_output else ""
        if process.returncode < 0:
            number = -process.returncode
            return f"it was ended by signal {number} ({signal.strsignal(number)}){addition}"
        return f"it ended by itself with exit code {process.returncode}{addition}"

    def _start(self, socket_folder: Path) -> subprocess.Popen[bytes]:
        with self._process_lock:
            # Isolated (-I): neither the working folder nor PYTHONPATH can change what the child imports.
            process = subprocess.Popen(  # noqa: S603 - our own program under our own interpreter
                [sys.executable, "-I", str(self._worker)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # the parent handles Ctrl+C in the terminal
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
            self._process = process
            if self._killed:
                process.kill()
        assert process.stdin
        with contextlib.suppress(OSError):
            process.stdin.write(_line({**self._settings, "socket_folder": str(socket_folder)}))
            process.stdin.flush()
        return process

    def _read(self, stream: IO[bytes]) -> bool:
        """Pass on messages until the process has ended; return whether all were valid."""
        while line := stream.readline(_MAX_LINE_BYTES):
            if not line.endswith(b"\n"):  # incomplete: the process has ended, or the line is too long
                return len(line) < _MAX_LINE_BYTES
            try:
                message = WorkerMessage.model_validate_json(line)
            except ValidationError:
                return False
            self._on_message(message)
        return True

    def _write(self, stream: IO[bytes]) -> None:
        while (message := self._outgoing.get()) is not None:
            try:
                stream.write(_line(message))
                stream.flush()
            except OSError:
                return  # the process has ended, which the reading thread notices too

    def _read_error_output(self, stream: IO[bytes]) -> None:
        while line := stream.readline(1000):
            self._last_output.append(" ".join(line.decode(errors="replace").split()))


def _line(message: dict[str, Value]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _private_folder() -> Path:
    """Create a folder that only this user can enter, with a path short enough for a socket's address."""
    folder = Path(tempfile.mkdtemp(prefix="lw-"))
    if len(bytes(folder)) > _MAX_SOCKET_PATH_BYTES - len("/s.sock") and Path("/tmp").is_dir():  # noqa: S108 - mkdtemp makes it private
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="lw-", dir="/tmp"))
    return folder


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """A waiting or running call, and the event loop in which it is awaited."""

    id: int
    body: dict[str, Value]
    loop: asyncio.AbstractEventLoop
    inbox: asyncio.Queue[WorkerMessage | ModelError] = field(
        default_factory=asyncio.Queue["WorkerMessage | ModelError"]
    )

    def deliver(self, item: WorkerMessage | ModelError) -> None:
        """Deliver a message, or the error that ends the call. From any thread."""
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody awaits the call any more
            self.loop.call_soon_threadsafe(self.inbox.put_nowait, item)


class EmbeddedModel:
    """The built-in demo model.

    By default its temperature is 0.2, its seed fixed and `max_tokens` 512, so that the same request gets the same reply
    on the same machine.
    """

    def __init__(self, *, weights: Path | None = None, sha256: str = FILE_SHA256, worker: Path = _WORKER) -> None:
        """Prepare the model; nothing is started or read before the first call.

        Args:
            weights: A GGUF file; None for the installed one.
            sha256: The file's expected hash, in hexadecimal.
            worker: The program that the child process runs.
        """
        self._weights = weights
        self._sha256 = sha256
        self._worker = worker
        self._ids = itertools.count(1)
        self._lock = threading.Lock()  # guards all following attributes
        self._waiting: deque[_Call] = deque()
        self._current: _Call | None = None
        self._settings: dict[str, Value] = {}
        self._child: Child | None = None
        self._child_ready = False
        self._start_failure = ""
        self._cancel_timer: threading.Timer | None = None
        self._closed = False

    @property
    def name(self) -> str:
        """Its name for documents and people."""
        return EMBEDDED_MODEL

    @property
    def note(self) -> str:
        """What a person should know before using it."""
        return EMBEDDED_NOTE

    @property
    def process_id(self) -> int | None:
        """The id of the child process; None if none runs."""
        child = self._child
        return child.pid if child else None

    async def price(self) -> Price:
        """It is free."""
        return Price(0.0, 0.0)

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Make one call; cancelling the awaiting task ends the generation. Tools are described in the prompt.

        Raises:
            ModelError: It is not installed or damaged (`UNAVAILABLE`), the prompt is too long (`CONTEXT_LENGTH`), it
                cannot follow the schema (`BAD_REQUEST`), or its process died (`INTERRUPTED`).
        """
        settings = self._child_settings()
        call = _Call(next(self._ids), _body(describe_tools(request)), asyncio.get_running_loop())
        self._submit(call, settings)
        texts = ReplyText(on_text=on_text)
        has_ended = False
        try:
            while True:
                item = await call.inbox.get()
                if isinstance(item, ModelError):
                    has_ended = True
                    item.partial = texts.text
                    raise item
                if item.tell == "text":
                    texts.add(item.text)
                    continue
                has_ended = True
                if item.tell == "failed":
                    raise _runtime_error(item.error)
                texts.finish()
                reply = Reply(
                    text=texts.text,
                    finish=_FINISHES.get(item.finish, Finish.OTHER),
                    usage=Usage(item.input_tokens, item.output_tokens),
                    model=EMBEDDED_MODEL,
                    cost_usd=0.0,
                    reasoning=texts.reasoning,
                    warnings=_unused_settings(request),
                )
                return parse_written_calls(reply, request)
        finally:
            if not has_ended:
                self._cancel(call)

    def warm_up(self) -> None:
        """Start the child process, so that the first call need not wait for it.

        Raises:
            ModelError: The model is not installed or damaged (`UNAVAILABLE`).
        """
        settings = self._child_settings()
        with self._lock:
            if self._child is None and not self._closed:
                self._start_child(settings)

    async def close(self) -> None:
        """End the child process; calls that still wait fail."""
        with self._lock:
            self._closed = True
            child = self._child
            if child:
                child.kill()
        if child:
            await asyncio.to_thread(child.join)

    def _child_settings(self) -> dict[str, Value]:
        return {
            "weights": str(self._weights or find_weights()),
            "sha256": self._sha256,
            "runtime": str(find_runtime()),
            "threads": max(1, _usable_cores() // 2),  # with every core busy it generates ten times slower
            "context_tokens": CONTEXT_TOKENS,
        }

    def _start_child(self, settings: dict[str, Value]) -> None:
        """Start a child process. The lock is held."""
        self._settings = settings
        self._child = Child(self._worker, settings, self._on_message, self._on_exit)

    def _submit(self, call: _Call, settings: dict[str, Value]) -> None:
        with self._lock:
            if self._closed:
                raise ModelError(ModelErrorKind.UNAVAILABLE, "The built-in demo model was closed.")
            self._waiting.append(call)
            if self._child is None:
                self._start_child(settings)
            self._run_next()

    def _run_next(self) -> None:
        """Send the next waiting call to the child if it is idle. The lock is held."""
        if self._child and self._child_ready and self._current is None and self._waiting:
            self._current = self._waiting.popleft()
            self._child.send({"do": "complete", "id": self._current.id, "body": self._current.body})

    def _cancel(self, call: _Call) -> None:
        with self._lock:
            if call in self._waiting:
                self._waiting.remove(call)
            elif self._current is call and self._child:
                self._child.send({"do": "cancel", "id": call.id})
                self._cancel_timer = threading.Timer(CANCEL_GRACE_S, self._end_stuck, [call])
                self._cancel_timer.daemon = True
                self._cancel_timer.start()

    def _end_stuck(self, call: _Call) -> None:
        """End the child if it still processes a canceled call. In the timer's thread."""
        with self._lock:
            if self._current is call and self._child:
                self._child.kill()

    def _on_message(self, message: WorkerMessage) -> None:
        """Handle a message from the child, in its reading thread."""
        with self._lock:
            if message.tell == "ready":
                self._child_ready = True
            elif message.tell == "fatal":
                self._start_failure = message.message
            elif self._current and self._current.id == message.id:
                self._current.deliver(message)
                if message.tell != "text":
                    self._finish_current()
            self._run_next()

    def _finish_current(self) -> None:
        self._current = None
        if self._cancel_timer:
            self._cancel_timer.cancel()
            self._cancel_timer = None

    def _on_exit(self, reason: str) -> None:
        """Handle the end of the child, in its reading thread; start another one if calls wait."""
        with self._lock:
            started, self._child_ready = self._child_ready, False
            failure, self._start_failure = self._start_failure, ""
            current = self._current
            self._finish_current()
            self._child = None
            if current:
                current.deliver(_process_ended(reason))
            if self._closed or not started:
                while self._waiting:
                    self._waiting.popleft().deliver(_cannot_start(failure) if failure else _process_ended(reason))
            elif self._waiting:
                self._start_child(self._settings)


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _process_ended(reason: str) -> ModelError:
    return ModelError(
        ModelErrorKind.INTERRUPTED,
        f"The built-in demo model's process ended before it replied: {reason}.",
        "Run it again; if that happens repeatedly, choose another model.",
    )


def _cannot_start(failure: str) -> ModelError:
    return _unavailable(f"The built-in demo model cannot start: {failure}.")


def _runtime_error(failure: Failure) -> ModelError:
    if failure.type == "exceed_context_size_error":
        return ModelError(
            ModelErrorKind.CONTEXT_LENGTH,
            f"The prompt has {failure.n_prompt_tokens} tokens, but the built-in demo model reads {failure.n_ctx}.",
            "Shorten the prompt or what a loop appends to it (append_window), or choose a model with a larger window.",
        )
    return ModelError(
        ModelErrorKind.BAD_REQUEST,
        f"The built-in demo model refused the request: {failure.message.rstrip('.')}.",
        "Change the prompt or the JSON Schema, or choose another model.",
    )


def _body(request: Request) -> dict[str, Value]:
    """The request in the runtime's format."""
    body: dict[str, Value] = {
        "messages": [_message(message) for message in request.messages],
        "max_tokens": max(1, request.max_tokens or DEFAULT_MAX_TOKENS),
        "temperature": DEFAULT_TEMPERATURE if request.temperature is None else request.temperature,
        "top_p": DEFAULT_TOP_P if request.top_p is None else request.top_p,
        # The largest seed would mean a random one.
        "seed": (DEFAULT_SEED if request.seed is None else request.seed) % 0xFFFF_FFFF,
        # Without a penalty so small a model repeats itself; in JSON the penalty would apply to the syntax.
        "repeat_penalty": 1.1 if request.schema is None else 1.0,
        # Earlier requests must not change a reply, not even by a rounding error.
        "cache_prompt": False,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,  # a callback between two batches of the prompt: the only place to cancel there
    }
    if request.stop:
        body["stop"] = list(request.stop)
    if request.schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": {"schema": request.schema}}
    return body


def _unused_settings(request: Request) -> tuple[str, ...]:
    """A warning for each setting that has no meaning here."""
    settings = (("Reasoning effort", request.reasoning_effort), ("Extra parameters", request.extra_parameters))
    return tuple(f"The built-in demo model does not use the setting '{title}'." for title, value in settings if value)


def _message(message: Message) -> dict[str, Value]:
    """The message in the runtime's format: clean, and without text that would end or start a message."""
    text = clean_text(message.text)
    for token in _CONTROL_TOKENS:
        text = text.replace(token, token.replace("<|", "< |"))
    return {"role": "user" if message.role == "tool" else message.role, "content": text}
