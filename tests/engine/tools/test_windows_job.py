"""The job object of Windows, with a library that records the calls."""

from __future__ import annotations

import ctypes
from typing import Any

from engine.tools.windows_job import ExtendedLimits, ProcessJob

JOB, PROCESS = 2**40 + 8, 2**40 + 16


class Kernel32:
    """Records the calls, with the values of their arguments."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.CreateJobObjectW = self._function("CreateJobObjectW", JOB)
        self.OpenProcess = self._function("OpenProcess", PROCESS)
        self.SetInformationJobObject = self._function("SetInformationJobObject", 1)
        self.AssignProcessToJobObject = self._function("AssignProcessToJobObject", 1)
        self.CloseHandle = self._function("CloseHandle", 1)

    def _function(self, name: str, result: int) -> Any:
        def call(*arguments: Any) -> int:
            self.calls.append((name, *(getattr(argument, "value", argument) for argument in arguments)))
            return result

        return call


def test_structure_is_as_long_as_that_of_windows():
    pointer = ctypes.sizeof(ctypes.c_void_p)
    assert ctypes.sizeof(ExtendedLimits) == {8: 144, 4: 112}[pointer]
    assert ExtendedLimits.IoInfo.offset == {8: 64, 4: 48}[pointer]


def test_process_is_in_a_job_that_ends_with_its_handle():
    library = Kernel32()
    job = ProcessJob(4711, library)
    (created, limited, opened, assigned, closed) = library.calls
    assert created == ("CreateJobObjectW", None, None)
    name, handle, kind, limits, size = limited
    assert (name, handle, kind, size) == ("SetInformationJobObject", JOB, 9, ctypes.sizeof(ExtendedLimits))
    assert limits._obj.BasicLimitInformation.LimitFlags == 0x2000
    assert opened == ("OpenProcess", 0x0101, 0, 4711)
    assert assigned == ("AssignProcessToJobObject", JOB, PROCESS)
    assert closed == ("CloseHandle", PROCESS)
    job.close()
    job.close()
    assert library.calls[5:] == [("CloseHandle", JOB)]
