"""The tools `python` and `shell`: each runs one program to its end.

The program runs in the allowed folder or a temporary one, with a timeout and a limit on its output.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
from collections.abc import AsyncGenerator, Generator, Sequence
from pathlib import Path
from typing import Annotated, Final, Protocol

from pydantic import Field

from engine.tools.processes import ToolProcess, small_environment, start_process
from engine.tools.sandbox import explained
from engine.tools.tool import Parameters, Text, Tool, ToolContext, ToolError
from engine.values import Value

MAX_OUTPUT_BYTES: Final = 1_000_000
"""The most that a program may write, to its output and to its errors each."""

_CHUNK: Final = 65_536


Input = Annotated[
    Text,
    Field(title="Standard input", description="Text for the program's standard input.", max_length=10_000_000),
]
"""What a program may read; a parameter of every tool that runs one."""

TimeLimit = Annotated[
    float,
    Field(
        title="Timeout (seconds)",
        description="It is ended then, with everything that it started.",
        gt=0,
        le=3600,
    ),
]
"""How long it may take; a parameter of every tool that runs one."""


class Given(Protocol):
    """What of a tool's parameters matters here."""

    @property
    def input(self) -> str:
        """What it may read."""
        ...

    @property
    def timeout_s(self) -> float:
        """How long it may take."""
        ...


class TooMuchOutputError(Exception):
    """A program wrote more than it may."""


@contextlib.contextmanager
def temporary_folder() -> Generator[Path]:
    """A new folder that is deleted afterwards.

    Raises:
        ToolError: None can be made.
    """
    with explained("No temporary folder can be made"):
        made = tempfile.TemporaryDirectory(prefix="loopwright-", ignore_cleanup_errors=True)
    with made as folder:
        yield Path(folder)


def check_allowed(name: str, context: ToolContext) -> None:
    """Refuse to run code where the person has not allowed it.

    Raises:
        ToolError: It is not allowed.
    """
    if not context.allow_code:
        raise ToolError(
            f'The tool "{name}" runs code on this machine, which this run may not do.',
            "If you trust the workflow, allow it: with --allow-code, or with the box where a run is started.",
        )


async def run_program(name: str, arguments: Sequence[str], given: Given, context: ToolContext) -> Value:
    """Run a program: `{exit_code, stdout, stderr}`.

    Args:
        name: The tool, for its errors.
        arguments: The program and its arguments.
        given: Its input and its time limit.
        context: Says in which folder; without one it is a new one that is deleted afterwards.

    Raises:
        ToolError: It cannot be started, takes too long, or writes too much.
    """
    async with _folder(context.folder) as folder:
        try:
            process = await start_process(arguments, folder=folder, environment=small_environment())
        except (OSError, ValueError) as error:
            raise _not_started(arguments[0], folder, error) from error
        try:
            async with asyncio.timeout(given.timeout_s):
                return await _outcome(process, given.input)
        except TimeoutError as error:
            raise ToolError(
                f'The tool "{name}" took longer than {given.timeout_s:g} s, and was stopped.',
                "Raise its time limit, or let it do less.",
            ) from error
        except TooMuchOutputError as error:
            raise ToolError(
                f'The tool "{name}" wrote more than {MAX_OUTPUT_BYTES:,} bytes, and was stopped.',
                "Let it write less, or to a file.",
            ) from error
        finally:
            await process.end_and_wait()


def _not_started(program: str, folder: Path, error: OSError | ValueError) -> ToolError:
    if isinstance(error, ValueError):
        return ToolError("The command holds a NUL character, which no command may.", "Leave it out.")
    if not folder.is_dir():
        return ToolError("The folder that the run was given is not there any more.", "Start the run with another one.")
    reason = error.strerror or type(error).__name__
    return ToolError(f"{program} cannot be started: {reason}.", "Look whether it is installed.")


@contextlib.asynccontextmanager
async def _folder(allowed: Path | None) -> AsyncGenerator[Path]:
    if allowed is not None:
        yield allowed
        return
    with temporary_folder() as made:
        yield made


async def _outcome(process: ToolProcess, text: str) -> Value:
    output = asyncio.create_task(_read(process.stdout))
    errors = asyncio.create_task(_read(process.stderr))
    tasks = (output, errors, asyncio.create_task(_write(process, text)), asyncio.create_task(_exit(process)))
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


async def _exit(process: ToolProcess) -> None:
    await process.exited()
    process.end()  # what it left behind would hold the pipes open


async def _write(process: ToolProcess, text: str) -> None:
    with contextlib.suppress(ConnectionError):  # one that ends without reading has its reasons
        process.stdin.write(text.encode("utf-8", "replace"))
        await process.stdin.drain()
    process.stdin.close()


async def _read(stream: asyncio.StreamReader) -> bytes:
    read = bytearray()
    while chunk := await stream.read(_CHUNK):
        read += chunk
        if len(read) > MAX_OUTPUT_BYTES:
            raise TooMuchOutputError
    return bytes(read)


_PYTHON_NAME = "python"


class PythonParameters(Parameters):
    """What `python` is asked."""

    code: Text = Field(
        title="Code",
        description="A Python program. What it prints is its result; print(...) what is wanted.",
        min_length=1,
        max_length=100_000,
    )
    input: Input = ""
    timeout_s: TimeLimit = 30.0


async def python(parameters: PythonParameters, context: ToolContext) -> Value:
    """Run the code with the Python of this program: `{exit_code, stdout, stderr}`.

    Raises:
        ToolError: Running code is not allowed, or it takes too long or writes too much.
    """
    check_allowed(_PYTHON_NAME, context)
    with temporary_folder() as folder:
        program = folder / "program.py"
        with explained("The program cannot be written"):
            program.write_text(parameters.code, encoding="utf-8")
        return await run_program(_PYTHON_NAME, (sys.executable, "-I", "-X", "utf8", str(program)), parameters, context)


PYTHON = Tool(
    name=_PYTHON_NAME,
    title="Run Python code",
    help="Runs Python code in the folder that the run was given; off unless a person allows it.",
    parameters=PythonParameters,
    output_type="json",
    run=python,
    runs_code=True,
    uses_folder=True,
)


_SHELL_NAME: Final = "shell"
_SHELL: Final = ("/bin/sh", "-c") if os.name == "posix" else (os.environ.get("COMSPEC", "cmd.exe"), "/d", "/s", "/c")


class ShellParameters(Parameters):
    """What `shell` is asked."""

    command: Text = Field(
        title="Command",
        description="A command line, as the system's shell reads it. Values that are not your own belong into 'Input'.",
        min_length=1,
        max_length=30_000,
    )
    input: Input = ""
    timeout_s: TimeLimit = 30.0


async def shell(parameters: ShellParameters, context: ToolContext) -> Value:
    """Run the command: `{exit_code, stdout, stderr}`.

    Raises:
        ToolError: Running commands is not allowed, or it takes too long or writes too much.
    """
    check_allowed(_SHELL_NAME, context)
    return await run_program(_SHELL_NAME, (*_SHELL, parameters.command), parameters, context)


SHELL = Tool(
    name=_SHELL_NAME,
    title="Run a command",
    help="Runs a command line in the folder that the run was given; off unless a person allows it.",
    parameters=ShellParameters,
    output_type="json",
    run=shell,
    runs_code=True,
    uses_folder=True,
)
