"""The style sheet, made of a theme: surfaces, type and windows here, controls and views in modules of their own.

No Qt here. A widget says what it is through properties, set with `app.theme.style.mark`:
`panel`, `card` (surfaces), `dim`, `small`, `title`, `heading`, `section` (type), `primary`, `quiet`, `danger`, `link`,
`row` (buttons), `invalid` (fields), `bare` (views without a frame; `rows`
where the rows draw the focus themselves, `solid` where scrolling shall be fast),
and `badge`, `hint` and `tone` with a kind.
"""

from __future__ import annotations

from app.theme.sheet_controls import buttons, choices, fields, mark_url, meters
from app.theme.sheet_inspector import inspector
from app.theme.sheet_views import lists, menus, scroll_bars, tabs
from app.theme.tokens import FONT_SIZE, FONT_SIZE_HEADING, FONT_SIZE_SMALL, FONT_SIZE_TITLE, Theme


def style_sheet(theme: Theme, scale: float) -> str:
    """The program's style sheet for a theme and a size of texts."""
    parts = (
        _surfaces(theme),
        _type(theme, scale),
        _windows(theme, scale),
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
QScrollArea {{ background: transparent; border: none; }}
QScrollArea > QWidget > QWidget {{ background: transparent; }}
[panel="true"] {{ background: {theme.panel}; border: none; }}
[card="true"] {{ background: {theme.card}; border: 1px solid {theme.line}; border-radius: 8px; }}
[card="true"]:hover {{ border-color: {theme.edge}; }}
[card="true"]:focus, [card="true"][chosen="true"] {{ border: 2px solid {theme.accent}; }}
[hint="info"] {{ background: {theme.selection}; border: none; border-left: 4px solid {theme.accent}; }}
[hint="warning"] {{ background: {theme.warning_soft}; border: none; border-left: 4px solid {theme.warning}; }}
[hint="bad"] {{ background: {theme.bad_soft}; border: none; border-left: 4px solid {theme.bad}; }}
"""


def _type(theme: Theme, scale: float) -> str:
    return f"""
QLabel {{ background: transparent; }}
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


def _windows(theme: Theme, scale: float) -> str:
    return f"""
QMainWindow::separator {{ background: {theme.ground}; width: 4px; height: 4px; }}
QMainWindow::separator:hover, QSplitter::handle:hover {{ background: {theme.accent}; }}
QSplitter::handle {{ background: {theme.line}; }}
QSplitter::handle:horizontal {{ width: 4px; }}
QSplitter::handle:vertical {{ height: 4px; }}
QDockWidget {{
  font-size: {round(FONT_SIZE * scale)}px; font-weight: 600; border: none; icon-size: 16px;
  titlebar-close-icon: {mark_url(theme, "close")}; titlebar-normal-icon: {mark_url(theme, "float")};
}}
QDockWidget::close-button, QDockWidget::float-button {{
  background: transparent; border: none; border-radius: 4px;
}}
QDockWidget::close-button:hover, QDockWidget::float-button:hover {{ background: {theme.hover}; }}
QDockWidget::title {{ background: {theme.panel}; padding: 8px 12px; border-bottom: 1px solid {theme.line}; }}
QDockWidget > QWidget {{ font-weight: 400; }}
QToolBar {{
  background: {theme.panel}; border: none; border-bottom: 1px solid {theme.line}; spacing: 4px; padding: 4px 8px;
}}
QToolBar::separator {{ background: transparent; border-left: 1px solid {theme.line}; width: 1px; margin: 4px 8px; }}
QStatusBar {{ background: {theme.panel}; color: {theme.dim}; border-top: 1px solid {theme.line}; }}
QStatusBar::item {{ border: none; }}
QStatusBar QLabel {{ color: {theme.dim}; font-size: {round(FONT_SIZE_SMALL * scale)}px; padding: 0px 4px; }}
QGroupBox {{
  border: 1px solid {theme.line}; border-radius: 8px; margin-top: {round(12 * scale)}px; padding: 16px 12px 12px 12px;
}}
QGroupBox::title {{
  subcontrol-origin: margin; subcontrol-position: top left; left: 12px; padding: 0px 4px;
  color: {theme.dim}; background: {theme.panel};
}}
"""
