"""One child process of the built-in demo model, seen from the parent.

Threads, not asyncio, so that the process outlives the event loop in which it was first needed, and serves several. This
module knows pipes and processes; what the messages mean is `engine.models.embedded`'s business.
"""

from __future__ import annotations

import contextlib
import json
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from engine.values import Value

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
