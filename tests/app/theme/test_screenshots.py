"""The pictures of the docs: small, and like the window."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest
from PySide6.QtGui import QColor, QImage

from benchmarks.screenshots.__main__ import GUIDE_SCENES, IMAGES, LOOKS, main
from benchmarks.screenshots.pictures import reduced_colors, write_png

MAX_GUIDE_BYTES = 3_500_000


def test_picture_of_many_colors_is_written_with_256_and_looks_the_same(tmp_path: Path):
    image = QImage(60, 60, QImage.Format.Format_RGB32)
    image.fill(QColor(250, 248, 248))
    for x in range(60):
        for y in range(50):
            image.setPixelColor(x, y, QColor(x * 4, y * 4, 30))
    write_png(image, tmp_path / "picture.png")

    written = QImage(str(tmp_path / "picture.png"))
    assert written.format() is QImage.Format.Format_Indexed8
    assert written.pixelColor(59, 59) == QColor(250, 248, 248)
    differences: list[int] = []
    for x in range(60):
        for y in range(60):
            wanted, drawn = image.pixelColor(x, y), written.pixelColor(x, y)
            differences += (abs(wanted.red() - drawn.red()), abs(wanted.green() - drawn.green()))
    assert 0 < max(differences) <= 12


def test_colors_of_a_picture_with_few_are_exact():
    colors = [0xFF000000 | 7 * number for number in range(256)]
    assert reduced_colors(colors, 256) == colors


def test_picture_that_cannot_be_written_is_an_error(tmp_path: Path):
    with pytest.raises(OSError, match="nowhere"):
        write_png(QImage(1, 1, QImage.Format.Format_RGB32), tmp_path / "nowhere" / "picture.png")


def test_docs_have_a_picture_of_each_of_their_scenes_in_each_look():
    drawn = {f"{name}-{look.name}" for name in chain(*GUIDE_SCENES) for look in LOOKS}
    assert {file.stem for file in IMAGES.glob("*.png")} == drawn
    assert sum(file.stat().st_size for file in IMAGES.glob("*.png") if "-150" not in file.stem) < MAX_GUIDE_BYTES


@pytest.mark.parametrize("option", [["nothing"], ["--look", "gray"], ["--look", "dark-x"], ["--size", "12"]])
def test_unknown_scenes_looks_and_sizes_are_refused(option: list[str]):
    with pytest.raises(SystemExit):
        main(option)
