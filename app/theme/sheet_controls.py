"""The part of the style sheet for what is pressed, typed into and set. No Qt here."""

from __future__ import annotations

from typing import Final

from app.theme.tokens import Theme
from engine.bundled import resources_folder

FOCUS_RING: Final = 2
"""Width of the ring round what has the keyboard, in pixels; it takes the place of a border one pixel wide."""


def mark_url(theme: Theme, name: str) -> str:
    """A mark (arrow, tick, …) of that theme, as style sheets name files."""
    path = (resources_folder() / "marks" / theme.name / f"{name}.svg").as_posix()
    return f'url("{path}")'


def buttons(theme: Theme, scale: float) -> str:
    """Push buttons, in their four kinds, and tool buttons."""
    height = round(20 * scale)
    return f"""
QPushButton {{
  background: {theme.card}; color: {theme.text}; border: 1px solid {theme.edge}; border-radius: 6px;
  padding: 3px 12px; min-height: {height}px;
}}
QPushButton:hover {{ background: {theme.hover}; }}
QPushButton:pressed, QPushButton:checked {{ background: {theme.selection}; }}
QPushButton:focus {{ border: {FOCUS_RING}px solid {theme.accent}; padding: 2px 11px; }}
QPushButton:disabled {{ color: {theme.faint}; background: transparent; border-color: {theme.line}; }}
QPushButton[primary="true"] {{
  background: {theme.accent}; color: {theme.on_accent}; border-color: {theme.accent}; font-weight: 600;
}}
QPushButton[primary="true"]:hover {{ border-color: {theme.text}; }}
QPushButton[primary="true"]:focus {{ border-color: {theme.text}; }}
QPushButton[primary="true"]:disabled {{
  background: {theme.hover}; color: {theme.faint}; border-color: {theme.line};
}}
QPushButton[quiet="true"] {{ background: transparent; border-color: transparent; }}
QPushButton[quiet="true"]:hover {{ background: {theme.hover}; }}
QPushButton[quiet="true"]:focus {{ border-color: {theme.accent}; }}
QPushButton[row="true"] {{
  background: transparent; border-color: transparent; padding: 3px 4px; text-align: left;
}}
QPushButton[row="true"]:hover {{ background: {theme.hover}; }}
QPushButton[row="true"]:focus {{ border-color: {theme.accent}; padding: 2px 3px; }}
QPushButton[danger="true"] {{ color: {theme.bad}; border-color: {theme.bad}; }}
QPushButton[danger="true"]:hover, QPushButton[danger="true"]:focus {{ background: {theme.bad_soft}; }}
QPushButton[danger="true"]:disabled {{ color: {theme.faint}; border-color: {theme.line}; }}
QPushButton[link="true"] {{
  background: transparent; border-color: transparent; color: {theme.accent}; padding: 3px 4px;
  text-decoration: underline;
}}
QPushButton[link="true"]:focus {{ border-color: {theme.accent}; padding: 2px 3px; }}
QPushButton::menu-indicator {{
  image: {mark_url(theme, "chevron-down")}; width: 12px; height: 12px;
  subcontrol-origin: padding; subcontrol-position: center right;
  right: 8px;
}}
QToolButton {{
  background: transparent; color: {theme.text}; border: 1px solid transparent; border-radius: 6px; padding: 3px;
  min-height: {height}px; min-width: {height}px;
}}
QToolButton:hover {{ background: {theme.hover}; }}
QToolButton:pressed, QToolButton:checked {{ background: {theme.selection}; }}
QToolButton:focus {{ border: {FOCUS_RING}px solid {theme.accent}; padding: 2px; }}
QToolButton:disabled {{ color: {theme.faint}; }}
QToolButton[primary="true"] {{
  background: {theme.accent}; color: {theme.on_accent}; font-weight: 600; padding: 3px 12px;
}}
QToolButton[primary="true"]:hover, QToolButton[primary="true"]:focus {{ border: 1px solid {theme.text}; }}
QToolButton[primary="true"]:disabled {{ background: {theme.hover}; color: {theme.faint}; }}
QToolButton[fold="true"] {{ background: transparent; font-weight: 600; padding: 3px 8px 3px 3px; }}
QToolButton[fold="true"]:hover {{ background: {theme.hover}; }}
QToolButton[fold="true"]:focus {{ padding: 2px 7px 2px 2px; }}
QToolButton::menu-indicator {{ image: none; }}
"""


def fields(theme: Theme, scale: float) -> str:
    """What is typed into: lines, texts, numbers, and combo boxes with their lists."""
    height = round(20 * scale)
    arrow, button = round(12 * scale), round(20 * scale)
    return f"""
QLineEdit, QPlainTextEdit, QTextEdit, QAbstractSpinBox, QComboBox {{
  background: {theme.field}; color: {theme.text}; border: 1px solid {theme.edge}; border-radius: 6px;
  selection-background-color: {theme.accent}; selection-color: {theme.on_accent};
}}
QLineEdit, QAbstractSpinBox, QComboBox {{ padding: 3px 8px; min-height: {height}px; }}
QPlainTextEdit, QTextEdit {{ padding: 4px; }}
QLineEdit:hover, QPlainTextEdit:hover, QTextEdit:hover, QAbstractSpinBox:hover, QComboBox:hover {{
  border-color: {theme.outline};
}}
QLineEdit:focus, QAbstractSpinBox:focus, QComboBox:focus {{
  border: {FOCUS_RING}px solid {theme.accent}; padding: 2px 7px;
}}
QPlainTextEdit:focus, QTextEdit:focus {{ border: {FOCUS_RING}px solid {theme.accent}; padding: 3px; }}
QLineEdit[invalid="true"], QPlainTextEdit[invalid="true"], QTextEdit[invalid="true"],
QAbstractSpinBox[invalid="true"], QComboBox[invalid="true"] {{ border-color: {theme.bad}; }}
QLineEdit:disabled, QPlainTextEdit:disabled, QTextEdit:disabled, QAbstractSpinBox:disabled, QComboBox:disabled {{
  color: {theme.faint}; background: transparent; border-color: {theme.line};
}}
QLineEdit:read-only, QPlainTextEdit:read-only, QTextEdit:read-only {{ background: transparent; }}
QAbstractSpinBox QLineEdit, QComboBox QLineEdit {{
  background: transparent; border: none; padding: 0px; min-height: 0px;
}}
QAbstractSpinBox {{ padding-right: {button}px; }}
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button {{
  subcontrol-origin: border; width: {button}px; border: none; background: transparent;
}}
QAbstractSpinBox::up-button {{ subcontrol-position: top right; margin: 2px 2px 0px 0px; }}
QAbstractSpinBox::down-button {{ subcontrol-position: bottom right; margin: 0px 2px 2px 0px; }}
QAbstractSpinBox::up-button:hover, QAbstractSpinBox::down-button:hover {{
  background: {theme.hover}; border-radius: 4px;
}}
QAbstractSpinBox::up-arrow {{
  image: {mark_url(theme, "chevron-up")}; width: {round(8 * scale)}px; height: {round(8 * scale)}px;
}}
QAbstractSpinBox::down-arrow {{
  image: {mark_url(theme, "chevron-down")}; width: {round(8 * scale)}px; height: {round(8 * scale)}px;
}}
QAbstractSpinBox::up-arrow:off, QAbstractSpinBox::down-arrow:off {{ image: none; }}
QComboBox::drop-down {{
  subcontrol-origin: border; subcontrol-position: center right; width: {button}px; border: none; right: 4px;
}}
QComboBox::down-arrow {{ image: {mark_url(theme, "chevron-down")}; width: {arrow}px; height: {arrow}px; }}
QComboBox QAbstractItemView {{
  background: {theme.card}; border: 1px solid {theme.edge}; border-radius: 0px; padding: 4px;
  selection-background-color: {theme.selection}; selection-color: {theme.text};
}}
"""


def choices(theme: Theme, scale: float) -> str:
    """Check boxes and radio buttons; their marks grow with the texts."""
    size = round(16 * scale)
    return f"""
QCheckBox, QRadioButton {{ spacing: 8px; background: transparent; min-height: {round(20 * scale)}px; }}
QCheckBox:disabled, QRadioButton:disabled {{ color: {theme.faint}; }}
QCheckBox::indicator, QRadioButton::indicator, QAbstractItemView::indicator, QGroupBox::indicator {{
  width: {size - 2}px; height: {size - 2}px; border: 1px solid {theme.outline}; background: {theme.field};
  border-radius: 4px;
}}
QRadioButton::indicator {{ border-radius: {size // 2}px; }}
QCheckBox::indicator:hover, QRadioButton::indicator:hover {{ border-color: {theme.accent}; }}
QCheckBox::indicator:checked, QAbstractItemView::indicator:checked, QGroupBox::indicator:checked {{
  background: {theme.accent}; border-color: {theme.accent}; image: {mark_url(theme, "check")};
}}
QCheckBox::indicator:indeterminate {{
  background: {theme.accent}; border-color: {theme.accent}; image: {mark_url(theme, "minus")};
}}
QRadioButton::indicator:checked {{
  background: {theme.accent}; border-color: {theme.accent}; image: {mark_url(theme, "dot")};
}}
QCheckBox::indicator:focus, QRadioButton::indicator:focus {{
  width: {size - 4}px; height: {size - 4}px; border: {FOCUS_RING}px solid {theme.text};
}}
QCheckBox::indicator:disabled, QRadioButton::indicator:disabled {{
  border-color: {theme.faint}; background: transparent;
}}
QCheckBox::indicator:checked:disabled, QRadioButton::indicator:checked:disabled {{ background: {theme.faint}; }}
"""


def meters(theme: Theme, scale: float) -> str:
    """Sliders and progress bars. A bar shows no text; the text stands beside it."""
    handle = round(16 * scale)
    inset = (handle - 4) // 2
    return f"""
QSlider {{ min-height: {handle + 4}px; background: transparent; }}
QSlider:vertical {{ min-height: 0px; min-width: {handle + 4}px; }}
QSlider::groove {{ background: {theme.edge}; border-radius: 2px; }}
QSlider::groove:horizontal {{ height: 4px; }}
QSlider::groove:vertical {{ width: 4px; }}
QSlider::sub-page:horizontal, QSlider::add-page:vertical {{ background: {theme.accent}; border-radius: 2px; }}
QSlider::handle {{
  background: {theme.accent}; border: 2px solid {theme.panel}; border-radius: {handle // 2}px;
  width: {handle - 4}px; height: {handle - 4}px;
}}
QSlider::handle:horizontal {{ margin: -{inset}px 0px; }}
QSlider::handle:vertical {{ margin: 0px -{inset}px; }}
QSlider::handle:hover, QSlider::handle:focus {{ border-color: {theme.text}; }}
QSlider::handle:disabled {{ background: {theme.faint}; }}
QSlider::sub-page:disabled {{ background: {theme.edge}; }}
QProgressBar {{
  background: {theme.edge}; border: none; border-radius: 4px; min-height: 8px; max-height: 8px; color: transparent;
}}
QProgressBar::chunk {{ background: {theme.accent}; border-radius: 4px; }}
QProgressBar[tone="good"]::chunk {{ background: {theme.good}; }}
QProgressBar[tone="warning"]::chunk {{ background: {theme.warning}; }}
QProgressBar[tone="bad"]::chunk {{ background: {theme.bad}; }}
"""
