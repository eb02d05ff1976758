"""Processes that are killed when a file grows beyond a limit: `python -m tests.crash.growing FOLDER STEP COUNT`.

For each of the limits STEP, 2 STEP … COUNT STEP, in bytes, it forks a process that makes a history in a folder of that
number, keeps a run in it and deletes another; the system kills it where a file would grow beyond. It prints how many
were killed.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path

from engine.store.sqlite import SqliteStore
from tests.engine.store.run_samples import Watcher, complete_run, completed, head, node, started, store_run

HISTORY = "history.sqlite3"
ACKNOWLEDGED = "acknowledged"


def _work(folder: Path, limit: int) -> None:
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    acknowledged = os.open(folder / ACKNOWLEDGED, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    store = SqliteStore(folder / HISTORY)
    journal = store.begin(head("a"))
    watcher = Watcher(journal)
    texts = [random.Random(seq).randbytes(6_000).hex() for seq in range(5)]
    for event in (started("a"), *(node("a", seq, "x", texts[seq]) for seq in range(1, 5)), completed("a", 5)):
        journal.write(event)
        watcher.wait_for(event.seq)
        os.write(acknowledged, f"{event.seq}\n".encode())
    store_run(store, head("b"), complete_run("b"))
    store.delete(["b"])
    os.write(acknowledged, b"deleted\n")
    journal.close()
    store.close()


def main(folder: str, step: str, count: str) -> None:
    """Run and kill all processes."""
    killed = 0
    for number in range(1, int(count) + 1):
        place = Path(folder) / str(number)
        place.mkdir()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                _work(place, number * int(step))
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        killed += os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXFSZ
    sys.stdout.write(f"{killed}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
