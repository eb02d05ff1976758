"""Histories of released versions open completely."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from engine.store import open_store
from engine.store.sqlite.schema import STEPS
from engine.store.store_protocol import RunStatus
from tests.data.make_history import CALL, FOLDER, REPLY_KEY, events_of, heads
from tests.engine.store.run_samples import node, started, write_all

_FILES = sorted(FOLDER.glob("history-*.sqlite3"))


def test_a_history_of_each_version_exists():
    assert [file.name for file in _FILES] == [f"history-{version}.sqlite3" for version in range(1, len(STEPS) + 1)]


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
def test_old_history_opens_and_can_be_continued(file: Path, tmp_path: Path):
    path = tmp_path / "h.sqlite3"
    shutil.copy(file, path)
    first, fork = heads()
    with closing(open_store(path)) as store:
        for head in (first, fork):
            assert list(store.events(head.run_id)) == events_of(head.run_id)
            assert (store.document(head.run_id), store.options(head.run_id)) == (head.document, head.options)
        stored = store.find("0123")
        assert (stored.status, stored.pinned, stored.source) == (RunStatus.COMPLETED, True, first.source)
        assert (stored.workflow, stored.iterations, stored.tokens, stored.cost_usd) == ("Refine", 1, 7, 0.5)
        assert stored.part is None
        assert [run.run_id for run in store.children(first.run_id)] == [fork.run_id]
        assert store.cached_reply(REPLY_KEY) == CALL.reply
        write_all(store.reopen(fork.run_id), [node(fork.run_id, 99, "loop[0].draft", "gone on")])
        store.pin(first.run_id, pinned=False)
        store.delete([first.run_id])
        assert list(store.events(fork.run_id))[:-1] == events_of(fork.run_id)


def test_staged_events_of_version_3_are_read(tmp_path: Path):
    """The process was killed after it had staged five of the six events of the run."""
    path = tmp_path / "h.sqlite3"
    shutil.copy(FOLDER / "staged-3.sqlite3", path)
    text = "A text that is long enough for a blob of its own, and for a reference to it. " * 4
    expected = [started("a"), *(node("a", seq, f"loop[{seq}].draft", f"{seq} {text}") for seq in range(1, 6))]
    with closing(open_store(path)) as store:
        assert list(store.events("a")) == expected
        assert store.find("a").status is RunStatus.INTERRUPTED
        more = node("a", 6, "loop[6].draft", "continued")
        write_all(store.reopen("a"), [more])
        assert list(store.events("a", level="loop[6]")) == [more]
