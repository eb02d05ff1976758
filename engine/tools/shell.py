"""The tool `shell`: runs a command line in a process of its own."""

from __future__ import annotations

import os
from typing import Final

from pydantic import Field

from engine.tools.base import Tool, ToolContext
from engine.tools.parameters import Parameters, Text
from engine.tools.run_program import Input, TimeLimit, check_allowed, run_program
from engine.values import Value

_NAME: Final = "shell"
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
    check_allowed(_NAME, context)
    return await run_program(_NAME, (*_SHELL, parameters.command), parameters, context)


SHELL = Tool(
    name=_NAME,
    title="Run a command",
    help="Runs a command line in the folder that the run was given; off unless a person allows it.",
    parameters=ShellParameters,
    output_type="json",
    run=shell,
    runs_code=True,
    uses_folder=True,
)
