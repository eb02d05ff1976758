"""Contrast of texts and graphics on every background, as defined by WCAG 2.2 (1.4.3 and 1.4.11)."""

from __future__ import annotations

import pytest

from app.theme.tokens import DARK, LIGHT, Theme

TEXT = 4.5
MARK = 3.0
GROUNDS = ("ground", "panel", "card", "field", "hover", "selection")


def luminance(color: str) -> float:
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


themes = pytest.mark.parametrize("theme", [DARK, LIGHT], ids=lambda theme: theme.name)


def test_contrast_is_computed_as_wcag_defines_it() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@themes
@pytest.mark.parametrize("text", ["text", "dim", "accent", "good", "warning", "bad"])
def test_text_has_enough_contrast_on_every_background(theme: Theme, text: str) -> None:
    weak = {
        ground: round(contrast(getattr(theme, text), getattr(theme, ground)), 2)
        for ground in GROUNDS
        if contrast(getattr(theme, text), getattr(theme, ground)) < TEXT
    }
    assert weak == {}


@themes
def test_badges_hints_and_accent_text_have_enough_contrast(theme: Theme) -> None:
    pairs = [
        (theme.on_accent, theme.accent),
        (theme.good, theme.good_soft),
        (theme.warning, theme.warning_soft),
        (theme.bad, theme.bad_soft),
        *((theme.text, soft) for soft in (theme.good_soft, theme.warning_soft, theme.bad_soft)),
    ]
    assert [pair for pair in pairs if contrast(*pair) < TEXT] == []


@themes
def test_category_and_port_colors_and_outlines_have_enough_contrast(theme: Theme) -> None:
    grounds = [theme.ground, theme.panel, theme.card, theme.field, theme.hover, theme.selection]
    marks = [theme.outline, theme.accent, *theme.category.values(), *theme.port.values()]
    assert [(mark, ground) for mark in marks for ground in grounds if contrast(mark, ground) < MARK] == []


@themes
def test_focus_ring_has_enough_contrast(theme: Theme) -> None:
    rings = [(theme.accent, theme.card), (theme.accent, theme.field), (theme.text, theme.accent)]
    # The ring of a primary button lies between the accent and the bar that the button stands on.
    assert all(contrast(ring, theme.panel) >= MARK for ring, _inside in rings)
    assert all(contrast(ring, inside) >= MARK for ring, inside in rings[:2])


def test_both_themes_have_the_same_categories_and_ports() -> None:
    assert DARK.category.keys() == LIGHT.category.keys()
    assert DARK.port.keys() == LIGHT.port.keys()
