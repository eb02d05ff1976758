"""Models to download: a short catalog, and any other GGUF file of the model hub or of a server.

A downloaded model is a file in `models_folder`, or several that it is split into. Its name in workflows is the same on
every computer. The built-in demo model is in the catalog too, although it comes from a package index. Nothing is
downloaded unasked.

The hub is Hugging Face, or the one that HF_ENDPOINT names. Files that are not public need an access token:
HF_TOKEN, or the key that the user has stored for the hub's host.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from engine.errors import EngineError, Fix, did_you_mean
from engine.formatting import format_bytes
from engine.models.demo_weights import FILE as DEMO_FILE
from engine.models.demo_weights import FILE_SHA256, WHEEL_BYTES, download_weights, find_intact_weights, find_weights
from engine.models.file_download import (
    OnProgress,
    PausedDownload,
    RemoteFile,
    Source,
    check_existing,
    disk_error,
    download_files,
    host_of,
    look_up,
    paused_downloads,
)
from engine.models.gguf_files import (
    downloaded_gguf_files,
    existing_parts,
    find_gguf,
    gguf_files,
    gguf_name,
    is_auxiliary,
    model_stem,
    models_folder,
    parts_of,
)
from engine.models.keys import Keys
from engine.models.protocol import EMBEDDED_MODEL, GGUF_PREFIX, ModelError, ModelErrorKind
from engine.models.providers import AddressError
from engine.safe_file_io import is_windows_name
from engine.text_sanitizing import shown

DEMO: Final = "demo"
HUB: Final = "https://huggingface.co"
ADDRESS_VARIABLE: Final = "HF_ENDPOINT"
TOKEN_VARIABLE: Final = "HF_TOKEN"  # noqa: S105 - the name of a variable
HOW_TO_NAME: Final = "Name a model of the catalog, a file of the hub (OWNER/REPOSITORY/FILE.gguf), or an https address."

_GB: Final = 1_000_000_000
_MAX_ADDRESS_LENGTH: Final = 4_000
_IN_REPOSITORY: Final = re.compile(r"(\w[\w.-]*/\w[\w.-]*)/(.+)", re.ASCII)
_REPOSITORY: Final = re.compile(r"(\w[\w.-]*/(?!\S+\.gguf$)\w[\w.-]*)(/tree/.*)?", re.ASCII)
_FILE_NAME: Final = re.compile(r"[\w(\[][\w.+@()\[\], -]{0,150}\.gguf", re.IGNORECASE)
_MAX_PARTS: Final = 99
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class CatalogModel:
    """A model of the catalog.

    Attributes:
        name: Its name for the download.
        title: Its name for people.
        category: `Demo`, `Small`, `Medium` or `Large`.
        license: Its license.
        size: The size of its file in bytes; of the demo model, of the package with that file.
        memory: The memory in bytes that it needs, with a context of 8,192 tokens.
        about: What it is good for, in a few words.
        file: Its file on the hub (`OWNER/REPOSITORY/FILE`); only the name for the demo model, which is not there.
        sha256: The checksum of that file. The hub may have another version by now.
    """

    name: str
    title: str
    category: str
    license: str
    size: int
    memory: int
    about: str
    file: str
    sha256: str

    @property
    def target(self) -> Path:
        """The downloaded file, which may not exist."""
        return models_folder() / self.file.rpartition("/")[2]

    @property
    def model(self) -> str:
        """Its name in workflows, once it is downloaded."""
        return EMBEDDED_MODEL if self.name == DEMO else gguf_name(model_stem(self.target))

    @property
    def is_downloaded(self) -> bool:
        """Whether it is on this computer: a file of its name and size."""
        if self.name != DEMO:
            return _size_of([self.target]) == self.size
        with suppress(ModelError):
            find_weights()
            return True
        return False


# Sizes are those on the hub. Memory: the file, the cache of 8,192 tokens with 16 bits, and the buffers of the runtime.
CATALOG: Final = (
    CatalogModel(
        DEMO, "SmolLM2 135M", "Demo", "Apache 2.0", WHEEL_BYTES, _GB // 2, "To try the program, not for good answers",
        DEMO_FILE,
        FILE_SHA256,
    ),
    CatalogModel(
        "qwen2.5-0.5b", "Qwen2.5 0.5B Instruct", "Small", "Apache 2.0", 491_400_032, 1 * _GB, "Short and simple tasks",
        "Qwen/Qwen2.5-0.5B-Instruct-GGUF/qwen2.5-0.5b-instruct-q4_k_m.gguf",
        "74a4da8c9fdbcd15bd1f6d01d621410d31c6fc00986f5eb687824e7b93d7a9db",
    ),
    CatalogModel(
        "qwen2.5-1.5b", "Qwen2.5 1.5B Instruct", "Small", "Apache 2.0", 1_117_320_736, 2 * _GB,
        "Simple tasks in many languages",
        "Qwen/Qwen2.5-1.5B-Instruct-GGUF/qwen2.5-1.5b-instruct-q4_k_m.gguf",
        "6a1a2eb6d15622bf3c96857206351ba97e1af16c30d7a74ee38970e434e9407e",
    ),
    CatalogModel(
        "qwen3-4b", "Qwen3 4B Instruct", "Medium", "Apache 2.0", 2_497_281_120, 9 * _GB // 2,
        "Good answers on most computers",
        "unsloth/Qwen3-4B-Instruct-2507-GGUF/Qwen3-4B-Instruct-2507-Q4_K_M.gguf",
        "3605803b982cb64aead44f6c1b2ae36e3acdb41d8e46c8a94c6533bc4c67e597",
    ),
    CatalogModel(
        "phi-3.5-mini", "Phi 3.5 mini Instruct", "Medium", "MIT", 2_393_232_672, 6 * _GB,
        "Reasoning, mostly in English",
        "bartowski/Phi-3.5-mini-instruct-GGUF/Phi-3.5-mini-instruct-Q4_K_M.gguf",
        "e4165e3a71af97f1b4820da61079826d8752a2088e313af0c7d346796c38eff5",
    ),
    CatalogModel(
        "mistral-7b", "Mistral 7B Instruct", "Large", "Apache 2.0", 4_372_812_000, 6 * _GB,
        "Writing; slow without a graphics card",
        "bartowski/Mistral-7B-Instruct-v0.3-GGUF/Mistral-7B-Instruct-v0.3-Q4_K_M.gguf",
        "1270d22c0fbb3d092fb725d4d96c457b7b687a5f5a715abe1e818da303e562b6",
    ),
    CatalogModel(
        "qwen2.5-7b", "Qwen2.5 7B Instruct", "Large", "Apache 2.0", 4_683_074_240, 6 * _GB,
        "The best answers here; slow without a graphics card",
        "bartowski/Qwen2.5-7B-Instruct-GGUF/Qwen2.5-7B-Instruct-Q4_K_M.gguf",
        "65b8fcd92af6b4fefa935c625d1ac27ea29dcb6ee14589c55a8f115ceaaa1423",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model that can be downloaded.

    Attributes:
        title: Its name for people.
        target: Where the downloaded file is, or the first one that it is split into.
        size: Its size in bytes.
        sources: Where its files are; empty for the demo model, and for one that is only on this computer.
        entry: Its entry in the catalog; None if it has none.
    """

    title: str
    target: Path
    size: int
    sources: tuple[Source, ...] = ()
    entry: CatalogModel | None = None

    @property
    def model(self) -> str:
        """Its name in workflows, once it is downloaded."""
        return gguf_name(model_stem(self.target)) if self.entry is None else self.entry.model

    @property
    def is_downloaded(self) -> bool:
        """Whether it is on this computer."""
        if self.entry is not None and self.entry.name == DEMO:
            return self.entry.is_downloaded
        return _size_of(parts_of(self.target)) == self.size

    @property
    def memory(self) -> int:
        """The memory in bytes that it needs; at least that, if it is not in the catalog."""
        return self.size if self.entry is None else self.entry.memory


def _size_of(files: Iterable[Path]) -> int | None:
    """Return the size of files; None if one is missing."""
    try:
        return sum(file.stat().st_size for file in files)
    except OSError:
        return None


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
        message = f"The model {entry.title} is not on this computer."
        remedy = f"Download it ({format_bytes(entry.size)}), or choose another model."
        raise ModelError(error.kind, message, remedy, fix=Fix.GET_MODEL.of(entry.name)) from None


def missing_file(model: str) -> ModelError | None:
    """Return the error of a model whose file is missing; None if there is one."""
    try:
        find_gguf_model(model)
    except ModelError as error:
        return error
    return None


async def downloaded_model(name: str) -> ModelFile | None:
    """Return a model of the catalog whose file is on this computer and intact; None without one. Asks no server.

    Args:
        name: Its name in the catalog. The demo model is left to `get_model_file`.
    """
    wanted = name.strip().casefold()
    entry = next((one for one in CATALOG if one.name == wanted != DEMO and one.is_downloaded), None)
    if entry is None:
        return None
    with suppress(ModelError, OSError):
        await check_existing(entry.target, RemoteFile(entry.size, entry.sha256, ""))
        return ModelFile(entry.title, entry.target, entry.size, entry=entry)
    return None


def models_outside_catalog() -> list[ModelFile]:
    """Return the other models in the folder of this program, and unfinished downloads of others, by their names.

    A file that has the name of a model of the catalog, but another size, is another model. The only source of an
    unfinished download is one of its addresses, without the query and the user's key.
    """
    in_catalog = {entry.target for entry in CATALOG}
    complete = {entry.target for entry in CATALOG if entry.is_downloaded} | {models_folder() / DEMO_FILE}
    found = {
        file.path: ModelFile(model_stem(file.path), file.path, _size_of(existing_parts(file.path)) or 0)
        for file in downloaded_gguf_files()
        if file.path not in complete
    }
    for paused in paused_downloads(models_folder()):
        if paused.target not in in_catalog:
            source = (Source(paused.address),)
            found[paused.target] = ModelFile(model_stem(paused.target), paused.target, paused.size, source)
    return sorted(found.values(), key=lambda model: model.title.casefold())


def downloaded_files(name: str) -> list[Path]:
    """Return the files of a downloaded model, to delete them: one, or those that it is split into.

    Args:
        name: A name of the catalog, or the name in workflows, with or without its prefix.

    Raises:
        ModelError: There is no such file in the folder of this program.
    """
    model, folder = _named(name), models_folder()
    file = next((file.path for file in gguf_files() if file.model == model), None)
    if file is None or not file.is_relative_to(folder):
        owner = "" if file is None else f" {file} belongs to another program."
        raise _refused(f'There is no downloaded model "{shown(name, 60)}" in {folder}.{owner}', "")
    return existing_parts(file)


def paused_download(name: str) -> PausedDownload | None:
    """Return the unfinished download of a model that is named as in `downloaded_files`; None without one."""
    model = _named(name)
    paused = paused_downloads(models_folder())
    return next((one for one in paused if gguf_name(model_stem(one.target)) == model), None)


def _named(name: str) -> str:
    """Return the name in workflows of a file, by its name or one of the catalog; of the demo model, as any file."""
    entry = next((one for one in CATALOG if one.name == name.strip().casefold()), None)
    return gguf_name(entry.target.stem if entry is not None else name.strip().removeprefix(GGUF_PREFIX))


def delete_files(files: Iterable[Path]) -> None:
    """Delete the files of a model.

    Raises:
        EngineError: One cannot be deleted.
    """
    for file in files:
        try:
            file.unlink()
        except OSError as error:
            message = f"{file} cannot be deleted: {error.strerror}."
            raise EngineError(message, "Close the programs that use it.") from error


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
    if _FILE_NAME.fullmatch(file) is None or not is_windows_name(file):
        raise _refused(f'"{shown(file, 60)}" is not the name of a GGUF file.', HOW_TO_NAME)
    if is_auxiliary(file):
        raise _refused(f"{file} is the part of a model that reads images, not a model.", "Choose another file.")
    sources = [
        await asyncio.to_thread(_source, each, hub, keys, environment) for each in _addresses_of_parts(address, file)
    ]
    target = await asyncio.to_thread(_target, parts_of(Path(file))[0].name)
    size = 0
    for source, part in zip(sources, parts_of(target), strict=True):
        try:
            remote = await look_up(source)
        except ModelError as error:
            raise _without_query(source, target, error) or error from None
        size += remote.size
        try:
            if part.exists():
                await check_existing(part, remote)
        except OSError as error:
            raise disk_error(part, error) from error
    several = f"{model_stem(target)}, {len(sources)} files" if len(sources) > 1 else file
    return ModelFile(entry.title if entry is not None else several, target, size, tuple(sources), entry)


def _addresses_of_parts(address: str, file: str) -> list[str]:
    """Return the addresses of all files of a model, by the address of one of them.

    Raises:
        ModelError: There are too many.
    """
    names = [part.name for part in parts_of(Path(file))]
    if len(names) > _MAX_PARTS:
        raise _refused(f"{file} is one of more than {_MAX_PARTS} files.", "Choose another file.")
    if len(names) == 1:
        return [address]
    path, question, query = address.partition("?")
    return [f"{path.rpartition('/')[0]}/{quote(name)}{question}{query}" for name in names]


async def get_model_file(model: ModelFile, on_progress: OnProgress = lambda _progress: None) -> Path:
    """Download a model, or continue its download; see `download_files`.

    Returns:
        The file.

    Raises:
        ModelError: The download failed.
    """
    if not model.sources:
        with suppress(ModelError, OSError):  # missing, damaged or unreadable
            return await asyncio.to_thread(find_intact_weights)
        return await download_weights(on_progress)
    await download_files(list(zip(model.sources, parts_of(model.target), strict=True)), on_progress, model.size)
    return model.target


def machine_memory() -> int | None:
    """Return the memory of this computer in bytes, or that of its container; None if it is unknown."""
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
    address = name.partition("#")[0].partition("?")[0].rstrip("/")
    if repository := _REPOSITORY.fullmatch(address.removeprefix(f"{hub}/")):
        page = f"{hub}/{repository[1]}/tree/main"
        raise _refused(f"{repository[1]} has several files.", f"Add the name of one, as listed on {page}.")
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


def _without_query(source: Source, target: Path, error: ModelError) -> ModelError | None:
    """Return the error of an unfinished download that a server refuses without the query of its address."""
    paused = next((one for one in paused_downloads(target.parent) if one.target == target), None)
    if error.kind is ModelErrorKind.CONNECTION or paused is None:
        return None
    if not paused.has_query or source.address != paused.address:
        return None
    message = f"{source.host} refuses to send {target.name} by its address without the query, which is not stored."
    return ModelError(error.kind, message, "Enter the whole address again, with all that follows the question mark.")


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
    token = (environment.get(TOKEN_VARIABLE, "").strip() if is_hub else "") or keys.get(f"host:{origin.name}") or ""
    return Source(address, token, address.partition("/resolve/")[0] if is_hub else "")


def _refused(message: str, remedy: str) -> ModelError:
    return ModelError(ModelErrorKind.NOT_FOUND, message, remedy)
