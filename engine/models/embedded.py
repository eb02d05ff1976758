"""Models that run in the embedded runtime, and the built-in demo model: real, local, free, and tiny.

A model runs in a child process (`engine.models.embedded_worker`), because the native runtime can crash or hang. The
parent talks to the process over pipes, in threads: the process outlives the event loop that started it, and serves
several.
Calls are answered one at a time, in the order in which they arrive. A process that died is replaced at the next call.

The runtime is located without importing it. The child checks the SHA-256 of the demo model's weights before it loads
them. `engine.models.gguf_model` runs any other GGUF file.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import itertools
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from engine.errors import Fix
from engine.models.demo_weights import FILE_SHA256, HOW_TO_REPAIR, find_weights
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

WORKER = Path(__file__).with_name("embedded_worker.py")
_FINISHES = {"stop": Finish.STOP, "length": Finish.LENGTH}
_MAX_LINE_BYTES = 1_000_000
_MAX_SOCKET_PATH_BYTES = 100
"""Socket addresses are limited to 104 to 108 bytes, depending on the system."""
_WEIGHTS_FAILURE: Final = "its weights "  # how the worker reports unreadable and damaged weights
_LINES_KEPT = 40
_LINES_SHOWN = 5
_TOO_LONG: Final = b"exceeds the available context size"
"""In what the runtime writes about a prompt that is too long, which is no reason for its process to end."""
_VMSTAT = Path("/proc/vmstat")
_OUT_OF_MEMORY: Final = re.compile(
    r"insufficient memory|out of (device )?memory|(failed|unable) to allocate|cannot allocate memory|bad_alloc"
    r"|OutOfDeviceMemory",
    re.IGNORECASE,
)
"""What the runtime writes if it gets no memory, on a processor or a graphics card."""


def _unavailable(message: str) -> ModelError:
    remedy = "Install it, or choose another model."
    return ModelError(ModelErrorKind.UNAVAILABLE, message, remedy, fix=Fix.INSTALL.of("embedded"))


def control_token_pattern(tokens: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds tokens that start or end messages; shorter ones than three characters are left."""
    longest_first = sorted((token for token in tokens if len(token) > 2), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


_DEMO_TOKENS: Final = control_token_pattern(("<|im_start|>", "<|im_end|>", "<|endoftext|>"))


def find_runtime() -> Path:
    """Find the folder from which the runtime can be imported.

    Raises:
        ModelError: The runtime is not installed (`UNAVAILABLE`).
    """
    specification = importlib.util.find_spec(RUNTIME_PACKAGE)
    if specification is None or not specification.submodule_search_locations:
        raise _unavailable(f"The runtime of models on this computer (package {RUNTIME_PACKAGE}) is not installed.")
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

    tell: Literal["ready", "fatal", "text", "reasoning", "done", "counted", "cancelled", "failed"]
    id: int = 0
    text: str = ""
    tokens: int = 0
    finish: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    message: str = ""
    error: Failure = Failure()


@dataclass(frozen=True, slots=True)
class ChildEnd:
    """How a child process ended.

    Attributes:
        reason: A clause for people (`it was ended by signal 9 (Killed)`).
        output: The last lines of its error output.
        killed_for_memory: Whether the system ended it because the memory ran out.
    """

    reason: str
    output: tuple[str, ...] = ()
    killed_for_memory: bool = False

    @property
    def ran_out_of_memory(self) -> bool:
        """Whether it ended because there was too little memory."""
        return self.killed_for_memory or any(map(_OUT_OF_MEMORY.search, self.output))


def _memory_kills() -> int:
    """Return how many processes the system has ended because the memory ran out; 0 if it does not say."""
    try:
        counts = _VMSTAT.read_text("ascii", "replace")
    except OSError:
        return 0
    found = re.search(r"^oom_kill (\d+)$", counts, re.MULTILINE)
    return int(found[1]) if found else 0


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
        on_exit: Callable[[ChildEnd], None],
    ) -> None:
        """Start the process.

        Args:
            worker: The program that it runs.
            settings: Its first message.
            on_message: Receives each message, in order, in the reading thread.
            on_exit: Receives, last and once, how the process ended.
        """
        self._worker = worker
        self._settings = settings
        self._on_message = on_message
        self._on_exit = on_exit
        self._outgoing: queue.SimpleQueue[dict[str, Value] | None] = queue.SimpleQueue()
        self._last_output: deque[str] = deque(maxlen=_LINES_KEPT)
        self._process_lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._killed = False
        self._thread = threading.Thread(target=self._run, name="embedded-model", daemon=True)
        self._thread.start()

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
                end = self._start_and_listen(socket_folder)
            finally:
                shutil.rmtree(socket_folder, ignore_errors=True)
        except OSError as error:
            end = ChildEnd(f"its process does not start ({error.strerror})")
        self._on_exit(end)

    def _start_and_listen(self, socket_folder: Path) -> ChildEnd:
        """Run the process to its end; return how it ended."""
        kills_before = _memory_kills()
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
        output = tuple(self._last_output)
        if not is_valid:
            return ChildEnd("it wrote something that is not a message", output)
        last_output = " ".join(output[-_LINES_SHOWN:])[-500:]
        addition = f"; its last output was: {last_output}" if last_output else ""
        if process.returncode >= 0:
            return ChildEnd(f"it ended by itself with exit code {process.returncode}{addition}", output)
        number = -process.returncode
        is_foreign_kill = number == signal.SIGKILL and not self._killed
        return ChildEnd(
            f"it was ended by signal {number} ({signal.strsignal(number)}){addition}",
            output,
            killed_for_memory=is_foreign_kill and _memory_kills() > kills_before,
        )

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
            if _TOO_LONG not in line:
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


_Kind = Literal["complete", "count"]


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """A waiting or running call, the settings of the child for it, and the event loop in which it is awaited."""

    do: _Kind
    id: int
    body: dict[str, Value]
    settings: dict[str, Value]
    loop: asyncio.AbstractEventLoop
    inbox: asyncio.Queue[WorkerMessage | ModelError] = field(
        default_factory=asyncio.Queue["WorkerMessage | ModelError"]
    )

    def deliver(self, item: WorkerMessage | ModelError) -> None:
        """Deliver a message, or the error that ends the call. From any thread."""
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody awaits the call any more
            self.loop.call_soon_threadsafe(self.inbox.put_nowait, item)


class EmbeddedModel:
    """The built-in demo model, and the base of other models in the same runtime.

    By default its temperature is 0.2, its seed fixed and `max_tokens` 512, so that the same request gets the same reply
    on the same computer.
    """

    idle_s: float | None = None
    """How long the child process runs without a call, in seconds; None for as long as the model is open."""

    def __init__(self, *, weights: Path | None = None, sha256: str = FILE_SHA256, worker: Path = WORKER) -> None:
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
        self._child_ending = False  # it was idle, and ends or is replaced
        self._start_failure = ""
        self._timer: threading.Timer | None = None  # ends a child that is stuck or idle
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
    def title(self) -> str:
        """Its name in sentences."""
        return "the built-in demo model"

    async def price(self) -> Price:
        """It is free."""
        return Price(0.0, 0.0)

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Make one call; cancelling the awaiting task ends the generation. Tools are described in the prompt.

        Raises:
            ModelError: It is not installed or damaged (`UNAVAILABLE`), the prompt is too long (`CONTEXT_LENGTH`), it
                cannot follow the schema (`BAD_REQUEST`), there is too little memory (`OUT_OF_MEMORY`), or its process
                died (`INTERRUPTED`).
        """
        settings = await self.child_settings()
        body = self.body(describe_tools(request))
        call = self._submit("complete", body, settings)
        texts = ReplyText(on_text=on_text)
        try:
            while True:
                item = await call.inbox.get()
                if isinstance(item, ModelError):
                    item.partial = texts.text
                    raise item
                if item.tell == "text":
                    texts.add(item.text)
                elif item.tell == "reasoning":
                    texts.add_reasoning(item.text)
                else:
                    break
        finally:
            self._cancel(call)
        if item.tell == "failed":
            raise self.runtime_error(item.error)
        texts.finish()
        reply = Reply(
            text=texts.text,
            finish=_FINISHES.get(item.finish, Finish.OTHER),
            usage=Usage(item.input_tokens, item.output_tokens),
            model=self.name,
            cost_usd=0.0,
            reasoning=texts.reasoning,
            warnings=self.warnings(request),
        )
        return parse_written_calls(reply, request)

    async def count_tokens(self, texts: Sequence[str]) -> int | None:
        """Count the tokens of texts with the model's own tokenizer, after earlier calls; None if it cannot be used."""
        try:
            settings = await self.child_settings()
            body: dict[str, Value] = {"texts": list(map(clean_text, texts))}
            call = self._submit("count", body, settings)
        except ModelError:  # the call itself will raise it
            return None
        try:
            answer = await call.inbox.get()
        finally:
            self._cancel(call)
        return answer.tokens if isinstance(answer, WorkerMessage) and answer.tell == "counted" else None

    async def warm_up(self) -> None:
        """Start the child process, so that the first call need not wait for it.

        Raises:
            ModelError: The model cannot be used.
        """
        settings = await self.child_settings()
        with self._lock:
            if self._child is None and not self._closed:
                self._start_child(settings)

    async def unload(self, weights: Collection[str]) -> bool:
        """End the child process if it has loaded one of these files.

        Returns:
            Whether it has none of them any more; false if calls use one.
        """
        with self._lock:
            child = self._child if self._settings.get("weights") in weights else None
            if child is None:
                return True
            if self._current is not None or self._waiting:
                return False
            self._child_ending = True
            child.kill()
        await asyncio.to_thread(child.join)
        return True

    async def close(self) -> None:
        """End the child process; calls that still wait fail."""
        with self._lock:
            self._closed = True
            self._stop_timer()
            child = self._child
            if child:
                child.kill()
        if child:
            await asyncio.to_thread(child.join)

    async def child_settings(self) -> dict[str, Value]:
        """Return the settings of the child process, which is replaced if they change.

        Raises:
            ModelError: The model cannot be used.
        """
        return {
            "weights": str(self._weights or find_weights()),
            "sha256": self._sha256,
            "runtime": str(find_runtime()),
            "threads": default_threads(),
            "context_tokens": CONTEXT_TOKENS,
            "gpu_layers": None,
        }

    def body(self, request: Request) -> dict[str, Value]:
        """Return a request without tools in the runtime's format."""
        complete = replace(
            request,
            max_tokens=request.max_tokens or DEFAULT_MAX_TOKENS,
            temperature=DEFAULT_TEMPERATURE if request.temperature is None else request.temperature,
            top_p=DEFAULT_TOP_P if request.top_p is None else request.top_p,
            seed=DEFAULT_SEED if request.seed is None else request.seed,
        )
        return {
            **request_body(complete, _DEMO_TOKENS),
            # Without a penalty so small a model repeats itself; in JSON the penalty would apply to the syntax.
            "repeat_penalty": 1.1 if request.schema is None else 1.0,
            # Earlier requests must not change a reply, not even by a rounding error.
            "cache_prompt": False,
        }

    def warnings(self, request: Request) -> tuple[str, ...]:
        """Return a warning for each setting of a request that has no meaning here."""
        settings = (("Reasoning effort", request.reasoning_effort), ("Extra parameters", request.extra_parameters))
        title = capitalized(self.title)
        return tuple(f"{title} does not use the setting '{setting}'." for setting, value in settings if value)

    def start_error(self, failure: str, _output: tuple[str, ...]) -> ModelError:
        """Return the error of a child that could not load the model, for other reasons than too little memory.

        Args:
            failure: Why, in a clause.
            _output: The last lines of its error output.
        """
        message = f"{capitalized(self.title)} cannot start: {failure}."
        if failure.startswith(_WEIGHTS_FAILURE):
            return ModelError(ModelErrorKind.UNAVAILABLE, message, HOW_TO_REPAIR, fix=Fix.GET_MODEL.of("demo"))
        return _unavailable(message)

    def runtime_error(self, failure: Failure) -> ModelError:
        """Return the error of a request that the runtime refused."""
        if failure.type == "exceed_context_size_error":
            return ModelError(
                ModelErrorKind.CONTEXT_LENGTH,
                f"The prompt has {failure.n_prompt_tokens} tokens, but {self.title} reads {failure.n_ctx}.",
                "Shorten the prompt or what a loop appends to it ('Window size'), or choose a model with a longer "
                "context.",
            )
        return ModelError(
            ModelErrorKind.BAD_REQUEST,
            f"{capitalized(self.title)} refused the request: {failure.message[:300].rstrip('.')}.",
            "Change the prompt or the JSON Schema, or choose another model.",
        )

    def _start_child(self, settings: dict[str, Value]) -> None:
        """Start a child process. The lock is held."""
        self._settings = settings
        self._child = Child(self._worker, settings, self._on_message, self._on_exit)

    def _submit(self, do: _Kind, body: dict[str, Value], settings: dict[str, Value]) -> _Call:
        call = _Call(do, next(self._ids), body, settings, asyncio.get_running_loop())
        with self._lock:
            if self._closed:
                raise ModelError(ModelErrorKind.UNAVAILABLE, f"{capitalized(self.title)} was closed.")
            self._waiting.append(call)
            if self._child is None:
                self._start_child(call.settings)
            self._run_next()
        return call

    def _run_next(self) -> None:
        """Send the next waiting call to the child if it is idle. The lock is held."""
        is_idle = self._child_ready and not self._child_ending and self._current is None
        if not self._child or not is_idle:
            return
        if not self._waiting:
            if self.idle_s is not None:
                self._start_timer(self.idle_s, self._end_idle)
        elif self._waiting[0].settings != self._settings:
            self._child_ending = True
            self._child.kill()
        else:
            self._stop_timer()
            self._current = self._waiting.popleft()
            current = self._current
            self._child.send({"do": current.do, "id": current.id, "body": current.body})

    def _cancel(self, call: _Call) -> None:
        """Cancel a call, unless it has ended."""
        with self._lock:
            if call in self._waiting:
                self._waiting.remove(call)
            elif self._current is call and self._child:
                self._child.send({"do": "cancel", "id": call.id})
                self._start_timer(CANCEL_GRACE_S, self._end_stuck, call)

    def _start_timer(self, seconds: float, work: Callable[..., None], *arguments: object) -> None:
        self._stop_timer()
        self._timer = threading.Timer(seconds, work, arguments)
        self._timer.daemon = True
        self._timer.start()

    def _stop_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _end_stuck(self, call: _Call) -> None:
        """End the child if it still processes a canceled call. In the timer's thread."""
        with self._lock:
            if self._current is call and self._child:
                self._child.kill()

    def _end_idle(self) -> None:
        """End the child if it still has no call. In the timer's thread."""
        with self._lock:
            if self._current is None and not self._waiting and self._child:
                self._child_ending = True
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
                if message.tell not in {"text", "reasoning"}:
                    self._finish_current()
            self._run_next()

    def _finish_current(self) -> None:
        self._current = None
        self._stop_timer()

    def _on_exit(self, end: ChildEnd) -> None:
        """Handle the end of the child, in its reading thread; start another one if calls wait."""
        with self._lock:
            started, self._child_ready = self._child_ready, False
            failure, self._start_failure = self._start_failure, ""
            current = self._current
            self._finish_current()
            self._child, self._child_ending = None, False
            if current:
                current.deliver(self._end_error(end))
            if self._closed or not started:
                while self._waiting:
                    self._waiting.popleft().deliver(self._end_error(end, failure))
            elif self._waiting:
                self._start_child(self._waiting[0].settings)

    def _end_error(self, end: ChildEnd, failure: str = "") -> ModelError:
        """Return the error of a call whose child ended.

        Args:
            end: How it ended.
            failure: Why it could not load the model, in a clause; empty if it did not say so.
        """
        if end.ran_out_of_memory:
            return ModelError(
                ModelErrorKind.OUT_OF_MEMORY,
                f"The memory of this computer is not enough for {self.title}.",
                "Choose a smaller model, lower its context length, or close other programs.",
                fix=Fix.CHOOSE_MODEL,
            )
        if failure:
            return self.start_error(failure, end.output)
        return ModelError(
            ModelErrorKind.INTERRUPTED,
            f"The process of {self.title} ended before it replied: {end.reason}.",
            "Run it again; if that happens repeatedly, choose another model.",
        )


def default_threads() -> int:
    """Return the number of threads to generate with: half of the cores, since it is ten times slower with all busy."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // 2)


def request_body(request: Request, control_tokens: re.Pattern[str]) -> dict[str, Value]:
    """Return a request without tools in the runtime's format; what it does not set is left to the runtime.

    Args:
        request: The request.
        control_tokens: Finds what would start or end a message in a text.
    """
    body: dict[str, Value] = {
        "messages": [_message(message, control_tokens) for message in request.messages],
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,  # a callback between two batches of the prompt: the only place to cancel there
    }
    if request.max_tokens is not None:
        body["max_tokens"] = max(1, request.max_tokens)
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.top_p is not None:
        body["top_p"] = request.top_p
    if request.seed is not None:
        body["seed"] = request.seed % 0xFFFF_FFFF  # the largest seed would mean a random one
    if request.stop:
        body["stop"] = list(request.stop)
    if request.schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": {"schema": request.schema}}
    return body


def _message(message: Message, control_tokens: re.Pattern[str]) -> dict[str, Value]:
    """The message in the runtime's format: clean, and without text that would end or start a message."""
    text = control_tokens.sub(lambda found: f"{found[0][0]} {found[0][1:]}", clean_text(message.text))
    return {"role": "user" if message.role == "tool" else message.role, "content": text}


def capitalized(title: str) -> str:
    """Return a title for the start of a sentence."""
    return title[:1].upper() + title[1:]
