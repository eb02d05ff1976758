from __future__ import annotations

import pytest

from tests.engine.cli.kit import Program


@pytest.fixture
def program(capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(capsys)
