"""Which workflow file a person means: a path, or the bare name of a bundled template."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.bundled import templates_folder
from engine.cli.output import err
from engine.document.files import load
from engine.document.model import FILE_SUFFIX, Workflow
from engine.document.problems import DocumentError, Severity
from engine.document.subflows import refreshed
from engine.text_sanitizing import shown


@dataclass(frozen=True, slots=True)
class Source:
    """A workflow and where it came from.

    Attributes:
        path: Its file.
        workflow: What the file says.
        is_template: Whether it came with the program.
    """

    path: Path
    workflow: Workflow
    is_template: bool = False


def template_files() -> list[Path]:
    """The bundled templates, by name.

    Raises:
        EngineError: The installation has lost them.
    """
    return sorted(templates_folder().glob(f"*{FILE_SUFFIX}"))


def template_name(file: Path) -> str:
    """How a template is called on the command line: `self-refine`."""
    return file.name.removesuffix(FILE_SUFFIX)


def open_source(name: str) -> Source:
    """Open a workflow by its path, or a template by its name where no such file exists; its subflows are read anew.

    Raises:
        DocumentError: There is no such file or template, or it cannot be opened.
        EngineError: The installation has lost its templates.
    """
    path = Path(name)
    if _exists(path):
        return Source(path, _with_subflows(load(name), path))
    templates = {template_name(file): file for file in template_files()}
    found = templates.get(name.removesuffix(FILE_SUFFIX))
    if found is not None:
        return Source(found, load(found), is_template=True)
    if "/" in name or "\\" in name:
        load(name)
    raise DocumentError(
        f'There is neither a file nor a bundled template "{shown(name)}".',
        f"Check the path; the bundled templates are: {', '.join(templates) or 'none'}.",
    )


def _with_subflows(workflow: Workflow, path: Path) -> Workflow:
    """The workflow with those in it as their files are now."""
    now, problems = refreshed(workflow, path)
    for problem in problems:
        if problem.severity is Severity.ERROR:
            raise DocumentError(f"{problem.place}: {problem.message}", problem.remedy, problems)
        err().line(f"Warning: {problem.place}: {problem.message}", style="yellow")
    return now


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        # What cannot even be asked for is told by whoever opens it.
        return True
