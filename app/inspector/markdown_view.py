"""Read-only view of a text with Markdown, safe for texts of a model.

Nothing is fetched or read to show it: HTML stays text, and an image becomes a link. A link opens after the user has
seen where it leads.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from itertools import groupby, islice, pairwise
from typing import Any, Final

from PySide6.QtCore import QSize, QUrl
from PySide6.QtGui import (
    QBrush,
    QColor,
    QDesktopServices,
    QFont,
    QGuiApplication,
    QResizeEvent,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextFrameFormat,
    QTextTable,
)
from PySide6.QtWidgets import QMessageBox, QSizePolicy, QTextBrowser, QWidget

from app.dialogs import ask_question
from app.inspector.editor import describe_widget
from app.inspector.text_widgets import from_utf16_units
from app.theme.style import style
from app.theme.tokens import UNIT
from engine.text_sanitizing import visible

MAX_FORMATTED: Final = 20_000
"""Length above which a text is not formatted, which would take longer than a frame."""

_MAX_LINES: Final = 1_000
_MAX_COLUMNS: Final = 100
_MAX_UNDERLINED: Final = 100
_MAX_STRONG: Final = 1_000
_MAX_LINES_SHOWN: Final = 24
_FRAME: Final = 12
"""Vertical border and padding in the style sheet, in pixels."""

_SIGNS: Final = re.compile(
    r"""
    ^\#{1,6}[ ]\S | ^[ ]*(?:[-*+]|\d{1,9}[.)])[ ]+\S | ^[ ]{0,3}(?:```|~~~) | ^[ ]{0,3}>[ ]?\S | ^\|.+\|[ ]*$
    | ^[ ]{0,3}(?:-{3,}|\*{3,}|_{3,})[ ]*$
    | \*\*[^\s*] | `[^`\n]+` | \[[^\]\n]+\]\([^)\s]+\)
    | (?<![\w*])\*[^\s*][^*\n]*\*(?![\w*]) | (?<!\w)_[^\s_][^_\n]*_(?!\w)
    """,
    re.MULTILINE | re.VERBOSE,
)
_FENCE: Final = re.compile(r"[ ]{0,3}(```|~~~)")
_PARAGRAPH: Final = re.compile(r"(?![-*+>#|=]\s|\d+[.)]\s|[`~]{3}|[|]|={2,}$|-{2,}$)\S")
"""The beginning of a line that continues a paragraph rather than a list, a quote, a table or a heading."""
_Role = QMessageBox.ButtonRole
_OPENED: Final = frozenset({"http", "https", "mailto"})
_FEATURES: Final = QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML
_ENLARGED: Final = {1: 2, 2: 1}
"""Steps by which headings of these levels are larger than the text."""


def has_markdown(text: str) -> bool:
    """Return whether a text has Markdown that formatting would improve, and is not too long for it."""
    if len(text) > MAX_FORMATTED or text.count("\n") > _MAX_LINES or _SIGNS.search(text) is None:
        return False
    return max(line.count("|") for line in text.split("\n")) <= _MAX_COLUMNS


def formatted_document(text: str, parent: QWidget | None = None) -> QTextDocument:
    """Return a document with the formatted text, without images and HTML."""
    document = QTextDocument(parent)
    document.setUndoRedoEnabled(False)
    # The first line is empty: Qt would take a rule in it for front matter, and hide what follows.
    document.setMarkdown("\n" + _with_line_breaks(from_utf16_units(text).replace("\x00", "\ufffd")), _FEATURES)
    if "![" in text:
        for block in _blocks(document):
            _replace_images(block)
    document.setDefaultFont(style().font())
    style_markdown(document)
    return document


def style_markdown(document: QTextDocument) -> None:
    """Apply the theme to the code, headings, strong words, spacing and tables of a document made from Markdown."""
    edit = QTextCursor(document)
    edit.beginEditBlock()  # laid out once
    for (kind, level), blocks in groupby(_blocks(document), _kind):
        _restyle(list(blocks), kind, level)
    underlined, strong = QTextCharFormat(), QTextCharFormat()
    underlined.setFontUnderline(True)
    strong.setFontWeight(QFont.Weight.DemiBold)  # the bundled font's heaviest; its italic is regular only
    links = _pieces(document, QTextCharFormat.isAnchor)
    bold = _pieces(document, lambda look: look.fontWeight() > QFont.Weight.DemiBold and not look.fontItalic())
    for look, pieces in ((underlined, islice(links, _MAX_UNDERLINED)), (strong, islice(bold, _MAX_STRONG))):
        for start, end in pieces:
            edit.setPosition(start)
            edit.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
            edit.mergeCharFormat(look)
    edit.endEditBlock()
    for frame in document.rootFrame().childFrames():
        if isinstance(frame, QTextTable):
            _draw_grid(frame)


def _with_line_breaks(text: str) -> str:
    """Keep the line breaks of paragraphs, which Markdown would join: poems and addresses have no other ends."""
    lines = text.split("\n")
    fence = ""
    for number, (line, following) in enumerate(pairwise(lines)):
        found = _FENCE.match(line)
        if found is not None and (not fence or found.group(1) == fence):
            fence = "" if fence else found.group(1)
        elif not fence and _PARAGRAPH.match(line) and _PARAGRAPH.match(following):
            lines[number] = f"{line}  "
    return "\n".join(lines)


def _blocks(document: QTextDocument) -> list[QTextBlock]:
    return [document.findBlockByNumber(number) for number in range(document.blockCount())]


def _pieces(document: QTextDocument, is_wanted: Callable[[QTextCharFormat], bool]) -> Iterator[tuple[int, int]]:
    """Start and end of each piece of text with a wanted format."""
    for block in _blocks(document):
        for piece in block.textFormats():
            if is_wanted(piece.format):
                start = block.position() + piece.start
                yield start, start + piece.length


def _replace_images(block: QTextBlock) -> None:
    """Replace images by links to them: showing an image would read a file or fetch an address that a model chose."""
    for piece in reversed(block.textFormats()):
        if not piece.format.isImageFormat():
            continue
        image = piece.format.toImageFormat()
        cursor = QTextCursor(block)
        cursor.setPosition(block.position() + piece.start)
        cursor.setPosition(block.position() + piece.start + piece.length, QTextCursor.MoveMode.KeepAnchor)
        link = QTextCharFormat()
        link.setForeground(QBrush(QColor(style().theme.accent)))
        link.setFontUnderline(True)
        link.setAnchor(True)
        link.setAnchorHref(image.name())
        alternative = image.property(QTextFormat.Property.ImageAltText)
        cursor.insertText(f"[Image: {alternative or image.name()}]", link)


def _kind(block: QTextBlock) -> tuple[str, int]:
    """The kind of a block, and the level of a heading."""
    shape = block.blockFormat()
    if level := shape.headingLevel():
        return "heading", level
    if shape.hasProperty(QTextFormat.Property.BlockCodeFence) or shape.nonBreakableLines():
        return "code", 0
    if block.textList() is not None:
        return "list", 0
    return "table" if QTextCursor(block).currentTable() is not None else "text", 0


def _restyle(blocks: list[QTextBlock], kind: str, level: int) -> None:
    """Set the spacing of successive blocks of one kind, the ground of code, and the size of a heading.

    Other words within a block keep Qt's looks: to change them one by one takes seconds.
    """
    if kind == "table":
        return
    cursor = QTextCursor(blocks[0])
    cursor.setPosition(blocks[-1].position() + blocks[-1].length() - 1, QTextCursor.MoveMode.KeepAnchor)
    change = QTextBlockFormat()
    change.setTopMargin(3 * UNIT if level and blocks[0].blockNumber() else 0)
    change.setBottomMargin({"code": 0, "list": UNIT / 2}.get(kind, 2 * UNIT))
    if kind == "code":
        change.setBackground(QBrush(QColor(style().theme.hover)))
        change.setNonBreakableLines(False)
    cursor.mergeBlockFormat(change)
    if kind == "code":
        change.setBottomMargin(2 * UNIT)  # only below the last line
        QTextCursor(blocks[-1]).mergeBlockFormat(change)
    if level:
        look = QTextCharFormat()
        look.setProperty(QTextFormat.Property.FontSizeAdjustment, _ENLARGED.get(level, 0))
        look.setFontWeight(QFont.Weight.DemiBold)
        cursor.mergeCharFormat(look)


def _draw_grid(table: QTextTable) -> None:
    look = table.format()
    look.setBorder(1)
    look.setBorderCollapse(True)
    look.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
    look.setBorderBrush(QBrush(QColor(style().theme.edge)))
    look.setCellPadding(4)
    look.setCellSpacing(0)
    look.setTopMargin(UNIT)
    table.setFormat(look)


class MarkdownView(QTextBrowser):
    """The view.

    Args:
        name: Accessible name.
        fills: Whether it fills the available height; otherwise its height follows the text.
    """

    def __init__(self, name: str, parent: QWidget | None = None, *, fills: bool = False) -> None:
        super().__init__(parent)
        self._fills = fills
        self._text = ""
        self.setOpenLinks(False)
        self.setUndoRedoEnabled(False)
        self.setTabChangesFocus(True)
        self.setSizePolicy(
            QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding if fills else QSizePolicy.Policy.Fixed
        )
        describe_widget(self, name)
        self.anchorClicked.connect(lambda url: confirm_link(self, url))
        style().changed.connect(self._draw_again)

    def show_text(self, text: str) -> None:
        """Show a text; does nothing if it is unchanged."""
        if text != self._text:
            self._text = text
            self._draw()

    def loadResource(self, kind: int, name: QUrl | str) -> Any:  # Qt's name
        """Load nothing: neither files nor addresses."""
        del kind, name
        return None

    def sizeHint(self) -> QSize:  # Qt's name
        """Return the height of the text, up to a limit."""
        most = _MAX_LINES_SHOWN * self.fontMetrics().lineSpacing()
        return QSize(120, math.ceil(min(self.document().size().height(), most)) + _FRAME)

    def minimumSizeHint(self) -> QSize:  # Qt's name
        """Return the same height, unless it fills the available one."""
        return QSize(60, 60 if self._fills else self.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:  # Qt's name
        """Adjust the height to the width."""
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.updateGeometry()

    def _draw(self) -> None:
        self.setDocument(formatted_document(self._text, self))  # deletes the old one, its child
        self.updateGeometry()

    def _draw_again(self) -> None:
        """Draw the text in another theme or size, and stay where the user reads."""
        read = self.verticalScrollBar().value() / max(self.verticalScrollBar().maximum(), 1)
        self._draw()
        self.document().size()  # lays it out, so that the scroll bar has its range
        self.verticalScrollBar().setValue(round(read * self.verticalScrollBar().maximum()))


def confirm_link(parent: QWidget, url: QUrl) -> QMessageBox:
    """Show where a link leads, and open it if the user agrees; only web and mail addresses are opened."""
    target = visible(url.toString())
    copy = ("Copy", _Role.ActionRole, lambda: QGuiApplication.clipboard().setText(target))
    if url.scheme().casefold() not in _OPENED:
        return ask_question(parent, "This link can't be opened from here.", target, [copy])
    opening = ("Open", _Role.YesRole, lambda: QDesktopServices.openUrl(url))
    return ask_question(parent, "Open this link?", target, [copy, opening])
