"""Export of the document as an image (PNG) or a drawing (SVG, PDF).

The scene is drawn in the window's thread. Each `draw_` function returns one that encodes and writes what was drawn.
It may be called in another thread, as encoding a large PNG takes seconds. It raises `ExportError` if the file cannot
be written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QBuffer, QIODevice, QMarginsF, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QImage, QPageSize, QPaintDevice, QPainter, QPdfWriter
from PySide6.QtWidgets import QGraphicsItem, QGraphicsScene

from app.canvas.add_button_item import AddButtonItem
from app.canvas.canvas_style import canvas_style
from app.canvas.edge_item import EdgeItem
from app.canvas.node_item import LodItem
from engine.errors import EngineError, reason_of
from engine.safe_file_io import replace_file

MARGIN: Final = 24.0
LARGEST_SIDE: Final = 16_000
"""Maximum width and height of an image in pixels."""

PDF_RESOLUTION: Final = 96
"""Pixels of the canvas per inch of a page."""

_NOT_IN_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that Qt writes into SVG and that XML forbids."""


class ExportError(EngineError):
    """An export that could not be written."""


def render_image(scene: QGraphicsScene, content: QRectF, scale: float) -> QImage:
    """Render the whole scene; very large documents are scaled down."""
    rect = _around(content)
    scale = min(scale, LARGEST_SIDE / rect.width(), LARGEST_SIDE / rect.height())
    size = QSize(max(round(rect.width() * scale), 1), max(round(rect.height() * scale), 1))
    image = QImage(size, QImage.Format.Format_ARGB32_Premultiplied)
    _render(scene, image, QRectF(image.rect()), rect)
    return image


def draw_png(scene: QGraphicsScene, content: QRectF, scale: float) -> Callable[[Path], None]:
    """Draw a PNG file."""
    image = render_image(scene, content, scale)

    def write(path: Path) -> None:
        buffer = _buffer()
        image.save(buffer, "PNG")  # pyright: ignore - the stub wants bytes
        _write(path, bytes(buffer.data().data()))

    return write


def draw_svg(scene: QGraphicsScene, content: QRectF, title: str) -> Callable[[Path], None]:
    """Draw an SVG file."""
    from PySide6.QtSvg import QSvgGenerator

    rect, buffer = _around(content), _buffer()
    page = QRectF(QPointF(), rect.size())
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setSize(rect.size().toSize())
    generator.setViewBox(page)
    generator.setTitle(title)
    _render(scene, generator, page, rect)
    data = bytes(buffer.data().data())
    return lambda path: _write(path, _NOT_IN_XML.sub("", data.decode("utf-8", "replace")).encode())


def draw_pdf(scene: QGraphicsScene, content: QRectF, title: str) -> Callable[[Path], None]:
    """Draw a PDF file with one page of the size of the document."""
    rect, buffer = _around(content), _buffer()
    writer = QPdfWriter(buffer)
    writer.setTitle(title)
    writer.setResolution(PDF_RESOLUTION)
    writer.setPageMargins(QMarginsF())
    writer.setPageSize(QPageSize(rect.size() * 72 / PDF_RESOLUTION, QPageSize.Unit.Point))
    _render(scene, writer, QRectF(0, 0, writer.width(), writer.height()), rect)
    return partial(_write, data=bytes(buffer.data().data()))


def _buffer() -> QBuffer:
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    return buffer


def _around(content: QRectF) -> QRectF:
    rect = content if not content.isEmpty() else QRectF(0, 0, 320, 200)
    return rect.adjusted(-MARGIN, -MARGIN, MARGIN, MARGIN)


def _render(scene: QGraphicsScene, device: QPaintDevice, target: QRectF, source: QRectF) -> None:
    painter = QPainter(device)
    painter.fillRect(target, canvas_style().color("ground"))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    with _plain(scene):
        scene.setBackgroundBrush(Qt.BrushStyle.NoBrush)
        scene.render(painter, target, source, Qt.AspectRatioMode.KeepAspectRatio)
    painter.end()


@contextmanager
def _plain(scene: QGraphicsScene) -> Iterator[None]:
    """Render at full detail, without selection, buttons and item caches, which would end up as bitmaps in SVG."""
    selected, items = scene.selectedItems(), scene.items()
    lod_items = [item for item in items if isinstance(item, LodItem) and item.isVisible()]
    buttons = [item for item in items if isinstance(item, AddButtonItem) and item.isVisible()]
    cached = [item for item in items if item.cacheMode() != QGraphicsItem.CacheMode.NoCache]
    blocked = scene.blockSignals(True)
    _select(selected, are_selected=False)

    def set_plain(*, is_plain: bool) -> None:
        for item in cached:
            mode = QGraphicsItem.CacheMode
            item.setCacheMode(mode.NoCache if is_plain else mode.DeviceCoordinateCache)
        for item in lod_items:
            item.set_active(not is_plain)
        for item in buttons:
            item.setVisible(not is_plain)

    set_plain(is_plain=True)
    try:
        yield
    finally:
        set_plain(is_plain=False)
        _select(selected, are_selected=True)
        scene.blockSignals(blocked)


def _select(items: Iterable[QGraphicsItem], *, are_selected: bool) -> None:
    """Change the selection while the scene's signals are blocked, and restyle the edges."""
    for item in items:
        item.setSelected(are_selected)
        if isinstance(item, EdgeItem):
            item.restyle()


def _write(path: Path, data: bytes) -> None:
    try:
        replace_file(path, data, wait_for_disk=False)
    except (OSError, ValueError) as error:
        message = f'Could not write "{path}": {reason_of(error)}.'
        raise ExportError(message, "Choose another folder, or free some space.") from error
