"""Result tables of scenarios, printed as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Table:
    """A table with a title and notes below it."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, *cells: str) -> None:
        """Add a row."""
        self.rows.append(cells)

    def text(self) -> str:
        """The table as Markdown: the first column left-aligned, the others right-aligned."""
        widths = [max(map(len, column)) for column in zip(self.columns, *self.rows, strict=True)]
        rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
        lines = [f"## {self.title}", "", _line(self.columns, widths), _line(rule, widths)]
        lines.extend(_line(row, widths) for row in self.rows)
        for note in self.notes:
            lines.extend(("", note))
        return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = cells[0].ljust(widths[0])
    others = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
    return f"| {' | '.join((first, *others))} |"


def microseconds(seconds: float, count: int = 1) -> str:
    """Seconds divided by a count, in microseconds."""
    return f"{seconds / count * 1e6:.1f}"


def milliseconds(seconds: float) -> str:
    """Seconds in milliseconds."""
    return f"{seconds * 1e3:.2f}"


def times(ratio: float) -> str:
    """A ratio."""
    return f"{ratio:.2f} ×"


def aim(figure: float, most: float, unit: str = "") -> str:
    """A target, and whether a figure meets it."""
    return f"≤ {most:g}{unit}: {'met' if figure <= most else 'missed'}"
