"""A folder that this user may not enter, also in tests that run as root."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest


def close_folder(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Let the system calls that enter a folder fail."""

    def refuse(call: Callable[..., Any], path: Any = ".", *more: Any, **options: Any) -> Any:
        if not isinstance(path, int) and Path(os.fsdecode(path)).is_relative_to(folder):
            raise PermissionError(13, "Permission denied", str(path))
        return call(path, *more, **options)

    for function in ("stat", "lstat", "open", "scandir", "listdir"):
        patch.setattr(os, function, partial(refuse, getattr(os, function)))
