"""Start `loopwright`: the window without arguments or with `open`, the command line with any other command.

Qt is imported only for the window, so that the command line works where Qt does not.
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
"""Exit code if the window cannot be shown."""

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

_IN_DEBIAN: Final = re.compile(
    r"lib(EGL|GL|GLX|OpenGL|X11|X11-xcb|dbus-1|fontconfig|freetype|glib-2\.0|gthread-2\.0|wayland-client|xkbcommon"
    r"|xkbcommon-x11|xcb|xcb-[a-z]+|xcb-render-util)\.so\.\d+"
)
"""Libraries that Qt may lack and that Debian packages under their names."""

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
"""What Qt's plugin for X11 loads; if one is missing, Qt ends the process without an explanation."""

_LIBRARY: Final = re.compile(r"(lib[\w.+-]+\.so[\w.]*)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program.

    Args:
        arguments: The arguments; those of the process by default.

    Returns:
        The exit code.
    """
    from engine.runner.event_loop import exit_process

    return exit_process(_run(list(sys.argv[1:] if arguments is None else arguments)))


def _run(arguments: list[str]) -> int:
    for_window = window_arguments(arguments)
    if for_window is None:
        from engine.cli.main import main as command_line

        return command_line(arguments)
    obstacle = window_obstacle(os.environ)
    if obstacle:
        sys.stderr.write(f"{obstacle}\n")
        return REFUSED
    from app.main import run_window

    return run_window(*for_window)


def window_arguments(arguments: Sequence[str]) -> tuple[list[str], Path | None] | None:
    """Return the files to open and the file of the history; None if the arguments are a command."""
    import argparse

    parser = argparse.ArgumentParser(prog=f"loopwright {OPEN_COMMAND}", description="Open the window.")
    parser.add_argument("files", nargs="*", metavar="FILE", help="workflows to open")
    parser.add_argument(STORE_OPTION, type=Path, metavar="FILE", help="keep and show the history in this file")
    has_store = arguments[0].partition("=")[0] == STORE_OPTION if arguments else False
    at = (1 if "=" in arguments[0] else 2) if has_store else 0  # where the command is
    if arguments[at:] and arguments[at] != OPEN_COMMAND:
        return None
    parsed = parser.parse_args([*arguments[:at], *arguments[at + 1 :]])
    return parsed.files, parsed.store


def window_obstacle(environment: Mapping[str, str]) -> str:
    """Return why the window cannot be shown, in a sentence; empty if it can.

    Args:
        environment: The environment variables of the process.
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
    """Return the sentence for a library that an import could not find.

    Args:
        message: The message of the import, such as `libEGL.so.1: cannot open shared object file`.
    """
    found = _LIBRARY.search(message)
    if found is None:
        return f"Qt cannot be loaded: {message}. Use the command line instead: `loopwright run self-refine`."
    library, how = found[1], "Install it with your system."
    if _IN_DEBIAN.fullmatch(library):
        how = f"On Debian and Ubuntu: `sudo apt-get install {debian_package(library)}`."
    return NO_LIBRARY.format(library=library, how=how)


def debian_package(library: str) -> str:
    """Return Debian's package of a library, such as `libfoo1` for `libfoo.so.1` and `libfoo2-1` for `libfoo2.so.1`."""
    name, _, version = library.partition(".so.")
    if name in {"libglib-2.0", "libgthread-2.0"}:
        return "libglib2.0-0"
    return f"{name.lower()}{'-' if name[-1].isdigit() else ''}{version}"


def _has_screen(environment: Mapping[str, str]) -> bool:
    if environment.get("QT_QPA_PLATFORM"):
        return True
    has_display = environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")
    return not sys.platform.startswith("linux") or bool(has_display)


def _missing_for_x11(environment: Mapping[str, str]) -> str:
    """Return the sentence for the first library that Qt's plugin for X11 lacks; empty if none is missing or needed."""
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
