"""An X server without a monitor for a test: its mouse, its keyboard and its picture."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

WIDTH, HEIGHT = 1600, 1000
PATIENCE_S = 60.0
STILL_S = 0.25


def what_is_missing() -> str:
    """Why there can be no screen, in a sentence; empty where there can."""
    missing = [program for program in ("Xvfb", "xdotool") if shutil.which(program) is None]
    return f"This test drives a real window and needs {' and '.join(missing)}, which is missing." if missing else ""


@contextmanager
def open_screen(folder: Path) -> Iterator[Screen]:
    """Start a screen that ends with the block; it picks a free number itself."""
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", f"{WIDTH}x{HEIGHT}x24", "-fbdir", str(folder)]
    with (folder / "xvfb.log").open("wb") as log:
        # By default the server resets, and refuses programs meanwhile, whenever the last one leaves, such as xdotool.
        command += ["-noreset", "-nolisten", "tcp"]
        server = subprocess.Popen(command, pass_fds=[writing], stdout=log, stderr=log)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as numbers:
            number = numbers.readline().strip().decode()
        assert number, (folder / "xvfb.log").read_text()
        yield Screen(f":{number}", folder / "Xvfb_screen0")
    finally:
        server.terminate()
        server.wait(timeout=PATIENCE_S)


class Screen:
    """A screen.

    Attributes:
        name: What DISPLAY has to be.
    """

    def __init__(self, name: str, memory: Path) -> None:
        self.name = name
        self._memory = memory

    def tool(self, *arguments: object) -> str:
        """Call xdotool, and give what it prints."""
        done = self._call(*arguments)
        assert done.returncode == 0, f"xdotool {arguments}: {done.stderr}"
        return done.stdout.strip()

    def _call(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["xdotool", *map(str, arguments)],
            env=self.environment(os.environ),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """An environment in which programs show themselves here."""
        inherited = {name: value for name, value in base.items() if name not in {"QT_QPA_PLATFORM", "WAYLAND_DISPLAY"}}
        return {**inherited, "DISPLAY": self.name}

    def window(self, title: str) -> str:
        """Wait for a window whose title fits a regular expression, give it the keyboard, and return its id."""
        found = ""

        def has_focus() -> bool:
            nonlocal found
            ids = self._windows(title)
            found = ids[0] if ids else ""
            return bool(found) and self._call("windowfocus", "--sync", found).returncode == 0

        wait_until(has_focus, f"the window {title!r} is shown and has the keyboard")
        return found

    def wait_until_gone(self, title: str) -> None:
        """Wait until no window has such a title."""
        wait_until(lambda: self._windows(title) == [], f"the window {title!r} goes")

    def _windows(self, title: str) -> list[str] | None:
        """The ids of the visible windows with such a title; None if the search failed.

        A search fails with an X error if any window is destroyed while it looks at it, for example a dialog that
        closes. xdotool's exit code 1 stands for that and for no result; only the error prints something.
        """
        done = self._call("search", "--onlyvisible", "--name", title)
        return None if done.returncode != 0 and done.stderr.strip() else done.stdout.split()

    def wait_until_still(self) -> None:
        """Wait until the picture does not change for a moment, as after a person has looked at it."""
        picture, since = b"", 0.0

        def is_still() -> bool:
            nonlocal picture, since
            now = self.pixels(0, 0, WIDTH, HEIGHT)
            if now != picture:
                picture, since = now, time.monotonic()
            return time.monotonic() - since >= STILL_S

        wait_until(is_still, "the picture is still")

    def pixels(self, left: int, top: int, width: int, height: int) -> bytes:
        """What is shown in a rectangle. The server keeps its picture in a file in the format XWD."""
        with self._memory.open("rb") as file:
            header = struct.unpack(">25I", file.read(100))
            header_size, bits, line_bytes, colors = header[0], header[11], header[12], header[19]
            start = header_size + colors * 12
            rows = []
            for row in range(top, top + height):
                file.seek(start + row * line_bytes + left * bits // 8)
                rows.append(file.read(width * bits // 8))
        return b"".join(rows)


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """Look again and again until something is so."""
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end, f"waited {PATIENCE_S:.0f} s in vain until {what}"
        time.sleep(0.02)
