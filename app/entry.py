"""Start `loopwright`: the window without arguments or with files to open, the command line with any other command.

Qt is imported only for the window, so that the command line works where Qt does not.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.cli.remedies import install_command

OPEN_COMMAND: Final = "open"
STORE_OPTION: Final = "--store"
NEW_WINDOW_OPTION: Final = "--new-window"
REFUSED: Final = 2
"""Exit code if the window cannot be shown."""

NO_SCREEN: Final = (
    "There is no screen to show the window on. Start it in a desktop session, or use the command line: "
    "`loopwright run self-refine`."
)
NO_QT: Final = (
    "The window needs PySide6 and NodeGraphQt, and {missing} is not installed. "
    "Install them with `{command}`, or use the command line: `loopwright run self-refine`."
)
NO_LIBRARY: Final = (
    "The window needs {libraries}, which {verb} missing. {how} Or use the command line: `loopwright run self-refine`."
)
NO_X_SERVER: Final = (
    "The display {display} does not answer, or refuses the connection. Start the program in a desktop session, check "
    "the variable DISPLAY, or use the command line: `loopwright run self-refine`."
)
NO_ANSWER: Final = "The Loopwright window that is open does not respond, so another one opens."
NO_FILE: Final = "There is no file {names}. Check the path. `loopwright --help` lists the commands."

QT_LIBRARIES: Final = (
    "libEGL.so.1",
    "libGL.so.1",
    "libdbus-1.so.3",
    "libfontconfig.so.1",
    "libfreetype.so.6",
    "libglib-2.0.so.0",
    "libX11.so.6",
    "libxkbcommon.so.0",
)
"""System libraries that Qt loads on every display."""

X11_LIBRARIES: Final = (
    "libX11-xcb.so.1",
    "libxcb.so.1",
    "libxcb-cursor.so.0",
    "libxcb-icccm.so.4",
    "libxcb-image.so.0",
    "libxcb-keysyms.so.1",
    "libxcb-randr.so.0",
    "libxcb-render.so.0",
    "libxcb-render-util.so.0",
    "libxcb-shape.so.0",
    "libxcb-shm.so.0",
    "libxcb-sync.so.1",
    "libxcb-util.so.1",
    "libxcb-xfixes.so.0",
    "libxcb-xkb.so.1",
    "libxkbcommon-x11.so.0",
)
"""What Qt's plugin for X11 loads besides; if one is missing, Qt ends the process with a page of text."""

X_SERVER_TIMEOUT_S: Final = 10.0

_OTHER_DEBIAN_NAMES: Final = {"libglib-2.0.so.0": "libglib2.0-0"}
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


def window_main() -> int:
    """Open the window with the files that are the arguments: the command without a console."""
    return main([OPEN_COMMAND, *sys.argv[1:]])


def _run(arguments: list[str]) -> int:
    window = window_arguments(arguments)
    if window is None or "_LOOPWRIGHT_COMPLETE" in os.environ:  # set by a shell that asks for completions
        from engine.cli.main import main as command_line

        return command_line(arguments, window_obstacle=lambda: window_obstacle(os.environ))
    obstacle = window_obstacle(os.environ) or missing_files(window.files)
    if obstacle:
        _report(obstacle)
        return REFUSED
    return open_window(window)


@dataclass(frozen=True, slots=True)
class WindowArguments:
    """The arguments of a start of the window.

    Attributes:
        files: The files to open.
        store: The file of the history; the default one if None.
        is_separate: Whether to open a window of its own, even if another one is open.
    """

    files: list[str]
    store: Path | None = None
    is_separate: bool = False


def open_window(window: WindowArguments) -> int:
    """Open the window, or hand the files to the one that is open. Returns the exit code."""
    from app.single_instance import Application, InstanceServer, hand_over, socket_path

    application = Application(sys.argv[:1])
    path = socket_path(window.store, os.environ)
    server = InstanceServer(path)
    files = [Path(file).expanduser().absolute() for file in window.files]
    if not server.listen() and not window.is_separate and path is not None:
        if hand_over(path, files):
            return 0
        _report(NO_ANSWER)
    from app.main import run_window  # takes most of a second
    from engine.cli.output import prepare_streams

    prepare_streams()
    return run_window(application, server, files, window.store)


def _report(obstacle: str) -> None:
    """Write a sentence to standard error; on Windows, the command without a console shows it in a message box."""
    if sys.stderr is not None:
        sys.stderr.write(f"{obstacle}\n")
    elif sys.platform == "win32":
        import ctypes

        error_icon = 0x10
        ctypes.windll.user32.MessageBoxW(None, obstacle, "Loopwright", error_icon)


def window_arguments(arguments: Sequence[str]) -> WindowArguments | None:
    """Parse the arguments of a start of the window; None if they are a command."""
    import argparse

    parser = argparse.ArgumentParser(prog=f"loopwright {OPEN_COMMAND}", description="Open the window.")
    parser.add_argument("files", nargs="*", metavar="FILE", help="workflows to open")
    parser.add_argument(STORE_OPTION, type=Path, metavar="FILE", help="keep and show the history in this file")
    parser.add_argument(NEW_WINDOW_OPTION, action="store_true", help="open a window of its own, not a tab")
    at = 0  # where the command is
    while arguments[at:] and arguments[at].partition("=")[0] in {STORE_OPTION, NEW_WINDOW_OPTION}:
        at += 2 if arguments[at] == STORE_OPTION else 1
    rest = list(arguments[at:])
    is_option = at > 0 and "".join(rest[:1]).startswith("-")  # such as --help after an option of the window
    if rest and rest[0] != OPEN_COMMAND and not is_option and not _is_file_name(rest[0]):
        return None
    parsed = parser.parse_args([*arguments[:at], *(rest[1:] if rest[:1] == [OPEN_COMMAND] else rest)])
    return WindowArguments(parsed.files, parsed.store, parsed.new_window)


def _is_file_name(argument: str) -> bool:
    """Return whether an argument names a file to open. A command wins over a file of the same name."""
    if argument.startswith("-"):
        return False
    path = Path(argument)
    if path.suffix or "/" in argument or os.sep in argument:
        return True
    if not path.is_file():
        return False
    from engine.cli.main import command_names

    return argument not in command_names()


def missing_files(files: Sequence[str]) -> str:
    """Return the sentence for files that do not exist; empty if all exist, or can be recovered after a crash."""
    missing = [Path(file).expanduser() for file in files if not Path(file).expanduser().exists()]
    if missing:
        from app.window.autosave import default_autosave_folder, has_autosave

        missing = [path for path in missing if not has_autosave(path.absolute(), default_autosave_folder())]
    return NO_FILE.format(names=", ".join(f"“{path}”" for path in missing)) if missing else ""


def window_obstacle(environment: Mapping[str, str]) -> str:
    """Return why the window cannot be shown, in a sentence; empty if it can.

    Args:
        environment: The environment variables of the process.
    """
    if not _has_screen(environment):
        return NO_SCREEN
    is_x11 = _is_x11(environment)
    obstacle = _missing_libraries((*QT_LIBRARIES, *X11_LIBRARIES) if is_x11 else QT_LIBRARIES)
    if obstacle:
        return obstacle
    try:
        import PySide6.QtWidgets
    except ModuleNotFoundError as error:
        return NO_QT.format(missing=error.name, command=install_command("app"))
    except ImportError as error:
        return import_failure(str(error))
    from importlib.util import find_spec

    if find_spec("NodeGraphQt") is None:
        return NO_QT.format(missing="NodeGraphQt", command=install_command("app"))
    del PySide6
    display = environment.get("DISPLAY", "")
    return NO_X_SERVER.format(display=display) if is_x11 and not _x_server_answers(display) else ""


def import_failure(message: str) -> str:
    """Return the sentence for a failed import of Qt.

    Args:
        message: The message of the import, such as `libEGL.so.1: cannot open shared object file`.
    """
    found = _LIBRARY.search(message)
    if found is None:
        return f"Qt cannot be loaded: {message}. Use the command line instead: `loopwright run self-refine`."
    return missing_libraries([found[1]])


def missing_libraries(libraries: Sequence[str]) -> str:
    """Return the sentence for system libraries that are missing."""
    known = {*QT_LIBRARIES, *X11_LIBRARIES}
    what, verb, them = ("library", "is", "it") if len(libraries) == 1 else ("libraries", "are", "them")
    how = f"Install {them} with your system."
    if known.issuperset(libraries):
        how = f"On Debian and Ubuntu: `sudo apt-get install {' '.join(map(debian_package, libraries))}`."
    return NO_LIBRARY.format(libraries=f"the system {what} {', '.join(libraries)}", verb=verb, how=how)


def debian_package(library: str) -> str:
    """Return Debian's package of a library, such as `libfoo1` for `libfoo.so.1` and `libfoo2-1` for `libfoo2.so.1`."""
    name, _, version = library.partition(".so.")
    usual = f"{name.lower()}{'-' if name[-1].isdigit() else ''}{version}"
    return _OTHER_DEBIAN_NAMES.get(library, usual)


def _has_screen(environment: Mapping[str, str]) -> bool:
    if environment.get("QT_QPA_PLATFORM"):
        return True
    has_display = environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")
    return not sys.platform.startswith("linux") or bool(has_display)


def _is_x11(environment: Mapping[str, str]) -> bool:
    platform = environment.get("QT_QPA_PLATFORM", "")
    is_default = not platform and not environment.get("WAYLAND_DISPLAY")
    return sys.platform.startswith("linux") and (platform.startswith("xcb") or is_default)


def _missing_libraries(libraries: Sequence[str]) -> str:
    """Return the sentence for the libraries that cannot be loaded; empty if none is missing."""
    if not sys.platform.startswith("linux"):
        return ""
    import ctypes

    missing: list[str] = []
    for library in libraries:
        try:
            ctypes.CDLL(library)
        except OSError:
            missing.append(library)
    return missing_libraries(missing) if missing else ""


def _x_server_answers(display: str) -> bool:
    """Return whether the X server of a display answers; if it does not, Qt ends the process with a page of text."""
    import ctypes
    import threading

    xcb = ctypes.CDLL("libxcb.so.1")
    xcb.xcb_connect.restype = ctypes.c_void_p
    errors: list[int] = []

    def connect() -> None:
        connection = ctypes.c_void_p(xcb.xcb_connect(display.encode(), None))
        errors.append(xcb.xcb_connection_has_error(connection))
        xcb.xcb_disconnect(connection)

    thread = threading.Thread(target=connect, name="loopwright display", daemon=True)
    thread.start()
    thread.join(X_SERVER_TIMEOUT_S)
    return errors == [0]


if __name__ == "__main__":
    sys.exit(main())
