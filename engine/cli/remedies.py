"""What the command line adds to the remedies of errors: the option or the command that applies them."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import sys
from typing import Final

from engine.errors import EngineError, Fix

_HINTS: Final[dict[Fix, str]] = {
    Fix.ALLOW_CODE: "Use --allow-code.",
    Fix.ALLOW_PRIVATE_ADDRESSES: "Use --allow-private-addresses.",
    Fix.ALLOW_UNKNOWN_PRICE: "Use --allow-unknown-price.",
    Fix.ANSWER_QUESTION: "Use --node: 'loopwright runs show {subject}' lists the questions.",
    Fix.ASK_SERVER: "Use: loopwright tools --refresh {subject}.",
    Fix.CHANGE_SETTING: "Use: loopwright config set {subject} VALUE.",
    Fix.CHOOSE_FOLDER: "Use --folder and the folder's name.",
    Fix.CHOOSE_HISTORY: "Use --store or the environment variable LOOPWRIGHT_STORE.",
    Fix.CHOOSE_MODEL: "`loopwright models` lists the models that are known.",
    Fix.GET_MODEL: "Use: loopwright models get {subject}.",
    Fix.LIST_RUNS: "'loopwright runs' lists the runs.",
    Fix.REPEAT_CALLS: "Use --retry-in-flight.",
    Fix.RESET_SETTINGS: "Use: loopwright config reset.",
    Fix.RUN_UP_TO: "Use --until.",
    Fix.SHOW_RUN: "See 'loopwright runs show {subject}'.",
}


def remedy_with_command(remedy: str, fix: str) -> str:
    """Return a remedy with the option or the command that applies it.

    Args:
        remedy: The remedy; may be empty.
        fix: The fix of the same error; may be empty, or unknown in the event of a newer version.
    """
    return " ".join(filter(None, (remedy, command_of(fix))))


def error_with_command(error: EngineError) -> str:
    """Return the text of an error for the terminal."""
    return f"{error.message} {remedy_with_command(error.remedy, error.fix)}".rstrip()


def command_of(fix: str) -> str:
    """Return the option or the command that applies a fix, as a sentence; empty without one."""
    kind, _, subject = fix.partition(":")
    if kind not in set(Fix):
        return ""
    match Fix(kind):
        case Fix.ADD_KEY | Fix.USE_SESSION_KEY as key:
            return _key_command(subject, is_stored=key is Fix.ADD_KEY)
        case Fix.INSTALL:
            return f"Use: {install_command(subject)}."
        case Fix.LIST_NODES:
            return f"See 'loopwright nodes{' ' if subject else ''}{subject}'."
        case Fix.RAISE_BUDGET:
            return _budget_option(subject)
        case known:
            return _HINTS[known].format(subject=subject)


def install_command(extra: str) -> str:
    """Return the command that adds an optional part to this copy of the program.

    It names the Python that runs the program, because the `pip` of a shell may belong to another one. Environments that
    uv creates have no pip.

    Args:
        extra: The name of the optional part: an extra of the package.
    """
    python = f'"{sys.executable}"' if " " in sys.executable else sys.executable
    client = f"{python} -m pip install" if importlib.util.find_spec("pip") else f"uv pip install --python {python}"
    return f'{client} "loopwright[{extra}]"'


def quote_argument(text: str, *, on_windows: bool = os.name == "nt") -> str:
    """Quote an argument of a command for the user's shell, if it needs that."""
    quoted = shlex.quote(text)
    if quoted == text or not on_windows:
        return quoted
    # As C programs parse it, for cmd.exe knows no other quotation marks: backslashes count only before a mark.
    escaped = re.sub(r'(\\*)("|\Z)', lambda end: end[1] * 2 + (r"\"" if end[2] else ""), text)
    return f'"{escaped}"'


def _budget_option(subject: str) -> str:
    path, _, name = subject.rpartition(".")
    if not path:
        return f"Use --{name.replace('_', '-')}." if name else "Use --budget-usd or --budget-tokens."
    loop = path.rpartition(".")[2]
    return f"A fork takes --budget-usd, --budget-tokens, and --set {loop}.{name}=... for the budget of the loop."


def _key_command(name: str, *, is_stored: bool) -> str:
    from engine.models.keys import key_variables

    place = f"the environment variable {key_variables(name)[0]}"
    return f"Put it into {place}, or use 'loopwright models set-key {name}'." if is_stored else f"Put it into {place}."
