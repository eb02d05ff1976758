from __future__ import annotations

import pytest
from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.gallery.diagram import Diagram, DiagramNode, DiagramPicture, draw, make_diagram, node_rects
from app.gallery.gallery import bundled_templates
from app.theme.style import style
from app.theme.tokens import DARK, LIGHT, Theme
from engine.nodes.spec import Category

SIZE = QSize(400, 136)
ALONE = Diagram({"one": DiagramNode(0, 0, Category.AI, "mdi6.creation")}, (), ())


def diagrams() -> list[Diagram]:
    return [make_diagram(found.workflow) for found in bundled_templates()[0]]


def colors(image: QImage) -> set[str]:
    return {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}


@pytest.mark.parametrize("size", [SIZE, QSize(900, 136), QSize(200, 120)])
def test_all_nodes_are_in_the_picture_without_overlap(size: QSize) -> None:
    frame = QRectF(0, 0, size.width(), size.height())
    for diagram in diagrams():
        places = list(node_rects(diagram, size).values())
        assert all(frame.contains(area) for area in places)
        assert not any(one.intersects(other) for at, one in enumerate(places) for other in places[at + 1 :])


def test_single_node_is_centered_and_small() -> None:
    area = node_rects(ALONE, SIZE)["one"]
    assert area.center().x() == pytest.approx(200)
    assert area.center().y() == pytest.approx(68)
    assert area.width() < 100


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=lambda theme: theme.name)
def test_diagram_has_the_colors_of_the_theme(qapp: QApplication, theme: Theme) -> None:
    seen = colors(draw(diagrams()[0], theme, SIZE).toImage())
    assert {theme.ground, theme.card, theme.category[Category.AI], theme.category[Category.IO]} <= seen


def test_diagram_of_a_loop_has_a_tinted_region_and_a_feedback_arrow(qapp: QApplication) -> None:
    diagram = diagrams()[0]
    bare = Diagram(diagram.boxes, diagram.edges, ())
    with_loop = draw(diagram, DARK, SIZE).toImage()
    below = node_rects(diagram, SIZE)["merge"].bottom() + 4
    tint = with_loop.pixelColor(200, round(below))
    assert tint.name() not in {DARK.ground, DARK.card}
    accent = QColor(DARK.accent)
    near = [color for color in colors(with_loop) if abs(QColor(color).blue() - accent.blue()) < 8]
    assert DARK.accent in near
    assert DARK.accent not in colors(draw(bare, DARK, SIZE).toImage())


def test_empty_diagram_is_only_background(qapp: QApplication) -> None:
    for nothing in (None, Diagram({}, (), ())):
        image = draw(nothing, DARK, SIZE).toImage()
        assert image.pixelColor(200, 68).name() == DARK.ground


def test_diagram_is_sharp_on_a_high_resolution_screen(qapp: QApplication) -> None:
    pixmap = draw(ALONE, DARK, SIZE, 2.0)
    assert pixmap.size() == QSize(800, 272)
    assert pixmap.deviceIndependentSize().toSize() == SIZE


def test_diagram_is_cached_until_the_theme_changes(qtbot: QtBot) -> None:
    picture = DiagramPicture("Self-Refine")
    qtbot.addWidget(picture)
    picture.resize(SIZE)
    picture.set_diagram(ALONE)
    picture.show()
    picture.grab()
    before = picture._pixmap
    picture.grab()
    assert picture._pixmap is before
    style().choose("light")
    image = picture.grab().toImage()
    style().choose("dark")
    assert LIGHT.category[Category.AI] in colors(image)
    assert picture.accessibleName() == "Picture of Self-Refine"
