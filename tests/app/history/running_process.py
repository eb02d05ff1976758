"""A process that runs and stores a workflow: `python -m tests.app.history.running_process STORE SCRIPT`.

It prints a line for each event, so that tests can wait for a certain moment.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from engine.events import AnyEvent
from engine.runner.options import RunOptions
from engine.runner.run import start
from engine.store import open_store
from tests.app.history.stored_runs import refine


def tell(event: AnyEvent) -> None:
    sys.stdout.write(f"{event.run_id} {event.type} {event.path}\n")
    sys.stdout.flush()


async def work(store_path: Path, script: Path) -> None:
    """Run it to its end."""
    store = open_store(store_path)
    run = start(refine(), {}, RunOptions(default_model=f"scripted:{script}", store=store), on_event=tell)
    await run.result()
    store.close()


if __name__ == "__main__":
    asyncio.run(work(Path(sys.argv[1]), Path(sys.argv[2])))
