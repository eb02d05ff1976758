from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QGraphicsItem, QGraphicsPathItem, QGraphicsScene, QWidget
from pytestqt.qtbot import QtBot

from app.canvas import operation_builders
from app.canvas.edge_item import EdgeItem
from app.canvas.image_export import ExportError, render_image
from app.canvas.node_item import CanvasPort, NodeItem
from app.canvas.viewer import MOST, ROOM
from app.theme.style import style
from app.theme.tokens import DARK, LIGHT
from engine.document.operations import RemoveNodes
from tests.app.canvas.conftest import Hand, MakeCanvas
from tests.app.canvas.documents import node, workflow

CONTROL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture(autouse=True)
def usual_look() -> object:
    yield
    style().choose("dark", 1.0)


def move(hand: Hand, node_id: str, x: float, y: float) -> None:
    step = operation_builders.move(hand.session.workflow, {node_id: (x, y)})
    assert step is not None
    hand.session.do(step)


def seen(hand: Hand) -> QRectF:
    return hand.canvas.viewer.visible_rect


def test_fit_all_shows_everything_at_most_at_100_percent(hand: Hand) -> None:
    hand.canvas.viewer.center_at(QPointF(9000, 9000))
    hand.key(Qt.Key.Key_0, CONTROL)
    assert seen(hand).contains(hand.canvas.view.content_rect)
    assert hand.canvas.viewer.zoom <= 1.0


def test_fit_selection_shows_the_selection(hand: Hand) -> None:
    hand.canvas.viewer.zoom_to(0.1)
    hand.session.select(["draft"])
    hand.key(Qt.Key.Key_2, CONTROL)
    assert hand.canvas.viewer.zoom == 1.0
    assert seen(hand).contains(hand.item("draft").card_rect)
    hand.session.select([])
    hand.canvas.fit_to_view.fit_selection()
    assert seen(hand).contains(hand.canvas.view.content_rect)


def test_keys_and_buttons_zoom(hand: Hand) -> None:
    hand.key(Qt.Key.Key_Minus, CONTROL)
    assert hand.canvas.viewer.zoom == pytest.approx(0.8)
    assert hand.canvas.controls.percent.text() == "80%"
    QTest.mouseClick(hand.canvas.controls.buttons["zoom_in"], Qt.MouseButton.LeftButton)
    assert hand.canvas.viewer.zoom == pytest.approx(1.0)
    hand.canvas.viewer.zoom_to(0.5)
    QTest.mouseClick(hand.canvas.controls.percent, Qt.MouseButton.LeftButton)
    assert hand.canvas.viewer.zoom == 1.0


def test_center_on_centers_a_node(hand: Hand) -> None:
    hand.canvas.center_on("text")
    assert (hand.canvas.viewer.center - hand.item("text").card_rect.center()).manhattanLength() < 4
    hand.canvas.center_on("ghost")


def test_larger_text_scales_the_scene_and_not_the_document(hand: Hand) -> None:
    center, places = hand.canvas.viewer.center, hand.session.workflow.layout
    style().choose("dark", 1.5)
    assert hand.canvas.viewer.zoom == 1.0
    assert hand.canvas.viewer.transform().m11() == 1.5
    assert (hand.canvas.viewer.center - center).manhattanLength() < 4
    assert hand.session.workflow.layout is places


def whole_image(hand: Hand) -> QImage:
    return render_image(hand.canvas.viewer.scene(), hand.canvas.view.content_rect, 1.0)


def color_at(hand: Hand, place: QPointF) -> str:
    at = hand.canvas.viewer.mapTo(hand.canvas, hand.at(place))
    return hand.canvas.grab().toImage().pixelColor(at).name()


def test_theme_change_repaints_everything(hand: Hand) -> None:
    inside = hand.item("draft").pos() + QPointF(90, 8)
    ground = QPointF(100, 400)
    assert color_at(hand, inside) == DARK.card
    style().choose("light")
    assert color_at(hand, inside) == LIGHT.card
    assert color_at(hand, ground) == LIGHT.ground


def test_cards_can_be_selected_when_zoomed_far_out(hand: Hand) -> None:
    hand.canvas.viewer.zoom_to(0.1)
    assert hand.canvas.view.node_lod.isVisible()
    assert hand.item("draft").flags() & QGraphicsItem.GraphicsItemFlag.ItemHasNoContents
    hand.click(hand.item("draft").card_rect.center())
    assert hand.session.selection == ("draft",)
    assert color_at(hand, hand.item("draft").card_rect.center() + QPointF(40, 0)) == DARK.card
    added = hand.canvas.commands.add_node("llm")
    assert added is not None
    assert hand.item(added).flags() & QGraphicsItem.GraphicsItemFlag.ItemHasNoContents
    hand.canvas.viewer.zoom_to(1.0)
    assert not hand.canvas.view.node_lod.isVisible()
    assert not hand.item(added).flags() & QGraphicsItem.GraphicsItemFlag.ItemHasNoContents


@pytest.mark.parametrize("zoom", [0.15, 0.3, 0.6, 1.0])
def test_color_of_the_category_is_painted_at_every_zoom(hand: Hand, zoom: float) -> None:
    hand.canvas.viewer.zoom_to(zoom)
    hand.canvas.center_on("draft")
    edge = hand.item("draft").pos() + QPointF(2 if zoom > 0.5 else 4, 40)
    assert color_at(hand, edge) == DARK.category[hand.item("draft").content.category]


def test_click_on_the_minimap_scrolls_there(hand: Hand, qtbot: QtBot) -> None:
    minimap = hand.canvas.minimap
    assert minimap.geometry().right() > hand.canvas.width() - 40
    before = hand.canvas.viewer.center
    QTest.mouseClick(minimap, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, QPoint(12, 40))
    assert hand.canvas.viewer.center.x() < before.x() - 200
    QTest.keyClick(minimap, Qt.Key.Key_Right)
    here = hand.canvas.viewer.center.x()
    QTest.keyClick(minimap, Qt.Key.Key_Right)
    assert hand.canvas.viewer.center.x() == pytest.approx(here + 48, abs=2)
    picture = minimap.grab().toImage()
    hand.session.do(RemoveNodes(("draft",)))
    qtbot.waitUntil(lambda: minimap.grab().toImage() != picture)


def test_png_export_contains_the_whole_document(hand: Hand, tmp_path: Path) -> None:
    hand.session.select(["draft"])
    hand.canvas.viewer.zoom_to(0.1)
    file = tmp_path / "picture.png"
    hand.canvas.draw("png")(file)
    image = QImage(str(file))
    content = hand.canvas.view.content_rect
    assert image.width() == pytest.approx((content.width() + 48) * 2, abs=2)
    inside = (hand.item("draft").pos() + QPointF(90, 8) - content.topLeft() + QPointF(24, 24)) * 2
    assert image.pixelColor(inside.toPoint()).name() == DARK.card
    assert hand.session.selection == ("draft",)
    assert hand.item("draft").isSelected()
    assert hand.canvas.view.node_lod.isVisible()
    assert whole_image(hand).width() == pytest.approx(content.width() + 48, abs=2)


def test_svg_export_has_texts_and_no_bitmaps(hand: Hand, tmp_path: Path) -> None:
    file = tmp_path / "drawing.svg"
    hand.canvas.draw("svg")(file)
    root = ElementTree.parse(file).getroot()
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    texts = {(element.text or "").strip() for element in root.iter() if element.tag.endswith("text")}
    assert {"Draft", "Task", "feedback: replace"} <= texts
    assert "image" not in tags
    assert "path" in tags


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_export_does_not_depend_on_zoom_and_selection(hand: Hand, theme: str) -> None:
    style().choose(theme)
    content, picture = hand.canvas.view.content_rect, whole_image(hand)
    ground = {picture.pixelColor(x, 2).name() for x in range(picture.width())}
    hand.canvas.viewer.zoom_to(0.1)
    hand.session.select(["draft"])
    hand.canvas.view.edge_items["task.value", "loop.input"].setSelected(True)
    assert whole_image(hand) == picture
    assert picture.width() == pytest.approx(content.width() + 48, abs=2)
    style().choose("dark")
    assert ground == {(LIGHT if theme == "light" else DARK).ground}


@pytest.mark.parametrize("title", ["a < b & “c”", "bell \x07 and nothing \x00", "half a pair \ud800"])
def test_svg_export_is_valid_xml_for_any_title(make_canvas: MakeCanvas, tmp_path: Path, title: str) -> None:
    hand = make_canvas(workflow([node("task", "input", title)], []))
    hand.canvas.draw("svg")(tmp_path / "drawing.svg")
    texts = [element.text or "" for element in ElementTree.parse(tmp_path / "drawing.svg").iter()]
    assert any(text.startswith(title[:5]) for text in texts)


def test_position_beyond_the_scrollable_area_is_ignored(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(workflow([node("task", "input")], [], {"task": (5_000_000, 0)}))
    hand.canvas.fit_to_view.fit_all()
    assert hand.canvas.viewer.visible_rect.contains(hand.item("task").card_rect)


def test_tooltip_shows_a_title_as_plain_text(make_canvas: MakeCanvas) -> None:
    title = "<img src='//elsewhere/x.png'> " + "and so on, " * 20 + "and on"
    hand = make_canvas(workflow([node("task", "input", title)], []))
    assert title.replace("<", "&lt;").replace(">", "&gt;").replace("'", "&#x27;") in hand.item("task").toolTip()


def test_empty_document_can_be_exported(make_canvas: MakeCanvas, tmp_path: Path) -> None:
    hand = make_canvas(workflow([], []))
    hand.canvas.draw("png")(tmp_path / "empty.png")
    assert not QImage(str(tmp_path / "empty.png")).isNull()


def test_failed_export_names_the_file_and_the_reason(hand: Hand, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="Could not write"):
        hand.canvas.draw("png")(tmp_path / "no" / "such.png")


@pytest.mark.skipif(sys.platform == "win32", reason="the limit on files is POSIX's")
def test_failed_export_keeps_the_existing_file(hand: Hand, tmp_path: Path) -> None:
    import resource

    file = tmp_path / "picture.png"
    file.write_bytes(b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(ExportError, match="Could not write"):
            hand.canvas.draw("png")(file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_every_control_has_a_name_and_is_reached_by_keyboard(hand: Hand) -> None:
    for widget in hand.canvas.findChildren(QWidget):
        takes_focus = widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        if takes_focus and widget.isVisible() and widget.focusProxy() is None:
            assert widget.accessibleName(), widget


def test_unused_widgets_of_the_base_class_are_removed(hand: Hand) -> None:
    hand.canvas.grab()
    names = {type(widget).__name__ for widget in hand.canvas.viewer.findChildren(QWidget)}
    assert not names & {"QMenuBar", "TabSearchMenuWidget", "BaseMenu"}


def test_all_regions_are_painted_by_one_item_when_zoomed_far_out(hand: Hand) -> None:
    view = hand.canvas.view
    region = view.regions.items["loop"]
    hand.canvas.viewer.zoom_to(0.15)
    assert view.regions.lod_item.isVisible()
    assert region.flags() & QGraphicsItem.GraphicsItemFlag.ItemHasNoContents
    assert not region.label.isVisible()
    corner = region.rect.bottomRight() - QPointF(16, 16)
    beside = region.rect.bottomRight() + QPointF(16, -16)
    assert color_at(hand, corner) != DARK.ground
    assert color_at(hand, beside) == DARK.ground
    move(hand, "exit", hand.item("exit").x(), hand.item("exit").y() + 400)
    assert color_at(hand, region.rect.bottomRight() - QPointF(16, 16)) != DARK.ground
    hand.canvas.viewer.zoom_to(1.0)
    assert not view.regions.lod_item.isVisible()
    assert not region.flags() & QGraphicsItem.GraphicsItemFlag.ItemHasNoContents
    assert region.label.isVisible()


def test_loop_added_when_zoomed_far_out_is_painted(hand: Hand, qtbot: QtBot) -> None:
    hand.canvas.viewer.zoom_to(0.15)
    added = hand.canvas.commands.add_node("loop")
    assert added is not None
    qtbot.waitUntil(lambda: added in hand.canvas.view.regions.items)
    region = hand.canvas.view.regions.items[added]
    assert region.flags() & QGraphicsItem.GraphicsItemFlag.ItemHasNoContents
    assert not region.label.isVisible()


def test_scene_rectangle_follows_the_document(hand: Hand) -> None:
    scene, content = hand.canvas.viewer.scene(), hand.canvas.view.content_rect
    assert scene.sceneRect().contains(content)
    assert scene.sceneRect().width() < content.width() + 3 * ROOM
    move(hand, "draft", 400_000, 300_000)
    assert scene.sceneRect().contains(hand.item("draft").card_rect)
    hand.canvas.center_on("draft")
    hand.click(hand.title("draft"))
    assert hand.session.selection == ("draft",)
    assert hand.canvas.viewer.sceneRect().width() == 2 * MOST


def test_item_index_is_off_while_most_items_are_visible(hand: Hand, qtbot: QtBot) -> None:
    scene = hand.canvas.viewer.scene()
    assert scene.itemIndexMethod() is QGraphicsScene.ItemIndexMethod.BspTreeIndex
    hand.canvas.viewer.zoom_to(0.15)
    qtbot.waitUntil(lambda: scene.itemIndexMethod() is QGraphicsScene.ItemIndexMethod.NoIndex)
    hand.canvas.viewer.zoom_to(1.0)
    qtbot.waitUntil(lambda: scene.itemIndexMethod() is QGraphicsScene.ItemIndexMethod.BspTreeIndex)


@pytest.mark.parametrize(
    ("kind", "of_qt"), [(NodeItem, QGraphicsItem), (CanvasPort, QGraphicsItem), (EdgeItem, QGraphicsPathItem)]
)
def test_item_changes_do_not_call_python(kind: type, of_qt: type) -> None:
    assert kind.itemChange is of_qt.itemChange


def test_an_image_shows_neither_selection_nor_buttons(hand: Hand) -> None:
    hand.session.select([])
    hand.canvas.commands.add_node("llm", QPointF(480, 400))
    assert hand.canvas.add_button.isVisible()
    content = hand.canvas.view.content_rect
    selected = render_image(hand.canvas.viewer.scene(), content, 1.0)
    assert hand.canvas.add_button.isVisible()
    hand.session.select([])
    assert not hand.canvas.add_button.isVisible()
    assert render_image(hand.canvas.viewer.scene(), content, 1.0) == selected
