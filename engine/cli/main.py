"""The `loopwright` program: its commands, and the conversion of errors to messages and exit codes."""

from __future__ import annotations

import errno
import os
import re
import sys
import traceback
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Annotated, Any

import typer

from engine import __version__
from engine.cli.batch_command import batch_command
from engine.cli.catalog_commands import models_app, nodes_command, plugins_command, templates_command, tools_command
from engine.cli.completion import bash_words
from engine.cli.config_command import config_app
from engine.cli.doctor_command import WindowCheck, doctor_command
from engine.cli.document_commands import export_command, graph_command, import_command, validate_command
from engine.cli.exit_codes import ExitCode
from engine.cli.output import discard_stdout, err, prepare_streams
from engine.cli.remedies import error_with_command
from engine.cli.run_command import run_command
from engine.cli.runs_command import runs_app
from engine.errors import EngineError
from engine.formatting import plain_constraint
from engine.runner.event_loop import exit_process

PROGRAM = "loopwright"
DEBUG_VARIABLE = "LOOPWRIGHT_DEBUG"

app = typer.Typer(name=PROGRAM, context_settings={"help_option_names": ["--help", "-h"]})
app.command("run")(run_command)
app.command("batch")(batch_command)
app.add_typer(runs_app, name="runs")
app.command("validate")(validate_command)
app.command("graph")(graph_command)
app.command("import")(import_command)
app.command("export")(export_command)
app.command("nodes")(nodes_command)
app.command("tools")(tools_command)
app.command("plugins")(plugins_command)
app.command("templates")(templates_command)
app.add_typer(models_app, name="models")
app.add_typer(config_app, name="config")
app.command("doctor")(doctor_command)


@app.callback(invoke_without_command=True)
def program(
    context: typer.Context,
    plugin: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Enable an installed plugin for this call. Repeatable.")
    ] = None,
    version: Annotated[bool, typer.Option("--version", "-V", help="Show the version.")] = False,
) -> None:
    """Run workflows in which a language model improves its own work.

    Without a command, the window opens, with the files that are given. See 'loopwright open --help'.

    loopwright [--new-window] [--store PATH] [FILE]...

    Exit codes: 0 success, 1 the run failed, 2 wrong usage or an invalid document, 3 the run waits for an answer,
    130 interrupted, 143 terminated.

    Example: loopwright run self-refine
    """
    if version:
        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        # Rich writes the help itself and returns nothing.
        sys.stdout.write(context.get_help())
    else:
        _activate_extensions(plugin or ())


def _activate_extensions(plugins: Sequence[str]) -> None:
    """Activate the extensions in the user's file, and enable the plugins named for this call.

    Extensions in the file that fail are reported, and the others are still activated.

    Raises:
        PluginError: A plugin named for this call cannot be loaded.
    """
    from engine.extensions import activate_extensions, extensions_path, read_extensions

    path = extensions_path()
    try:
        warnings = activate_extensions(read_extensions(path), path)
    except EngineError as error:
        warnings = [error]
    for warning in warnings:
        err().line(f"Note: {error_with_command(warning)}")
    for name in plugins:
        from engine.extensions import enable_plugin

        enable_plugin(name)


def command_names() -> list[str]:
    """Return the names of all commands."""
    return list(typer.main.get_group(app).commands)


def _join_lines_of_help(command: Any) -> None:
    """Make each paragraph of the help one line, which the terminal wraps, in a command and the commands in it."""
    command.help = re.sub(r"(?<!\n)\n(?!\n)", " ", command.help or "")
    for inner in getattr(command, "commands", {}).values():
        _join_lines_of_help(inner)


def main(arguments: Sequence[str] | None = None, *, window_obstacle: WindowCheck | None = None) -> int:
    """Run the program.

    Args:
        arguments: The arguments; None for those of the process.
        window_obstacle: Tells `doctor` why the window cannot be shown.

    Returns:
        The exit code. Never raises.
    """
    prepare_streams()
    try:
        code = _dispatch(arguments, window_obstacle)
        sys.stdout.flush()
    except OSError as error:
        if error.filename is not None:
            return _report(_describe_bug(error), ExitCode.FAILED)
        # An error without a file name comes from standard output.
        discard_stdout()
        if error.errno not in {errno.EPIPE, errno.EINVAL}:
            return _report(f"The output cannot be written: {error.strerror}.", ExitCode.FAILED)
        return ExitCode.FAILED
    return code


def _dispatch(arguments: Sequence[str] | None, window_obstacle: WindowCheck | None) -> int:
    command = typer.main.get_command(app)
    _join_lines_of_help(command)
    given = None if arguments is None else list(arguments)
    try:
        with bash_words() if os.environ.get("_LOOPWRIGHT_COMPLETE") == "complete_bash" else nullcontext():
            code = command.main(args=given, prog_name=PROGRAM, standalone_mode=False, obj=window_obstacle)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        called = context.command_path if context is not None else PROGRAM
        place, colon, reason = " ".join(error.format_message().split()).rpartition(": ")
        message = f"{place}{colon}{plain_constraint(reason)}"
        if not message:  # a group without a command, whose help is written by now
            return ExitCode.REFUSED
        stop = "" if message.endswith((".", "?", "!")) else "."
        return _report(f"{message}{stop} See '{called} --help'.", ExitCode.REFUSED)
    except EngineError as error:
        return _report(error_with_command(error), ExitCode.REFUSED)
    except (KeyboardInterrupt, typer.Abort):
        return _report("Interrupted.", ExitCode.INTERRUPTED)
    except OSError:
        raise
    except Exception as error:
        return _report(_describe_bug(error), ExitCode.FAILED)
    return int(code or ExitCode.DONE)


def _report(sentence: str, code: ExitCode) -> int:
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exc()
    err().line(sentence)
    return code


def _describe_bug(error: Exception) -> str:
    # Without the error's text, which may contain a key.
    place = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"Internal error ({type(error).__name__} in {os.path.basename(place.filename)}, line {place.lineno}). "  # noqa: PTH119
        f"For details, set {DEBUG_VARIABLE}=1 and run the command again."
    )


if __name__ == "__main__":
    sys.exit(exit_process(main()))
