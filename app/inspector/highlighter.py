"""Colours for the names in a template or an expression: known ones, unknown ones, and ports that nothing leads to."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtGui import QColor, QFont, QSyntaxHighlighter, QTextCharFormat, QTextDocument

from app.inspector.holes import Hole, find_holes, path_spans, paths_in
from app.inspector.names import Name, name_of
from app.inspector.units import to_units
from app.theme.style import style
from engine.nodes.spec import TextKind


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the text: `known`, `unknown`, `loose` (a port that nothing leads to), `brace` or `broken`."""

    start: int
    end: int
    look: str
    tip: str = ""


def spans_of(text: str, kind: TextKind, names: list[Name]) -> list[Span]:
    """What to colour in a text, in order."""
    if kind is TextKind.EXPRESSION:
        return _names(text, 0, names)
    spans: list[Span] = []
    for hole in find_holes(text):
        spans.extend(_hole(hole, names))
    return spans


def _hole(hole: Hole, names: list[Name]) -> list[Span]:
    if not hole.closed:
        return [Span(hole.start, hole.end, "brace")]
    inside, end = hole.start + 2, hole.end - 2
    if paths_in(hole.content) is None:
        return [Span(hole.start, hole.end, "broken", "This cannot be read; see below the text.")]
    return [Span(hole.start, inside, "brace"), *_names(hole.content, inside, names), Span(end, hole.end, "brace")]


def _names(content: str, offset: int, names: list[Name]) -> list[Span]:
    spans: list[Span] = []
    for start, end, path in path_spans(content, paths_in(content) or frozenset()):
        name = name_of(path, names)
        if name is None:
            look, tip = "unknown", f"There is no {'.'.join(path)} here."
        else:
            look, tip = ("known" if name.connected else "loose"), name.help
        spans.append(Span(offset + start, offset + end, look, tip))
    return spans


class Highlighter(QSyntaxHighlighter):
    """Colours a text by its spans, which are worked out once for the whole text at each change."""

    def __init__(self, document: QTextDocument, kind: TextKind) -> None:
        super().__init__(document)
        self._kind = kind
        self._names: list[Name] = []
        self._revision = -1
        self._spans: list[Span] = []
        self._formats: dict[str, QTextCharFormat] = {}
        self._make_formats()
        style().changed.connect(self._dress)

    def set_names(self, names: list[Name]) -> None:
        """Say which names there are."""
        if names != self._names:
            self._names = names
            self._revision = -1
            self.rehighlight()

    def span_at(self, position: int) -> Span | None:
        """The span at a place of the text."""
        return next((span for span in self.spans() if span.start <= position < span.end), None)

    def spans(self) -> list[Span]:
        """The spans of the text as it is now."""
        document = self.document()
        if document.revision() != self._revision:
            text = document.toRawText().replace("\u2029", "\n")
            self._spans = spans_of(to_units(text), self._kind, self._names)
            self._revision = document.revision()
        return self._spans

    def highlightBlock(self, text: str) -> None:  # Qt's name
        """Colour one line."""
        start = self.currentBlock().position()
        end = start + self.currentBlock().length()
        runs_on = 0
        for span in self.spans():
            if span.end > start and span.start < end:
                first = max(span.start - start, 0)
                self.setFormat(first, min(span.end, end) - start - first, self._formats[span.look])
                runs_on = int(span.end > end)
        # A line that ends inside a hole makes Qt look at the next one again.
        self.setCurrentBlockState(runs_on)

    def _dress(self) -> None:
        self._make_formats()
        self.rehighlight()

    def _make_formats(self) -> None:
        theme = style().theme
        underlines = {"unknown": theme.bad, "broken": theme.bad, "loose": theme.warning}
        for look in ("known", "unknown", "loose", "brace", "broken"):
            made = QTextCharFormat()
            made.setForeground(QColor(theme.dim if look == "brace" else theme.accent))
            if look == "known":
                made.setFontWeight(QFont.Weight.Medium)
            if look in underlines:
                made.setForeground(QColor(theme.text))
                made.setUnderlineStyle(QTextCharFormat.UnderlineStyle.WaveUnderline)
                made.setUnderlineColor(QColor(underlines[look]))
            self._formats[look] = made
