"""Implements `loopwright config`, which shows and changes the user's settings."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from engine.cli.common_options import Yes, confirm, user_settings
from engine.cli.completion import complete_models
from engine.cli.exit_codes import ExitCode
from engine.cli.output import err, out, write_json
from engine.cli.remedies import command_of
from engine.errors import EngineError, Fix, did_you_mean
from engine.text_sanitizing import shown
from engine.values import compact_json

if TYPE_CHECKING:
    from engine.settings import LoadedSettings, UserSettings

_SECRET = re.compile(r"(?:^|_)(?:key|apikey|token|secret|password|passwd|credentials?)s?(?:_|$)")
_NO_KEYS: Final = "Keys and passwords are not stored in the settings."
_GENERAL_KEY_PLACE: Final = "Put them into environment variables, or use 'loopwright models set-key PROVIDER'."

config_app = typer.Typer(no_args_is_help=True)


@config_app.callback()
def config_command() -> None:
    """Show and change the settings, which the window shares.

    An option of a command takes precedence over a setting's environment variable, that over the file, and the file over
    the default. API keys are not settings: see `loopwright models set-key`.

    Example: loopwright config set default_model openai/gpt-4o-mini
    """


def _complete_keys(incomplete: str) -> list[tuple[str, str]]:
    from engine.settings import SETTINGS

    return [(name, field.title or "") for name, field in SETTINGS.items() if name.startswith(incomplete)]


def _complete_values(context: typer.Context, incomplete: str) -> list[str]:
    from engine.settings import UserSettings

    if context.params.get("key") == "default_model":
        return [name for name, _ in complete_models(incomplete)]
    schema = UserSettings.model_json_schema()["properties"].get(context.params.get("key"), {})
    values = ["true", "false"] if schema.get("type") == "boolean" else schema.get("enum", [])
    return [value for value in values if value.startswith(incomplete)]


Key = Annotated[str, typer.Argument(metavar="KEY", help="Name of the setting.", autocompletion=_complete_keys)]


@config_app.command("list")
def list_settings(
    as_json: Annotated[bool, typer.Option("--json", help="Write the settings as one JSON object.")] = False,
) -> int:
    """List all settings with their values.

    The list shows where each value comes from: default, file or environment.

    Example: loopwright config list
    """
    from engine.settings import SETTINGS, settings_path, variable_of

    loaded = user_settings()
    if as_json:
        write_json(
            {
                "path": str(settings_path()),
                "settings": {
                    name: {"value": value, "source": loaded.source(name), "variable": variable_of(name)}
                    for name, value in loaded.values.model_dump(mode="json").items()
                },
            }
        )
        return ExitCode.DONE
    rows = [
        (name, _text(value), _source_text(loaded, name), SETTINGS[name].title or "")
        for name, value in loaded.values.model_dump(mode="json").items()
    ]
    out().table(("Setting", "Value", "Source", "Description"), rows)
    return ExitCode.DONE


@config_app.command("get")
def get_setting(key: Key) -> int:
    """Print the value of a setting.

    A text is printed without quotation marks, any other value as JSON.

    Example: loopwright config get default_model
    """
    _check(key)
    out().line(_text(user_settings().values.model_dump(mode="json")[key]))
    return ExitCode.DONE


# A value such as -1 must not be read as an option.
@config_app.command("set", context_settings={"ignore_unknown_options": True})
def set_setting(
    key: Key,
    value: Annotated[
        str,
        typer.Argument(metavar="VALUE", help="The new value; null for none.", autocompletion=_complete_values),
    ],
) -> int:
    """Change a setting in the file. Windows that are open follow.

    Example: loopwright config set budget_usd 0.50
    """
    from engine.models.protocol import with_absolute_path
    from engine.settings import change_settings, parse_setting, settings_path

    _check(key)
    if key == "servers":
        _refuse_keys(value)
    parsed = parse_setting(key, value)
    if key == "default_model" and parsed is not None:
        parsed = with_absolute_path(parsed)
    change_settings(settings_path(), {key: parsed})
    _note_environment(key)
    return ExitCode.DONE


@config_app.command("unset")
def unset_setting(key: Key) -> int:
    """Remove a setting from the file, so that its default applies.

    Example: loopwright config unset budget_usd
    """
    from engine.settings import change_settings, settings_path

    _check(key)
    change_settings(settings_path(), {}, (key,))
    _note_environment(key)
    return ExitCode.DONE


@config_app.command("reset")
def reset_all(yes: Yes = False) -> int:
    """Reset all settings to their defaults.

    A file that cannot be read is renamed.

    Example: loopwright config reset --yes
    """
    from engine.settings import reset_settings, settings_path

    confirm("Reset all settings to their defaults?", yes=yes)
    backup = reset_settings(settings_path())
    out().line("All settings have their defaults." + (f" The old file is {backup} now." if backup else ""))
    return ExitCode.DONE


@config_app.command("path")
def show_path() -> int:
    """Print the path of the settings file.

    Example: loopwright config path
    """
    from engine.settings import settings_path

    out().line(str(settings_path()))
    return ExitCode.DONE


def _check(name: str) -> None:
    """Refuse an unknown setting.

    Raises:
        SettingsError: There is no such setting.
    """
    from engine.settings import SETTINGS, SettingsError

    if name in SETTINGS:
        return
    if _is_secret(name):
        raise SettingsError(_NO_KEYS, _key_place(name))
    suggestion = did_you_mean(name, SETTINGS) or f"Settings: {', '.join(SETTINGS)}."
    raise SettingsError(f'There is no setting "{shown(name, 60)}".', suggestion)


def _refuse_keys(servers: str) -> None:
    """Refuse a list of servers that contains a key.

    Raises:
        SettingsError: It does; says where the key goes.
    """
    from engine.models.providers import origin_of
    from engine.settings import SettingsError

    try:
        found: list[dict[str, Any]] = json.loads(servers)
        server = next(one for one in found if any(map(_is_secret, one.keys())))
    except (ValueError, RecursionError, TypeError, AttributeError, StopIteration):
        return
    place = _GENERAL_KEY_PLACE
    with suppress(EngineError):
        place = command_of(Fix.ADD_KEY.of(f"host:{origin_of(str(server.get('address'))).name}"))
    raise SettingsError(_NO_KEYS, place)


def _is_secret(name: str) -> bool:
    return _SECRET.search(name.lower().replace("-", "_")) is not None


def _key_place(name: str) -> str:
    from engine.models.providers import PROVIDERS

    variable = name.upper().replace("-", "_")
    for provider in PROVIDERS.values():
        if variable in provider.key_variables or variable.startswith(f"{provider.name.upper()}_"):
            return command_of(Fix.ADD_KEY.of(provider.name))
    return _GENERAL_KEY_PLACE


def _note_environment(name: str) -> None:
    from engine.settings import Source, UserSettings, load_settings, variable_of

    if load_settings(UserSettings).source(name) is Source.ENVIRONMENT:
        err().line(f"The environment variable {variable_of(name)} takes precedence.")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else compact_json(value)


def _source_text(loaded: LoadedSettings[UserSettings], name: str) -> str:
    from engine.settings import Source, variable_of

    source = loaded.source(name)
    return f"{source} ({variable_of(name)})" if source is Source.ENVIRONMENT else str(source)
