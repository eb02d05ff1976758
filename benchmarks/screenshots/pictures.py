"""Small PNG files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QImage, QImageWriter

COLORS: Final = 256
"""Colors in a PNG with one byte a pixel."""


def write_png(image: QImage, file: Path) -> None:
    """Write an opaque image with 256 colors, which takes a third of the space and looks the same.

    Raises:
        OSError: The file cannot be written.
    """
    opaque = image.convertToFormat(QImage.Format.Format_RGB32)
    seen = Counter(memoryview(opaque.constBits()).cast("I"))
    indexed = opaque.convertToFormat(
        QImage.Format.Format_Indexed8,
        reduced_colors([color for color, _ in seen.most_common()], COLORS),
        Qt.ImageConversionFlag.ThresholdDither,
    )
    writer = QImageWriter(str(file), b"png")
    writer.setQuality(0)  # the highest compression; PNG loses nothing by it
    if not writer.write(indexed):
        raise OSError(f"{file} cannot be written: {writer.errorString()}")


def reduced_colors(colors: list[int], most: int) -> list[int]:
    """Select colors for a palette: the frequent ones, and few others that are close to all the rest.

    Each color that is left out differs from one of these by the same small amount of red, green and blue at most:
    about 6 of 255 in a picture of the window. Frequent ones, such as those of areas, stay exact.

    Args:
        colors: The colors as 0xAARRGGBB, the most frequent ones first.
        most: How many to return at most.
    """
    distance = 0
    while len(palette := _apart(colors, distance, most)) > most:
        distance += 1
    return palette


def _apart(colors: list[int], distance: int, most: int) -> list[int]:
    """Select colors that are more than a distance apart; stop when there are too many."""
    palette = colors[: most // 4]
    channels = [_channels(color) for color in palette]
    for color in colors[most // 4 :]:
        red, green, blue = _channels(color)
        if not any(
            abs(red - r) <= distance and abs(green - g) <= distance and abs(blue - b) <= distance
            for r, g, b in channels
        ):
            palette.append(color)
            channels.append((red, green, blue))
            if len(palette) > most:
                break
    return palette


def _channels(color: int) -> tuple[int, int, int]:
    return color >> 16 & 255, color >> 8 & 255, color & 255
