"""Find a program by its name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_PATHEXT: Final = ".COM;.EXE;.BAT;.CMD"


def find_program(name: str, *, on_windows: bool = os.name == "nt") -> str | None:
    """Return the path of a program in the folders of PATH, or None.

    The current folder does not count, which may hold files of anyone: `shutil.which` looks there first on Windows.

    Args:
        name: Name of the program, on Windows with or without its suffix, or a path.
        on_windows: Whether a name without a suffix stands for one with a suffix in PATHEXT.
    """
    suffixes = [""]
    if on_windows:
        known = [suffix for suffix in (os.environ.get("PATHEXT") or _PATHEXT).split(";") if suffix]
        if Path(name).suffix.upper() not in map(str.upper, known):
            suffixes = known
    folders = [""] if os.path.dirname(name) else filter(os.path.isabs, os.get_exec_path())  # noqa: PTH120 - "./name"
    paths = (os.path.join(folder, name + suffix) for folder in folders for suffix in suffixes)  # noqa: PTH118
    # `Path.is_file` fails in a folder that this user may not enter, before Python 3.14.
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)  # noqa: PTH113
