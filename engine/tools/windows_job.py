"""A job object of Windows: a process and all that it starts, ended together, at the latest when this program ends."""

from __future__ import annotations

import ctypes
from typing import Any

_EXTENDED_LIMITS = 9  # JobObjectExtendedLimitInformation
_KILL_ON_JOB_CLOSE = 0x2000
_SET_QUOTA_AND_TERMINATE = 0x0101


class _BasicLimits(ctypes.Structure):
    _fields_ = (
        ("PerProcessUserTimeLimit", ctypes.c_int64),
        ("PerJobUserTimeLimit", ctypes.c_int64),
        ("LimitFlags", ctypes.c_uint32),
        ("MinimumWorkingSetSize", ctypes.c_size_t),
        ("MaximumWorkingSetSize", ctypes.c_size_t),
        ("ActiveProcessLimit", ctypes.c_uint32),
        ("Affinity", ctypes.c_size_t),
        ("PriorityClass", ctypes.c_uint32),
        ("SchedulingClass", ctypes.c_uint32),
    )


class ExtendedLimits(ctypes.Structure):
    """The structure `JOBOBJECT_EXTENDED_LIMIT_INFORMATION`."""

    _fields_ = (
        ("BasicLimitInformation", _BasicLimits),
        ("IoInfo", ctypes.c_uint64 * 6),
        ("MemoryLimits", ctypes.c_size_t * 4),
    )


class ProcessJob:
    """A job with one process, and the processes that it starts from then on.

    Without a handle to the job Windows kills all of them: when it is closed, and when this program ends in any way.

    Args:
        process: Id of a process that has just been started. If it has ended already, the job is empty.
        kernel32: The library of Windows.
    """

    def __init__(self, process: int, kernel32: Any) -> None:
        self._kernel32 = kernel32
        # A handle is as long as a pointer; the default is a C int.
        kernel32.CreateJobObjectW.restype = kernel32.OpenProcess.restype = ctypes.c_void_p
        self._job = ctypes.c_void_p(kernel32.CreateJobObjectW(None, None))
        limits = ExtendedLimits(_BasicLimits(LimitFlags=_KILL_ON_JOB_CLOSE))
        kernel32.SetInformationJobObject(self._job, _EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits))
        member = ctypes.c_void_p(kernel32.OpenProcess(_SET_QUOTA_AND_TERMINATE, 0, process))
        kernel32.AssignProcessToJobObject(self._job, member)
        kernel32.CloseHandle(member)

    def close(self) -> None:
        """Kill the processes of the job."""
        job, self._job = self._job, ctypes.c_void_p()
        if job:
            self._kernel32.CloseHandle(job)
