"""How well a few typed letters fit a name. No Qt here."""

from __future__ import annotations

from typing import Final

BEGINS: Final = 100
BEGINS_A_WORD: Final = 80
IS_IN: Final = 60
IS_IN_HELP: Final = 40
IN_ORDER: Final = 20
"""The letters stand in the name in their order, with others between them."""

LEAST_IN_HELP: Final = 3
"""Fewer letters than these begin a word in almost every line of help."""


def fit(typed: str, names: tuple[str, ...], help_line: str = "") -> int:
    """How well what was typed fits any of the names or the help; 0 where it does not, higher is better."""
    wanted = " ".join(typed.casefold().split())
    if not wanted:
        return BEGINS
    best = max((_fit_name(wanted, name.casefold()) for name in names), default=0)
    if best >= IS_IN:
        return best
    in_help = len(wanted) >= LEAST_IN_HELP and _begins_a_word(wanted, help_line.casefold())
    return max(best, IS_IN_HELP if in_help else 0)


def _fit_name(wanted: str, name: str) -> int:
    if name.startswith(wanted):
        return BEGINS
    if _begins_a_word(wanted, name):
        return BEGINS_A_WORD
    if wanted in name:
        return IS_IN
    letters = iter(name)
    return IN_ORDER if all(letter in letters for letter in wanted.replace(" ", "")) else 0


def _begins_a_word(wanted: str, text: str) -> bool:
    return f" {wanted}" in f" {text.replace('-', ' ').replace('_', ' ')}"
