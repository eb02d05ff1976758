"""The tool `python`: runs Python code in a process of its own."""

from __future__ import annotations

import sys

from pydantic import Field

from engine.tools.base import Tool, ToolContext
from engine.tools.parameters import Parameters, Text
from engine.tools.run_program import Input, TimeLimit, check_allowed, run_program, temporary_folder
from engine.tools.sandbox import explained
from engine.values import Value

_NAME = "python"


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
    check_allowed(_NAME, context)
    with temporary_folder() as folder:
        program = folder / "program.py"
        with explained("The program cannot be written"):
            program.write_text(parameters.code, encoding="utf-8")
        return await run_program(_NAME, (sys.executable, "-I", "-X", "utf8", str(program)), parameters, context)


PYTHON = Tool(
    name=_NAME,
    title="Run Python code",
    help="Runs Python code in the folder that the run was given; off unless a person allows it.",
    parameters=PythonParameters,
    output_type="json",
    run=python,
    runs_code=True,
    uses_folder=True,
)
