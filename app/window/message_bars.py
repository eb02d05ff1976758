"""The messages over a document: one for each matter, with buttons for what can be done. They block nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.theme.widgets import MessageBar


class MessageBars(QWidget):
    """Messages, the newest last; another message on the same matter takes the old one's place."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._bars: dict[str, MessageBar] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)

    def say(
        self, matter: str, text: str, kind: str = "info", buttons: Sequence[tuple[str, Callable[[], object]]] = ()
    ) -> MessageBar:
        """Say something.

        Args:
            matter: What it is about.
            text: The message.
            kind: `info`, `warning` or `bad`.
            buttons: Their titles and what they do; the first is the one that is most likely meant. Each ends the
                message, unless what it does says something else on the same matter.
        """
        self.drop(matter)
        bar = MessageBar(text, kind, self)
        for title, action in buttons:
            bar.add_button(title, lambda action=action: self._act(matter, bar, action))
        bar.closed.connect(lambda: self.drop(matter))
        self._bars[matter] = bar
        self._column.addWidget(bar)
        bar.show()
        return bar

    def drop(self, matter: str) -> None:
        """End a message."""
        bar = self._bars.pop(matter, None)
        if bar is not None:
            bar.hide()
            self._column.removeWidget(bar)
            bar.deleteLater()

    def text(self, matter: str) -> str:
        """What is said on a matter; empty where nothing is."""
        bar = self._bars.get(matter)
        return bar.text if bar is not None else ""

    def _act(self, matter: str, bar: MessageBar, action: Callable[[], object]) -> None:
        action()
        if self._bars.get(matter) is bar:
            self.drop(matter)
