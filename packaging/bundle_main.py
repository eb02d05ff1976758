"""Entry point of the bundle: the program, or a Python file in a child process.

Child processes are started as `sys.executable -I FILE`. In a bundle, that is the program itself, which then runs the
file with the Python inside the bundle. Workers of a batch on Dask are started by `multiprocessing`, in its own way.
"""

from __future__ import annotations

import multiprocessing
import runpy
import sys

ISOLATED = "-I"


def main(arguments: list[str]) -> int:
    """Run a Python file if the arguments are those of an interpreter, else the program."""
    if arguments[:1] == [ISOLATED]:
        run_file(arguments[1:])
        return 0
    import platformdirs

    # Plugins, which another Python's package client installs there.
    sys.path.append(str(platformdirs.user_data_path("loopwright", appauthor=False) / "plugins"))
    from app.entry import main as program

    return program(arguments)


def run_file(arguments: list[str]) -> None:
    """Run a file as `python -I [-S] [-X OPTION] FILE [ARGUMENT…]` would; its `SystemExit` passes through."""
    while arguments[0].startswith("-"):
        arguments = arguments[2:] if arguments[0] == "-X" else arguments[1:]
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    multiprocessing.freeze_support()  # runs a child process of `multiprocessing`, and ends with it
    sys.exit(main(sys.argv[1:]))
