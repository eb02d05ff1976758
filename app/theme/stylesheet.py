"""Build the program's style sheet from a theme.

Widgets select their style through properties, set with `app.theme.style.set_style_properties`:
`panel`, `card`, `bubble` (surfaces), `dim`, `small`, `title`, `heading`, `section`, `monospace` (type), `primary`,
`quiet`, `link`, `row` (buttons), `invalid` (fields), `bare` (views without a frame; `rows` if the rows draw the focus
themselves, `solid` for fast scrolling), `grouped` (lists with headings), and `badge`, `hint` and `tone` with a kind.
No Qt here.
"""

from __future__ import annotations

from typing import Final

from app.theme.tokens import FONT_SIZE_HEADING, FONT_SIZE_SMALL, FONT_SIZE_TITLE, Theme
from engine.bundled import resources_folder


def lists(theme: Theme, scale: float) -> str:
    """Return the rules of lists, tables and trees with their headers."""
    return f"""
QAbstractItemView {{
  background: {theme.panel}; alternate-background-color: {theme.field}; color: {theme.text};
  border: 1px solid {theme.line}; border-radius: 6px; outline: none; gridline-color: {theme.line};
  selection-background-color: {theme.selection}; selection-color: {theme.text};
}}
QAbstractItemView:focus {{ border-color: {theme.accent}; }}
QDialog[finder="true"] {{ background: {theme.card}; border: 1px solid {theme.edge}; }}
QFrame[row="true"] {{ border: 1px solid transparent; border-radius: 6px; }}
QFrame[row="true"]:hover {{ background: {theme.hover}; }}
QFrame[row="true"]:focus {{ border-color: {theme.accent}; }}
QAbstractItemView[bare="true"] {{ border: 1px solid transparent; border-radius: 0px; background: transparent; }}
QAbstractItemView[bare="true"]:focus {{ border-color: {theme.accent}; }}
QAbstractItemView[bare="solid"] {{ border: 1px solid transparent; border-radius: 0px; background: {theme.panel}; }}
QAbstractItemView[bare="solid"]:focus {{ border-color: {theme.accent}; }}
QAbstractItemView[bare="rows"] {{ background: transparent; border: none; }}
QListView::item, QTreeView::item {{ padding: 4px 8px; border: none; min-height: {round(20 * scale)}px; }}
QTableView::item {{ padding: 0px 8px; border: none; }}
QAbstractItemView::item:hover {{ background: {theme.hover}; }}
QAbstractItemView::item:selected {{ background: {theme.selection}; color: {theme.text}; }}
QAbstractItemView::item:disabled {{ color: {theme.faint}; }}
QListView[grouped="true"]::item:disabled {{ color: {theme.dim}; }}
QHeaderView {{ background: {theme.panel}; border: none; }}
QHeaderView::section {{
  background: {theme.panel}; color: {theme.dim}; border: none; border-bottom: 1px solid {theme.line};
  padding: 4px 11px; font-size: {round(FONT_SIZE_SMALL * scale)}px; font-weight: 600; text-align: left;
}}
QHeaderView[narrow="true"]::section {{ padding: 4px 8px; }}
QHeaderView::section:hover {{ color: {theme.text}; }}
QHeaderView::up-arrow {{ image: {mark_image(theme, "chevron-up")}; width: 12px; height: 12px; }}
QHeaderView::down-arrow {{ image: {mark_image(theme, "chevron-down")}; width: 12px; height: 12px; }}
QTreeView::branch {{ background: transparent; }}
QTreeView::branch:has-children:closed {{ image: {mark_image(theme, "branch-closed")}; }}
QTreeView::branch:has-children:open {{ image: {mark_image(theme, "branch-open")}; }}
"""


def tabs(theme: Theme, scale: float) -> str:
    """Return the rules of tabs."""
    size = round(12 * scale)
    return f"""
QTabWidget::pane {{ border: none; border-top: 1px solid {theme.line}; }}
QTabWidget::tab-bar {{ left: 0px; }}
QTabBar {{ background: {theme.panel}; border: none; }}
QTabBar::tab {{
  background: transparent; color: {theme.dim}; padding: 6px 16px 6px 16px; min-height: {round(16 * scale)}px;
  border: 1px solid transparent; border-bottom: 2px solid transparent;
}}
QTabBar::tab:hover {{ color: {theme.text}; background: {theme.hover}; }}
QTabBar::tab:selected {{ color: {theme.text}; border-bottom-color: {theme.accent}; }}
QTabBar::tab:selected:focus {{ background: {theme.selection}; }}
QTabBar::tab:disabled {{ color: {theme.faint}; }}
QTabBar::close-button {{
  image: {mark_image(theme, "close")}; width: {size}px; height: {size}px; border-radius: 4px;
  subcontrol-position: right; margin: 2px;
}}
QTabBar::close-button:hover {{ background: {theme.edge}; }}
QTabBar::scroller {{ width: {round(48 * scale)}px; }}
QTabBar QToolButton {{
  background: {theme.panel}; border: 1px solid transparent; min-width: 0px; min-height: 0px; padding: 0px;
  margin: 4px 0px;
}}
QTabBar QToolButton:hover {{ background: {theme.hover}; }}
"""


def menus(theme: Theme, scale: float) -> str:
    """Return the rules of the menu bar and menus."""
    size, icon = round(12 * scale), round(16 * scale)
    return f"""
QMenuBar {{ background: {theme.panel}; border: none; padding: 2px 4px; }}
QMenuBar::item {{ background: transparent; padding: 4px 8px; border-radius: 4px; }}
QMenuBar::item:selected {{ background: {theme.hover}; }}
QMenu {{ background: {theme.card}; border: 1px solid {theme.edge}; padding: 4px; icon-size: {icon}px; }}
QMenu::item {{ padding: 4px 24px 4px 12px; border-radius: 4px; background: transparent; }}
QMenu::item:selected {{ background: {theme.selection}; color: {theme.text}; }}
QMenu::item:disabled {{ color: {theme.faint}; }}
QMenu::separator {{ height: 1px; background: {theme.line}; margin: 4px 8px; }}
QMenu::icon {{ padding-left: 8px; }}
QMenu::indicator {{ width: {size}px; height: {size}px; padding-left: 8px; }}
QMenu::indicator:checked {{ image: {mark_image(theme, "tick")}; }}
QMenu::right-arrow {{ image: {mark_image(theme, "chevron-right")}; width: {size}px; height: {size}px; }}
"""


def scroll_bars(theme: Theme) -> str:
    """Return the rules of thin scroll bars without arrows."""
    return f"""
QScrollBar {{ background: transparent; border: none; margin: 0px; }}
QScrollBar:vertical {{ width: 12px; }}
QScrollBar:horizontal {{ height: 12px; }}
QScrollBar::handle {{ background: {theme.edge}; border-radius: 3px; margin: 3px; }}
QScrollBar::handle:vertical {{ min-height: 32px; }}
QScrollBar::handle:horizontal {{ min-width: 32px; }}
QScrollBar::handle:hover, QScrollBar::handle:pressed {{ background: {theme.outline}; }}
QScrollBar::add-line, QScrollBar::sub-line {{ width: 0px; height: 0px; border: none; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
QAbstractScrollArea::corner {{ background: transparent; }}
"""


def inspector(theme: Theme, scale: float) -> str:
    """Return the rules of the inspector's own widgets."""
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


FOCUS_RING: Final = 2
"""Width of the focus ring in pixels; it replaces a border of one pixel."""


def mark_image(theme: Theme, name: str) -> str:
    """Return the `url()` of an image (arrow, tick, …) of a theme."""
    path = (resources_folder() / "marks" / theme.name / f"{name}.svg").as_posix()
    return f'url("{path}")'


def buttons(theme: Theme, scale: float) -> str:
    """Return the rules of push buttons and tool buttons.

    Qt reserves the width of a menu's arrow but centers the text over it, so half of it belongs to the left padding.
    """
    height, arrow = round(20 * scale), round(12 * scale)
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
QPushButton[link="true"] {{
  background: transparent; border-color: transparent; color: {theme.accent}; padding: 3px 4px;
  text-decoration: underline;
}}
QPushButton[link="true"]:focus {{ border-color: {theme.accent}; padding: 2px 3px; }}
QPushButton[menu="true"] {{ padding-left: {12 - arrow // 2}px; padding-right: {20 + arrow // 2}px; }}
QPushButton[menu="true"]:focus {{ padding-left: {11 - arrow // 2}px; padding-right: {19 + arrow // 2}px; }}
QPushButton::menu-indicator {{
  image: {mark_image(theme, "chevron-down")}; width: {arrow}px; height: {arrow}px;
  subcontrol-origin: padding; subcontrol-position: center right;
  right: 8px;
}}
QToolButton {{
  background: transparent; color: {theme.text}; border: 1px solid transparent; border-radius: 6px; padding: 3px;
  min-height: {height}px; min-width: {height}px;
}}
QLineEdit {{ lineedit-clear-button-icon: {mark_image(theme, "close")}; }}
QLineEdit QToolButton, QLineEdit QToolButton:hover {{
  background: transparent; padding: 0px; border: none; min-height: 0px; min-width: 0px;
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
    """Return the rules of text fields, spin boxes and combo boxes."""
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
QTextBrowser[bare="true"] {{ border: 1px solid transparent; border-radius: 0px; padding: 0px; }}
QTextBrowser[bare="true"]:focus {{ border-color: {theme.accent}; }}
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
  image: {mark_image(theme, "chevron-up")}; width: {round(8 * scale)}px; height: {round(8 * scale)}px;
}}
QAbstractSpinBox::down-arrow {{
  image: {mark_image(theme, "chevron-down")}; width: {round(8 * scale)}px; height: {round(8 * scale)}px;
}}
QAbstractSpinBox::up-arrow:off, QAbstractSpinBox::down-arrow:off {{ image: none; }}
QComboBox::drop-down {{
  subcontrol-origin: border; subcontrol-position: center right; width: {button}px; border: none; right: 4px;
}}
QComboBox::down-arrow {{ image: {mark_image(theme, "chevron-down")}; width: {arrow}px; height: {arrow}px; }}
QComboBox {{ combobox-popup: 0; }}
QComboBox QAbstractItemView {{
  background: {theme.card}; border: 1px solid {theme.edge}; border-radius: 0px; padding: 4px;
  selection-background-color: {theme.selection}; selection-color: {theme.text};
}}
"""


def choices(theme: Theme, scale: float) -> str:
    """Return the rules of check boxes; their indicators scale with the text."""
    size = round(16 * scale)
    return f"""
QCheckBox {{ spacing: 8px; background: transparent; min-height: {round(20 * scale)}px; }}
QCheckBox:disabled {{ color: {theme.faint}; }}
QCheckBox::indicator, QAbstractItemView::indicator {{
  width: {size - 2}px; height: {size - 2}px; border: 1px solid {theme.outline}; background: {theme.field};
  border-radius: 4px;
}}
QCheckBox::indicator:hover {{ border-color: {theme.accent}; }}
QCheckBox::indicator:checked, QAbstractItemView::indicator:checked {{
  background: {theme.accent}; border-color: {theme.accent}; image: {mark_image(theme, "check")};
}}
QCheckBox::indicator:focus {{
  width: {size - 4}px; height: {size - 4}px; border: {FOCUS_RING}px solid {theme.text};
}}
QCheckBox::indicator:disabled {{ border-color: {theme.faint}; background: transparent; }}
QCheckBox::indicator:checked:disabled {{ background: {theme.faint}; }}
"""


def meters(theme: Theme, scale: float) -> str:
    """Return the rules of sliders and progress bars. A bar shows no text."""
    handle = round(16 * scale)
    inset = (handle - 4) // 2
    return f"""
QSlider {{ min-height: {handle + 4}px; background: transparent; }}
QSlider::groove {{ background: {theme.edge}; border-radius: 2px; height: 4px; }}
QSlider::sub-page {{ background: {theme.accent}; border-radius: 2px; }}
QSlider::handle {{
  background: {theme.accent}; border: 2px solid {theme.panel}; border-radius: {handle // 2}px;
  width: {handle - 4}px; height: {handle - 4}px; margin: -{inset}px 0px;
}}
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


def style_sheet(theme: Theme, scale: float, monospace: str = "monospace") -> str:
    """Return the whole style sheet for a theme and text size.

    Args:
        theme: The theme.
        scale: The text size.
        monospace: The family of the system's monospaced font.
    """
    parts = (
        _surfaces(theme),
        _type(theme, scale, monospace),
        buttons(theme, scale),
        fields(theme, scale),
        choices(theme, scale),
        meters(theme, scale),
        lists(theme, scale),
        tabs(theme, scale),
        menus(theme, scale),
        scroll_bars(theme),
        inspector(theme, scale),
    )
    return "\n".join(parts)


def _surfaces(theme: Theme) -> str:
    return f"""
QMainWindow {{ background: {theme.ground}; }}
QDialog, QMessageBox {{ background: {theme.panel}; }}
QSplitter::handle {{ background: {theme.line}; }}
QSplitter::handle:hover {{ background: {theme.accent}; }}
QSplitter::handle:horizontal {{ width: 4px; }}
QSplitter::handle:vertical {{ height: 4px; }}
QScrollArea {{ background: transparent; border: none; }}
QScrollArea > QWidget > QWidget {{ background: transparent; }}
[panel="true"] {{ background: {theme.panel}; border: none; }}
[card="true"] {{ background: {theme.card}; border: 1px solid {theme.line}; border-radius: 8px; }}
QFrame[bubble="true"] {{ background: {theme.selection}; border-radius: 8px; }}
QFrame#tour {{ background: {theme.card}; border: 1px solid {theme.accent}; border-radius: 8px; }}
[card="true"]:hover {{ border-color: {theme.edge}; }}
[card="true"]:focus {{ border: 2px solid {theme.accent}; padding: -1px; }}
[hint="info"] {{ background: {theme.selection}; border: none; border-left: 4px solid {theme.accent}; }}
[hint="warning"] {{ background: {theme.warning_soft}; border: none; border-left: 4px solid {theme.warning}; }}
[hint="bad"] {{ background: {theme.bad_soft}; border: none; border-left: 4px solid {theme.bad}; }}
"""


def _type(theme: Theme, scale: float, monospace: str) -> str:
    return f"""
QLabel {{ background: transparent; }}
[monospace="true"] {{ font-family: "{monospace}"; }}
[dim="true"] {{ color: {theme.dim}; }}
[small="true"] {{ font-size: {round(FONT_SIZE_SMALL * scale)}px; }}
[title="true"] {{ font-size: {round(FONT_SIZE_TITLE * scale)}px; font-weight: 600; }}
[heading="true"] {{ font-size: {round(FONT_SIZE_HEADING * scale)}px; font-weight: 600; }}
[section="true"] {{ color: {theme.dim}; font-size: {round(FONT_SIZE_SMALL * scale)}px; font-weight: 600; }}
[tone="bad"] {{ color: {theme.bad}; }}
[tone="warning"] {{ color: {theme.warning}; }}
[tone="good"] {{ color: {theme.good}; }}
QLabel:disabled {{ color: {theme.faint}; }}
[badge] {{
  font-size: {round(FONT_SIZE_SMALL * scale)}px; font-weight: 600; padding: 0px 8px; border-radius: 8px;
  min-height: {round(16 * scale)}px; max-height: {round(16 * scale)}px;
}}
[badge="plain"] {{ background: {theme.hover}; color: {theme.dim}; }}
[badge="accent"] {{ background: {theme.selection}; color: {theme.accent}; }}
[badge="good"] {{ background: {theme.good_soft}; color: {theme.good}; }}
[badge="warning"] {{ background: {theme.warning_soft}; color: {theme.warning}; }}
[badge="bad"] {{ background: {theme.bad_soft}; color: {theme.bad}; }}
QToolTip {{
  color: {theme.text}; background: {theme.card}; border: 1px solid {theme.edge}; padding: 4px 8px;
  font-size: {round(FONT_SIZE_SMALL * scale)}px;
}}
"""
