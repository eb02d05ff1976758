"""The errors that every store raises with the same words."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from engine.store.base import RunHeldError, StoreError
from engine.text_sanitizing import shown


def no_such_run(name: str) -> StoreError:
    """No run has that id."""
    return StoreError(f'There is no run "{name}" in the history.', "'loopwright runs' lists the runs.")


def chosen(prefix: str, found: Sequence[str]) -> str:
    """The one id of those that begin with the prefix.

    Args:
        prefix: What was asked for.
        found: The ids that begin so, the newest run's first; an id that is the whole prefix counts alone.

    Raises:
        StoreError: There is none, or there are several.
    """
    if not prefix or not found:
        raise no_such_run(prefix)
    if prefix in found:
        return prefix
    if len(found) > 1:
        listed = ", ".join(found[:10]) + (" …" if len(found) > 10 else "")
        raise StoreError(f'Several runs begin with "{prefix}": {listed}.', "Give more letters of the id.")
    return found[0]


def still_under_way(run_ids: Collection[str]) -> StoreError:
    """Runs that cannot be deleted yet."""
    listed = ", ".join(sorted(run_ids))
    return StoreError(f"A run that is under way cannot be deleted: {listed}.", "Stop it first.")


def held_elsewhere(run_id: str) -> RunHeldError:
    """A run on which a process is at work."""
    return RunHeldError(
        f'The run "{run_id}" is under way in another window or program.', "Wait for its end, or stop it there first."
    )


def begun_before(run_id: str) -> StoreError:
    """A run whose id is taken."""
    return StoreError(f'The history has a run "{run_id}" already.', "Start it again; it gets another id.")


def answered_before(path: str) -> StoreError:
    """Somebody else was faster."""
    return StoreError(
        f'Somebody else has answered the question at "{shown(path, 60)}" already.', "Look how the run goes on."
    )


def closed() -> StoreError:
    """The store is used after its end."""
    return StoreError("The history was closed.", "Open it again.")
