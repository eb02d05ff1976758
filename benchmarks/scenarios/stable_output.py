"""The time of one comparison by the exit condition `stable_output`."""

from __future__ import annotations

import random
from functools import partial
from string import ascii_lowercase

from benchmarks.effort import Effort
from benchmarks.tables import Table, aim, milliseconds
from benchmarks.timing import measured, take_turns
from engine.exits.similarity import similarity

_MOST_S = 0.005
_SEED = 20_061
_CHINESE = 0x4E00
"""The first Chinese character; texts with codes above 255 are compared more slowly."""


def tables(effort: Effort) -> list[Table]:
    """Measure each kind of pair."""
    pairs = _pairs(effort.text, effort.long_text)
    similarity("warm", "up")
    spans = take_turns(
        {name: partial(measured, partial(similarity, *pair)) for name, pair in pairs.items()}, effort.rounds
    )
    table = Table(
        "stable_output: one comparison",
        ("Texts", "characters", "similarity", "CPU, best, ms", "CPU, median, ms", "target"),
    )
    for name, (one, other) in pairs.items():
        there = spans[name]
        table.add(
            name,
            f"{max(len(one), len(other)):,}",
            f"{similarity(one, other):.4f}",
            milliseconds(there.cpu_s),
            milliseconds(there.median_cpu_s),
            aim(there.cpu_s * 1e3, _MOST_S * 1e3, " ms") if len(one) <= effort.text else "–",
        )
    return [table]


def _pairs(length: int, long: int) -> dict[str, tuple[str, str]]:
    source = random.Random(_SEED)
    text, other = _letters(source, length), _letters(source, length)
    long_text, long_other = _letters(source, long), _letters(source, long)
    shift = max(length // 100, 1)
    return {
        "equal": (text, text[:1] + text[1:]),
        "nearly equal: every hundredth letter differs": (text, _changed(text, 100)),
        "every second letter differs": (text, _changed(text, 2)),
        "random": (text, other),
        "random, of 20,000 characters": (_wide(source, length), _wide(source, length)),
        "unlike, of 1,000 characters by frequency": (_by_frequency(source, length), _by_frequency(source, length)),
        "shifted by a hundredth": (text, text[shift:] + other[:shift]),
        "only the end differs": (text, text[:-1] + "!"),
        "nothing in common": ("a" * length, "b" * length),
        "long, random": (long_text, long_other),
        "long, nearly equal": (long_text, _changed(long_text, 100)),
        "long, only the end differs": (long_text, long_text[:-1] + "!"),
    }


def _letters(source: random.Random, length: int) -> str:
    return "".join(source.choices(ascii_lowercase, k=length))


def _wide(source: random.Random, length: int) -> str:
    return "".join(chr(_CHINESE + source.randrange(20_000)) for _ in range(length))


def _by_frequency(source: random.Random, length: int) -> str:
    """Characters with frequencies as in a language (Zipf's law)."""
    alphabet = [chr(_CHINESE + place) for place in range(1_000)]
    return "".join(source.choices(alphabet, [1 / (place + 1) for place in range(1_000)], k=length))


def _changed(text: str, every: int) -> str:
    return "".join("#" if place % every == 0 else letter for place, letter in enumerate(text))
