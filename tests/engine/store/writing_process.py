"""A process that stores a run: `python -m tests.engine.store.writing_process FILE RUN COUNT [BYTES]`.

It prints the number of each event once that is stored. BYTES limits the size of files, so that the disk refuses more.
"""

from __future__ import annotations

import sys
from pathlib import Path

from engine.store.sqlite import SqliteStore
from tests.engine.store.run_samples import Watcher, completed, head, iteration, node, started


def main(path: str, run_id: str, count: str, most_bytes: str = "") -> None:
    """Store a run of this many events, the last of which ends it."""
    store = SqliteStore(Path(path))
    journal = store.begin(head(run_id))
    watcher = Watcher(journal)
    if most_bytes:
        import resource
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(most_bytes), int(most_bytes)))
    last = int(count) - 1
    journal.write(started(run_id))
    text = "start"
    for seq in range(1, last):
        text += f"\n---\nremark {seq} of run {run_id}, long enough to be a text of its own in the history's file"
        if seq % 3:
            journal.write(node(run_id, seq, f"loop[{seq // 3}].draft", text))
        else:
            journal.write(iteration(run_id, seq, seq // 3, result=text))
        watcher.wait_for(seq)
        if watcher.errors:
            _say(f"failed: {watcher.errors[0]}")
            return
        _say(watcher.kept[-1])
    journal.write(completed(run_id, last))
    watcher.wait_for(last)
    _say(last)
    journal.close()
    store.close()


def _say(word: object) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
