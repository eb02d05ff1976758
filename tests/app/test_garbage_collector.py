"""Garbage is collected in the window's thread only."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app.garbage_collector import GarbageCollector


class Cycle:
    """Garbage that only a collection frees."""

    freed_in: list[threading.Thread]

    def __init__(self, freed_in: list[threading.Thread]) -> None:
        self.own, self.freed_in = self, freed_in

    def __del__(self) -> None:
        self.freed_in.append(threading.current_thread())


@pytest.fixture
def collector(qtbot: QtBot) -> Iterator[GarbageCollector]:
    parent = QObject()
    was_on = gc.isenabled()
    gc.collect()
    yield GarbageCollector(parent)
    if was_on:
        gc.enable()


def test_garbage_of_another_thread_is_freed_in_the_windows_thread(collector: GarbageCollector, qtbot: QtBot) -> None:
    freed_in: list[threading.Thread] = []
    count = 100 * gc.get_threshold()[0]  # others that are freed meanwhile lower the count

    def work() -> None:
        for _ in range(count):
            Cycle(freed_in)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert freed_in == []
    qtbot.waitUntil(lambda: len(freed_in) == count)
    assert set(freed_in) == {threading.main_thread()}


def test_nothing_is_collected_below_the_threshold(collector: GarbageCollector) -> None:
    gc.collect()
    assert collector.collect() is None


def test_older_generations_follow_at_their_thresholds(
    collector: GarbageCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gc, "get_threshold", lambda: (0, 2, 2))
    survivor = Cycle([])
    alive = weakref.ref(survivor)
    generations = []
    for _ in range(40):
        garbage = [[] for _ in range(100)]
        generations.append(collector.collect())
        del garbage
    assert {0, 1, 2} <= set(generations)
    assert alive() is survivor
