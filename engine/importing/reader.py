"""Import a foreign file: parse it as JSON or YAML, find its format, convert it."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.document.files import decoded_text, dumps, parse, read_file
from engine.document.model import FORMAT, Workflow, is_workflow_file
from engine.document.problems import DocumentError
from engine.errors import EngineError
from engine.formatting import format_count
from engine.importing.importers import BUILT_IN, importable_suffixes, importers, known_formats
from engine.importing.report import ImportReport, Outcome, ReportEntry
from engine.importing.safe_yaml import read_yaml
from engine.importing.spec import ForeignObject, ImporterSpec
from engine.safe_file_io import decode_text
from engine.text_sanitizing import shown
from engine.values import Value, as_object

_YAML_SUFFIXES: Final = frozenset({".yaml", ".yml"})


@dataclass(frozen=True, slots=True)
class ImportResult:
    """A foreign file as a workflow.

    Attributes:
        workflow: The workflow. It may have problems, which validation reports.
        importer: The importer that converted it.
        entries: What became of each member of the file.
    """

    workflow: Workflow
    importer: ImporterSpec
    entries: tuple[ReportEntry, ...]

    @property
    def summary(self) -> str:
        """How many parts of the file were carried over, changed and left out, as a sentence."""
        counts = Counter(entry.outcome for entry in self.entries)
        carried_over = format_count(counts[Outcome.CARRIED_OVER], "part")
        others = (f"{format_count(counts[outcome])} {outcome}" for outcome in (Outcome.CHANGED, Outcome.LEFT_OUT))
        return f"{carried_over} {Outcome.CARRIED_OVER}, {', '.join(others)}."

    def to_json(self) -> dict[str, object]:
        """The report as a JSON object."""
        entries = [
            {"fate": str(entry.outcome), "place": entry.place, "message": entry.message} for entry in self.entries
        ]
        return {"form": self.importer.label, "summary": self.summary, "report": entries}


def looks_importable(path: str | os.PathLike[str]) -> bool:
    """Whether a file's name and first bytes suggest a foreign workflow. Reads at most 4 kB and converts nothing."""
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix not in importable_suffixes() or is_workflow_file(file.name):
        return False
    try:
        if suffix != ".json":
            return file.is_file()
        with file.open("rb") as stream:
            beginning = stream.read(4_000)
    except (OSError, ValueError):
        return False
    return FORMAT not in decode_text(beginning, errors="replace")


def import_file(path: str | os.PathLike[str]) -> ImportResult:
    """Import a foreign file as a workflow.

    Raises:
        DocumentError: The file cannot be read, is too large or damaged, has no known format, or is already a workflow
            of this program.
    """
    file = Path(path)
    is_yaml = True if file.suffix.lower() in _YAML_SUFFIXES else None
    return import_text(read_file(path), source=os.fspath(path), name=file.stem, is_yaml=is_yaml)


def import_text(
    text: str | bytes, *, source: str = "file", name: str = "Imported", is_yaml: bool | None = None
) -> ImportResult:
    """Import the text of a foreign file as a workflow.

    Args:
        text: The text; bytes are decoded as in `decode_text`.
        source: The file's name for error messages.
        name: The workflow's name if the text has none.
        is_yaml: Whether the text is YAML; None detects JSON by its first character.

    Raises:
        DocumentError: The text is too large or damaged, has no known format, or is already a workflow of this program.
    """
    shown_source = shown(source)
    value = _parse(text, shown_source, is_yaml)
    for spec in importers():
        try:
            root = spec.recognize(value)
            if root is not None:
                return _convert(spec, root, shown_source, name)
        except EngineError:
            raise
        except Exception as error:
            if spec in BUILT_IN:
                raise
            message = f'{shown_source}: The importer "{shown(spec.name, 60)}" failed ({type(error).__name__}).'
            raise DocumentError(message, "Update its plugin, or report the error to the plugin's author.") from error
    if as_object(value).get("format") == FORMAT:
        raise DocumentError(f"{shown_source}: This file is already a Loopwright workflow.", "Open it instead.")
    raise DocumentError(
        f"{shown_source}: The format of this file is unknown.", f"Formats that can be imported: {known_formats()}."
    )


def _convert(spec: ImporterSpec, root: ForeignObject, source: str, name: str) -> ImportResult:
    report = ImportReport()
    workflow: Workflow = spec.convert(root, report, source, name)
    dumps(workflow)  # fail now if the workflow could not be saved later
    return ImportResult(workflow, spec, report.entries)


def _parse(text: str | bytes, source: str, is_yaml: bool | None) -> Value:
    if is_yaml is None:
        beginning = text[:200] if isinstance(text, str) else decode_text(text[:200], errors="replace")
        is_yaml = not beginning.lstrip("\ufeff \t\r\n").startswith(("{", "["))
    if not is_yaml:
        return parse(text, source)
    return read_yaml(text if isinstance(text, str) else decoded_text(text, source), source)
