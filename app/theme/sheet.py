"""The style sheet, made of a theme. No Qt here."""

from __future__ import annotations

from app.theme.tokens import FONT_SIZE, FONT_SIZE_SMALL, UNIT, Theme


def style_sheet(theme: Theme, scale: float) -> str:
    """The program's style sheet for a theme and a size of texts."""
    normal, small = round(FONT_SIZE * scale), round(FONT_SIZE_SMALL * scale)
    return f"""
* {{ font-size: {normal}px; }}
QToolTip {{ color: {theme.text}; background: {theme.card}; border: 1px solid {theme.line}; padding: {UNIT}px; }}
[dim="true"] {{ color: {theme.dim}; }}
[small="true"] {{ font-size: {small}px; }}
[panel="true"] {{ background: {theme.panel}; border: none; }}
QPushButton, QToolButton {{
  background: {theme.card}; border: 1px solid {theme.line}; border-radius: 6px; padding: {UNIT}px {3 * UNIT}px;
}}
QToolButton {{ padding: {UNIT}px; background: transparent; border-color: transparent; }}
QPushButton:hover, QToolButton:hover {{ border-color: {theme.accent}; }}
QPushButton:focus, QToolButton:focus {{ border: 1px solid {theme.accent}; }}
QPushButton:disabled, QToolButton:disabled {{ color: {theme.dim}; }}
QPushButton[primary="true"] {{ background: {theme.accent}; color: {theme.on_accent}; border-color: {theme.accent}; }}
QLineEdit, QPlainTextEdit, QTextEdit, QSpinBox, QDoubleSpinBox, QComboBox {{
  background: {theme.card}; border: 1px solid {theme.line}; border-radius: 6px; padding: {UNIT}px {2 * UNIT}px;
  selection-background-color: {theme.accent}; selection-color: {theme.on_accent};
}}
QLineEdit:focus, QPlainTextEdit:focus, QTextEdit:focus, QSpinBox:focus, QDoubleSpinBox:focus, QComboBox:focus {{
  border-color: {theme.accent};
}}
[invalid="true"] {{ border-color: {theme.bad}; }}
"""
