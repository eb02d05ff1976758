"""The folders of bundled templates, resources and pages: in this package if installed, else in the repository."""

from __future__ import annotations

from pathlib import Path

from engine.errors import EngineError

_PACKAGE = Path(__file__).resolve().parent


def templates_folder() -> Path:
    """The folder of the bundled `*.loop.json` files.

    Raises:
        EngineError: It is missing from the installation.
    """
    return _find("templates", _PACKAGE)


def resources_folder() -> Path:
    """The folder of other bundled files, such as `handbook/`.

    Raises:
        EngineError: It is missing from the installation.
    """
    return _find("resources", _PACKAGE)


def docs_folder() -> Path:
    """The folder of the documentation.

    Raises:
        EngineError: It is missing from the installation.
    """
    return _find("docs", _PACKAGE)


def _find(name: str, package: Path) -> Path:
    for folder in (package / name, package.parent.parent / name):
        if folder.is_dir():
            return folder
    raise EngineError(
        f"The program's own folder '{name}' is missing from {package}.",
        "Install the program again: the installation is incomplete.",
    )
