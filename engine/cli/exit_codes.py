"""What the program's exit codes mean; scripts rely on them."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended."""

    DONE = 0
    FAILED = 1
    REFUSED = 2
    """Wrong use, or a document, an input or a model name with which nothing can be started."""
    WAITING = 3
    """The run waits for a person; it is kept, and goes on with their answer."""
    INTERRUPTED = 130
    TERMINATED = 143
    """By SIGTERM, as a shell or a service manager sends it."""
