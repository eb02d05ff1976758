"""The inspector's own rules of style, made of the program's theme, beside those that hold everywhere."""

from __future__ import annotations

from app.theme.tokens import FONT_SIZE, FONT_SIZE_SMALL, FONT_SIZE_TITLE, UNIT, Theme


def inspector_sheet(theme: Theme, scale: float) -> str:
    """Style rules for the inspector's widgets."""
    title, normal = round(FONT_SIZE_TITLE * scale), round(FONT_SIZE * scale)
    small = round(FONT_SIZE_SMALL * scale)
    return f"""
QWidget#inspector, QWidget#inspector QScrollArea, QWidget#page {{ background: {theme.panel}; border: none; }}
QLabel {{ background: transparent; }}
QLabel[role="heading"] {{ font-size: {title}px; font-weight: 600; }}
QLabel[role="label"] {{ font-size: {normal}px; font-weight: 500; }}
QLabel[role="help"], QLabel[role="facts"] {{ font-size: {small}px; color: {theme.dim}; }}
QLabel[role="section"] {{ font-size: {small}px; color: {theme.dim}; font-weight: 600; }}
QLabel[role="problem"] {{ font-size: {small}px; color: {theme.text}; }}
QLineEdit#title {{
  font-size: {title}px; font-weight: 600; background: transparent; border-color: transparent;
  padding: {UNIT}px; margin-left: -{UNIT}px;
}}
QLineEdit#title:hover {{ border-color: {theme.line}; }}
QLineEdit#title:focus {{ border-color: {theme.accent}; background: {theme.card}; }}
QTabBar {{ background: {theme.card}; border: 1px solid {theme.line}; border-radius: 6px; }}
QTabBar::tab {{
  background: transparent; color: {theme.dim}; border: 1px solid transparent; border-radius: 5px;
  padding: {UNIT}px {2 * UNIT}px; margin: 0px;
}}
QTabBar::tab:selected {{ background: {theme.ground}; color: {theme.text}; font-weight: 600; }}
QTabBar::tab:hover {{ color: {theme.text}; }}
QTabBar:focus {{ border-color: {theme.accent}; }}
QToolButton[role="fold"] {{ font-size: {small}px; font-weight: 600; color: {theme.dim}; padding: {UNIT}px 0px; }}
QToolButton[role="link"] {{ font-size: {small}px; color: {theme.accent}; padding: {UNIT // 2}px {UNIT}px; }}
QToolButton[role="link"]:checked {{ border-color: {theme.line}; background: {theme.card}; }}
QPlainTextEdit[role="shown"] {{ background: {theme.card}; }}
QFrame[role="group"] {{ border: 1px solid {theme.line}; border-radius: 6px; }}
QListView[role="list"] {{
  background: {theme.card}; border: 1px solid {theme.line}; border-radius: 6px; padding: {UNIT}px; outline: none;
}}
QListView[role="list"]:focus {{ border-color: {theme.accent}; }}
QListView[role="list"]::item {{ padding: {UNIT}px; border-radius: 4px; }}
QListView[role="list"]::item:selected {{ background: {theme.accent}; color: {theme.on_accent}; }}
"""
