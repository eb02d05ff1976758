"""Asks for a provider's key and hands it to the system's keyring; where there is none, it is kept for this session."""

from __future__ import annotations

import asyncio

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QDialog, QHBoxLayout, QVBoxLayout, QWidget

from app.bridge import EngineThread
from app.settings.errands import send
from app.settings.parts import Note, key_field, push_button
from app.settings.providers import ProviderRow
from app.theme.style import mark, style
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel
from engine.errors import EngineError
from engine.models.keys import Keys

WIDTH = 460


class KeyDialog(QDialog):
    """Asks for one provider's key.

    Signals:
        kept: There is a key now; a sentence that says where it is kept.
    """

    kept = Signal(str)

    def __init__(self, engine: EngineThread, provider: ProviderRow, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._provider = provider
        self.setWindowTitle(f"Key for {provider.title}")
        self.setMinimumWidth(round(WIDTH * style().scale))
        self.field = key_field(f"Key for {provider.title}")
        self.words = PlainLabel("It is kept in the system's keyring, never in a file.", look="dim", wrap=True)
        self.fault = Note()
        self.keep = push_button("Keep", lambda: self._keep(session_only=False), primary=True)
        self.keep_for_session = push_button("Keep for this session only", lambda: self._keep(session_only=True))
        self.keep_for_session.hide()
        self.cancel = push_button("Cancel", self.reject)
        self.field.textChanged.connect(self._typed)
        self.keep.setDefault(True)
        self.finished.connect(self.field.clear)
        self._lay_out()
        self._typed()

    def _lay_out(self) -> None:
        title = PlainLabel(f"Key for {self._provider.title}", look="title")
        title.setBuddy(self.field)
        buttons = QHBoxLayout()
        buttons.setSpacing(2 * UNIT)
        buttons.addStretch(1)
        for button in (self.cancel, self.keep_for_session, self.keep):
            buttons.addWidget(button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6 * UNIT, 5 * UNIT, 6 * UNIT, 5 * UNIT)
        layout.setSpacing(3 * UNIT)
        layout.addWidget(title)
        layout.addWidget(self.field)
        layout.addWidget(self.words)
        if self._provider.variable:
            comes_first = f"{self._provider.variable} is set and comes first; unset it to use the key from here."
            layout.addWidget(PlainLabel(comes_first, look="dim", wrap=True))
        layout.addWidget(self.fault)
        layout.addSpacing(UNIT)
        layout.addLayout(buttons)

    def _typed(self) -> None:
        self.keep.setEnabled(bool(self.field.text().strip()))
        self.keep_for_session.setEnabled(self.keep.isEnabled())
        self._say("")

    def _say(self, sentence: str) -> None:
        self.fault.say(sentence, "bad")
        mark(self.field, invalid=bool(sentence))
        self._grow()

    def _keep(self, *, session_only: bool) -> None:
        key, keys = self.field.text(), self._engine.models.keys
        try:
            Keys({}).set(self._provider.name, key, session_only=True)  # is it one at all?
        except EngineError as error:
            self._say(str(error))
            return
        self._wait("Asking the keyring… It may ask you to unlock it.")
        place = "is kept for this session only" if session_only else "is kept in the system's keyring"
        send(
            self,
            self._engine,
            asyncio.to_thread(keys.set, self._provider.name, key, session_only=session_only),
            lambda _: self._kept(f"The key for {self._provider.title} {place}."),
            self._failed,
        )

    def _kept(self, sentence: str) -> None:
        self.kept.emit(sentence)
        self.accept()

    def _failed(self, error: EngineError) -> None:
        self._wait("")
        self._say(str(error))
        self.keep_for_session.show()
        self.keep_for_session.setFocus()

    def _wait(self, words: str) -> None:
        for widget in (self.field, self.keep, self.keep_for_session):
            widget.setEnabled(not words)
        self.words.setText(words or "Without a keyring the key can be kept until the program ends.")
        self._grow()

    def _grow(self) -> None:
        """Make room for what is said now."""
        layout = self.layout()
        layout.activate()
        self.resize(self.width(), max(self.height(), layout.totalHeightForWidth(self.width())))
