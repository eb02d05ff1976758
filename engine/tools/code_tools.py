"""The tools `python` and `shell`: each runs one program to its end.

The program runs in the allowed folder or a temporary one, with a timeout and a limit on its output.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from engine.errors import Fix
from engine.formatting import format_count, format_timeout
from engine.safe_file_io import normalize_line_ends
from engine.tools.processes import ToolProcess, small_environment, start_process
from engine.tools.sandbox import explain_os_errors
from engine.tools.tool import Parameters, Text, Tool, ToolContext, ToolError
from engine.values import Value

MAX_OUTPUT_BYTES: Final = 1_000_000
"""Maximum size of a program's standard output, and of its error output."""

_CHUNK: Final = 65_536
_PYTHON_NAME: Final = "python"
_SHELL_NAME: Final = "shell"
_IS_POSIX: Final = os.name == "posix"

_Input = Annotated[
    Text, Field(title="Standard input", description="Text for the program's standard input.", max_length=10_000_000)
]
_Timeout = Annotated[
    float,
    Field(
        title="Timeout (seconds)",
        description="The program is then ended with everything that it started.",
        gt=0,
        le=3600,
    ),
]


class PythonParameters(Parameters):
    """Parameters of `python`."""

    code: Text = Field(
        title="Code", description="A Python program. Its result is what it prints.", min_length=1, max_length=100_000
    )
    input: _Input = ""
    timeout_s: _Timeout = 30.0


async def python(parameters: PythonParameters, context: ToolContext) -> Value:
    """Run the code with the Python of this program: `{exit_code, stdout, stderr}`.

    Raises:
        ToolError: Running code is not allowed, or it takes too long or writes too much.
    """
    _check_allowed(_PYTHON_NAME, context)
    with _temporary_folder() as folder:
        program = folder / "program.py"
        with explain_os_errors("The program cannot be written"):
            program.write_text(parameters.code, encoding="utf-8", newline="")
        return await _run(_PYTHON_NAME, (sys.executable, "-I", "-X", "utf8", str(program)), parameters, context)


PYTHON = Tool(
    name=_PYTHON_NAME,
    title="Run Python code",
    help="Runs Python code in the run's folder; off unless a person allows it.",
    parameters=PythonParameters,
    output_type="json",
    run=python,
    runs_code=True,
    uses_folder=True,
)


class ShellParameters(Parameters):
    """Parameters of `shell`."""

    command: Text = Field(
        title="Command",
        description="A command line for the system's shell. Pass untrusted values by 'Standard input'.",
        min_length=1,
        max_length=30_000,
    )
    input: _Input = ""
    timeout_s: _Timeout = 30.0


async def shell(parameters: ShellParameters, context: ToolContext) -> Value:
    """Run the command: `{exit_code, stdout, stderr}`.

    Raises:
        ToolError: Running commands is not allowed, or it takes too long or writes too much.
    """
    _check_allowed(_SHELL_NAME, context)
    if _IS_POSIX:
        return await _run(_SHELL_NAME, ("/bin/sh", "-c", parameters.command), parameters, context)
    with _temporary_folder() as folder:
        return await _run(_SHELL_NAME, batch_file_arguments(folder, parameters.command), parameters, context)


def batch_file_arguments(folder: Path, command: str) -> tuple[str, ...]:
    """Write a command line to a batch file, and return the arguments that run it on Windows.

    As an argument, its quotation marks would be escaped for C programs, which `cmd.exe` does not understand.

    Args:
        folder: The folder for the file.
        command: The command line.
    """
    file = folder / "command.cmd"
    with explain_os_errors("The command cannot be written"):
        lines = f"@echo off\nchcp 65001 >nul\n{normalize_line_ends(command)}\n"
        file.write_text(lines, encoding="utf-8", newline="\r\n")
    # After `call` a path with spaces and parentheses keeps its quotation marks.
    return (os.environ.get("COMSPEC", r"C:\Windows\System32\cmd.exe"), "/d", "/c", "call", str(file))


SHELL = Tool(
    name=_SHELL_NAME,
    title="Run a command",
    help="Runs a command line in the run's folder; off unless a person allows it.",
    parameters=ShellParameters,
    output_type="json",
    run=shell,
    runs_code=True,
    uses_folder=True,
)


def _check_allowed(name: str, context: ToolContext) -> None:
    """Refuse to run code unless the person has allowed it."""
    if not context.allow_code:
        raise ToolError(
            f'The tool "{name}" runs code on this computer, which this run is not allowed to do.',
            "If you trust the workflow, allow it to run code.",
            fix=Fix.ALLOW_CODE,
        )


@contextlib.contextmanager
def _temporary_folder() -> Generator[Path]:
    with explain_os_errors("Cannot create a temporary folder"):
        folder = tempfile.TemporaryDirectory(prefix="loopwright-", ignore_cleanup_errors=True)
    with folder as path:
        yield Path(path)


class _TooMuchOutputError(Exception):
    """A program wrote more than it may."""


async def _run(
    name: str, arguments: Sequence[str], given: PythonParameters | ShellParameters, context: ToolContext
) -> Value:
    """Run a program in the allowed folder, or in a temporary one: `{exit_code, stdout, stderr}`."""
    with contextlib.ExitStack() as stack:
        folder = context.folder if context.folder is not None else stack.enter_context(_temporary_folder())
        try:
            process = await start_process(arguments, folder=folder, environment=small_environment())
        except (OSError, ValueError) as error:
            raise _start_error(arguments[0], folder, error) from error
        try:
            async with asyncio.timeout(given.timeout_s):
                return await _outcome(process, given.input)
        except TimeoutError as error:
            raise ToolError(
                f'The tool "{name}" took longer than {format_timeout(given.timeout_s)} and was stopped.',
                "Raise its timeout, or reduce its work.",
            ) from error
        except _TooMuchOutputError as error:
            raise ToolError(
                f'The tool "{name}" wrote more than {format_count(MAX_OUTPUT_BYTES, "byte")} and was stopped.',
                "Reduce its output, or write to a file.",
            ) from error
        finally:
            await process.end_and_wait()


def _start_error(program: str, folder: Path, error: OSError | ValueError) -> ToolError:
    if isinstance(error, ValueError):
        return ToolError("The command contains a NUL character.", "Remove it.")
    if not folder.is_dir():
        return ToolError("The run's folder no longer exists.", "Start the run with another one.")
    reason = error.strerror or type(error).__name__
    return ToolError(f"{program} cannot be started: {reason}.", "Check that it is installed.")


async def _outcome(process: ToolProcess, text: str) -> Value:
    output = asyncio.create_task(_read(process.stdout))
    errors = asyncio.create_task(_read(process.stderr))
    tasks = (output, errors, asyncio.create_task(_write(process, text)), asyncio.create_task(process.exited()))
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return {
        "exit_code": process.returncode,
        "stdout": output.result().decode("utf-8", "replace"),
        "stderr": errors.result().decode("utf-8", "replace"),
    }


async def _write(process: ToolProcess, text: str) -> None:
    with contextlib.suppress(ConnectionError):  # a program may end without reading its input
        process.stdin.write(text.encode("utf-8", "replace"))
        await process.stdin.drain()
    process.stdin.close()


async def _read(stream: asyncio.StreamReader) -> bytes:
    read = bytearray()
    while chunk := await stream.read(_CHUNK):
        read += chunk
        if len(read) > MAX_OUTPUT_BYTES:
            raise _TooMuchOutputError
    return bytes(read)
