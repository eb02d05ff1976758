from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication

from app.theme.style import Style
from app.theme.style import style as running_style


@pytest.fixture
def style(qapp: QApplication) -> Iterator[Style]:
    """The style of the application, which may be changed: it is dark and of the usual size again afterwards."""
    found = running_style()
    found.choose("dark", 1.0)
    yield found
    found.choose("dark", 1.0)
