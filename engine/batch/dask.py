"""A Dask cluster as an executor: one that is there, or one of processes on this machine."""

from __future__ import annotations

import logging
from collections.abc import Generator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from engine.errors import EngineError

_CONNECT_S: Final = 20
"""Seconds in which a scheduler has to answer."""


@contextmanager
def dask_executor(address: str = "", workers: int = 4) -> Generator[Executor]:
    """An executor that runs what it is given on a Dask cluster.

    Args:
        address: The scheduler's (`tcp://host:8786`); empty starts a cluster of processes on this machine.
        workers: How many processes that has.

    Raises:
        EngineError: Dask is not installed, or there is no scheduler at that address.
    """
    try:
        import distributed
    except ImportError:
        raise EngineError("Dask is not installed.", "Install it with: pip install 'loopwright[batch]'.") from None
    module: Any = distributed
    with ExitStack() as stack:
        try:
            where: Any = address
            if not address:
                where = stack.enter_context(
                    module.LocalCluster(
                        n_workers=workers,
                        threads_per_worker=1,
                        processes=True,
                        dashboard_address=None,
                        silence_logs=logging.CRITICAL,
                    )
                )
            client: Any = stack.enter_context(module.Client(where, timeout=_CONNECT_S))
        except (OSError, ValueError, TypeError) as error:
            raise EngineError(
                f'There is no Dask scheduler at "{address}".' if address else f"Dask cannot be started: {error}.",
                "Check the address, such as tcp://host:8786, and whether the scheduler runs.",
            ) from error
        # Two rows may be alike, and each is to be run.
        yield client.get_executor(pure=False)
