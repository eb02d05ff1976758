"""Leases: which process owns a run, and whether that process is alive.

A process that writes runs has a row with its process id, host and a heartbeat. It is alive while the heartbeat is
recent and, on the same host, while the process exists.
"""

from __future__ import annotations

import os
import secrets
import socket
import sqlite3
import sys
import time
from typing import Final

BEAT_S: Final = 5.0
"""Seconds between heartbeats."""
STALE_S: Final = 30.0
"""Seconds without a heartbeat after which a process counts as dead."""
_EXPIRED_S: Final = 7 * 86_400.0


class Owner:
    """The lease of one open store of this process.

    Attributes:
        token: Random id in the file. Two stores in one process are two owners.
    """

    def __init__(self) -> None:
        self.token = secrets.randbits(62)
        self._last_beat = 0.0

    def beat(self, connection: sqlite3.Connection) -> None:
        """Write a heartbeat if one is due. Call inside a transaction."""
        now = time.time()
        if self._is_due(now):
            connection.execute("DELETE FROM owners WHERE beat < ?", (now - _EXPIRED_S,))
            connection.execute(
                "INSERT INTO owners (id, host, pid, beat) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET beat = excluded.beat",
                (self.token, socket.gethostname(), os.getpid(), now),
            )
            self._last_beat = now

    def forget_beat(self) -> None:
        """Forget the last heartbeat, whose transaction may have been rolled back."""
        self._last_beat = 0.0

    def leave(self, connection: sqlite3.Connection) -> None:
        """Release all runs of this process. Call inside a transaction."""
        connection.execute("UPDATE runs SET owner = NULL WHERE owner = ?", (self.token,))
        connection.execute("DELETE FROM owners WHERE id = ?", (self.token,))

    def _is_due(self, now: float) -> bool:
        return not 0 <= now - self._last_beat < BEAT_S  # or the clock was set back


def live_owners(connection: sqlite3.Connection) -> list[int]:
    """Return the tokens of the owners that are alive."""
    now, here = time.time(), socket.gethostname()
    rows = connection.execute("SELECT id, host, pid, beat FROM owners").fetchall()
    return [
        token for token, host, pid, beat in rows if abs(now - beat) < STALE_S and (host != here or _has_process(pid))
    ]


def _has_process(pid: int) -> bool:
    """Return whether the process exists. On Windows always true, because checking with a signal could kill it."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # a process of another user
    return True
