"""One window per user: a later start hands its files to the window that is open, and ends.

The window listens on a local socket in a folder that only its user can read. The socket's name stands for the user's
folders, the history, the screen and the program's environment variables, such as a budget: a start with others is a
program of its own. A lock is held while a start finds out whether a window listens, so that of two starts at the same
moment only one listens. A socket that a killed program left refuses connections and is replaced.

A request is one line of JSON, and the answer is the line `ok`. Requests only name files to open, which is inert.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QEvent, QLockFile, QObject, Signal
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtNetwork import QLocalServer, QLocalSocket
from PySide6.QtWidgets import QApplication

from app.timers import call_later

ANSWER_TIMEOUT_S: Final = 10.0
"""How long a start waits for the answer of the window, which may be starting itself."""

CONNECT_TIMEOUT_MS: Final = 1_000
LOCK_TIMEOUT_MS: Final = 3_000
STALE_LOCK_MS: Final = 2_000
REQUEST_TIMEOUT_MS: Final = 5_000
"""How long the window waits for the request of a connection."""

MAX_BYTES: Final = 1_000_000
MAX_FILES: Final = 1_000
MAX_CONNECTIONS: Final = 16

ANSWER: Final = b"ok\n"
SCREEN_VARIABLES: Final = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
OWN_VARIABLES: Final = "LOOPWRIGHT_"
"""Beginning of the names of the program's environment variables."""
HISTORY_VARIABLE: Final = "LOOPWRIGHT_STORE"
"""That of `engine.store`, whose import would double the time of a start that hands its files over."""
SETTINGS_VARIABLE: Final = "LOOPWRIGHT_SETTINGS"
"""That of `engine.settings`, which is as slow to import."""
ACTIVATION_VARIABLE: Final = "XDG_ACTIVATION_TOKEN"
"""With this token of the desktop, a window may come to the front on Wayland; Qt reads it when it does."""


class Application(QApplication):
    """The Qt application.

    Signals:
        files_requested: The desktop asks to open these files, as macOS does instead of passing arguments.
    """

    files_requested = Signal(list)

    def event(self, event: QEvent) -> bool:
        """Report the files of the desktop."""
        if isinstance(event, QFileOpenEvent) and event.file():
            self.files_requested.emit([Path(event.file())])
            return True
        return super().event(event)


def socket_path(store: Path | None, environment: Mapping[str, str]) -> Path | None:
    """Return where the window listens; None where no folder is safe for it.

    Args:
        store: The file of the history; the default one if None.
        environment: The environment variables of the process.
    """
    import platformdirs

    folder = _private_folder(environment)
    variables = {name: value for name, value in environment.items() if name.startswith(OWN_VARIABLES)}
    history = store or variables.pop(HISTORY_VARIABLE, "")
    variables.pop(HISTORY_VARIABLE, None)
    settings = variables.pop(SETTINGS_VARIABLE, "").strip()
    own = (
        platformdirs.user_data_dir("loopwright", appauthor=False),
        platformdirs.user_config_dir("loopwright", appauthor=False),
        str(Path(history).absolute()) if history else "",
        str(Path(settings).absolute()) if settings else "",
        *(environment.get(name, "") for name in SCREEN_VARIABLES),
        *(f"{name}={value}" for name, value in sorted(variables.items()) if value),
    )
    mark = hashlib.sha256("\0".join(own).encode(errors="surrogatepass")).hexdigest()[:20]
    return folder / f"window-{mark}" if folder is not None else None


def _private_folder(environment: Mapping[str, str]) -> Path | None:
    """Create the folder of the sockets; None if others may use it. Its path is short, as a socket's must be."""
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    parent = runtime if runtime and Path(runtime).is_dir() else tempfile.gettempdir()
    if sys.platform == "win32":  # the folder is the user's own, and sockets are named pipes
        return Path(parent)
    folder = Path(parent, f"loopwright-{os.getuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    return folder if status.st_uid == os.getuid() and not status.st_mode & 0o077 and folder.is_dir() else None


def _socket_name(path: Path) -> str:
    return path.name if sys.platform == "win32" else str(path)


class InstanceServer(QObject):
    """Listens for later starts.

    Args:
        path: Where to listen; None to listen nowhere.

    Attributes:
        is_first: Whether no other window listened; set by `listen`.

    Signals:
        files_requested: A later start asks to open these files, which may be none, and to show the window.
    """

    files_requested = Signal(list)

    def __init__(self, path: Path | None) -> None:
        super().__init__()
        self._path = path
        self.is_first = True
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.setMaxPendingConnections(MAX_CONNECTIONS)
        self._server.newConnection.connect(self._accept)

    def listen(self) -> bool:
        """Listen, unless another window does.

        Returns:
            Whether this is the first window.
        """
        if self._path is None:
            return True
        lock = QLockFile(f"{self._path}.lock")
        lock.setStaleLockTime(STALE_LOCK_MS)
        is_locked = lock.tryLock(LOCK_TIMEOUT_MS)
        self.is_first = _connected(self._path) is None
        if self.is_first and is_locked:
            QLocalServer.removeServer(_socket_name(self._path))  # left by a program that was killed
            self._server.listen(_socket_name(self._path))
        lock.unlock()
        return self.is_first

    def close(self) -> None:
        """Stop listening: the next start opens a window of its own."""
        self._server.close()

    def _accept(self) -> None:
        while self._server.hasPendingConnections():
            socket = self._server.nextPendingConnection()
            socket.setReadBufferSize(MAX_BYTES)
            socket.disconnected.connect(socket.deleteLater)
            socket.readyRead.connect(partial(self._read, socket))
            call_later(socket, lambda socket=socket: socket.abort(), REQUEST_TIMEOUT_MS)
            self._read(socket)

    def _read(self, socket: QLocalSocket) -> None:
        if not socket.canReadLine():
            if socket.bytesAvailable() >= MAX_BYTES:
                socket.abort()
            return
        request = _parse(bytes(socket.readLine(MAX_BYTES).data()))
        if request is None:
            socket.abort()
            return
        socket.write(ANSWER)
        socket.flush()
        socket.disconnectFromServer()
        files, token = request
        if token:
            os.environ[ACTIVATION_VARIABLE] = token
        self.files_requested.emit(files)


def _parse(line: bytes) -> tuple[list[Path], str] | None:
    """Parse a request: the files to open, and the desktop's permission to come to the front, empty without one.

    Returns:
        None if it is malformed, or its sender has stopped waiting.
    """
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    match message:
        case {"files": list(names), "token": str(token), "until": float(until)}:
            is_valid = len(names) <= MAX_FILES and all(map(_is_absolute, names)) and "\0" not in token
            return ([Path(name) for name in names], token) if is_valid and time.time() < until else None
    return None


def _is_absolute(name: object) -> bool:
    try:
        return isinstance(name, str) and b"\0" not in os.fsencode(name) and Path(name).is_absolute()
    except UnicodeEncodeError:  # a surrogate that stands for no byte
        return False


def _connected(path: Path) -> QLocalSocket | None:
    socket = QLocalSocket()
    socket.connectToServer(_socket_name(path))
    return socket if socket.waitForConnected(CONNECT_TIMEOUT_MS) else None


def hand_over(path: Path, files: Sequence[Path], timeout_s: float = ANSWER_TIMEOUT_S) -> bool:
    """Ask the window that listens to open files and to come to the front.

    Args:
        path: Where it listens.
        files: Absolute paths; none only to show the window.
        timeout_s: How long to wait for the answer, in seconds.

    Returns:
        Whether it answered.
    """
    end = time.monotonic() + timeout_s
    socket = _connected(path)
    if socket is None:
        return False
    if sys.platform == "win32":
        import ctypes

        ctypes.windll.user32.AllowSetForegroundWindow(-1)  # any process; by default only this one may do so
    token = os.environ.get(ACTIVATION_VARIABLE, "")
    request = {"files": [str(file) for file in files], "token": token, "until": time.time() + timeout_s}
    socket.write(json.dumps(request).encode() + b"\n")
    while not socket.canReadLine():
        left_ms = int((end - time.monotonic()) * 1_000)
        if left_ms <= 0 or not socket.waitForReadyRead(left_ms):
            return False
    return bytes(socket.readLine().data()) == ANSWER
