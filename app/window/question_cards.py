"""Question cards, in which the user answers a run that waits for input.

Questions are shown as plain text. A started answer survives new events.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QApplication,
    QFrame,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QSizePolicy,
    QStackedWidget,
    QWidget,
)

from app.inspector.text_widgets import LongTextView, exact_text
from app.runs.loop_status import iterators_of, place_label, titles_of
from app.runs.run_view_model import node_of
from app.session import Session
from app.theme.style import set_style_properties
from app.theme.tokens import UNIT
from app.theme.widgets import (
    STRETCH,
    Badge,
    ElidedLabel,
    PlainLabel,
    StatusLabel,
    discard,
    hbox,
    icon_button,
    push_button,
    scroll_area,
    vbox,
)
from engine.errors import EngineError
from engine.events import NodeWaiting
from engine.formatting import format_members
from engine.nodes.context import Answer
from engine.runner.human_input import check_answer, value_of_text
from engine.text_sanitizing import harmless, visible
from engine.values import Value, to_text

MOST_EDITED: Final = 20_000
"""Maximum length of a value that can be edited; longer ones would make typing slow."""

LONGEST_LINE: Final = 5_000
"""Maximum length of a line of such a value: Qt lays out a whole line at each key press."""

_TOO_LONG: Final = "Too long to edit here. The run continues with the unchanged value."
_HIDDEN: Final = "Contains hidden characters, shown as escapes. It can't be edited here."

SEND: Final = "Send"
"""The button of a question without choices."""


class QuestionCard(QFrame):
    """One question.

    Args:
        title: The label of the node and its iteration.
        is_column: Whether its fields are below the question rather than beside it.

    Signals:
        answered: The choice (empty if there are none), the value and the comment.
        show_wanted: The user wants to see the node.
    """

    answered = Signal(str, object, str)
    show_wanted = Signal()

    def __init__(
        self, event: NodeWaiting, title: str, parent: QWidget | None = None, *, is_column: bool = False
    ) -> None:
        super().__init__(parent)
        self.asked = event
        self.setAccessibleName(f"{title} is waiting for you")
        self.title = ElidedLabel(title, self, look="title")
        self.show_node = push_button("Show", self.show_wanted.emit, self, look="quiet")
        self.show_node.setAccessibleName(f"Show {title} on the canvas")
        self.message = PlainLabel(harmless(event.message), self, wrap=True, selectable=True)
        self._is_approval = event.kind == "approval"
        text = to_text(event.value)
        is_hiding = event.value_schema is not None and visible(text) != text
        self._is_edited = self._is_approval and _is_editable(text) and not is_hiding
        self.value = self._text_field("Value", text if self._is_edited else "")
        self.reading = LongTextView("Value" if self._is_approval else "Subject", self, fills=True)
        readable = text if event.value_schema is None else visible(format_members(event.value))
        # In the field, arguments are JSON, in which a command of several lines is unreadable.
        self._is_read = event.value is not None and (not self._is_edited or (readable != text and "\n" in readable))
        self.reading.set_text(readable if self._is_read else "")
        self.note = PlainLabel(_HIDDEN if is_hiding else _TOO_LONG, self, look="dim small", wrap=True)
        self.answer = self._text_field("Your answer", "")
        self.answer.setPlaceholderText("Your answer")
        self.comment = QLineEdit(self)
        self.comment.setAccessibleName("Comment")
        self.comment.setPlaceholderText("Comment (optional)")
        self.error = StatusLabel(self, look="small")
        self.buttons = [self._button(choice) for choice in event.choices or ("",)]
        self.buttons[0].setProperty("primary", True)
        self._arrange(is_column=is_column)

    @property
    def has_draft(self) -> bool:
        """Whether the user has typed something that is not sent yet."""
        return bool(
            self.comment.text() or self.answer.toPlainText() or (self._is_edited and self.value.document().isModified())
        )

    def _text_field(self, name: str, text: str) -> QPlainTextEdit:
        field = QPlainTextEdit(text, self, tabChangesFocus=True)
        field.setAccessibleName(name)
        field.setMinimumHeight(20 * UNIT)
        return field

    def _button(self, choice: str) -> QPushButton:
        text = _title(choice).replace("&", "&&")  # an ampersand would mark a mnemonic
        button = push_button(text, lambda: self._finish(choice), self)
        button.setAccessibleName(_title(choice))
        return button

    def _arrange(self, *, is_column: bool) -> None:
        area = scroll_area(self.message, self)
        area.setMinimumHeight(8 * UNIT)
        self.message.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        buttons = hbox(STRETCH, spacing=2)
        last: QWidget = self.comment
        for button in reversed(self.buttons):  # the primary one is the last, as in dialogs
            buttons.addWidget(button)
            QWidget.setTabOrder(last, button)
            last = button
        left = vbox(
            hbox(Badge("Waiting for you", "warning", self), STRETCH, self.show_node, spacing=2),
            self.title,
            (area, 1),
            spacing=2,
        )
        right = vbox((self.value, 1), spacing=2)
        if self._is_approval and not self._is_edited:
            right.addWidget(self.reading, 1)
        else:
            left.addWidget(self.reading, 2)
        self.value.setVisible(self._is_edited)
        self.reading.setVisible(self._is_read)
        self.note.setVisible(self._is_approval and not self._is_edited)
        self.answer.setVisible(not self._is_approval)
        self.comment.setVisible(self._is_approval)
        right.addWidget(self.answer, 1)
        right.addWidget(self.note)
        right.addWidget(self.error)
        right.addWidget(self.comment)
        right.addLayout(buttons)
        if is_column:
            vbox((left, 1), (right, 3), spacing=2, parent=self)
        else:
            hbox((left, 1), (right, 1), spacing=4, parent=self)
        # Not a button: a key press meant for something else must not approve anything.
        proxy = self.value if self._is_edited else self.comment if self._is_approval else self.answer
        self.setFocusProxy(proxy)

    def _finish(self, choice: str) -> None:
        """Submit the answer once, or show why it is invalid."""
        try:
            value = self._entered_value()
            check_answer(self.asked, Answer(choice, value))
        except EngineError as error:
            self._say(error.message)
            self.value.setFocus()
            return
        if not self._is_approval and not choice and not self.answer.toPlainText().strip():
            self._say("Enter an answer first.")
            self.answer.setFocus()
            return
        self._say("")
        self.setEnabled(False)
        self.answered.emit(choice, value, self.comment.text())

    def _entered_value(self) -> Value:
        if not self._is_approval:
            return exact_text(self.answer) or self.asked.value
        if not self._is_edited or not self.value.document().isModified():
            return self.asked.value
        return value_of_text(self.asked, exact_text(self.value))

    def _say(self, text: str) -> None:
        self.error.say(text, "bad")
        set_style_properties(self.value if self._is_approval else self.answer, invalid=bool(text))


class QuestionStack(QFrame):
    """The open questions of a document's run, one visible at a time. Hidden while there are none.

    Above the canvas, a new question takes the focus, unless the user is typing.

    Args:
        is_column: Whether it is in a column such as the chat, and does not take the focus.

    Signals:
        node_chosen: The user wants to see that node.
        changed: The open questions changed.
    """

    node_chosen = Signal(str)
    changed = Signal()

    def __init__(self, session: Session, parent: QWidget | None = None, *, is_column: bool = False) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self._session, self._is_column = session, is_column
        self._cards: dict[str, QuestionCard] = {}
        self.stack = QStackedWidget(self)
        self.stack.currentChanged.connect(lambda _place: self._count())
        self.place = PlainLabel("", self, look="dim small")
        self.before = icon_button("mdi6.chevron-left", "Previous question", lambda: self._step(-1), self)
        self.after = icon_button("mdi6.chevron-right", "Next question", lambda: self._step(1), self)
        self._steps = QWidget(self)
        hbox(STRETCH, self.before, self.place, self.after, spacing=1, parent=self._steps)
        vbox(self._steps, (self.stack, 1), spacing=1, margins=(3, 2, 3, 2), parent=self)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.hide()
        for signal in (session.shown.started, session.shown.ended):
            signal.connect(self.follow)
        session.shown.updated.connect(lambda _touched: self.follow())

    @property
    def current(self) -> QuestionCard | None:
        """The visible card; None if no question is open."""
        card = self.stack.currentWidget()
        return card if isinstance(card, QuestionCard) else None

    @property
    def count(self) -> int:
        """The number of open questions."""
        return len(self._cards)

    @property
    def has_draft(self) -> bool:
        """Whether the user has typed something into a card that is not sent yet."""
        return any(card.has_draft for card in self._cards.values())

    def show_question_of(self, node_id: str) -> None:
        """Show and focus the question of a node, if it has one."""
        for path, card in self._cards.items():
            if node_of(path) == node_id:
                self.stack.setCurrentWidget(card)
                self.focus_current()
                return

    def focus_current(self) -> None:
        """Focus the visible card."""
        if self.current is not None:
            self.current.setFocus()

    def follow(self) -> None:
        """Show the open questions; existing cards stay unchanged."""
        view_model = self._session.shown.view_model
        open_now = dict(view_model.questions) if view_model is not None else {}
        if {path: card.asked for path, card in self._cards.items()} == open_now:
            return
        had_focus = self.isAncestorOf(self.focusWidget()) if self.focusWidget() is not None else False
        for path in [path for path, card in self._cards.items() if open_now.get(path) is not card.asked]:
            card = self._cards.pop(path)
            self.stack.removeWidget(card)
            discard(card)
        for path, event in open_now.items():
            if path not in self._cards:
                self._add(path, event)
        self._count()
        self.setVisible(bool(self._cards))
        is_typing = isinstance(QApplication.focusWidget(), QLineEdit | QPlainTextEdit | QAbstractSpinBox)
        if self.isVisible() and (had_focus or not (is_typing or self._is_column)):
            self.focus_current()
        self.changed.emit()

    def _add(self, path: str, event: NodeWaiting) -> None:
        card = QuestionCard(event, self.title(path), self.stack, is_column=self._is_column)
        card.answered.connect(lambda choice, value, comment: self._answer(path, choice, value, comment))
        card.show_wanted.connect(lambda: self.node_chosen.emit(node_of(path)))
        self._cards[path] = card
        self.stack.addWidget(card)

    def title(self, path: str) -> str:
        """The label of a place in the run: the node's title and its iteration."""
        ran = self._session.shown.workflow
        return place_label(path, titles_of(ran), iterators_of(ran))

    def _answer(self, path: str, choice: str, value: Value, comment: str) -> None:
        if self._session.shown.live is not None:
            self._session.shown.live.answer(path, choice, value, comment)

    def _step(self, distance: int) -> None:
        self.stack.setCurrentIndex((self.stack.currentIndex() + distance) % self.stack.count())
        self.focus_current()

    def _count(self) -> None:
        self._steps.setVisible(self.stack.count() > 1)
        self.place.setText(f"{self.stack.currentIndex() + 1} of {self.stack.count()}")


def _is_editable(text: str) -> bool:
    return len(text) <= MOST_EDITED and all(len(line) <= LONGEST_LINE for line in text.split("\n"))


def _title(choice: str) -> str:
    """The text of a button: `needs_work` becomes `Needs work`."""
    return choice[:1].upper() + choice[1:].replace("_", " ") if choice else SEND
