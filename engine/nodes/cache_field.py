"""The setting `cache`: whether a node may use an earlier reply again. `engine.runner.run_storage` does it."""

from __future__ import annotations

from typing import Literal

CacheMode = Literal["off", "repeatable", "always"]
"""Never; where the same request gives the same reply (temperature 0, or no model at all); in any case."""
