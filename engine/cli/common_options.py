"""Arguments and options that several commands share, and what they stand for: history, models, consent."""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli.completion import complete_models
from engine.cli.output import err
from engine.cli.remedies import error_with_command
from engine.errors import EngineError
from engine.text_sanitizing import shown

if TYPE_CHECKING:
    from engine import RunOptions
    from engine.document.model import Workflow
    from engine.models.catalog import Models
    from engine.settings import InvalidSetting, LoadedSettings, UserSettings
    from engine.store.store_protocol import RunSummary, Store

_NAME_AND_INDEX = re.compile(r"(.*?)(\[\d+\])?$", re.DOTALL)
"""A step of a place: the name of a node, and the iteration of a loop."""


def finite(value: float | None) -> float | None:
    """Reject infinity and NaN as an amount of money."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter("The amount must be a finite number.")
    return value


SourceName = Annotated[
    str, typer.Argument(metavar="FILE", help="Workflow file, name of a bundled template, or - for standard input.")
]
RunName = Annotated[str, typer.Argument(metavar="RUN", help="Id of the run, or the beginning of it.")]
IterationsCap = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Upper limit for the max iterations of loops. Default: that of the settings, else 50."
    ),
]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="NAME",
        help="Model for all nodes, such as openai/gpt-4o-mini.",
        autocompletion=complete_models,
    ),
]
BudgetTokens = Annotated[int | None, typer.Option(min=0, metavar="N", help="Token limit of the run, input and output.")]
Allow = Annotated[
    bool, typer.Option("--allow", help="Trust this workflow: run it without asking for consent, now and later.")
]
EventLines = Annotated[bool, typer.Option("--events", help="Write events as JSON, one object per line.")]
ResultJson = Annotated[bool, typer.Option("--json", help="Write the result as one JSON object.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
StorePath = Annotated[
    Path | None,
    typer.Option(
        "--store", metavar="PATH", help="History file. Default: LOOPWRIGHT_STORE, else in the user's data folder."
    ),
]


@dataclass(frozen=True, slots=True)
class RunFlags:
    """The options of commands that run a workflow, with the names of `RunOptions`; None where none is given."""

    model: ModelName = None
    budget_usd: Annotated[
        float | None, typer.Option(min=0, callback=finite, metavar="USD", help="Budget of the run in US dollars.")
    ] = None
    budget_tokens: BudgetTokens = None
    max_iterations_cap: IterationsCap = None
    allow_unknown_price: Annotated[
        bool, typer.Option("--allow-unknown-price", help="Allow models of unknown price despite a budget.")
    ] = False
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            exists=True,
            file_okay=False,
            help="Folder that file tools may read and write. Without it, they have no file access.",
        ),
    ] = None
    allow_private_addresses: Annotated[
        bool,
        typer.Option("--allow-private-addresses", help="Allow http_get to reach this computer and private networks."),
    ] = False
    allow_code: Annotated[
        bool, typer.Option("--allow-code", help="Allow the tools python and shell to run code on this computer.")
    ] = False

    def options(self, workflow: Workflow | None = None) -> RunOptions:
        """Return the run options. The user's settings determine what is not given.

        Args:
            workflow: The document of a new run; None if the history has the options of an earlier one.

        Raises:
            SettingsError: The environment variable of a setting is invalid.
        """
        from engine import RunOptions
        from engine.settings import run_defaults

        values = settings_for_run()
        defaults: dict[str, Any] = {"max_iterations_cap": values.max_iterations_cap}
        if workflow is not None:
            defaults = run_defaults(values, workflow)
        return RunOptions(**defaults | {name: value for name, value in asdict(self).items() if value is not None})


NO_FLAGS = RunFlags()


def with_run_flags(*omitted: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Decorate a command: replace its parameter `flags` by an option for each field of `RunFlags`.

    Omitted fields, and those that the command declares itself, keep their defaults in `flags`.
    """

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        signature = inspect.signature(command, eval_str=True)
        excluded = {*omitted, *signature.parameters}
        fields = inspect.signature(RunFlags, eval_str=True).parameters.values()
        added = [field for field in fields if field.name not in excluded]

        @wraps(command)
        def run(**given: Any) -> int:
            flags = RunFlags(**{field.name: given.pop(field.name) for field in added})
            return command(**given, flags=flags)

        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            parameters += added if parameter.name == "flags" else [parameter]
        run.__signature__ = signature.replace(parameters=parameters)  # pyright: ignore[reportAttributeAccessIssue]
        return run

    return decorate


def find_place(store: Store, run_id: str, text: str) -> str:
    """Return a place in a run with the ids of its nodes; a person may name them by titles: `Refine[2].First draft`.

    Raises:
        EngineError: Several nodes have that title, or no node has it.
    """
    from engine.document.model import is_node_id
    from engine.nodes.judge import JUDGE
    from engine.nodes.node_names import find_node, simplified
    from engine.store.run_sections import structure_or_empty

    level, steps, pieces = structure_or_empty(store.document(run_id)), list[str](), text.strip().split(".")
    while pieces:
        if pieces[0] == JUDGE and steps and JUDGE not in level.workflow.nodes_by_id:
            return ".".join((*steps, *pieces))  # a loop's judge, whatever other nodes are called
        ids, names = level.workflow.nodes_by_id, set(map(simplified, level.resolution.names.values()))
        for count in range(1, len(pieces) + 1):  # titles may contain dots
            name, index = _NAME_AND_INDEX.findall(".".join(pieces[:count]))[0]
            if name in ids or simplified(name) in names:
                break
        else:
            count, (name, index) = 1, _NAME_AND_INDEX.findall(pieces[0])[0]
            if not name or "[" in name or is_node_id(name):  # an unknown id is an error of the place
                return ".".join((*steps, *pieces))
        node = find_node(level.workflow, name)
        steps.append(f"{node}{index}")
        pieces, level = pieces[count:], level.subflows.get(node, level)
    return ".".join(steps)


def can_ask() -> bool:
    """Whether a person can answer at a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str, *, yes: bool) -> None:
    """Ask a person to confirm, unless `--yes` is given. The command ends if they do not.

    Raises:
        EngineError: There is no terminal to ask at.
    """
    if yes:
        return
    if not can_ask():
        raise EngineError("This needs confirmation, and there is no terminal to ask at.", "Add --yes.")
    typer.confirm(question, abort=True, err=True)


class NotApprovedError(EngineError):
    """A workflow uses resources of this computer without consent."""


def ask_consent(workflow: Workflow, *, allow: bool, is_imported: bool = False) -> bool:
    """Get consent for the resources that a workflow uses. Workflows that only call models need none.

    Args:
        workflow: The document, as it would run.
        allow: Whether the user has consented by an option.
        is_imported: Whether this resumes an imported run, whose stored results may be forged.

    Returns:
        Whether calls that the document does not contain must be confirmed during the run.

    Raises:
        NotApprovedError: There is no consent, and no terminal to ask at.
    """
    from engine.runner.capabilities import capabilities_of
    from engine.store.consent import approve, is_approved, is_fully_trusted

    reach = capabilities_of(workflow)
    if not reach:
        return False
    if allow:
        approve(workflow, fully=True)
        return False
    if is_approved(workflow):
        return is_imported or not is_fully_trusted(workflow)
    screen = err()
    screen.line("This workflow has not run here before. It uses:", style="bold")
    for line in reach.lines():
        screen.line(f"  {line}")
    if not can_ask():
        raise NotApprovedError("The workflow needs consent, so nothing was run.", "If you trust it, add --allow.")
    typer.confirm("Do you trust this workflow and want to run it?", abort=True, err=True)
    approve(workflow)
    return True


@contextmanager
def history(context: typer.Context, path: Path | None) -> Generator[Store]:
    """Open the history, and close it afterwards. One that cannot be written is open for reading.

    Args:
        context: The command; holds the path of `runs --store PATH`.
        path: The command's own `--store`, which takes precedence.

    Raises:
        StoreError: The history cannot be opened.
    """
    from engine.store import open_store

    with closing(open_store(path or context.obj, for_reading=True)) as store:
        yield store


def settings_for_run() -> UserSettings:
    """Return the settings for a command that runs or checks workflows, with a warning for each that is ignored.

    Settings that concern only the window are not checked.

    Raises:
        SettingsError: An environment variable is invalid: whoever sets a budget must not run without one.
    """
    from engine.settings import WINDOW_SETTINGS, SettingsError, Source, UserSettings, load_settings

    loaded = load_settings(UserSettings)
    invalid = tuple(one for one in loaded.invalid if one.name not in WINDOW_SETTINGS)
    for one in invalid:
        if one.source is Source.ENVIRONMENT:
            raise SettingsError(_invalid_setting(one), "Correct it, or unset it.")
    _warn_of_settings(replace(loaded, invalid=invalid))
    return loaded.values


def user_settings() -> LoadedSettings[UserSettings]:
    """Load the user's settings, with a warning for each that is ignored."""
    from engine.settings import UserSettings, load_settings

    loaded = load_settings(UserSettings)
    _warn_of_settings(loaded)
    return loaded


def _warn_of_settings(loaded: LoadedSettings[UserSettings]) -> None:
    warnings = [f"{_invalid_setting(one)} It is ignored." for one in loaded.invalid]
    if loaded.unreadable is not None:
        warnings.insert(0, f"{error_with_command(loaded.unreadable)} The default settings apply.")
    for warning in warnings:
        err().line(f"Warning: {warning}", style="yellow")


def _invalid_setting(invalid: InvalidSetting) -> str:
    from engine.settings import Source, variable_of

    is_file = invalid.source is Source.FILE
    place = f'setting "{invalid.name}"' if is_file else f"environment variable {variable_of(invalid.name)}"
    return f"The {place} is invalid: {shown(invalid.reason, 200)}"


def models_with(path: Path | None, opened: Store | None = None) -> Models:
    """The models for a run, including `recorded:RUN` and those on the user's own servers.

    Args:
        path: The history file, opened when a recorded model needs it; None for the default.
        opened: The history, if it is already open.
    """
    from engine.models.catalog import Models
    from engine.settings import UserSettings, load_settings
    from engine.store import open_store
    from engine.store.recorded_model import recorded_models

    def history_to_read() -> AbstractContextManager[Store]:
        return closing(open_store(path, for_reading=True)) if opened is None else nullcontext(opened)

    models = Models(recorded=recorded_models(history_to_read), addresses=server_addresses())
    models.gguf_settings = lambda: load_settings(UserSettings).values.gguf
    return models


def server_addresses() -> dict[str, str]:
    """The addresses of the user's own servers by model."""
    from engine.settings import UserSettings, load_settings

    return load_settings(UserSettings).values.server_addresses


def format_time(time: float) -> str:
    """Format a time in the local time zone, to the minute."""
    return datetime.fromtimestamp(time).astimezone().strftime("%Y-%m-%d %H:%M")


def summary_json(run: RunSummary) -> dict[str, Any]:
    """A stored run as a JSON object."""
    before = ("run_id", "workflow", "source", "status", "started", "updated", "duration_s", "iterations", "exit_reason")
    after = ("tokens", "cost_usd", "models", "error", "parent", "forked_at", "pinned", "size")
    values = {name: getattr(run, name) for name in (*before, *after)}
    part = None if run.part is None else {"extent": run.part.extent, "node": run.part.node}
    return {**values, "status": str(run.status), "models": list(run.models), "part": part}
