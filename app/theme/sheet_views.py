"""The part of the style sheet for lists, tables, trees, tabs, menus and scroll bars. No Qt here."""

from __future__ import annotations

from app.theme.sheet_controls import mark_url
from app.theme.tokens import FONT_SIZE_SMALL, Theme


def lists(theme: Theme, scale: float) -> str:
    """Lists, tables and trees, with their headers."""
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
QHeaderView {{ background: {theme.panel}; border: none; }}
QHeaderView::section {{
  background: {theme.panel}; color: {theme.dim}; border: none; border-bottom: 1px solid {theme.line};
  padding: 4px 8px; font-size: {round(FONT_SIZE_SMALL * scale)}px; font-weight: 600; text-align: left;
}}
QHeaderView::section:hover {{ color: {theme.text}; }}
QHeaderView::up-arrow {{ image: {mark_url(theme, "chevron-up")}; width: 12px; height: 12px; }}
QHeaderView::down-arrow {{ image: {mark_url(theme, "chevron-down")}; width: 12px; height: 12px; }}
QTableCornerButton::section {{ background: {theme.panel}; border: none; }}
QTreeView::branch {{ background: transparent; }}
QTreeView::branch:has-children:closed {{ image: {mark_url(theme, "branch-closed")}; }}
QTreeView::branch:has-children:open {{ image: {mark_url(theme, "branch-open")}; }}
"""


def tabs(theme: Theme, scale: float) -> str:
    """Tabs: the document's and those within a panel."""
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
  image: {mark_url(theme, "close")}; width: {size}px; height: {size}px; border-radius: 4px;
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
    """The menu bar and menus."""
    size = round(12 * scale)
    return f"""
QMenuBar {{ background: {theme.panel}; border: none; padding: 2px 4px; }}
QMenuBar::item {{ background: transparent; padding: 4px 8px; border-radius: 4px; }}
QMenuBar::item:selected {{ background: {theme.hover}; }}
QMenu {{ background: {theme.card}; border: 1px solid {theme.edge}; padding: 4px; }}
QMenu::item {{ padding: 4px 24px 4px 12px; border-radius: 4px; background: transparent; }}
QMenu::item:selected {{ background: {theme.selection}; color: {theme.text}; }}
QMenu::item:disabled {{ color: {theme.faint}; }}
QMenu::separator {{ height: 1px; background: {theme.line}; margin: 4px 8px; }}
QMenu::icon {{ padding-left: 8px; }}
QMenu::indicator {{ width: {size}px; height: {size}px; padding-left: 8px; }}
QMenu::indicator:checked {{ image: {mark_url(theme, "tick")}; }}
QMenu::right-arrow {{ image: {mark_url(theme, "chevron-right")}; width: {size}px; height: {size}px; }}
"""


def scroll_bars(theme: Theme) -> str:
    """Thin scroll bars without arrows."""
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
