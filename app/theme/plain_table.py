"""What all tables have in common: rows that are read and chosen from, and never written in."""

from __future__ import annotations

from PySide6.QtWidgets import QAbstractItemView, QTableView


def make_plain(table: QTableView) -> None:
    """Have a table show whole rows, one of them chosen, with no grid and no numbers; Tab leaves it."""
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
    table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    table.setTabKeyNavigation(False)
    table.setShowGrid(False)
    table.setWordWrap(False)
    table.verticalHeader().hide()
    table.horizontalHeader().setHighlightSections(False)
