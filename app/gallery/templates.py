"""The templates that ship with the program. No Qt here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.bundled import templates_folder
from engine.document.files import load
from engine.document.model import FILE_SUFFIX, Workflow
from engine.errors import EngineError

FIRST: Final = "self-refine.loop.json"
"""The first template on the start page."""
TEMPLATES_MISSING: Final = (
    "The templates folder is missing. Reinstall Loopwright to restore it; everything else works without it."
)
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True)
class Template:
    """A template.

    Attributes:
        path: Its file.
        title: Its title.
        about: What it does.
        when: When to use it; empty if its description does not say.
        workflow: The document.
    """

    path: Path
    title: str
    about: str
    when: str
    workflow: Workflow


def split_description(description: str) -> tuple[str, str]:
    """Split a description into what it does and its last sentence if that begins with 'For'."""
    sentences = _SENTENCE_END.split(description.strip())
    if len(sentences) > 1 and sentences[-1].startswith("For "):
        return " ".join(sentences[:-1]), sentences[-1]
    return description.strip(), ""


def bundled_templates(folder: Path | None = None) -> tuple[list[Template], list[str]]:
    """Load the templates of a folder; by default the program's own.

    Self-Refine comes first, then templates with a loop, then by number of nodes.

    Returns:
        The templates, and a message for each one that cannot be loaded. Never fails.
    """
    try:
        folder = folder or templates_folder()
        if not folder.is_dir():
            return [], [f"{folder}: {TEMPLATES_MISSING}"]
        files = sorted(folder.glob(f"*{FILE_SUFFIX}"))
    except (EngineError, OSError) as error:
        return [], [str(error)]
    templates: list[Template] = []
    problems: list[str] = []
    for path in files:
        try:
            workflow = load(path)
        except EngineError as error:
            problems.append(str(error))
            continue
        about, when = split_description(workflow.description)
        title = workflow.name or path.name.removesuffix(FILE_SUFFIX)
        templates.append(Template(path, title, about, when, workflow))
    return sorted(templates, key=_order), problems


def _order(template: Template) -> tuple[bool, bool, int, str]:
    nodes = template.workflow.nodes
    has_loop = any(node.type == "loop" for node in nodes)
    return template.path.name != FIRST, not has_loop, len(nodes), template.title.casefold()
