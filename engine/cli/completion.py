"""Completion in the shell of models and nodes, which files and documents name."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager, redirect_stdout
from typing import Final

import typer

from engine.errors import EngineError


@contextmanager
def bash_words() -> Generator[None]:
    """Join the words that bash has split at `:` and `=`, as in `--model=gguf:na`, while a command is completed.

    Bash replaces only the last piece, so what is before it is removed from the output.
    """
    words, current = os.environ.get("COMP_WORDS", "").split("\n"), os.environ.get("COMP_CWORD", "")
    joined: list[str] = []
    if current.isdecimal() and int(current) < len(words):
        words = words[: int(current) + 1]
        for word, before in zip(words, ["", *words], strict=False):
            if joined and (_is_break(before) or _is_break(word)):
                joined[-1] += word
            else:
                joined.append(word)
        os.environ["COMP_WORDS"], os.environ["COMP_CWORD"] = "\n".join(joined), str(len(joined) - 1)
    last = "" if _is_break(words[-1]) else words[-1]
    start = joined[-1].removesuffix(last) if joined else ""
    start = start.partition("=")[2] if start.startswith("-") else start
    output = io.StringIO()
    try:
        with redirect_stdout(output):
            yield
    finally:
        sys.stdout.write("".join(line.removeprefix(start) for line in output.getvalue().splitlines(keepends=True)))


def _is_break(word: str) -> bool:
    return word != "" and not word.strip(":=")


def complete_models(incomplete: str) -> list[tuple[str, str]]:
    """Complete the name of a model that can be called, as far as files and environment variables tell."""
    from engine.models.keys import Keys
    from engine.models.known_models import known_models
    from engine.models.protocol import RECORDED_PREFIX, SCRIPTED_PREFIX
    from engine.settings import UserSettings, load_settings

    named = [(one.model, "Custom server") for one in load_settings(UserSettings).values.servers]
    for model in known_models(Keys(with_keyring=False)):
        is_name = not (model.is_placeholder or model.name.startswith((SCRIPTED_PREFIX, RECORDED_PREFIX)))
        if is_name and model.available:
            named.append((model.name, model.title))
    return _completions(named, incomplete)


def complete_nodes(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Complete the id of a node of the workflow that the command names as its FILE."""
    from engine.cli.arguments import STANDARD_INPUT, open_source
    from engine.nodes.node_names import node_names

    # An option without a value yet ends the parsing; what precedes it is left over.
    file = context.params.get("file") or next((word for word in context.args if not word.startswith("-")), None)
    if not isinstance(file, str) or file == STANDARD_INPUT:
        return []
    try:
        path = os.path.expanduser(file)  # noqa: PTH111 - the other way fails for an unknown user
        names = node_names(open_source(path, with_subflows=False).workflow)
    except (EngineError, OSError, ValueError):
        return []
    return _completions(names.items(), incomplete)


_COMPLETED: Final = re.compile(r"\w[\w./:@+-]*")
_NOT_DESCRIBED: Final = re.compile(r"[^\w .,;()-]+")


def _completions(named: Iterable[tuple[str, str]], incomplete: str) -> list[tuple[str, str]]:
    """Return the names that complete a text, with descriptions.

    The script for zsh evaluates what it is given as code, so no name of a file or title of a document may have a
    character that means something to a shell.
    """
    return [
        (name, " ".join(_NOT_DESCRIBED.sub(" ", description[:100]).split()))
        for name, description in named
        if name.startswith(incomplete) and _COMPLETED.fullmatch(name)
    ]
