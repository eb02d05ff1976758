"""Messages over a document or the window, one per topic, with buttons. They are not modal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.theme.widgets import MessageBar


class MessageBars(QWidget):
    """Messages, the newest last; a message replaces an earlier one on the same topic."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._bars: dict[str, MessageBar] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)

    def say(
        self, topic: str, text: str, kind: str = "info", buttons: Sequence[tuple[str, Callable[[], object]]] = ()
    ) -> MessageBar:
        """Show a message.

        Args:
            topic: Its topic.
            text: Its text.
            kind: `info`, `warning` or `bad`.
            buttons: Titles and functions, the primary one first. A button closes the message, unless its function
                shows another one on the same topic.
        """
        self.drop(topic)
        bar = MessageBar(text, kind, self)
        for title, action in buttons:
            bar.add_button(title, lambda action=action: self._act(topic, bar, action))
        bar.closed.connect(lambda: self.drop(topic))
        self._bars[topic] = bar
        self._column.addWidget(bar)
        bar.show()
        return bar

    def drop(self, topic: str) -> None:
        """Remove the message on a topic."""
        bar = self._bars.pop(topic, None)
        if bar is not None:
            bar.hide()
            self._column.removeWidget(bar)
            bar.deleteLater()

    def text(self, topic: str) -> str:
        """Return the message on a topic; empty if there is none."""
        bar = self._bars.get(topic)
        return bar.text if bar is not None else ""

    def _act(self, topic: str, bar: MessageBar, action: Callable[[], object]) -> None:
        action()
        if self._bars.get(topic) is bar:
            self.drop(topic)
