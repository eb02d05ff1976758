"""`loopwright models`: which models can be called, and where the keys for them are kept."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from engine.cli.exit_codes import ExitCode

models_app = typer.Typer()

ProviderName = Annotated[
    str, typer.Argument(metavar="PROVIDER", help="A provider such as openai, or host:NAME for a server of your own.")
]


@models_app.callback(invoke_without_command=True)
def models_command(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Write the list as one JSON object.")] = False,
) -> int:
    """List the models that can be called, and for which providers there is a key. A key itself is never shown.

    Example: loopwright models
    """
    if context.invoked_subcommand is not None:
        return ExitCode.DONE
    from engine.cli.output import out, write_json
    from engine.models.catalogue import default_model_name, known_models
    from engine.models.keys import Keys

    default = default_model_name()
    known = known_models(Keys())
    if as_json:
        listed = [
            {
                "name": model.name,
                "title": model.title,
                "note": model.note,
                "available": model.available,
                "how_to_get": model.how_to_get,
            }
            for model in known
        ]
        write_json({"default": default, "models": listed})
        return ExitCode.DONE
    rows = [
        (
            model.name,
            model.title,
            {True: "yes", False: "no", None: "?"}[model.available],
            ". ".join(filter(None, (model.note, model.how_to_get))),
        )
        for model in known
    ]
    out().table(("Model", "Who", "Ready", "What to know"), rows)
    out().line()
    out().line(f"Where nothing names a model: {default}")
    return ExitCode.DONE


@models_app.command("set-key")
def set_key(provider: ProviderName) -> int:
    """Keep a provider's key in the system's keyring. The key is asked for, and not shown while it is typed.

    Example: loopwright models set-key openai
    """
    from engine.cli.output import out
    from engine.models.keys import Keys

    _check(provider)
    if sys.stdin.isatty():
        import getpass

        key = getpass.getpass(f"Key for {provider}: ")
    else:
        key = sys.stdin.readline()
    Keys().set(provider, key)
    out().line(f"The key for {provider} is in the keyring.")
    return ExitCode.DONE


@models_app.command("remove-key")
def remove_key(provider: ProviderName) -> int:
    """Remove a provider's key from the system's keyring.

    Example: loopwright models remove-key openai
    """
    from engine.cli.output import out
    from engine.models.keys import Keys

    _check(provider)
    Keys().delete(provider)
    out().line(f"The keyring holds no key for {provider} now.")
    return ExitCode.DONE


def _check(provider: str) -> None:
    from engine.errors import EngineError
    from engine.models.providers import PROVIDERS
    from engine.text_sanitizing import shown

    if provider not in PROVIDERS and not provider.startswith("host:"):
        raise EngineError(
            f'There is no provider "{shown(provider, 60)}".',
            f"The providers are: {', '.join(PROVIDERS)}; or host:NAME for a server of your own.",
        )
