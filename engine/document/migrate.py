"""From the form of a document that an older version of the program wrote to the form of this one.

A migration is a pure function from the JSON object of version n to that of version n + 1. It gets an unchecked object:
what has not the shape that it looks for, it passes on as it is, and the check of the structure names it afterwards. A
form newer than ours is passed on untouched, so that a save keeps what we do not understand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from engine.document.model import FORMAT, VERSION, Workflow
from engine.document.problems import DocumentError, kind_of
from engine.text_sanitizing import shown
from engine.values import Value

Migration: TypeAlias = Callable[[Mapping[str, Value]], dict[str, Value]]
"""Gives the object of the next version. It sets no `version` and changes nothing in place."""

FIRST_VERSION: Final = 1

MIGRATIONS: Final[Mapping[int, Migration]] = MappingProxyType({})
"""By the version that it starts from, one for each version before the present one."""


def is_newer(workflow: Workflow) -> bool:
    """Whether a newer version of the program wrote the document: it may hold what this one does not know."""
    return workflow.version > VERSION


def migrate(
    document: dict[str, Value],
    source: str,
    *,
    migrations: Mapping[int, Migration] = MIGRATIONS,
    current: int = VERSION,
) -> dict[str, Value]:
    """Bring a document to the present form.

    Args:
        document: The object of the file.
        source: What to call it in messages.
        migrations: By the version that each starts from.
        current: The version to reach.

    Raises:
        DocumentError: It is no workflow, or its version is none that ever was.
    """
    version = _version(document, source)
    while version < current:
        document = migrations[version](document)
        version += 1
        document["version"] = version
    return document


def _version(document: Mapping[str, Value], source: str) -> int:
    form = document.get("format")
    if form != FORMAT:
        said = f'its format is "{shown(form, 60)}"' if isinstance(form, str) else 'it has no text "format"'
        raise DocumentError(f'{source}: This is no workflow: {said}, not "{FORMAT}".', "Choose a workflow file.")
    version = document.get("version")
    remedy = f'Write the version of the file form, "version": {VERSION}.'
    if "version" not in document:
        raise DocumentError(f"{source}: The document does not say which version it is of.", remedy)
    if isinstance(version, bool) or not isinstance(version, int):
        raise DocumentError(f"{source}: The version is {kind_of(version)}, not a whole number.", remedy)
    if version < FIRST_VERSION:
        raise DocumentError(f"{source}: There is no version {shown(version, 60)} of the file form.", remedy)
    return version
