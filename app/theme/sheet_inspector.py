"""The inspector's own rules of style, made of the program's theme, beside those that hold everywhere. No Qt here."""

from __future__ import annotations

from app.theme.tokens import FONT_SIZE_SMALL, FONT_SIZE_TITLE, Theme


def inspector(theme: Theme, scale: float) -> str:
    """Style rules for the inspector's widgets."""
    title, small = round(FONT_SIZE_TITLE * scale), round(FONT_SIZE_SMALL * scale)
    return f"""
QWidget#inspector {{ background: {theme.panel}; }}
QLabel[fieldname="true"] {{ font-weight: 500; }}
QLineEdit#title {{
  font-size: {title}px; font-weight: 600; background: transparent; border-color: transparent; padding: 3px 4px;
}}
QLineEdit#title:hover {{ border-color: {theme.edge}; }}
QLineEdit#title:focus {{ border-color: {theme.accent}; background: {theme.field}; padding: 2px 3px; }}
QTabBar#switcher {{ background: {theme.field}; border: 1px solid {theme.line}; border-radius: 6px; }}
QTabBar#switcher::tab {{
  background: transparent; border: 1px solid transparent; border-radius: 5px; padding: 3px 8px; margin: 0px;
}}
QTabBar#switcher::tab:hover {{ color: {theme.text}; }}
QTabBar#switcher::tab:selected {{ background: {theme.hover}; font-weight: 600; }}
QTabBar#switcher::tab:selected:focus {{ border: 2px solid {theme.accent}; padding: 2px 7px; }}
QToolButton[link="true"] {{ font-size: {small}px; color: {theme.accent}; padding: 0px 3px; min-width: 0px; }}
QToolButton[link="true"]:focus {{ padding: 0px 2px; }}
QFrame[group="true"] {{ border: 1px solid {theme.line}; border-radius: 6px; }}
"""
