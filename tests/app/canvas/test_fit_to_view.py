"""Fitting the document into the view beside the overlays, and its initial view."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.canvas.canvas_style import MIN_TEXT_PIXELS
from app.canvas.node_card import card_text
from app.canvas.viewport_controls import MARGIN, MIN_INITIAL_ZOOM, ViewportFrame, fit_frame, start_frame
from app.theme.style import style
from app.theme.tokens import FONT_SIZE_TITLE
from engine.bundled import templates_folder
from engine.document.files import load
from engine.document.model import Workflow
from tests.app.canvas.conftest import Hand, MakeCanvas
from tests.app.canvas.documents import nested, node, workflow
from tests.wording import mentions

VIEW = QRectF(0, 0, 900, 700)
CONTROLS = QRectF(16, 640, 180, 44)
MAP = QRectF(724, 588, 160, 96)
TEMPLATES = sorted(templates_folder().glob("*.loop.json"))


def on_screen(rect: QRectF, frame: ViewportFrame, view: QRectF = VIEW) -> QRectF:
    corner = view.center() + (rect.topLeft() - frame.center) * frame.factor
    return QRectF(corner, rect.size() * frame.factor)


def test_wide_rectangle_fills_the_width_and_is_centered() -> None:
    wide = QRectF(100, 50, 2000, 400)
    seen = on_screen(wide, fit_frame(wide, VIEW, [CONTROLS, MAP], 1.0))
    assert seen.width() == pytest.approx(VIEW.width() - 2 * MARGIN)
    assert seen.center().y() == pytest.approx(VIEW.center().y())


def test_high_rectangle_fits_between_the_overlays() -> None:
    high = QRectF(0, 0, 300, 2000)
    seen = on_screen(high, fit_frame(high, VIEW, [CONTROLS, MAP], 1.0))
    assert seen.height() == pytest.approx(VIEW.height() - 2 * MARGIN)
    assert not seen.intersects(CONTROLS)
    assert not seen.intersects(MAP)


@pytest.mark.parametrize("size", [(900, 700), (1800, 1300), (700, 2400), (3000, 2000), (1200, 1200), (40, 9000)])
@pytest.mark.parametrize("overlays", [[CONTROLS], [CONTROLS, MAP]])
def test_fitted_rectangle_is_visible_and_not_covered(size: tuple[int, int], overlays: list[QRectF]) -> None:
    rect = QRectF(-300, 700, *size)
    seen = on_screen(rect, fit_frame(rect, VIEW, overlays, 1.0))
    assert VIEW.contains(seen)
    assert not any(cover.intersects(seen) for cover in overlays)


def test_small_rectangle_is_shown_at_100_percent() -> None:
    assert fit_frame(QRectF(0, 0, 100, 40), VIEW, [CONTROLS], 1.5).factor == 1.5


def test_too_large_rectangle_is_shown_from_its_start() -> None:
    large = QRectF(0, 0, 9000, 5000)
    seen = on_screen(large, start_frame(large, QPointF(80, 2000), VIEW, [CONTROLS], 0.5))
    assert seen.left() == pytest.approx(MARGIN)
    free_middle = (MARGIN + CONTROLS.top() - MARGIN) / 2
    assert seen.top() + 2000 * 0.5 == pytest.approx(free_middle)
    low = QRectF(0, 0, 9000, 400)
    seen = on_screen(low, start_frame(low, QPointF(80, 200), VIEW, [CONTROLS], 0.5))
    assert seen.center().y() == pytest.approx(free_middle)


def test_start_is_beside_the_controls_where_more_of_it_is_visible_than_above_them() -> None:
    rect, low, controls = QRectF(0, 0, 1300, 480), QRectF(0, 0, 425, 154), QRectF(16, 99, 177, 40)
    seen = on_screen(rect, start_frame(rect, QPointF(0, 100), low, [controls], 0.4), low)
    assert seen.left() == pytest.approx(controls.right() + MARGIN)
    assert not seen.intersects(controls)


def chain(count: int) -> Workflow:
    nodes = [node(f"n{at}", "transform", f"Step {at}", template="x") for at in range(count)]
    places = {f"n{at}": (at * 240, 1000 if at else 0) for at in range(count)}
    return workflow(nodes, [], places)


def test_initial_view_of_a_large_document_shows_its_start_legibly(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(chain(40))
    hand.canvas.fit_to_view.fit_initial_view()
    assert hand.canvas.viewer.zoom == MIN_INITIAL_ZOOM
    assert hand.canvas.viewer.visible_rect.contains(hand.item("n0").card_rect)
    assert hand.canvas.minimap.isVisible()
    hand.canvas.fit_to_view.fit_all()
    assert hand.canvas.viewer.visible_rect.contains(hand.canvas.view.content_rect)


def test_initial_view_of_a_small_document_shows_all_of_it(hand: Hand) -> None:
    hand.canvas.fit_to_view.fit_initial_view()
    assert hand.canvas.viewer.visible_rect.contains(hand.canvas.view.content_rect)


def test_minimap_is_hidden_while_everything_is_visible(hand: Hand) -> None:
    hand.canvas.fit_to_view.fit_all()
    assert not hand.canvas.minimap.isVisible()
    hand.canvas.viewer.zoom_to(2.0)
    assert hand.canvas.minimap.isVisible()
    hand.canvas.minimap.setFocus()
    hand.canvas.fit_to_view.fit_all()
    assert hand.canvas.minimap.isVisible(), "the keyboard is not taken away from under a hand"
    hand.canvas.viewer.setFocus()


def test_minimap_appears_when_a_card_leaves_the_view(hand: Hand, qtbot: QtBot) -> None:
    hand.canvas.fit_to_view.fit_all()
    hand.session.select(["text"])
    for _ in range(8):
        hand.canvas.commands.nudge(200, 0)
    qtbot.waitUntil(hand.canvas.minimap.isVisible)


def overlays(hand: Hand) -> list[QRectF]:
    canvas = hand.canvas
    return [QRectF(part.geometry()) for part in (canvas.controls, canvas.minimap) if part.isVisible()]


def shown(hand: Hand, rect: QRectF) -> QRectF:
    return QRectF(hand.canvas.viewer.mapFromScene(rect).boundingRect())


def test_high_document_is_fitted_beside_controls_and_minimap(make_canvas: MakeCanvas) -> None:
    places = {f"n{at}": (0 if at % 2 else 300, at * 120) for at in range(12)}
    hand = make_canvas(workflow([node(name, "transform", template="x") for name in places], [], places))
    hand.canvas.resize(640, 480)
    hand.canvas.fit_to_view.fit_all()
    hand.session.select(["n9", "n10"])
    for fit in (hand.canvas.fit_to_view.fit_all, hand.canvas.fit_to_view.fit_selection):
        fit()
        chosen = hand.session.selection if fit == hand.canvas.fit_to_view.fit_selection else hand.canvas.view.nodes
        for name in chosen:
            card = shown(hand, hand.item(name).card_rect)
            assert not any(card.intersects(cover) for cover in overlays(hand)), name


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name.partition(".")[0])
@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_initial_view_of_a_template_has_whole_legible_titles(path: Path, scale: float, make_canvas: MakeCanvas) -> None:
    hand = make_canvas(load(path))
    hand.canvas.resize(900, 720)  # what the usual window leaves for the canvas
    try:
        style().choose("dark", scale)
        hand.canvas.fit_to_view.fit_initial_view()
        zoom = hand.canvas.viewer.zoom
        for name, item in hand.canvas.view.nodes.items():
            words = card_text(item.content.title, item.geometry, zoom)
            assert FONT_SIZE_TITLE * words.scale * zoom >= MIN_TEXT_PIXELS - 0.01, name
            if scale == 1.0:
                assert " ".join(words.title) == item.content.title, name
    finally:
        style().choose("dark", 1.0)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name.partition(".")[0])
def test_cards_of_templates_overlap_no_cards_edges_or_feedback_arrows(path: Path, make_canvas: MakeCanvas) -> None:
    view = make_canvas(load(path)).canvas.view
    cards = {name: item.card_rect for name, item in view.nodes.items()}
    lines = {f"{source} -> {target}": pipe.path() for (source, target), pipe in view.edge_items.items()}
    lines |= {f"back to {loop}": region.arrow for loop, region in view.regions.items.items()}
    for name, card in cards.items():
        assert not any(card.intersects(other) for key, other in cards.items() if key != name), name
        inside = card.adjusted(2, 2, -2, -2)
        for line, way in lines.items():
            points = (way.pointAtPercent(at / 200) for at in range(201))
            assert not any(inside.contains(point) for point in points), f"{line} runs behind {name}"


def test_fitted_document_is_fitted_again_on_resize(hand: Hand) -> None:
    hand.canvas.fit_to_view.fit_all()
    hand.canvas.resize(1200, 260)
    QApplication.processEvents()
    assert hand.canvas.viewer.visible_rect.contains(hand.canvas.view.content_rect)
    smaller = hand.canvas.viewer.zoom
    hand.canvas.resize(1200, 800)
    QApplication.processEvents()
    assert hand.canvas.viewer.zoom > smaller


@pytest.mark.parametrize("move", ["zoom", "pan"])
def test_moved_view_is_not_fitted_again_on_resize(move: str, hand: Hand) -> None:
    hand.canvas.fit_to_view.fit_all()
    if move == "zoom":
        hand.canvas.viewer.zoom_to(0.7)
    else:
        hand.canvas.viewer.center_at(hand.canvas.viewer.center + QPointF(30, 0))
    zoom, corner = hand.canvas.viewer.zoom, hand.canvas.viewer.mapToScene(0, 0)
    hand.canvas.resize(1200, 260)
    QApplication.processEvents()
    assert (hand.canvas.viewer.zoom, hand.canvas.viewer.mapToScene(0, 0)) == (zoom, corner)


def test_empty_canvas_shows_first_steps(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(Workflow())
    beginning = hand.canvas.empty_hint
    assert beginning.isVisible()
    assert mentions(beginning.text(), "ouble-click … template")
    assert (beginning.geometry().center() - hand.canvas.rect().center()).manhattanLength() <= 2
    hand.canvas.commands.add_node("llm")
    assert not beginning.isVisible()
    hand.session.undo()
    assert beginning.isVisible()


def test_first_steps_do_not_cover_a_note(make_canvas: MakeCanvas) -> None:
    layout = {"notes": {"note": {"x": 0, "y": 0, "width": 200, "height": 100, "text": "Read me"}}}
    hand = make_canvas(Workflow(layout=layout))
    assert not hand.canvas.empty_hint.isVisible()
    hand.session.do(hand.canvas.view.annotations.items["notes", "note"].annotation.unset())
    assert hand.canvas.empty_hint.isVisible()
    hand.session.undo()
    assert not hand.canvas.empty_hint.isVisible()


def test_first_steps_fit_a_narrow_canvas(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(Workflow())
    hand.canvas.resize(260, 400)
    QApplication.processEvents()
    beginning = hand.canvas.empty_hint
    assert hand.canvas.rect().contains(beginning.geometry())
    assert beginning.height() >= beginning.heightForWidth(beginning.width())


def test_fitted_document_is_fitted_again_with_larger_text(hand: Hand) -> None:
    hand.canvas.fit_to_view.fit_all()
    try:
        style().choose("dark", 1.5)
        QApplication.processEvents()
        assert hand.canvas.fit_to_view.is_fitted
        assert hand.canvas.viewer.visible_rect.contains(hand.canvas.view.content_rect)
    finally:
        style().choose("dark", 1.0)


def test_minimap_of_an_empty_document_is_hidden(make_canvas: MakeCanvas, qtbot: QtBot) -> None:
    hand = make_canvas(Workflow())
    hand.canvas.minimap.redraw()
    assert not hand.canvas.minimap.isVisible()


def minimap_in_scene(hand: Hand) -> QRectF:
    viewer, minimap = hand.canvas.viewer, hand.canvas.minimap
    return viewer.mapToScene(minimap.geometry().translated(-viewer.pos())).boundingRect()


def scroll_under_minimap(hand: Hand, node_id: str) -> None:
    """Scroll so that a card is where the minimap usually is."""
    viewer, corner = hand.canvas.viewer, minimap_in_scene(hand).center()
    viewer.center_at(viewer.center + hand.item(node_id).card_rect.center() - corner)


def test_minimap_moves_away_from_the_selected_card_and_back(make_canvas: MakeCanvas, qtbot: QtBot) -> None:
    hand = make_canvas(nested())
    lower = hand.canvas.minimap.geometry()
    hand.session.select(["step_0"])
    scroll_under_minimap(hand, "step_0")
    qtbot.waitUntil(lambda: hand.canvas.minimap.geometry() != lower)
    assert hand.canvas.minimap.isVisible()
    assert not minimap_in_scene(hand).intersects(hand.item("step_0").card_rect)
    hand.session.select([])
    qtbot.waitUntil(lambda: hand.canvas.minimap.geometry() == lower)


def test_minimap_moves_away_from_a_drag(make_canvas: MakeCanvas) -> None:
    hand = make_canvas(nested())
    lower = hand.canvas.minimap.geometry()
    target = minimap_in_scene(hand).center()
    start = hand.port("task.value")
    hand.press(start)
    for share in (0.2, 0.6, 1.0):
        hand.move(start + (target - start) * share)
    assert not hand.canvas.minimap.geometry().intersects(lower)
    hand.canvas.minimap.redraw()
    assert not hand.canvas.minimap.geometry().intersects(lower), "a redraw during the drag moves it back"
    hand.release(target)
    assert hand.canvas.minimap.geometry() == lower
