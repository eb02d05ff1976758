"""Which process a run belongs to, and whether that process is still there.

A process that keeps runs has a row with its number, its machine and a heartbeat. Its runs are under way as long as the
heart beats and, on this machine, as long as there is a process of that number.
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
"""Seconds between two beats."""
STALE_S: Final = 30.0
"""Seconds without a beat after which a process counts as gone."""
_FORGOTTEN_S: Final = 7 * 86_400.0


class Owner:
    """This process, as far as one open store goes.

    Attributes:
        token: Its number in the file, chosen at random: two stores open in one process are two owners.
    """

    def __init__(self) -> None:
        self.token = secrets.randbits(62)
        self._beaten = 0.0

    def beat(self, connection: sqlite3.Connection) -> None:
        """Say that this process is there, unless that was said just now. Inside a transaction."""
        now = time.time()
        if self._is_due(now):
            connection.execute("DELETE FROM owners WHERE beat < ?", (now - _FORGOTTEN_S,))
            connection.execute(
                "INSERT INTO owners (id, host, pid, beat) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET beat = excluded.beat",
                (self.token, socket.gethostname(), os.getpid(), now),
            )
            self._beaten = now

    def forget_beat(self) -> None:
        """The transaction of the last beat may have been taken back."""
        self._beaten = 0.0

    def leave(self, connection: sqlite3.Connection) -> None:
        """Say that this process is done with all its runs. Inside a transaction."""
        connection.execute("UPDATE runs SET owner = NULL WHERE owner = ?", (self.token,))
        connection.execute("DELETE FROM owners WHERE id = ?", (self.token,))

    def _is_due(self, now: float) -> bool:
        return not 0 <= now - self._beaten < BEAT_S  # also where the clock was put back


def live_owners(connection: sqlite3.Connection) -> list[int]:
    """The owners that are still there."""
    now, here = time.time(), socket.gethostname()
    rows = connection.execute("SELECT id, host, pid, beat FROM owners").fetchall()
    return [
        token for token, host, pid, beat in rows if abs(now - beat) < STALE_S and (host != here or _has_process(pid))
    ]


def _has_process(pid: int) -> bool:
    """Whether this machine has a process of that number; on Windows nobody asks, because asking may end it."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # somebody else's
    return True
