"""Search in lists: how well a text matches an entry, and keys that move in the list below a search field."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QLineEdit, QListWidget, QListWidgetItem

BEGINS: Final = 100
BEGINS_A_WORD: Final = 80
IS_SYNONYM: Final = 70
IN_NAMES: Final = 60
"""Each typed word begins a word of the names and synonyms."""

IN_HELP: Final = 40

MIN_HELP_LENGTH: Final = 3
"""Minimum length to search descriptions: fewer letters begin a word in almost all of them."""


def match_score(typed: str, names: Iterable[str], help_line: str = "", synonyms: Iterable[str] = ()) -> int:
    """Score how well a search text matches an entry; 0 for no match. Only the beginnings of words match.

    Args:
        typed: The search text.
        names: The names of the entry.
        help_line: Its description.
        synonyms: Other words for it.
    """
    wanted = _normalized(typed)
    if not wanted:
        return BEGINS
    titles, others = [_normalized(name) for name in names], [_normalized(word) for word in synonyms]
    if any(title.startswith(wanted) for title in titles):
        return BEGINS
    if any(f" {wanted}" in f" {title}" for title in titles):
        return BEGINS_A_WORD
    if any(word.startswith(wanted) for word in others):
        return IS_SYNONYM
    words, known = wanted.split(), " " + " ".join((*titles, *others))
    if all(f" {word}" in known for word in words):
        return IN_NAMES
    described = f"{known} {_normalized(help_line)}"
    in_help = len(wanted) >= MIN_HELP_LENGTH and all(f" {word}" in described for word in words)
    return IN_HELP if in_help else 0


def _normalized(text: str) -> str:
    return " ".join(text.casefold().replace("-", " ").replace("_", " ").replace(":", " ").split())


_LIST_KEYS: Final = frozenset({Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown})


class ListKeys(QObject):
    """Lets arrow and page keys move in a list while the search field above it has the focus; Enter chooses.

    Args:
        field: The search field.
        target: The list.
        choose: Called with the current item.
    """

    def __init__(self, field: QLineEdit, target: QListWidget, choose: Callable[[QListWidgetItem], object]) -> None:
        super().__init__(field)
        self._list, self._choose = target, choose
        field.installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Handle these keys."""
        if not isinstance(event, QKeyEvent) or event.type() != QEvent.Type.KeyPress:
            return False
        if event.key() in _LIST_KEYS:
            QApplication.sendEvent(self._list, event)  # which skips what cannot be chosen
            return True
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            if (item := self._list.currentItem()) is not None:
                self._choose(item)
            return True
        return False
