"""`python -m benchmarks.screenshots`: draw the screenshots in `docs/images/`, or others to look at."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import tempfile
from itertools import chain
from pathlib import Path
from typing import Final

from PySide6.QtCore import QSize

from benchmarks.processes import ROOT
from benchmarks.screenshots.dialog_scenes import DIALOG_SCENES
from benchmarks.screenshots.guide_scenes import GUIDE_SCENES
from benchmarks.screenshots.studio import Look, Studio

SIZE: Final = QSize(1600, 920)
IMAGES: Final = ROOT / "docs" / "images"
LOOKS: Final = (Look("dark"), Look("light"), Look("dark", 150))
"""The looks of the pictures in the docs."""
SCENES: Final = {**GUIDE_SCENES, **DIALOG_SCENES}


def main(arguments: list[str] | None = None) -> None:
    """Draw screenshots."""
    given = _parser().parse_args(arguments)
    images: Path = given.folder.absolute()
    images.mkdir(parents=True, exist_ok=True)
    wanted = frozenset(given.scenes or chain(*(SCENES if given.all else GUIDE_SCENES)))
    # Without its folder, which no screenshot should show.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ.setdefault("QT_QPA_PLATFORM", f"offscreen:configfile={_screen(Path(folder), given.size)}")
        studio = Studio(Path(folder), images, given.looks or LOOKS, given.size, wanted)
        try:
            for names, draw in SCENES.items():
                if wanted.intersection(names):
                    draw(studio)
                    studio.clear()
        finally:
            studio.close()


def _screen(folder: Path, size: QSize) -> Path:
    """Describe a screen as large as the window to Qt, whose own is 800 × 800; dialogs fit on it."""
    screen = {"name": "", "x": 0, "y": 0, "width": size.width(), "height": size.height(), "logicalDpi": 96, "dpr": 1}
    file = folder / "screen.json"
    file.write_text(json.dumps({"screens": [screen]}), encoding="utf-8")
    return file


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.screenshots", description="Draw screenshots.")
    names = sorted(chain(*SCENES))
    parser.add_argument(
        "scenes",
        nargs="*",
        type=_scene,
        metavar="SCENE",
        help=f"which ones; by default those of the docs. One of {', '.join(names)}",
    )
    parser.add_argument("--all", action="store_true", help="also draw those that the docs do not show")
    parser.add_argument("--folder", type=Path, default=IMAGES, help="where to; by default docs/images")
    parser.add_argument(
        "--look",
        dest="looks",
        type=_look,
        action="append",
        help="such as light or dark-150; can be repeated; by default those of the docs",
    )
    parser.add_argument("--size", type=_size, default=SIZE, help="size of the window; by default 1600x920")
    return parser


def _scene(text: str) -> str:
    if text not in chain(*SCENES):
        raise argparse.ArgumentTypeError(f"there is no scene {text!r}")
    return text


def _look(text: str) -> Look:
    theme, _, percent = text.partition("-")
    if theme not in {"dark", "light"}:
        raise ValueError(text)
    return Look(theme, int(percent or 100))


def _size(text: str) -> QSize:
    width, height = text.split("x")
    return QSize(int(width), int(height))


if __name__ == "__main__":
    main()
