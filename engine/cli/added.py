"""What a person has added to the program, taken up before a command does its work."""

from __future__ import annotations

from collections.abc import Sequence


def add_extensions(plugins: Sequence[str]) -> None:
    """Offer the tools of the person's MCP servers, and load the plugins that they enabled or named for this call.

    What stands in the file and cannot be added is said, and the rest goes on.

    Raises:
        PluginError: One that was named for this call cannot be loaded.
    """
    from engine.extensions import extensions_path

    path = extensions_path()
    if not plugins and not path.is_file():
        return  # the usual case, which is not to pay for the imports
    from engine.cli.output import err
    from engine.errors import EngineError
    from engine.extensions import activate_extensions, enable_plugin, read_extensions

    try:
        remarks = activate_extensions(read_extensions(path), path)
    except EngineError as error:
        remarks = [str(error)]
    for remark in remarks:
        err().line(f"Note: {remark}")
    for name in plugins:
        enable_plugin(name)
