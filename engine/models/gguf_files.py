"""GGUF files, the format of models that run on this computer: where they are, and their names in workflows.

A file in the folder for downloaded models, or of LM Studio or Ollama, has a name that is the same on every computer:
`qwen2.5-7b-instruct-q4_k_m` for `Qwen2.5-7B-Instruct-Q4_K_M.gguf`, and Ollama's own name for a file of Ollama. Any
other file is named by its path.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from pydantic_core import from_json

from engine.errors import Fix, did_you_mean
from engine.models.gguf_header import DamagedFileError, GgufError, GgufHeader, read_header
from engine.models.protocol import GGUF_PREFIX, ModelError, ModelErrorKind, is_gguf_path
from engine.safe_file_io import is_file, read_text_file
from engine.values import as_list, as_object

FOLDER_VARIABLE: Final = "LOOPWRIGHT_MODELS_FOLDER"
"""Environment variable with the path of the folder for downloaded models."""

DEFAULT_CONTEXT_TOKENS: Final = 8192
"""The context length that a model gets without a setting, if it supports that much: more takes memory."""

_SUFFIX: Final = ".gguf"
_DOWNLOADED: Final = "Downloaded"
_PART: Final = re.compile(r"(.+)-(\d{5})-of-(?!00000)(\d{5})")
"""Name of a part of a model that is split into several files; the runtime is given the first."""
_MAX_DEPTH: Final = 3
"""LM Studio's files are in PUBLISHER/MODEL/."""
_MAX_FILES: Final = 500
_MAX_SMALL_FILE_BYTES: Final = 1_000_000
_OLLAMA_HOST: Final = "registry.ollama.ai"
_OLLAMA_WEIGHTS: Final = "application/vnd.ollama.image.model"
_DIGEST: Final = re.compile(r"sha256[:-][0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class GgufSettings:
    """How models in GGUF files are run.

    Attributes:
        context_tokens: The context length, at least 256; None for `DEFAULT_CONTEXT_TOKENS`, or less if the model
            supports less.
        threads: The number of threads, at most one for each core is used; None for half of the cores.
        gpu_layers: The number of layers on the graphics card; None for as many as fit.
    """

    context_tokens: int | None = None
    threads: int | None = None
    gpu_layers: int | None = None


@dataclass(frozen=True, slots=True)
class GgufFile:
    """A GGUF file on this computer.

    Attributes:
        model: The name of its model in workflows (`gguf:qwen2.5-7b-instruct-q4_k_m`).
        path: The file; the first part of a model in several files.
        source: The program that it belongs to, for people.
    """

    model: str
    path: Path
    source: str


@dataclass(frozen=True, slots=True)
class GgufEntry:
    """A GGUF file with what its header says, for a list.

    Attributes:
        file: The file.
        header: Its header; None if it is unusable. The size is that of all parts.
        problem: Why it is unusable, in one sentence; may be empty.
    """

    file: GgufFile
    header: GgufHeader | None
    problem: str = ""


def models_folder() -> Path:
    """Return the folder for downloaded models, which may not exist: the environment's, or one in the user's data."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        return _expanded(named)
    import platformdirs

    return platformdirs.user_data_path("loopwright", appauthor=False) / "models"


def gguf_name(stem: str) -> str:
    """Return the name in workflows of a file in one of the folders, by its name as in `model_stem`."""
    name = stem.lower()
    while name.endswith(_SUFFIX):  # such a name would be the path of a file
        name = name.removesuffix(_SUFFIX)
    return f"{GGUF_PREFIX}{name}"


def model_stem(file: Path) -> str:
    """Return the name of a file without its suffix, and without its number if it is a part of a model."""
    split = _PART.fullmatch(file.stem)
    return split[1] if split else file.stem


def is_auxiliary(name: str) -> bool:
    """Whether a file, by its name, is not a model but the part of one that reads images."""
    return name.lower().startswith("mmproj")


def list_gguf_models() -> list[GgufEntry]:
    """List the language models in GGUF files on this computer, with their headers. Reads the header of each file."""
    entries = (_entry(file) for file in gguf_files())
    return [entry for entry in entries if entry.header is None or entry.header.writes_text]


def gguf_problem(path: Path) -> str:
    """Return why a file cannot be run, in one sentence; empty if it can. Reads its header, unless it is known."""
    entry = _entry(GgufFile("", path, ""))
    if entry.header is None or entry.header.writes_text:
        return entry.problem
    return unusable_file(path, GgufError("it is not a language model")).message


def downloaded_gguf_files() -> list[GgufFile]:
    """Find the GGUF files in the folder of this program, the first file of each model."""
    return list(_files_in(models_folder(), _DOWNLOADED))


def gguf_files() -> list[GgufFile]:
    """Find the GGUF files of this program, LM Studio and Ollama; of files with the same name, the first."""
    found: dict[str, GgufFile] = {}
    for file in _all_files():
        found.setdefault(file.model.casefold(), file)
        if len(found) >= _MAX_FILES:
            break
    return list(found.values())


def find_gguf(model: str) -> Path:
    """Find the file of a model, the first one if it is split.

    Args:
        model: `gguf:NAME` or `gguf:PATH`.

    Raises:
        ModelError: There is no such file (`NOT_FOUND`).
    """
    name = model.removeprefix(GGUF_PREFIX)
    if is_gguf_path(model):
        path = parts_of(_expanded(name))[0]
        if is_file(path):
            return path
        reason = "is a folder" if os.path.isdir(path) else "does not exist"  # noqa: PTH112 - as in `is_file`
        raise _not_found(f"The file {path} {reason}.", "Choose another file or model.")
    files = {file.model.casefold(): file for file in gguf_files()}
    for wanted in (model.casefold(), f"{model.casefold()}:latest"):
        if wanted in files:
            return files[wanted].path
    known = (file.model for file in files.values())
    remedy = " ".join(filter(None, (did_you_mean(model, known), "Check the spelling, or choose another model.")))
    raise _not_found(f'There is no model "{name[:200]}" in the GGUF files on this computer.', remedy)


def unusable_file(path: Path, error: OSError | GgufError) -> ModelError:
    """Return the error of a file whose header cannot be read."""
    reason = f"it cannot be read ({error.strerror})" if isinstance(error, OSError) else str(error)
    message = f"The model file {path} cannot be used: {reason}."
    again = "Download it again, or choose" if isinstance(error, DamagedFileError) else "Choose"
    return ModelError(ModelErrorKind.UNAVAILABLE, message, f"{again} another model.", fix=Fix.CHOOSE_MODEL)


def _expanded(path: str) -> Path:
    return Path(os.path.expanduser(path))  # noqa: PTH111 - the other way fails for an unknown user


def _not_found(message: str, remedy: str) -> ModelError:
    return ModelError(ModelErrorKind.NOT_FOUND, message, remedy, fix=Fix.CHOOSE_MODEL)


def _entry(file: GgufFile) -> GgufEntry:
    try:
        states = [(part, part.stat()) for part in all_parts(file.path)]
        found = _header_of(tuple((part, state.st_size, state.st_mtime_ns) for part, state in states))
    except (OSError, GgufError) as error:
        found = error
    if isinstance(found, GgufHeader):
        return GgufEntry(file, found)
    return GgufEntry(file, None, unusable_file(file.path, found).message)


@lru_cache(maxsize=_MAX_FILES)
def _header_of(parts: tuple[tuple[Path, int, int], ...]) -> GgufHeader | GgufError:
    """Return the header of a model, or why it is unusable, by its parts, each with size and date to notice a change."""
    try:
        return read_header(*(part for part, _, _ in parts))
    except GgufError as error:
        return error


def parts_of(path: Path) -> list[Path]:
    """Return the files of a model that may be split into several, of which some may be missing."""
    split = _PART.fullmatch(path.stem)
    if split is None:
        return [path]
    return [
        path.with_name(f"{split[1]}-{number:05}-of-{split[3]}{path.suffix}") for number in range(1, int(split[3]) + 1)
    ]


def existing_parts(path: Path) -> list[Path]:
    """Return the files of a model that are on this computer, including links that lead nowhere."""
    return [part for part in parts_of(path) if os.path.lexists(part) and not part.is_dir()]


def all_parts(path: Path) -> list[Path]:
    """Return all files of a model.

    Raises:
        GgufError: Some are missing.
    """
    parts, existing = parts_of(path), existing_parts(path)
    if len(parts) > 1 and len(existing) < len(parts):
        missing = len(parts) - len(existing)
        raise GgufError(f"{missing} of its {len(parts)} parts {'is' if missing == 1 else 'are'} missing")
    return parts


def _all_files() -> Iterator[GgufFile]:
    home = Path.home()
    yield from _files_in(models_folder(), _DOWNLOADED)
    for folder in _lm_studio_folders(home):
        yield from _files_in(folder / "models", "LM Studio")
    for folder in _ollama_folders(home):
        yield from _ollama_files(folder)


def _files_in(folder: Path, source: str) -> Iterator[GgufFile]:
    for file in _walk(folder):
        split = _PART.fullmatch(file.stem)
        is_hidden = file.name.startswith(".") or is_auxiliary(file.name)
        is_model = file.suffix.lower() == _SUFFIX and not is_hidden
        if is_model and (split is None or int(split[2]) == 1):
            yield GgufFile(gguf_name(model_stem(file)), file, source)


def _walk(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder, sorted, with those in its folders; what cannot be read is left out.

    Links to folders are followed, for models on another disk. No folder is read twice, so links may lead back.
    """
    seen: set[str] = set()
    for place, folders, files in os.walk(folder, followlinks=True):
        depth, real = len(Path(place).relative_to(folder).parts), os.path.realpath(place)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(folders, key=str.casefold) if depth < _MAX_DEPTH else []
        yield from (Path(place) / name for name in sorted(files, key=str.casefold))


def _lm_studio_folders(home: Path) -> list[Path]:
    """Return LM Studio's folders: the one that its pointer file names, and the usual ones."""
    folders = [home / ".lmstudio", home / ".cache" / "lm-studio"]
    with suppress(OSError, ValueError):
        named = Path(read_text_file(home / ".lmstudio-home-pointer", _MAX_SMALL_FILE_BYTES).strip())
        if named.is_absolute() and named not in folders:
            folders.insert(0, named)
    return folders


def _ollama_folders(home: Path) -> list[Path]:
    if named := os.environ.get("OLLAMA_MODELS"):
        return [_expanded(named)]
    # On Linux, Ollama is usually installed as a service with a user of its own.
    return [home / ".ollama" / "models", Path("/usr/share/ollama/.ollama/models")]


def _ollama_files(folder: Path) -> Iterator[GgufFile]:
    """Yield Ollama's files. A manifest, manifests/HOST/USER/MODEL/TAG, names the blobs of a model."""
    manifests = folder / "manifests"
    for manifest in _walk(manifests):
        place = manifest.relative_to(manifests).parts
        blob = _blob(folder, manifest) if len(place) == 4 else None
        if blob is not None:
            host, user, model, tag = place
            owner = [] if host == _OLLAMA_HOST and user == "library" else [user]
            owner = owner if host == _OLLAMA_HOST else [host, *owner]
            yield GgufFile(f"{GGUF_PREFIX}{'/'.join((*owner, model))}:{tag}", blob, "Ollama")


def _blob(folder: Path, manifest: Path) -> Path | None:
    """Return the file with the weights that a manifest names; None without one."""
    try:
        content = from_json(read_text_file(manifest, _MAX_SMALL_FILE_BYTES))
    except (OSError, ValueError):
        return None
    for entry in map(as_object, as_list(as_object(content).get("layers"))):
        digest = str(entry.get("digest"))
        if entry.get("mediaType") == _OLLAMA_WEIGHTS and _DIGEST.fullmatch(digest):
            blob = folder / "blobs" / digest.replace(":", "-")
            return blob if is_file(blob) else None
    return None
