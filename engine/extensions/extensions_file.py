"""The file in which a person's MCP servers and enabled plugins stand, for the window and the command line alike."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from engine.errors import EngineError
from engine.formatting import format_json
from engine.safe_file_io import read_text_file, replace_file
from engine.text_sanitizing import shown
from engine.tools.mcp_settings import NAME_PATTERN, McpServer

_MAX_BYTES: Final = 1_000_000


class ExtensionsError(EngineError):
    """A file of extensions that cannot be read or written."""


class Extensions(BaseModel):
    """What is added to the program.

    Attributes:
        plugins: The plugins that are enabled, by name.
        servers: MCP servers by name; `mcpServers` in the file, as other programs write it.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    plugins: tuple[str, ...] = ()
    servers: dict[str, McpServer] = Field(default_factory=dict[str, McpServer], alias="mcpServers")

    @field_validator("servers")
    @classmethod
    def _have_names(cls, servers: dict[str, McpServer]) -> dict[str, McpServer]:
        for name in servers:
            check_server_name(name)
        return servers


def check_server_name(name: str) -> None:
    """Refuse what cannot be a server's name.

    Raises:
        ValueError: It cannot be one; the text is a sentence.
    """
    if not re.fullmatch(NAME_PATTERN, name):
        sentence = f'A server cannot be called "{shown(name, 40)}": small letters, digits, - and _ make a name.'
        raise PydanticCustomError("refused", "{sentence}", {"sentence": sentence})


def read_extensions(path: Path) -> Extensions:
    """Read the file; where there is none, nothing is added.

    Raises:
        ExtensionsError: It cannot be read, or something in it cannot be.
    """
    try:
        content = read_text_file(path, _MAX_BYTES)
    except FileNotFoundError:
        return Extensions()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ExtensionsError(f"{path} cannot be read: {reason}.", "Look at the file.") from error
    try:
        return Extensions.model_validate_json(content)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        place = ".".join(str(step) for step in detail["loc"])
        where = f" at {shown(place, 80)}" if place else ""
        message = f"{path} cannot be used{where}: {shown(detail['msg'], 200).rstrip('.')}."
        raise ExtensionsError(message, "Correct the file.") from error


def write_extensions(path: Path, extensions: Extensions) -> None:
    """Write the file: all of it, or the old one stays.

    Raises:
        ExtensionsError: It cannot be written.
    """
    content = extensions.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, (format_json({"version": 1} | content, ascii_only=True) + "\n").encode())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ExtensionsError(f"{path} cannot be written: {reason}.", "Look at the folder.") from error
