"""Supervisor process between this program and a program of a tool, so that no process outlives either.

It is run as a file: `supervisor.py LIFELINE PROGRAM ARGUMENT…`. It starts the program and exits like it. LIFELINE is
the descriptor of a socket to the parent, which closes when the parent dies, however it dies. Then, and when the program
has ended, the supervisor kills every descendant: on Linux also those that left the session, elsewhere those in the
program's process group. It imports nothing of the engine and as little as possible.

It writes one line to the lifeline: `started PID`, or `failed ERRNO`.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Run the program of the command line and exit like it."""
    lifeline, command = int(sys.argv[1]), sys.argv[2:]
    os.set_inheritable(lifeline, False)
    if sys.platform == "linux":
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)  # the kernel reparents orphaned descendants to this process
    wake, woken = os.pipe()
    for end in (wake, woken):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(woken)
    program, failure = start(command)
    if failure:
        os.write(lifeline, b"failed %d\n" % failure)
        os._exit(127)
    release_pipes()
    status = None
    # A parent that has died does not read; the loop below notices the end of the lifeline.
    with contextlib.suppress(OSError):
        os.write(lifeline, b"started %d\n" % program)
    while status is None:
        readable, _, _ = select.select([lifeline, wake], [], [])
        if wake in readable:
            with contextlib.suppress(BlockingIOError):
                while os.read(wake, 512):
                    pass
            status = reap(program)
        if lifeline in readable:
            break
    kill_descendants(program)
    exit_like(status)


def start(command: list[str]) -> tuple[int, int]:
    """Start the program in a new session; return its process id, and the error number if it cannot be run, else 0."""
    failed, fails = os.pipe()
    program = os.fork()
    if program == 0:
        try:
            os.setsid()
            if sys.platform == "linux":
                _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # in case this process itself is killed
            for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python
                signal.signal(ignored, signal.SIG_DFL)
            os.execvpe(command[0], command, os.environ)  # noqa: S606 - the caller is responsible for the command
        except OSError as error:
            os.write(fails, b"%d" % (error.errno or 0))
        finally:
            os._exit(127)
    os.close(fails)
    failure = os.read(failed, 16)
    os.close(failed)
    return program, int(failure or b"0")


def release_pipes() -> None:
    """Close this process's copies of the pipes, so that the parent sees when the program closes its own."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)


def reap(program: int) -> int | None:
    """Reap every child that has ended; return the program's status if it is among them."""
    status = None
    with contextlib.suppress(ChildProcessError):
        while True:
            ended, how = os.waitpid(-1, os.WNOHANG)
            if not ended:
                break
            if ended == program:
                status = how
    return status


def kill_descendants(program: int) -> None:
    """Kill the program and all its descendants until none is left."""
    while True:
        if sys.platform != "linux":
            with contextlib.suppress(OSError):
                os.killpg(program, signal.SIGKILL)
        for process in descendants():
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)  # orphans have become children of this process
        except ChildProcessError:
            return


def descendants() -> set[int]:
    """The processes that descend from this one, as far as the system reports them (Linux)."""
    parents: dict[int, int] = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib would be another import
            if name.isdecimal():
                with (
                    contextlib.suppress(OSError, ValueError, IndexError),
                    open(f"/proc/{name}/stat", "rb") as file,  # noqa: PTH123 - as above
                ):
                    parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    found, fresh = set[int](), {os.getpid()}
    while fresh:
        fresh = {process for process, parent in parents.items() if parent in fresh} - found
        found |= fresh
    return found


def exit_like(status: int | None) -> None:
    """Exit with the program's exit code, or by the signal that ended it."""
    if status is not None and os.WIFSIGNALED(status):
        import resource

        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program has left its own core dump
        with contextlib.suppress(OSError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) if status is not None else 128 + signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main()
