"""Installation of packages with the package client that is there: pip of this Python, else uv.

The optional parts of the program are the extras of its distribution; what a part requires is read from the
distribution's metadata.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import re
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.errors import EngineError
from engine.program_search import find_program

DISTRIBUTION: Final = "loopwright"

_PROGRESS_INTERVAL_S: Final = 0.2
_INTERRUPT_GRACE_S: Final = 5.0
"""How long an interrupted client may take to undo what it began."""
_QUIET: Final = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore", "PIP_NO_INPUT": "1"}

OnOutput = Callable[[str], object]


class InstallError(EngineError):
    """Packages could not be installed.

    Attributes:
        reason: A clause for people.
    """

    def __init__(self, reason: str, remedy: str = "Check the network connection and try again.") -> None:
        super().__init__(f"The packages could not be installed: {reason}.", remedy)
        self.reason = reason


class InstallCanceledError(InstallError):
    """The installation was canceled."""


@dataclass(frozen=True, slots=True)
class OptionalPart:
    """An optional part of the program that can be installed.

    Attributes:
        requirements: What it requires, such as `mcp<3,>=2.3`.
        folder: Where the packages go.
    """

    requirements: tuple[str, ...]
    folder: Path


def optional_part(extra: str) -> OptionalPart:
    """Return what would be installed for an optional part. Nothing is installed.

    Args:
        extra: The name of the part: an extra of the distribution.

    Raises:
        InstallError: Nothing can be installed here.
    """
    if getattr(sys, "frozen", False):
        raise InstallError("this copy of the program contains all of them", "Install the program again to repair it.")
    requirements = _requirements_of(extra)
    if not requirements:
        raise InstallError(f'the program\'s metadata does not list the part "{extra}"', "Install the program again.")
    folder = Path(sysconfig.get_path("purelib"))
    if not os.access(folder, os.W_OK):
        raise InstallError(f"the folder {folder} is read-only", "Ask whoever manages this computer to install them.")
    if sys.prefix == sys.base_prefix and (Path(sysconfig.get_path("stdlib")) / "EXTERNALLY-MANAGED").exists():
        raise InstallError("the system manages this Python", "Install the program in an environment of its own.")
    _package_client()
    return OptionalPart(requirements, folder)


def _requirements_of(extra: str) -> tuple[str, ...]:
    """Return the requirements of an extra that apply to this Python, without their markers."""
    from packaging.requirements import Requirement

    try:
        declared = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return ()
    found: list[str] = []
    for requirement in map(Requirement, declared):
        marker, requirement.marker = requirement.marker, None
        if marker is not None and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""}):
            found.append(str(requirement))
    return tuple(found)


def install_part(part: OptionalPart, on_output: OnOutput, canceled: threading.Event) -> bool:
    """Install an optional part; blocks until done. Its packages can be imported then.

    Args:
        part: The part.
        on_output: See `run_package_client`.
        canceled: Set it to stop the installation.

    Returns:
        Whether the program must be restarted, because packages that it may have loaded were replaced, or because a new
        one is set up when Python starts.

    Raises:
        InstallError: It failed or was canceled.
    """
    versions, start_files = _installed_versions(), set(part.folder.glob("*.pth"))
    try:
        run_package_client(part.requirements, on_output, canceled)
    except OSError as error:
        raise InstallError(error.strerror or str(error), "Try again later.") from error
    finally:
        importlib.invalidate_caches()
    after = _installed_versions()
    is_replaced = any(after.get(name) != version for name, version in versions.items())
    return is_replaced or set(part.folder.glob("*.pth")) != start_files


def _installed_versions() -> dict[str, str]:
    return {distribution.name: distribution.version for distribution in importlib.metadata.distributions()}


def run_package_client(
    arguments: Sequence[str],
    on_output: OnOutput,
    canceled: threading.Event,
    variables: Mapping[str, str] | None = None,
    stop_at: re.Pattern[str] | None = None,
) -> str:
    """Install packages with the package client; blocks until done.

    Args:
        arguments: What follows `install` in the client's command: requirements and options that pip and uv share.
        on_output: Called a few times a second with the client's last line of output.
        canceled: Set it to stop the installation.
        variables: Environment variables for the client, besides the program's own.
        stop_at: Output at which the client is stopped.

    Returns:
        What matched `stop_at`; empty if nothing did.

    Raises:
        InstallError: It failed.
        InstallCanceledError: It was canceled.
        OSError: The client cannot be started, or the disk is full.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        output = Path(folder) / "output.txt"
        with output.open("wb") as stream:
            process = subprocess.Popen(  # noqa: S603 - a fixed command, without a shell
                [*_package_client(), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env={**os.environ, **_QUIET, **(variables or {})},
                start_new_session=os.name == "posix",
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),  # uv has a console, the window has none
            )
        while True:
            is_over = process.poll() is not None  # its output, which is read after that, is complete then
            text = output.read_text("utf-8", "replace")
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            found = stop_at.search(text) if stop_at is not None else None
            if not is_over and (found is not None or canceled.is_set()):
                _interrupt(process)
            if found is not None:
                return found[0]
            if is_over:
                break
            if canceled.is_set():
                raise InstallCanceledError("it was canceled", "")
            on_output(lines[-1] if lines else "")
            canceled.wait(_PROGRESS_INTERVAL_S)
        if process.returncode != 0:
            raise InstallError(_failure_of(lines) or f"its client ended with code {process.returncode}")
    return ""


def _failure_of(lines: list[str]) -> str:
    """Return why the client failed: its first error, else its last line."""
    errors = (line for line in lines if line.lower().startswith("error:"))
    return next(errors, lines[-1] if lines else "").removeprefix("ERROR:").removeprefix("error:").strip(" .")


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    """Stop the client and its child processes as Ctrl+C does, so that pip removes what it has begun to install."""
    if sys.platform == "win32":
        process.kill()
    else:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_INTERRUPT_GRACE_S)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _package_client() -> list[str]:
    """Return the beginning of a command that installs packages: of this Python's pip, else of uv."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-I", "-m", "pip", "install"]
    uv = find_program("uv")
    if uv is not None:
        return [uv, "pip", "install", "--python", sys.executable]
    raise InstallError("neither pip nor uv is installed", "Install one of them and try again.")
