"""Node ids: what one looks like, and how a free one is made from any text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container

from engine.document.model import NODE_ID_PATTERN, Workflow

MAX_MADE_LENGTH = 40
"""The most characters of an id that is made from a text, before a number is put behind it."""

_NODE_ID = re.compile(NODE_ID_PATTERN)
_NUMBERED = re.compile(r"(.*)_([1-9][0-9]{0,8})")


def is_node_id(text: str) -> bool:
    """Whether a text may be the id of a node: small letters, digits and underscores, a letter first."""
    return _NODE_ID.fullmatch(text) is not None


def make_id(wish: str, taken: Container[str]) -> str:
    """Make a free node id that looks like a text.

    Args:
        wish: Any text, such as a title or the id of a copied node; accents are dropped, other characters become `_`.
        taken: The ids that are no longer free.

    Returns:
        The text as an id, with the next free number behind it where it is taken: `critique`, `critique_2`.
    """
    plain = unicodedata.normalize("NFKD", wish[: 10 * MAX_MADE_LENGTH]).encode("ascii", "ignore").decode().lower()
    made = re.sub("[^a-z0-9]+", "_", plain).strip("_")[:MAX_MADE_LENGTH].rstrip("_")
    if not is_node_id(made):
        made = f"node_{made}" if made else "node"
    if made not in taken:
        return made
    numbered = _NUMBERED.fullmatch(made)
    stem, number = (numbered[1], int(numbered[2])) if numbered else (made, 1)
    while True:
        number += 1
        if (candidate := f"{stem}_{number}") not in taken:
            return candidate


def unique_id(workflow: Workflow, wish: str) -> str:
    """Make an id for a new node of a workflow that looks like a text; see `make_id`."""
    return make_id(wish, workflow.nodes_by_id)
