"""What the model nodes of a loop's body remember of their own earlier iterations."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from engine.models.base import Message
from engine.nodes.replies import whole_text
from engine.nodes.spec import ModelCall
from engine.values import Value, to_text


class LoopMemory:
    """The prompts and replies of each model node of a body, oldest first.

    Args:
        most: How many of the last iterations are kept; None for all.
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._turns: dict[str, deque[tuple[Message, Message]]] = {}

    def of(self, node_id: str) -> tuple[Message, ...]:
        """The node's earlier prompts and replies, as the beginning of a conversation."""
        return tuple(message for turn in self._turns.get(node_id, ()) for message in turn)

    def note(self, node_id: str, calls: Sequence[ModelCall], given: Value) -> None:
        """Take note of what a node was asked and answered in an iteration.

        Args:
            node_id: The node.
            calls: Its model calls.
            given: What it gave: the answer, where its model put that into a tool call.
        """
        if not calls:
            return
        asked, said = calls[0].request.messages[-1], whole_text(calls[-1])
        answered = said if said.strip() else to_text(given)
        if not answered:  # it ended the loop, or said nothing; no model takes an empty reply as its own
            return
        turns = self._turns.setdefault(node_id, deque(maxlen=self._most))
        turns.append((asked, Message("assistant", answered)))
