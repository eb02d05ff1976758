"""Models to download: a short catalog, and any other GGUF file of the model hub or of a server.

A downloaded model is a file in `models_folder`, whose name in workflows is the same on every machine. The built-in demo
model is in the catalog too, although it comes from a package index. Nothing is downloaded unasked.

The hub is Hugging Face, or the one that HF_ENDPOINT names. Files that not everybody may download need an access token:
HF_TOKEN, or the key that the user has stored for the hub's host.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from engine.errors import Fix, did_you_mean
from engine.formatting import format_bytes
from engine.models.demo_weights import FILE as DEMO_FILE
from engine.models.demo_weights import FILE_BYTES, download_weights, find_intact_weights, find_weights
from engine.models.file_download import (
    OnProgress,
    ProgressMeter,
    Source,
    check_existing,
    disk_error,
    download_file,
    host_of,
    look_up,
)
from engine.models.gguf_files import find_gguf, gguf_files, gguf_name, is_auxiliary, models_folder, parts_of
from engine.models.keys import Keys
from engine.models.protocol import EMBEDDED_MODEL, GGUF_PREFIX, ModelError, ModelErrorKind
from engine.models.providers import AddressError
from engine.text_sanitizing import shown

DEMO: Final = "demo"
HUB: Final = "https://huggingface.co"
ADDRESS_VARIABLE: Final = "HF_ENDPOINT"
TOKEN_VARIABLE: Final = "HF_TOKEN"  # noqa: S105 - the name of a variable
HOW_TO_NAME: Final = "Name a model of the catalog, a file of the hub (OWNER/REPOSITORY/FILE.gguf), or an https address."

_GB: Final = 1_000_000_000
_MAX_ADDRESS_LENGTH: Final = 4_000
_IN_REPOSITORY: Final = re.compile(r"([\w.-]+/[\w.-]+)/(.+)", re.ASCII)
_FILE_NAME: Final = re.compile(r"[\w(\[][\w.+@()\[\], -]{0,150}\.gguf", re.IGNORECASE)
_PART_OF_SEVERAL: Final = re.compile(r"-\d{5}-of-\d{5}\.gguf", re.IGNORECASE)
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class CatalogModel:
    """A model of the catalog.

    Attributes:
        name: Its name for the download.
        title: Its name for people.
        category: `Demo`, `Small`, `Medium` or `Large`.
        license: Its license.
        size: The size of its file in bytes.
        memory: The memory in bytes that it needs, with a context of 8,192 tokens.
        about: What it is good for, in a few words.
        file: Its file on the hub (`OWNER/REPOSITORY/FILE`); only the name for the demo model, which is not there.
    """

    name: str
    title: str
    category: str
    license: str
    size: int
    memory: int
    about: str
    file: str

    @property
    def target(self) -> Path:
        """The downloaded file, which may not exist."""
        return models_folder() / self.file.rpartition("/")[2]

    @property
    def model(self) -> str:
        """Its name in workflows, once it is downloaded."""
        return EMBEDDED_MODEL if self.name == DEMO else gguf_name(self.target.stem)

    @property
    def is_downloaded(self) -> bool:
        """Whether it is on this machine."""
        if self.name != DEMO:
            return self.target.is_file()
        with suppress(ModelError):
            return find_weights().is_file()
        return False


# Sizes are those on the hub. Memory: the file, the cache of 8,192 tokens with 16 bits, and the buffers of the runtime.
CATALOG: Final = (
    CatalogModel(
        DEMO, "SmolLM2 135M", "Demo", "Apache 2.0", FILE_BYTES, _GB // 2, "To try the program, not for good answers",
        DEMO_FILE,
    ),
    CatalogModel(
        "qwen2.5-0.5b", "Qwen2.5 0.5B Instruct", "Small", "Apache 2.0", 491_400_032, 1 * _GB, "Short and simple tasks",
        "Qwen/Qwen2.5-0.5B-Instruct-GGUF/qwen2.5-0.5b-instruct-q4_k_m.gguf",
    ),
    CatalogModel(
        "qwen2.5-1.5b", "Qwen2.5 1.5B Instruct", "Small", "Apache 2.0", 1_117_320_736, 2 * _GB,
        "Simple tasks in many languages",
        "Qwen/Qwen2.5-1.5B-Instruct-GGUF/qwen2.5-1.5b-instruct-q4_k_m.gguf",
    ),
    CatalogModel(
        "qwen3-4b", "Qwen3 4B Instruct", "Medium", "Apache 2.0", 2_497_281_120, 9 * _GB // 2,
        "Good answers on most computers",
        "unsloth/Qwen3-4B-Instruct-2507-GGUF/Qwen3-4B-Instruct-2507-Q4_K_M.gguf",
    ),
    CatalogModel(
        "phi-3.5-mini", "Phi 3.5 mini Instruct", "Medium", "MIT", 2_393_232_672, 6 * _GB,
        "Reasoning, mostly in English",
        "bartowski/Phi-3.5-mini-instruct-GGUF/Phi-3.5-mini-instruct-Q4_K_M.gguf",
    ),
    CatalogModel(
        "mistral-7b", "Mistral 7B Instruct", "Large", "Apache 2.0", 4_372_812_000, 6 * _GB,
        "Writing; slow without a graphics card",
        "bartowski/Mistral-7B-Instruct-v0.3-GGUF/Mistral-7B-Instruct-v0.3-Q4_K_M.gguf",
    ),
    CatalogModel(
        "qwen2.5-7b", "Qwen2.5 7B Instruct", "Large", "Apache 2.0", 4_683_074_240, 6 * _GB,
        "The best answers here; slow without a graphics card",
        "bartowski/Qwen2.5-7B-Instruct-GGUF/Qwen2.5-7B-Instruct-Q4_K_M.gguf",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model that can be downloaded.

    Attributes:
        title: Its name for people.
        target: Where the downloaded file is.
        size: Its size in bytes.
        source: Where it is; None for the demo model.
        entry: Its entry in the catalog; None if it has none.
    """

    title: str
    target: Path
    size: int
    source: Source | None = None
    entry: CatalogModel | None = None

    @property
    def model(self) -> str:
        """Its name in workflows, once it is downloaded."""
        return gguf_name(self.target.stem) if self.entry is None else self.entry.model

    @property
    def is_downloaded(self) -> bool:
        """Whether it is on this machine."""
        return self.target.is_file() if self.entry is None else self.entry.is_downloaded

    @property
    def memory(self) -> int:
        """The memory in bytes that it needs; at least that, if it is not in the catalog."""
        return self.size if self.entry is None else self.entry.memory


def find_gguf_model(model: str) -> Path:
    """Find the file of a model, like `find_gguf`; the error of a model of the catalog offers its download.

    Raises:
        ModelError: There is no such file (`NOT_FOUND`).
    """
    try:
        return find_gguf(model)
    except ModelError as error:
        entry = next((one for one in CATALOG if one.model == model.casefold()), None)
        if entry is None:
            raise
        message = f"The model {entry.title} is not on this machine."
        remedy = f"Download it ({format_bytes(entry.size)}), or choose another model."
        raise ModelError(error.kind, message, remedy, fix=Fix.GET_MODEL.of(entry.name)) from None


def missing_file(model: str) -> ModelError | None:
    """Return the error of a model whose file is missing; None if there is one."""
    try:
        find_gguf_model(model)
    except ModelError as error:
        return error
    return None


def downloaded_model(name: str) -> ModelFile | None:
    """Return a model of the catalog whose whole file is on this machine; None without one. Asks no server.

    Args:
        name: Its name in the catalog. The demo model is left to `get_model_file`, which checks its hash.
    """
    wanted = name.strip().casefold()
    entry = next((one for one in CATALOG if one.name == wanted != DEMO and one.is_downloaded), None)
    if entry is None or entry.target.stat().st_size != entry.size:
        return None
    return ModelFile(entry.title, entry.target, entry.size, entry=entry)


def downloaded_files(name: str) -> list[Path]:
    """Return the files of a downloaded model, to delete them: one, or those that it is split into.

    Args:
        name: A name of the catalog, or the name in workflows, with or without its prefix.

    Raises:
        ModelError: There is no such file in the folder of this program.
    """
    entry = next((one for one in CATALOG if one.name == name.strip().casefold()), None)
    model = gguf_name(entry.target.stem if entry is not None else name.strip().removeprefix(GGUF_PREFIX))
    folder = models_folder()
    file = next((file.path for file in gguf_files() if file.model == model), None)
    if file is None or not file.is_relative_to(folder):
        owner = "" if file is None else f" {file} belongs to another program."
        raise _refused(f'There is no downloaded model "{shown(name, 60)}" in {folder}.{owner}', "")
    return [part for part in parts_of(file) if part.is_file()] or [file]


async def find_model_file(name: str, keys: Keys, environment: Mapping[str, str] = os.environ) -> ModelFile:
    """Find a model to download, and ask its server for the size.

    Args:
        name: A name of the catalog, a file of the hub (`OWNER/REPOSITORY/FILE.gguf`), or an address.
        keys: The user's keys.
        environment: The user's environment variables.

    Raises:
        EngineError: There is no such model, its server cannot be asked, or another file of its name is here.
    """
    name = name.strip()
    entry = next((one for one in CATALOG if one.name == name.casefold()), None)
    if entry is not None and entry.name == DEMO:
        return ModelFile(entry.title, entry.target, entry.size, entry=entry)
    hub = _hub(environment)
    address = _address(entry.file if entry is not None else name, hub)
    file = unquote(urlsplit(address).path.rpartition("/")[2])
    if _FILE_NAME.fullmatch(file) is None:
        raise _refused(f'"{shown(file, 60)}" is not the name of a GGUF file.', HOW_TO_NAME)
    if _PART_OF_SEVERAL.search(file):
        raise _refused(f"{file} is one part of several, which must be joined.", "Choose a model in a single file.")
    if is_auxiliary(file):
        raise _refused(f"{file} is the part of a model that reads images, not a model.", "Choose another file.")
    source = await asyncio.to_thread(_source, address, hub, keys, environment)
    remote = await look_up(source)
    target = await asyncio.to_thread(_target, file)
    try:
        if target.exists():
            await check_existing(target, remote)
    except OSError as error:
        raise disk_error(target, error) from error
    return ModelFile(entry.title if entry is not None else file, target, remote.size, source, entry)


async def get_model_file(model: ModelFile, on_progress: OnProgress = lambda _progress: None) -> Path:
    """Download a model, or continue its download; see `download_file`. The demo model always starts from the beginning.

    Returns:
        The file.

    Raises:
        ModelError: The download failed.
    """
    if model.source is None:
        return await _get_demo(on_progress)
    await download_file(model.source, model.target, on_progress)
    return model.target


def machine_memory() -> int | None:
    """Return the memory of this machine in bytes, or that of its container; None if it is unknown."""
    if sys.platform == "win32":
        return _windows_memory()
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return None
    with suppress(OSError, ValueError):
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text("ascii")))
    return memory


def _windows_memory() -> int | None:
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = (
            *((name, ctypes.c_ulong) for name in ("length", "load")),
            *((name, ctypes.c_ulonglong) for name in ("total", "free", "pages", "free_pages", "space", "left", "more")),
        )

    status = Status()
    status.length = ctypes.sizeof(Status)
    kernel = getattr(ctypes, "windll").kernel32  # noqa: B009 - exists on Windows only
    return int(status.total) if kernel.GlobalMemoryStatusEx(ctypes.byref(status)) else None


async def _get_demo(on_progress: OnProgress) -> Path:
    with suppress(ModelError, OSError):  # missing, damaged or unreadable
        return await asyncio.to_thread(find_intact_weights)
    canceled, meter = threading.Event(), ProgressMeter(on_progress)
    task = asyncio.ensure_future(
        asyncio.to_thread(download_weights, lambda done: meter.note(done, FILE_BYTES), canceled)
    )
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        canceled.set()
        await asyncio.gather(task, return_exceptions=True)
        raise


def _target(name: str) -> Path:
    """Return where a file is downloaded to: in place of one whose name differs only in case, as workflows ignore it."""
    folder = models_folder()
    with suppress(OSError, StopIteration):
        return next(file for file in folder.iterdir() if file.name.casefold() == name.casefold())
    return folder / name


def _address(name: str, hub: str) -> str:
    """Return the address of a file.

    Raises:
        ModelError: The name is none, or its address is not safe.
    """
    if "://" not in name:
        parts = _IN_REPOSITORY.fullmatch(name)
        if parts is None:
            guess = did_you_mean(name, (one.name for one in CATALOG))
            raise _refused(f'There is no model "{shown(name, 60)}" to download.', f"{guess} {HOW_TO_NAME}".strip())
        return f"{hub}/{parts[1]}/resolve/main/{quote(parts[2])}"
    address, _, _ = name.partition("#")
    try:
        origin = host_of(address)
    except AddressError:
        origin = None
    if origin is None or not address.isprintable() or len(address) > _MAX_ADDRESS_LENGTH:
        without_secrets = address.partition("?")[0].rpartition("@")[2]
        raise _refused(f"{shown(without_secrets, 200)} is not the address of a file.", HOW_TO_NAME)
    if origin == host_of(hub):  # where people copy the address of the page about the file
        return address.replace("/blob/", "/resolve/", 1)
    if origin.scheme != "https" and origin.host not in _LOOPBACK:
        raise _refused(f"{origin.name} would send the file over an unprotected connection.", "Use an https address.")
    return address


def _hub(environment: Mapping[str, str]) -> str:
    hub = environment.get(ADDRESS_VARIABLE, "").strip().rstrip("/") or HUB
    try:
        host_of(hub)
    except AddressError:
        message = f"The address of the model hub in {ADDRESS_VARIABLE} is not one."
        raise _refused(message, f"Write it like {HUB}, or remove it.") from None
    return hub


def _source(address: str, hub: str, keys: Keys, environment: Mapping[str, str]) -> Source:
    """Return a source with the user's key for its host; accesses the keyring, which may be slow."""
    origin = host_of(address)
    is_hub = origin == host_of(hub)
    token = (environment.get(TOKEN_VARIABLE, "").strip() if is_hub else "") or keys.get_for_host(origin.name) or ""
    return Source(address, token, address.partition("/resolve/")[0] if is_hub else "")


def _refused(message: str, remedy: str) -> ModelError:
    return ModelError(ModelErrorKind.NOT_FOUND, message, remedy)
