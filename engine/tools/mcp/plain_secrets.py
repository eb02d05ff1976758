"""Finding secrets in plain words in the settings of an MCP server, which are a file that people copy and share.

What is found is told by its name, and never by what it is. A setting that names a variable (`${NAME}`) holds none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import parse_qsl, urlsplit

VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

_SECRET_NAME: Final = re.compile(r"key|token|secret|passw|credential|authorization|cookie", re.IGNORECASE)
_PLAIN_OPTION: Final = re.compile(
    r"tokens|tokeni[sz]|token-(?:limit|count)|keyboard|keyring|keyword|(?:file|path|dir|folder|name|id|url)$",
    re.IGNORECASE,
)
"""Options whose names only sound so: `--max-tokens`, `--key-file`."""
_SECRET_VALUE: Final = re.compile(
    r"(?:Bearer |sk-|gh[opsu]_|github_pat_|glpat-|xox[abprs]-|hf_|AIza|AKIA|eyJ)[A-Za-z0-9_.\-]{12}"
)
"""How the keys of well-known services begin."""
_PAIR: Final = re.compile(r"(-{0,2}[A-Za-z][\w.-]*)(?:=|:\s+)(.+)", re.DOTALL)
_OPTION: Final = re.compile(r"-{1,2}[A-Za-z][\w.-]*")


def is_secret(name: str, value: str) -> bool:
    """Whether a value stands in plain words under a name that says it is a secret."""
    return bool(value and _SECRET_NAME.search(name) and not VARIABLE.search(value))


def secret_in_words(words: Sequence[str]) -> str:
    """What looks like a secret among the words with which a command is started; empty where nothing does."""
    for place, word in enumerate(words):
        following = words[place + 1] if place + 1 < len(words) else ""
        if _OPTION.fullmatch(word) and not following.startswith("-") and _is_secret_option(word, following):
            return word
        if found := _secret_in_word(word):
            return found
    return ""


def secret_in_address(address: str) -> str:
    """What looks like a secret in an address: a password before its host, or a part of its query."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    before, at, _ = parts.netloc.rpartition("@")
    is_login = bool(before.partition(":")[2]) or parts.scheme in {"http", "https"}
    if at and is_login and not VARIABLE.search(before):
        return f"{parts.scheme}://…@"
    return next((name for name, value in parse_qsl(parts.query) if _is_secret_option(name, value)), "")


def _secret_in_word(word: str) -> str:
    if _SECRET_VALUE.match(word):
        return f"{word[:3]}…"
    for name, value in _pairs(word):
        if _is_secret_option(name, value) or _SECRET_VALUE.match(value):
            return name
        if "://" in value and (found := secret_in_address(value)):
            return found
    return secret_in_address(word) if "://" in word else ""


def _pairs(word: str) -> Iterator[tuple[str, str]]:
    """`--name=value`, `NAME=value` and `Name: value`, and such a one that is the value of another."""
    while found := _PAIR.fullmatch(word):
        yield found[1], found[2]
        word = found[2]


def _is_secret_option(name: str, value: str) -> bool:
    return is_secret(name, value) and not _PLAIN_OPTION.search(name)
