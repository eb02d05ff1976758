"""Dialog for the key of a provider or of a server."""

from __future__ import annotations

import asyncio
import os

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QDialog, QWidget

from app.engine_thread import EngineThread
from app.settings.settings_widgets import password_field
from app.theme.style import set_style_properties, style
from app.theme.widgets import STRETCH, PlainLabel, StatusLabel, hbox, push_button, vbox
from engine.errors import EngineError
from engine.models.keys import Keys, key_variables
from engine.models.providers import provider_named

WIDTH = 460
_KEYRING_NOTE = "The key is stored in the system keyring, never in a file."


class KeyDialog(QDialog):
    """Dialog for an API key.

    Args:
        name: Whose key it is: a provider, or `host:NAME`.

    Signals:
        key_saved: The key was stored.
    """

    key_saved = Signal()

    def __init__(self, engine: EngineThread, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._name = name
        self._title = f"API key for {_owner(name)}"
        self.setWindowTitle(self._title)
        self.setMinimumWidth(round(WIDTH * style().scale))
        self.field = password_field(self._title)
        self.status = PlainLabel(_KEYRING_NOTE, look="dim", wrap=True)
        self.error = StatusLabel()
        self.save = push_button("Save", lambda: self._save(session_only=False), look="primary")
        self.save_for_session = push_button("Use for this session only", lambda: self._save(session_only=True))
        self.save_for_session.hide()
        self.cancel = push_button("Cancel", self.reject)
        self.field.textChanged.connect(self._typed)
        self.save.setDefault(True)
        self.finished.connect(self.field.clear)
        self._lay_out()
        self._typed()

    def _lay_out(self) -> None:
        note = "A key that was set outside of Loopwright takes precedence over this one."
        is_set_elsewhere = any(os.environ.get(variable, "").strip() for variable in key_variables(self._name))
        notes = [PlainLabel(note, look="dim", wrap=True)] if is_set_elsewhere else []
        self._layout = vbox(
            PlainLabel(self._title, look="title", buddy=self.field),
            self.field,
            self.status,
            *notes,
            self.error,
            1,
            hbox(STRETCH, self.cancel, self.save_for_session, self.save, spacing=2),
            spacing=3,
            margins=(6, 5, 6, 5),
            parent=self,
        )

    def _typed(self) -> None:
        self.save.setEnabled(bool(self.field.text().strip()))
        self.save_for_session.setEnabled(self.save.isEnabled())
        self._show_error("")

    def _show_error(self, text: str) -> None:
        self.error.say(text, "bad")
        set_style_properties(self.field, invalid=bool(text))
        self._grow()

    def _save(self, *, session_only: bool) -> None:
        key, keys = self.field.text(), self._engine.models.keys
        try:
            Keys({}).set(self._name, key, session_only=True)  # validates the key
        except EngineError as error:
            self._show_error(str(error))
            return
        self._show_progress("Saving to the keyring… You may be asked to unlock it.")
        self._engine.ask(
            self,
            asyncio.to_thread(keys.set, self._name, key, session_only=session_only),
            lambda _: self._save_finished(),
            self._save_failed,
        )

    def _save_finished(self) -> None:
        self.key_saved.emit()
        self.accept()

    def _save_failed(self, error: EngineError) -> None:
        self._show_progress("")
        self._show_error(str(error))
        self.save_for_session.show()
        self.save_for_session.setFocus()

    def _show_progress(self, text: str) -> None:
        for widget in (self.field, self.save, self.save_for_session):
            widget.setEnabled(not text)
        self.status.setText(text or "If there is no keyring, you can use the key until you quit.")
        self._grow()

    def _grow(self) -> None:
        self._layout.activate()
        self.resize(self.width(), max(self.height(), self._layout.totalHeightForWidth(self.width())))


def _owner(name: str) -> str:
    _, _, host = name.partition("host:")
    return f"the server at {host}" if host else provider_named(name).title
