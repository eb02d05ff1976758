"""The tool `search_files`: finds the passages of a folder's text and Markdown files that fit a question best.

Without a folder it searches the bundled handbook, so that a workflow that searches works as it comes.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from pydantic import Field

from engine.bundled import resources_folder
from engine.tools.base import Tool, ToolContext, ToolError
from engine.tools.parameters import Parameters, Text
from engine.tools.sandbox import allowed_folder, shown
from engine.tools.text_index import Hit, search_folder
from engine.values import Value


class SearchFilesParameters(Parameters):
    """What `search_files` is asked."""

    query: Text = Field(
        title="Query",
        description="What to look for, in words or as a question; it has no special syntax.",
    )
    folder: Text = Field(
        default="",
        title="Folder",
        description="A folder inside the one that the run was given ('.' is that one itself); empty: the handbook.",
        max_length=1000,
    )
    limit: int = Field(
        default=5,
        title="Max passages",
        description="How many passages to give at most, the best first.",
        ge=1,
        le=50,
    )


async def search_files(parameters: SearchFilesParameters, context: ToolContext) -> Value:
    """Search, and give a list of `{file, title, line, text, score}`, best first: a higher score is a better match.

    `text` is a passage of about 1,500 characters at most, `line` where it starts, `title` the headings above it.
    Nothing found is an empty list. A folder is read and indexed once, and again only when a file in it changes.

    Raises:
        ToolError: The folder is missing, not allowed, or holds more than a search reads.
    """
    return await asyncio.to_thread(_search, parameters, context)


def _search(parameters: SearchFilesParameters, context: ToolContext) -> list[Value]:
    folder = _folder_to_search(parameters.folder, context)
    return [_as_value(hit) for hit in search_folder(folder, parameters.query, parameters.limit)]


def _as_value(hit: Hit) -> Value:
    return {
        "file": hit.file,
        "title": hit.passage.title,
        "line": hit.passage.line,
        "text": hit.passage.text,
        "score": round(hit.score, 6),
    }


def _folder_to_search(folder: str, context: ToolContext) -> Path:
    handbook = resources_folder() / "handbook"
    if not folder.strip():
        return handbook
    root = allowed_folder(context.folder)
    try:
        allowed = root.resolve(strict=True)
        wanted = (allowed / folder).resolve(strict=True)
        listable = wanted.is_dir()
    except (OSError, ValueError, RuntimeError) as error:  # Missing; a NUL in the name; a circle of links.
        raise ToolError(
            f"The folder {shown(folder)} cannot be searched: it is not there.",
            "Check the spelling; the path starts at the folder that the run was given.",
        ) from error
    if not wanted.is_relative_to(allowed):
        raise ToolError(
            f"The folder {shown(folder)} lies outside the folder that the run was given.",
            "Name a folder inside it, or start the run with --folder and another one.",
        )
    if not listable:
        raise ToolError(f"{shown(folder)} is no folder.", "Name the folder that holds the file.")
    return wanted


SEARCH_FILES = Tool(
    name="search_files",
    title="Search files",
    help="Finds passages in text and Markdown files, best first (a higher score is a better match).",
    parameters=SearchFilesParameters,
    output_type="list",
    run=search_files,
    uses_folder=True,
    idempotent=True,
)
