"""Resumable downloads of model files over HTTP, with a checksum.

While `NAME` is downloaded, its beginning is `NAME.part`, and `NAME.part.json` says which version of the file that is.
The process that downloads it holds a lock on the latter. A download that was paused, cut or killed continues where it
stopped, unless the server has another version by then. The complete file is checked and renamed; of a model in several
files, all of them together.

The model hub answers with a redirect to another host, which has the content. The hub's own answer has the size and the
SHA-256 of the file (`X-Linked-Size`, `X-Linked-Etag`), and the other host's ETag means nothing. Any other server
identifies the version by its own ETag or date.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import os
import re
import shutil
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Literal, TypeVar

from engine.errors import Fix
from engine.formatting import format_bytes, format_count, format_duration
from engine.models.gguf_files import parts_of
from engine.models.protocol import ModelError, ModelErrorKind
from engine.models.providers import Origin, origin_of
from engine.safe_file_io import DISK_FULL, move_over, try_lock

if TYPE_CHECKING:
    import ssl

    import httpx

_WRITE_BYTES: Final = 1 << 20
_SPARE_BYTES: Final = 100_000_000
"""Space that a download leaves free."""
_CONNECT_S: Final = 20.0
_READ_S: Final = 30.0
"""Seconds without data after which a connection counts as cut."""
_MAX_REDIRECTS: Final = 10
_LOOK_UP_ATTEMPTS: Final = 2
_DOWNLOAD_ATTEMPTS: Final = 6
"""Attempts in a row without new data."""
_FIRST_WAIT_S = 1.0
"""Wait after the first failure; it doubles with each."""
_MAX_WAIT_S: Final = 60.0
"""The longest wait; a server that asks for a longer one ends the download."""
_REPORT_INTERVAL_S: Final = 0.2
_RATE_WINDOW_S: Final = 5.0
_HOST: Final = re.compile(r"https?://[^/?#]*")
_CONTENT_RANGE: Final = re.compile(r"bytes (\d+)-\d+/(\d+)")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_OF_HUB: Final = "download=true"
"""The query of the links that the model hub shows, which is not needed."""
_GGUF_MAGIC: Final = b"GGUF"
_TEMPORARY_STATUSES: Final = frozenset({408, 425, 429, 500, 502, 503, 504})

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a file is.

    Attributes:
        address: Its address, of http or https.
        token: The user's key for that host, which no other host receives; empty for none.
        license_page: The page where the user may have to accept its license; empty if there is none.
        sha256: Its checksum, if it is known beforehand; empty for a GGUF file, whose server is asked for it.
    """

    address: str
    token: str = field(default="", repr=False)
    license_page: str = ""
    sha256: str = ""

    @property
    def shown(self) -> str:
        """The address for people, without the query, which may be a secret."""
        return self.address.partition("?")[0]

    @property
    def host(self) -> str:
        """The name of its host."""
        return host_of(self.address).name


def host_of(address: str) -> Origin:
    """Return the origin of the address of a file.

    Raises:
        AddressError: It is not an address of http or https.
    """
    beginning = _HOST.match(address)
    return origin_of(beginning[0] if beginning is not None else address)


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """What a server says about a file.

    Attributes:
        size: Its size in bytes.
        sha256: Its checksum in lower-case hexadecimal digits; empty if the server gives none.
        version: Identifies its content; empty if the server sends nothing that does.
    """

    size: int
    sha256: str
    version: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a download is.

    Attributes:
        done: The number of bytes that have arrived.
        size: The number of bytes of the file.
        bytes_per_s: The current rate; None while it is unknown.
        stage: `waiting` after a failure, before the next attempt; `checking` while the checksum is computed.
    """

    done: int
    size: int
    bytes_per_s: float | None = None
    stage: Literal["downloading", "waiting", "checking"] = "downloading"

    @property
    def text(self) -> str:
        """The progress for people: `312 MB of 1.1 GB · 8.4 MB/s · 1 min 35 s left`."""
        if self.stage == "checking":
            return "Checking the file…"
        parts = [f"{format_bytes(self.done)} of {format_bytes(self.size)}"]
        if self.stage == "waiting":
            parts.append("connection lost, trying again…")
        elif self.bytes_per_s:
            seconds = round(max(self.size - self.done, 0) / self.bytes_per_s)
            left = f"{seconds} s" if seconds < 60 else format_duration(seconds)
            parts += [f"{format_bytes(self.bytes_per_s)}/s", f"{left} left"]
        return " · ".join(parts)


OnProgress = Callable[[Progress], object]


class ProgressMeter:
    """Reports progress a few times a second, with the rate of the last seconds."""

    def __init__(self, on_progress: OnProgress) -> None:
        self._on_progress = on_progress
        self._points: deque[tuple[float, int]] = deque()

    def note(self, done: int, size: int) -> None:
        """Note how many bytes have arrived."""
        now = time.monotonic()
        if self._points and now - self._points[-1][0] < _REPORT_INTERVAL_S and done < size:
            return
        self._points.append((now, done))
        while len(self._points) > 2 and now - self._points[0][0] > _RATE_WINDOW_S:
            self._points.popleft()
        began, first = self._points[0]
        rate = (done - first) / (now - began) if now > began and done > first else None
        self._on_progress(Progress(done, size, rate))

    def restart(self) -> None:
        """Forget the rate, as at a new connection."""
        self._points.clear()


async def look_up(source: Source) -> RemoteFile:
    """Ask the server for size and checksum of a file, without downloading it.

    Raises:
        ModelError: The server cannot be reached, does not have the file, or refuses it.
    """
    async with await asyncio.to_thread(_client, source) as client:

        async def attempt() -> RemoteFile:
            async with _open(client, source, 0, with_content=False) as (_response, remote):
                return remote

        return await _repeat(attempt, source, _LOOK_UP_ATTEMPTS)


async def download_files(
    files: Sequence[tuple[Source, Path]], on_progress: OnProgress = lambda _progress: None, total: int = 0
) -> None:
    """Download the files of a model, or continue their download. To pause it, cancel the task: what has arrived stays.

    The files get their names when all of them are complete, so a part of a model never counts as one.

    Args:
        files: Where each is, and the file to create, in a folder that is created too. What is that file already is not
            downloaded.
        on_progress: Called a few times a second with the progress of all files.
        total: The size of all files in bytes, if there are several.

    Raises:
        ModelError: The download failed. The next call continues it, except after a wrong checksum.
    """
    folder, done = files[0][1].parent, 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as locks:
            state_files = [locks.enter_context(lock_download(target)) for _, target in files]
            if needed := max(total - sum(_size_here(target) for _, target in files), 0):
                check_space(folder, needed)
            for (source, target), state_file in zip(files, state_files, strict=True):
                report = partial(_report_in_total, on_progress, done, total)
                done += await _Download(source, target, state_file, report, total).run()
            for _, target in files:
                if not target.exists():
                    move_over(_part(target), target)
    except OSError as error:
        raise disk_error(folder, error) from error


async def download_part(source: Source, target: Path, state_file: IO[bytes], on_progress: OnProgress) -> Path:
    """Download a file, or continue its download, like `download_files`, but leave it to the caller what it becomes.

    Args:
        source: Where it is.
        target: The file that the caller creates from it; there is none yet.
        state_file: What `lock_download` has returned for it.
        on_progress: Called a few times a second.

    Returns:
        The downloaded file, which the caller deletes.

    Raises:
        ModelError: The download failed. The next call continues it, except after a wrong checksum.
        OSError: The folder cannot be written.
    """
    await _Download(source, target, state_file, on_progress, 0).run()
    return _part(target)


def _report_in_total(on_progress: OnProgress, before: int, total: int, progress: Progress) -> None:
    done, size = before + progress.done, before + progress.size
    on_progress(replace(progress, done=done, size=max(size, total)))


def partial_size(target: Path) -> int:
    """Return how many bytes of a model an unfinished download has left; 0 without one.

    Args:
        target: Its file, or one of those that it is split into.
    """
    parts = parts_of(target)
    return sum(map(_size_here, parts)) if any(map(_partial_size, parts)) else 0


def _partial_size(target: Path) -> int:
    try:
        return _part(target).stat().st_size if _state_file(target).exists() else 0
    except OSError:
        return 0


def _size_here(target: Path) -> int:
    """Return how many bytes of a file are here, complete or not."""
    with suppress(OSError):
        return target.stat().st_size
    return _partial_size(target)


@dataclass(frozen=True, slots=True)
class PausedDownload:
    """An unfinished download.

    Attributes:
        target: The file that it creates; the first one of a model in several files.
        address: Where it is, or one of its files, without the query.
        size: The size of the whole model in bytes.
        has_query: Whether the address had a query, without which the server may refuse the file.
    """

    target: Path
    address: str
    size: int
    has_query: bool = False


def paused_downloads(folder: Path) -> list[PausedDownload]:
    """Return the unfinished downloads in a folder; none in one that cannot be read."""
    found: dict[Path, PausedDownload] = {}
    parts: list[Path] = []
    with suppress(OSError):
        parts += folder.glob("*.part")
    for part in sorted(parts):
        target = part.with_suffix("")
        with suppress(OSError, ValueError, KeyError, TypeError):
            state = json.loads(_state_file(target).read_bytes())
            whole, total = parts_of(target)[0], int(state.get("total", state["size"]))
            found.setdefault(whole, PausedDownload(whole, str(state["address"]), total, bool(state.get("has_query"))))
    return list(found.values())


def discard_partial(target: Path) -> None:
    """Delete what an unfinished download of a model has left; `target` as in `partial_size`.

    Raises:
        ModelError: It is still running, or the folder cannot be written.
    """
    try:
        for file in parts_of(target):
            with lock_download(file):
                _part(file).unlink(missing_ok=True)
    except OSError as error:
        raise disk_error(target.parent, error) from error


async def check_existing(file: Path, remote: RemoteFile) -> None:
    """Check that an existing file is that of the server, by its size and checksum.

    Raises:
        ModelError: It is another one (`UNAVAILABLE`).
        OSError: It cannot be read.
    """
    if not await asyncio.to_thread(_is_file, file, remote):
        message = f"{file} exists already, and is another file."
        raise ModelError(ModelErrorKind.UNAVAILABLE, message, "Rename or delete it, and try again.")


@contextmanager
def lock_download(target: Path) -> Generator[IO[bytes]]:
    """Hold the lock on the download of a file; yields the file with its state, which only the holder may change.

    Raises:
        ModelError: Another download of it is running, in this process or another.
        OSError: The folder cannot be written.
    """
    state_file = _state_file(target)
    with state_file.open("a+b") as stream:
        if not try_lock(stream.fileno()):
            message = f"{target.name} is being downloaded already."
            raise ModelError(ModelErrorKind.UNAVAILABLE, message, "Wait until that has finished.")
        try:
            yield stream
        finally:
            stream.close()  # Windows deletes no open file
            if target.exists() or not _partial_size(target):
                for file in (_part(target), state_file):
                    with suppress(OSError):
                        file.unlink(missing_ok=True)


def check_space(folder: Path, needed: int) -> None:
    """Check that a folder has space for so many bytes.

    Raises:
        ModelError: It has too little.
        OSError: The folder cannot be examined.
    """
    free = shutil.disk_usage(folder).free
    if free < needed + _SPARE_BYTES:
        message = f"{folder} has too little space: {format_bytes(needed)} are needed, {format_bytes(free)} are free."
        raise ModelError(ModelErrorKind.UNAVAILABLE, message, "Free some space and try again.")


def disk_error(folder: Path, error: OSError) -> ModelError:
    """Return the error of a folder that cannot be written."""
    if error.errno in DISK_FULL:
        message = f"The download stopped because the disk of {folder} is full."
        return ModelError(ModelErrorKind.UNAVAILABLE, message, "Free some space and resume it.")
    message = f"{folder} cannot be written ({error.strerror or error})."
    return ModelError(ModelErrorKind.UNAVAILABLE, message, "Check the folder and its disk.")


class _Download:
    """The download of one file, by the process that holds its lock."""

    def __init__(
        self, source: Source, target: Path, state_file: IO[bytes], on_progress: OnProgress, total: int
    ) -> None:
        self._source = source
        self._target = target
        self._state_file = state_file
        self._total = total
        self._part = _part(target)
        self._on_progress = on_progress
        self._meter = ProgressMeter(on_progress)
        self._last = Progress(0, 0)
        self._most = 0

    async def run(self) -> int:
        """Download the file, and check it; return its size."""
        async with await asyncio.to_thread(_client, self._source) as client:
            remote = await _repeat(
                lambda: self._attempt(client), self._source, _DOWNLOAD_ATTEMPTS, lambda: self._most, self._report_wait
            )
        if remote.sha256:
            self._on_progress(Progress(remote.size, remote.size, stage="checking"))
        if self._target.exists():
            await check_existing(self._target, remote)
        elif not await asyncio.to_thread(_is_file, self._part, remote):
            self._part.unlink()
            message = f"{self._target.name} was damaged on its way from {self._source.host}: its checksum is wrong."
            raise ModelError(ModelErrorKind.BAD_REPLY, message, "Download it again.")
        return remote.size

    async def _attempt(self, client: httpx.AsyncClient) -> RemoteFile:
        """Download until the end of the file, or until the connection is cut."""
        version, start = self._resume_point()
        async with _open(client, self._source, start) as (response, remote):
            if self._target.exists():
                return remote
            if response.status_code == 200 or (response.status_code == 206 and remote.version == version):
                await self._write(response, remote, start if response.status_code == 206 else 0)
                return remote
        self._part.unlink()  # the server has another version by now
        return await self._attempt(client)

    def _resume_point(self) -> tuple[str, int]:
        """Return the version of the file whose beginning is on the disk, and where it continues; 0 without one."""
        try:
            state = json.loads(_state_file(self._target).read_bytes())
            version, size = str(state["version"]), int(state["size"])
            # At least one byte is requested, because servers refuse an empty range.
            return (version, min(self._part.stat().st_size, size - 1)) if version else ("", 0)
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return "", 0

    async def _write(self, response: httpx.Response, remote: RemoteFile, start: int) -> None:
        import httpx

        check_space(self._target.parent, remote.size - start)
        with self._part.open("r+b" if start else "wb") as file:
            if start:
                file.seek(start)
                file.truncate()
            else:
                self._state_file.truncate(0)
                size, total = remote.size, self._total or remote.size
                state = {"version": remote.version, "size": size, "total": total, "address": self._source.shown}
                state["has_query"] = self._source.address.partition("?")[2] not in {"", _OF_HUB}
                self._state_file.write(json.dumps(state).encode())
                self._state_file.flush()
            done, buffer = start, bytearray()
            self._meter.restart()
            try:
                async for piece in response.aiter_raw():
                    buffer += piece
                    done += len(piece)
                    if start == 0 and done == len(buffer) and not self._source.sha256:
                        self._check_magic(buffer)
                    if len(buffer) >= _WRITE_BYTES:
                        full, buffer = buffer, bytearray()
                        await finish_in_thread(_append, file, full)
                    if done > remote.size:
                        raise self._refusal(
                            f"{self._source.host} sends more than the {format_count(remote.size, 'byte')} of the file."
                        )
                    self._most = max(self._most, done)
                    self._last = Progress(done, remote.size, stage="waiting")
                    self._meter.note(done, remote.size)
            finally:
                _append(file, buffer)
            if done != remote.size:
                raise httpx.RemoteProtocolError(f"{done} of {remote.size} bytes have arrived")
            await finish_in_thread(os.fsync, file.fileno())

    def _check_magic(self, beginning: bytearray) -> None:
        if not _GGUF_MAGIC.startswith(beginning[: len(_GGUF_MAGIC)]):
            beginning.clear()
            raise self._refusal(f"{self._source.shown} is not a GGUF file.")

    def _refusal(self, message: str) -> ModelError:
        return ModelError(ModelErrorKind.BAD_REPLY, message, "Check the address, or choose another source.")

    def _report_wait(self) -> None:
        if self._last.size:
            self._on_progress(self._last)


def _append(file: IO[bytes], data: bytearray) -> None:
    file.write(data)
    file.flush()


def _is_file(file: Path, remote: RemoteFile) -> bool:
    if file.stat().st_size != remote.size:
        return False
    with file.open("rb") as stream:
        return not remote.sha256 or hashlib.file_digest(stream, "sha256").hexdigest() == remote.sha256


async def finish_in_thread(
    work: Callable[..., ResultT], *arguments: object, on_cancel: Callable[[], object] = lambda: None
) -> ResultT:
    """Call a function in a thread, and wait for its end also when the task is cancelled meanwhile."""
    task = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        on_cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise


def _part(target: Path) -> Path:
    return target.with_name(f"{target.name}.part")


def _state_file(target: Path) -> Path:
    return target.with_name(f"{target.name}.part.json")


class _TemporaryError(Exception):
    """An answer after which another attempt may succeed."""

    def __init__(self, status: int, retry_after_s: float | None) -> None:
        super().__init__(status)
        self.status = status
        self.retry_after_s = retry_after_s


async def _repeat(
    attempt: Callable[[], Awaitable[ResultT]],
    source: Source,
    max_failures: int,
    arrived: Callable[[], int] = lambda: 0,
    on_wait: Callable[[], object] = lambda: None,
) -> ResultT:
    """Repeat an attempt after temporary failures, with growing waits; start to count again when more has arrived."""
    import httpx

    failures, before = 0, 0
    while True:
        try:
            return await attempt()
        except (httpx.TransportError, _TemporaryError) as error:
            failures = 1 if arrived() > before else failures + 1
            before = arrived()
            wait_s = min(_FIRST_WAIT_S * 2 ** (failures - 1), _MAX_WAIT_S)
            if isinstance(error, _TemporaryError) and error.retry_after_s is not None:
                wait_s = error.retry_after_s
            if failures >= max_failures or wait_s > _MAX_WAIT_S:
                raise _last_error(source, error) from error
        on_wait()
        await asyncio.sleep(wait_s)


def _last_error(source: Source, error: httpx.TransportError | _TemporaryError) -> ModelError:
    if not isinstance(error, _TemporaryError):
        message = f"{source.host} cannot be reached, or the connection was lost."
        return ModelError(ModelErrorKind.CONNECTION, message, "Check the network connection and try again.")
    if error.status == 429:
        minutes = format_duration(error.retry_after_s) if error.retry_after_s else ""
        message = f"{source.host} accepts no more requests for now (status 429)."
        remedy = f"Try again in {minutes}." if minutes else "Try again later."
        return ModelError(ModelErrorKind.RATE_LIMIT, message, remedy)
    message = f"{source.host} does not work at the moment (status {error.status})."
    return ModelError(ModelErrorKind.SERVER, message, "Try again later.")


@functools.cache
def _certificates() -> ssl.SSLContext:
    import httpx

    return httpx.create_ssl_context()


def _client(source: Source) -> httpx.AsyncClient:
    """Create a client. Takes a moment the first time: not to be called on an event loop."""
    import httpx

    timeout = httpx.Timeout(_READ_S, connect=_CONNECT_S)
    # The content must arrive unchanged, or ranges and size would be those of its compressed form.
    headers = {"User-Agent": "loopwright", "Accept-Encoding": "identity"}
    try:
        return httpx.AsyncClient(timeout=timeout, headers=headers, verify=_certificates())
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        message = f"{source.host} cannot be reached: the proxy that the environment names cannot be used."
        raise ModelError(ModelErrorKind.CONNECTION, message, "Use the address of an http proxy.") from error


@asynccontextmanager
async def _open(
    client: httpx.AsyncClient, source: Source, start: int, *, with_content: bool = True
) -> AsyncGenerator[tuple[httpx.Response, RemoteFile]]:
    """Request a file from a byte on, and follow redirects; the key goes to the first host only.

    The response has the status 200 (the whole file), 206, or 416 (the file has no such byte), and its body is unread.
    Without content, it may be the hub's redirect to the host of the content.
    """
    import httpx

    url = first = httpx.URL(source.address)
    linked: RemoteFile | None = None
    for _ in range(_MAX_REDIRECTS):
        headers = {"Range": f"bytes={start}-"} if start else {}
        if source.token and _origin(url) == _origin(first):
            headers["Authorization"] = f"Bearer {source.token}"
        try:
            response = await client.send(client.build_request("GET", url, headers=headers), stream=True)
        except httpx.InvalidURL:  # of a redirect
            raise _unsafe(source) from None
        try:
            linked = linked or _linked_file(response.headers)
            if response.has_redirect_location and (with_content or linked is None):
                url = _redirected(url, response.headers["Location"], source)
                continue
            yield response, _described(response, linked, source, start)
            return
        finally:
            await response.aclose()
    raise ModelError(ModelErrorKind.SERVER, f"{source.host} redirects without end.", "Try again later.")


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _linked_file(headers: httpx.Headers) -> RemoteFile | None:
    """Return what the model hub says about a file that another host has."""
    size, etag = headers.get("X-Linked-Size", ""), headers.get("X-Linked-Etag", "").removeprefix("W/").strip('"')
    return RemoteFile(int(size), etag if _SHA256.fullmatch(etag) else "", etag) if size.isdecimal() and etag else None


def _redirected(url: httpx.URL, location: str, source: Source) -> httpx.URL:
    target = url.join(location)
    if target.scheme == "https" or target.scheme == url.scheme == "http":
        return target
    raise _unsafe(source)


def _unsafe(source: Source) -> ModelError:
    message = f"{source.host} redirects to an address that is not safe."
    return ModelError(ModelErrorKind.SERVER, message, "Choose another source for the file.")


def _described(response: httpx.Response, linked: RemoteFile | None, source: Source, start: int) -> RemoteFile:
    status, headers = response.status_code, response.headers
    if status in _TEMPORARY_STATUSES:
        raise _TemporaryError(status, _retry_after(headers))
    if status == 416 and start:
        return RemoteFile(0, "", "")
    if linked is not None and response.has_redirect_location:
        return linked
    if status not in ({200, 206} if start else {200}):
        raise _refusal(status, headers.get("X-Error-Code", ""), source)
    size = headers.get("Content-Length", "")
    if status == 206:
        ranged = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", ""))
        size = ranged[2] if ranged is not None and int(ranged[1]) == start else ""
    if not size.isdecimal() or headers.get("Content-Encoding", "identity") != "identity":
        message = f"{source.host} does not say how large {source.shown.rpartition('/')[2]} is."
        raise ModelError(ModelErrorKind.BAD_REPLY, message, "Choose another source for the file.")
    if source.sha256:
        return RemoteFile(int(size), source.sha256, source.sha256)
    etag = headers.get("ETag", "")
    # A weak ETag does not identify the bytes.
    version = etag if etag.startswith('"') else headers.get("Last-Modified", "")
    return linked or RemoteFile(int(size), "", version)


def _retry_after(headers: httpx.Headers) -> float | None:
    try:
        return max(float(headers.get("Retry-After", "")), 0.0)
    except ValueError:
        return None


def _refusal(status: int, code: str, source: Source) -> ModelError:
    """Return the error of an answer that has no file; the model hub adds a code."""
    name, host = source.shown.rpartition("/")[2], source.host
    add_key = Fix.ADD_KEY.of(f"host:{host}")
    if code == "GatedRepo":
        message = f"{host} provides {name} only after you have accepted its license."
        remedy = f"Accept it at {source.license_page or source.shown}, then add your access token."
        return ModelError(ModelErrorKind.AUTHENTICATION, message, remedy, fix=add_key)
    if status in {401, 403}:
        # The hub does not tell a missing repository from a private one.
        message = f"{host} has no public file {source.shown.partition(host)[2].lstrip('/')}."
        remedy = "Check the spelling, or add your access token if it is private."
        return ModelError(ModelErrorKind.AUTHENTICATION, message, remedy, fix=add_key)
    if status in {404, 410}:
        message = f"{host} has no {source.shown.partition(host)[2].lstrip('/')}."
        return ModelError(ModelErrorKind.NOT_FOUND, message, "Check the spelling.")
    return ModelError(ModelErrorKind.SERVER, f"{host} refuses to send {name} (status {status}).", "Try again later.")
