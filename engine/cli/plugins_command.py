"""`loopwright plugins`: the plugins that are installed, and which of them are enabled."""

from __future__ import annotations

from typing import Annotated

import typer

from engine.cli.exit_codes import ExitCode


def plugins_command(as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False) -> int:
    """List the plugins that are installed. Those that are not enabled are not loaded.

    One is enabled for a call with --plugin, in front of the command, or for good in the file of your extensions.

    Example: loopwright --plugin example nodes
    """
    from engine.cli.output import out, write_json
    from engine.extensions import enable_plugin, installed_plugins

    installed = installed_plugins()
    adds = {plugin.name: enable_plugin(plugin.name).summary if plugin.is_enabled else "" for plugin in installed}
    if as_json:
        facts = [
            {"name": one.name, "package": one.package, "enabled": one.is_enabled, "adds": adds[one.name]}
            for one in installed
        ]
        write_json({"plugins": facts})
    elif not installed:
        out().line("No plugin is installed.")
    else:
        out().table(
            ("Plugin", "Package", "Enabled", "Adds"),
            [(one.name, one.package, "yes" if one.is_enabled else "no", adds[one.name]) for one in installed],
        )
    return ExitCode.DONE
