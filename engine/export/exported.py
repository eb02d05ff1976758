"""What an export gives."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exported:
    """A workflow as a program.

    Attributes:
        text: The source of a Python module.
        left_out: What it does not do that the workflow does, a sentence each.
    """

    text: str
    left_out: tuple[str, ...]
