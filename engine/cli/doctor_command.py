"""Implements `loopwright doctor`: a report of the installation to paste into a bug report."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Final

import typer

import engine
from engine.cli.exit_codes import ExitCode
from engine.cli.output import out, write_json
from engine.cli.remedies import remedy_with_command
from engine.errors import EngineError
from engine.formatting import format_bytes, format_count

PACKAGES: Final = (
    *("litellm", "networkx", "python-Levenshtein", "pydantic", "httpx", "keyring"),
    *("PySide6-Essentials", "NodeGraphQt", "xllamacpp", "mcp", "ddgs", "distributed"),
)
"""Packages whose versions are reported."""

WindowCheck = Callable[[], str]
"""Returns why the window cannot be shown, or an empty text."""


def doctor_command(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Write the report as one JSON object.")] = False,
) -> int:
    """Report on the installation, as text for a bug report.

    The report says what is installed, which models answer, and what the window lacks. It contains no keys. Model
    servers on this computer are asked for their models.

    Example: loopwright doctor
    """
    sections = report(context.obj)
    if as_json:
        write_json(sections)
        return ExitCode.DONE
    for title, lines in sections.items():
        out().line(title, style="bold")
        for name, text in lines.items():
            out().line(f"  {name}: {text}")
    return ExitCode.DONE


def report(window_obstacle: WindowCheck | None) -> dict[str, dict[str, str]]:
    """Return the report: for each section, texts by name.

    Args:
        window_obstacle: Checks the window; None without one.
    """
    return {
        "Program": {
            "loopwright": engine.__version__,
            "Python": f"{platform.python_version()} ({platform.python_implementation()})",
            "system": platform.platform(),
            "installed in": _shortened(Path(engine.__file__).parent.parent),
        },
        "Packages": {name: _version(name) for name in PACKAGES},
        "Models": dict(_models()),
        "Settings": dict(_settings()),
        "Keys": {"keyring": _keyring()},
        "Files": dict(_files()),
        "Window": {"state": _window(window_obstacle)},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _models() -> Iterator[tuple[str, str]]:
    from engine.models.keys import Keys
    from engine.models.known_models import built_in_model, gguf_models, known_examples
    from engine.models.local_servers import find_local_servers
    from engine.runner.event_loop import run_in_background_loop
    from engine.settings import UserSettings, load_settings

    yield "default", load_settings(UserSettings).values.model
    built_in = built_in_model()
    yield built_in.name, "ready" if built_in.available else remedy_with_command(built_in.how_to_get, built_in.fix)
    in_files = gguf_models()
    unusable = sum(not model.available for model in in_files)
    yield "GGUF files", format_count(len(in_files), "model") + (f", {unusable} unusable" if unusable else "")
    for server in run_in_background_loop(find_local_servers()):
        answer = server.problem or format_count(len(server.models), "model")
        yield server.title, answer if server.is_running else "does not answer"
    with_key = [example.title for example in known_examples(Keys()) if example.available]
    yield "providers with a key", ", ".join(with_key) or "none"


def _settings() -> Iterator[tuple[str, str]]:
    """The file, and where changed settings come from; their values may be private."""
    from engine.settings import UserSettings, load_settings, settings_path

    loaded, path = load_settings(UserSettings), settings_path()
    yield "file", f"{_shortened(path)} ({'cannot be read' if loaded.unreadable is not None else _size(path)})"
    for name, source in loaded.sources.items():
        yield name, str(source)
    for invalid in loaded.invalid:
        yield invalid.name, f"invalid ({invalid.source})"


def _keyring() -> str:
    try:
        import keyring

        backend = type(keyring.get_keyring())
    except Exception as error:  # backends raise anything
        return f"fails ({type(error).__name__})"
    return f"{backend.__module__}.{backend.__qualname__}"


def _files() -> Iterator[tuple[str, str]]:
    from engine.extensions import extensions_path
    from engine.models.gguf_files import models_folder
    from engine.store import store_path

    history = store_path()
    yield "history", f"{_shortened(history)} ({_size(history)}{_history_problem(history)})"
    for name, path in (("extensions", extensions_path()), ("models", models_folder())):
        yield name, f"{_shortened(path)} ({_size(path)})"


def _history_problem(path: Path) -> str:
    from engine.store.sqlite.schema import is_history

    try:
        return ", not a Loopwright history" if path.is_file() and not is_history(path) else ""
    except OSError:
        return ", cannot be read"


def _size(path: Path) -> str:
    try:
        return "a folder" if path.is_dir() else format_bytes(path.stat().st_size)
    except FileNotFoundError:
        return "does not exist"
    except OSError as error:
        return error.strerror or "cannot be read"


def _shortened(path: Path) -> str:
    """The path with ~ for the user's folder, whose name may be private."""
    home = Path.home()
    return f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else str(path)


def _window(obstacle: WindowCheck | None) -> str:
    if obstacle is None:
        return "not checked"
    try:
        return obstacle() or "can be shown"
    except EngineError as error:
        return str(error)
