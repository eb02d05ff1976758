"""Puts on the looks that a person has chosen, and follows when they choose others."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject, QTimer

from app.settings.preferences import Preferences
from app.theme.style import style

PUT_ON_AFTER_MS: Final = 80
"""A slider that is drawn gives many sizes; each would lay out every window anew."""


class _Looks(QObject):
    """The one follower of some preferences; it lives as long as they do."""

    def __init__(self, preferences: Preferences) -> None:
        super().__init__(preferences)
        self._preferences = preferences
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(PUT_ON_AFTER_MS)
        self._timer.timeout.connect(self.put_on)
        preferences.changed.connect(self._follow)

    def put_on(self) -> None:
        choices = self._preferences.choices
        style().choose(choices.theme, choices.text_scale)

    def _follow(self, names: frozenset[str]) -> None:
        if names & {"theme", "text_scale"}:
            self._timer.start()


def follow_looks(preferences: Preferences) -> None:
    """Put on the theme and the size of texts, and follow every change of them; once is enough, more do no harm."""
    if preferences.findChild(_Looks) is None:
        _Looks(preferences).put_on()
