"""The end of the process, which a tool that hangs in a thread cannot hold up. Knows nothing of runs.

Python waits without end for the threads of a pool when the process ends, and no thread can be stopped from outside.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import Final

TOOL_THREAD: Final = "loopwright tool"
"""What the name of each thread begins with in which a tool works."""


def tools_at_work(name: str = TOOL_THREAD) -> list[threading.Thread]:
    """The threads that still live, of those whose names begin like this."""
    return [thread for thread in threading.enumerate() if thread.name.startswith(name)]


def end_process(code: int) -> int:
    """End the process at once where a tool still hangs. Everything that is to be kept must be on the disk by now.

    Args:
        code: The exit code.

    Returns:
        The same, where nothing hangs and the process can end as usual.
    """
    if tools_at_work():
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # nobody reads it any more
                stream.flush()
        os._exit(code)
    return code
