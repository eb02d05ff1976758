"""The tool `read_file`: gives the text of one file of the allowed folder. Changes nothing."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from pydantic import Field

from engine.safe_file_io import NotTextError, decode_text
from engine.tools.base import Tool, ToolContext, ToolError
from engine.tools.parameters import Parameters, Text
from engine.tools.sandbox import (
    MAX_FILE_BYTES,
    allowed_folder,
    explained,
    open_ordinary,
    open_parent,
    shown,
    split_path,
)
from engine.values import Value


class ReadFileParameters(Parameters):
    """What `read_file` is asked."""

    path: Text = Field(
        title="Path",
        description="The file, relative to the folder that the run was given, parts joined by '/': notes/draft.md",
        min_length=1,
        max_length=1000,
    )
    max_bytes: int = Field(
        default=1_000_000,
        title="Max bytes",
        description="A file with more bytes is refused, so that a text never arrives cut off.",
        ge=1,
        le=MAX_FILE_BYTES,
    )


async def read_file(parameters: ReadFileParameters, context: ToolContext) -> Value:
    """Read a text file with its own line ends, so that it can be written back unchanged.

    The encoding is UTF-8, or UTF-16 or UTF-32 with a byte order mark, which is not part of the text.

    Raises:
        ToolError: No folder is allowed, or the file is missing, outside, a link, no ordinary file, too large or
            no text.
    """
    return await asyncio.to_thread(_read, allowed_folder(context.folder), parameters.path, parameters.max_bytes)


def _read(folder: Path, path: str, max_bytes: int) -> str:
    parts = split_path(path)
    with (
        explained(f"The file {shown(path)} cannot be read"),
        open_parent(folder, parts[:-1]) as parent,
        os.fdopen(open_ordinary(parent, parts[-1], os.O_RDONLY), "rb") as stream,
    ):
        content = stream.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ToolError(
            f"The file {shown(path)} has more than {max_bytes:,} bytes.",
            f"Raise 'Max bytes' (up to {MAX_FILE_BYTES:,}), or split the file.",
        )
    try:
        return decode_text(content, keep_line_ends=True)
    except NotTextError as error:
        raise ToolError(
            f"The file {shown(path)} cannot be read: {error}.",
            "Save it as UTF-8, or name a text file.",
        ) from error


READ_FILE = Tool(
    name="read_file",
    title="Read a file",
    help="Gives the text of a file in the folder that the run was given.",
    parameters=ReadFileParameters,
    output_type="text",
    run=read_file,
    uses_folder=True,
    idempotent=True,
)
