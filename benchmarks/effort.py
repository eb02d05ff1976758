"""The sizes of all scenarios."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """Sizes of the scenarios; the defaults are those of the published figures.

    Attributes:
        rounds: Number of rounds of each contender.
        iterations: Iterations of the loop whose overhead is measured.
        growth: Iterations at which time and memory are measured, ascending.
        chain: Nodes in a row.
        kept: Iterations of the loop that is stored on disk, compared with peers.
        kept_growth: Iterations at which the size of a stored run is measured.
        encodings: Iterations at which the delta encoding is compared with whole texts.
        runs: Runs of the history that is listed.
        width: Model calls side by side.
        items: Items of an iterator, a model call each.
        text: Characters of the texts that are compared.
        long_text: Characters of the longest texts that are compared.
        nodes: Nodes of the document that is validated.
        edges: Edges of that document.
        frames: Frames of the window for the median.
        pieces: Chunks that each node streams to the window.
        reopened: Documents that are opened and closed.
        closed: Documents that are opened, run and closed.
        window_rounds: Maximum number of rounds of the window and its peer.
        peers: Whether to measure peers.
    """

    rounds: int = 7
    iterations: int = 1_000
    growth: tuple[int, ...] = (100, 1_000, 10_000)
    chain: int = 1_000
    kept: int = 200
    kept_growth: tuple[int, ...] = (200, 1_000, 10_000)
    encodings: tuple[int, ...] = (50, 200, 1_000)
    runs: int = 10_000
    width: int = 100
    items: int = 200
    text: int = 10_000
    long_text: int = 1_000_000
    nodes: int = 1_000
    edges: int = 1_500
    frames: int = 60
    pieces: int = 500
    reopened: int = 50
    closed: int = 400
    window_rounds: int = 3
    peers: bool = True


SMALLEST = Effort(
    rounds=1,
    iterations=2,
    growth=(1, 2),
    chain=2,
    kept=2,
    kept_growth=(1, 2),
    encodings=(2,),
    runs=3,
    width=2,
    items=16,
    text=2,
    long_text=4,
    nodes=26,
    edges=30,
    frames=2,
    pieces=20,
    reopened=1,
    closed=1,
    peers=False,
)
"""Minimal sizes, to test that the benchmarks work."""
