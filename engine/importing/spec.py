"""Declaration of a foreign file format that can be imported as a workflow."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from engine.document.model import Workflow
    from engine.importing.report import ImportReport

ForeignObject: TypeAlias = dict[str, Any]
"""The root object of a foreign file, as parsed JSON or YAML."""

_SUFFIX: Final = re.compile(r"\.[a-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImporterSpec:
    """A foreign file format. Error texts, file dialogs, command help and the reference page come from it.

    Attributes:
        name: Unique identifier: `react-flow`.
        label: What people call such a file, without an article: `React Flow canvas`.
        help: One sentence on what such a file holds.
        suffixes: File name suffixes in small letters, each with its dot; the usual one first.
        recognize: Returns the root object of the format inside a parsed file, or None for any other file. Gets
            arbitrary JSON values and never raises.
        convert: Builds the workflow. Arguments: the object that `recognize` returned; the report, which gets a line
            for each member of the file; the file's name for error messages; the workflow's name if the file has none.
            Raises `DocumentError` if the file is too large.
        review: What to check in an imported workflow, in one or two sentences.
        example: A small file in the format.

    Raises:
        ValueError: The suffixes are missing or malformed.
    """

    name: str
    label: str
    help: str
    suffixes: tuple[str, ...]
    recognize: Callable[[object], ForeignObject | None]
    convert: Callable[[ForeignObject, ImportReport, str, str], Workflow]
    review: str
    example: str

    def __post_init__(self) -> None:
        if not self.suffixes or not all(_SUFFIX.fullmatch(suffix) for suffix in self.suffixes):
            raise ValueError(f"the suffixes of the importer {self.name!r} are not like .json")

    @property
    def summary(self) -> str:
        """The label and the suffixes: `React Flow canvas (.json)`."""
        return f"{self.label} ({', '.join(self.suffixes)})"
