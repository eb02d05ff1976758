"""Which form a foreign file has, and who reads it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from engine.document.files import dumps, read_file
from engine.document.importing.canvas import canvas_of, import_canvas
from engine.document.importing.report import Imported, Report
from engine.document.importing.safe_yaml import read_yaml
from engine.document.importing.steps import import_steps, steps_of
from engine.document.importing.values import as_object
from engine.document.model import FILE_SUFFIX, FORMAT, Workflow
from engine.document.parsing import decoded_text, parse
from engine.document.problems import DocumentError
from engine.document.wording import shown
from engine.ordinary_file import decode_text
from engine.values import Value

_YAML_ENDINGS: Final = frozenset({".yaml", ".yml"})
_KNOWN: Final = "Known are a canvas of nodes and edges (JSON) and agents with steps (YAML)."


def is_foreign(path: str | os.PathLike[str]) -> bool:
    """Whether a file looks, by its name and its first bytes, like one to import and not like a document of ours."""
    file = Path(path)
    ending = file.suffix.lower()
    if ending not in {*_YAML_ENDINGS, ".json"} or file.name.endswith(FILE_SUFFIX):
        return False
    try:
        if ending != ".json":
            return file.is_file()
        with file.open("rb") as stream:
            beginning = stream.read(4_000)
    except (OSError, ValueError):
        return False
    return FORMAT not in decode_text(beginning, errors="replace")


def import_file(path: str | os.PathLike[str]) -> Imported:
    """Read a foreign file as a document of ours.

    Raises:
        DocumentError: It cannot be opened, is too large or damaged, is of no known form, or is one of ours.
    """
    file = Path(path)
    is_yaml = True if file.suffix.lower() in _YAML_ENDINGS else None
    return import_text(read_file(path), source=os.fspath(path), name=file.stem, is_yaml=is_yaml)


def import_text(
    text: str | bytes, *, source: str = "file", name: str = "Imported", is_yaml: bool | None = None
) -> Imported:
    """Read the text of a foreign file as a document of ours.

    Args:
        text: The text; bytes are decoded as in `decode_text`.
        source: What to call it in messages.
        name: What the workflow is called where the text does not say.
        is_yaml: Whether it is YAML; None: unless it begins like JSON.

    Raises:
        DocumentError: It is too large or damaged, is of no known form, or is one of ours.
    """
    shown_source = shown(source)
    value = _value(text, shown_source, is_yaml)
    report = Report()
    canvas, steps = canvas_of(value), steps_of(value)
    if canvas is not None:
        return _imported(import_canvas(canvas, report, shown_source, name), "a canvas of nodes and edges", report)
    if steps is not None:
        return _imported(import_steps(steps, report, shown_source, name), "agents and steps", report)
    if as_object(value).get("format") == FORMAT:
        raise DocumentError(f"{shown_source}: This is a workflow of Loopwright already.", "Open it as it is.")
    raise DocumentError(f"{shown_source}: This is no workflow of a known form.", _KNOWN)


def _imported(workflow: Workflow, form: str, report: Report) -> Imported:
    dumps(workflow)  # what cannot be saved is refused now, not after an hour's work on it
    return Imported(workflow, form, report.entries)


def _value(text: str | bytes, source: str, is_yaml: bool | None) -> Value:
    if is_yaml is None:
        first = text[:200] if isinstance(text, str) else decode_text(text[:200], errors="replace")
        is_yaml = not first.lstrip("\ufeff \t\r\n").startswith(("{", "["))
    if not is_yaml:
        return parse(text, source)
    return read_yaml(text if isinstance(text, str) else decoded_text(text, source), source)
