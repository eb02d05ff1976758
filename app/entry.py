"""The program `loopwright`: without arguments, or with `open`, the window; with any other command the command line.

Nothing of Qt is imported here before it is needed, so that the command line works where Qt does not.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

OPEN_COMMAND: Final = "open"
STORE_OPTION: Final = "--store"
REFUSED: Final = 2
"""The exit code where the window cannot be shown."""

NO_SCREEN: Final = (
    "There is no screen to show the window on. Start it in a desktop session, or use the command line: "
    "`loopwright run self-refine`."
)
NO_QT: Final = (
    "The window needs PySide6, NodeGraphQt and QtAwesome, and {missing} is not installed. "
    "Install them with `pip install 'loopwright[app]'`, or use the command line: `loopwright run self-refine`."
)
NO_LIBRARY: Final = (
    "The window needs the system library {library}, which is missing. {how} "
    "Or use the command line: `loopwright run self-refine`."
)

PACKAGES: Final = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libGLX.so.0": "libglx0",
    "libOpenGL.so.0": "libopengl0",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libX11.so.6": "libx11-6",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libxcb.so.1": "libxcb1",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-util.so.1": "libxcb-util1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libwayland-client.so.0": "libwayland-client0",
}
"""Debian's package of each library that Qt may lack."""

X11_LIBRARIES: Final = (
    "libxkbcommon-x11.so.0",
    "libxcb-cursor.so.0",
    "libxcb-icccm.so.4",
    "libxcb-image.so.0",
    "libxcb-keysyms.so.1",
    "libxcb-render-util.so.0",
    "libxcb-shape.so.0",
    "libxcb-xkb.so.1",
)
"""What Qt's plugin for X11 loads; where one is missing, Qt ends the process without a sentence for people."""

_LIBRARY: Final = re.compile(r"(lib[\w.+-]+\.so[\w.]*)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program.

    Args:
        arguments: What follows the program's name; None for the process's own.

    Returns:
        The exit code.
    """
    from engine.runner.event_loop import end_process

    return end_process(_run(list(sys.argv[1:] if arguments is None else arguments)))


def _run(given: list[str]) -> int:
    wanted = window_arguments(given)
    if wanted is None:
        from engine.cli.main import main as command_line

        return command_line(given)
    obstacle = what_is_in_the_way(os.environ)
    if obstacle:
        sys.stderr.write(f"{obstacle}\n")
        return REFUSED
    from app.main import run_window

    return run_window(*wanted)


def window_arguments(given: Sequence[str]) -> tuple[list[str], Path | None] | None:
    """The files that the window is to open, and the file of the history; None where a command is meant.

    Args:
        given: What follows the program's name.
    """
    import argparse

    parser = argparse.ArgumentParser(prog=f"loopwright {OPEN_COMMAND}", description="Open the window.")
    parser.add_argument("files", nargs="*", metavar="FILE", help="workflows to open")
    parser.add_argument(STORE_OPTION, type=Path, metavar="FILE", help="keep and show the history in this file")
    named = given[0].partition("=")[0] == STORE_OPTION if given else False
    at = (1 if "=" in given[0] else 2) if named else 0
    if given[at:] and given[at] != OPEN_COMMAND:
        return None
    parsed = parser.parse_args([*given[:at], *given[at + 1 :]])
    return parsed.files, parsed.store


def what_is_in_the_way(environment: Mapping[str, str]) -> str:
    """Why the window cannot be shown, in a sentence; empty where it can.

    Args:
        environment: The variables of the process.
    """
    if not _has_screen(environment):
        return NO_SCREEN
    try:
        import PySide6.QtWidgets
    except ModuleNotFoundError as error:
        return NO_QT.format(missing=error.name)
    except ImportError as error:
        return missing_library(str(error))
    from importlib.util import find_spec

    for package in ("NodeGraphQt", "qtawesome"):
        if find_spec(package) is None:
            return NO_QT.format(missing=package)
    del PySide6
    return _missing_for_x11(environment)


def missing_library(message: str) -> str:
    """The sentence for a library that an import could not find.

    Args:
        message: What the import said: `libEGL.so.1: cannot open shared object file`.
    """
    found = _LIBRARY.search(message)
    if found is None:
        return f"Qt cannot be loaded: {message}. Use the command line instead: `loopwright run self-refine`."
    library = found[1]
    package = PACKAGES.get(library)
    how = f"On Debian and Ubuntu: `sudo apt-get install {package}`." if package else "Install it with your system."
    return NO_LIBRARY.format(library=library, how=how)


def _has_screen(environment: Mapping[str, str]) -> bool:
    if environment.get("QT_QPA_PLATFORM"):
        return True
    return not sys.platform.startswith("linux") or bool(
        environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")
    )


def _missing_for_x11(environment: Mapping[str, str]) -> str:
    """The sentence for the first library that Qt's plugin for X11 lacks; empty where none is, or none is needed."""
    platform = environment.get("QT_QPA_PLATFORM", "")
    is_x11 = platform.startswith("xcb") or (not platform and not environment.get("WAYLAND_DISPLAY"))
    if not sys.platform.startswith("linux") or not is_x11:
        return ""
    import ctypes

    for library in X11_LIBRARIES:
        try:
            ctypes.CDLL(library)
        except OSError as error:
            return missing_library(str(error))
    return ""


if __name__ == "__main__":
    sys.exit(main())
