"""Where the files lie that come with the program: templates and resources.

In an installed wheel they are folders of this package; in a source checkout they stand at the top of the repository.
This module knows the two places and nothing of what is in them.
"""

from __future__ import annotations

from pathlib import Path

from engine.errors import EngineError

_PACKAGE = Path(__file__).resolve().parent


def templates_folder() -> Path:
    """The folder of the bundled `*.loop.json` files.

    Raises:
        EngineError: The installation has lost it.
    """
    return _bundled("templates", _PACKAGE)


def resources_folder() -> Path:
    """The folder of everything else that is bundled, such as `handbook/`.

    Raises:
        EngineError: The installation has lost it.
    """
    return _bundled("resources", _PACKAGE)


def _bundled(name: str, package: Path) -> Path:
    """Find a bundled folder from the folder of this package: inside it, or beside the `engine` folder of a checkout."""
    for place in (package / name, package.parent.parent / name):
        if place.is_dir():
            return place
    raise EngineError(
        f"The program's own folder '{name}' is missing from {package}.",
        "Install the program again: the installation is incomplete.",
    )
