"""Settings of an MCP server: a command to start, or an address.

A setting holds no secret. It names one as `${NAME}`, which is looked up when the server is needed
(`engine.tools.mcp.secret_variables`). A secret in plain text is refused, and reported by its name only. Nothing is
started or called here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Final, Self
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from engine.tools.base import ToolError

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


NAME_PATTERN: Final = r"^[a-z][a-z0-9_-]{0,30}$"
"""How a server may be called; its tools are called `SERVER/TOOL`."""

_LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class McpServer(BaseModel):
    """One server. Keys that other programs know and this one does not are passed over."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", allow_inf_nan=False)

    command: str = Field(default="", title="Command", description="The program to start, such as npx or uvx.")
    args: list[str] = Field(default_factory=list[str], title="Arguments", description="Arguments of the command.")
    env: dict[str, str] = Field(
        default_factory=dict[str, str],
        title="Environment",
        description="Variables that it is given; ${NAME} stands for a variable of your own.",
    )
    url: str = Field(default="", title="Address", description="URL of a running server.")
    headers: dict[str, str] = Field(
        default_factory=dict[str, str],
        title="Headers",
        description="What is sent along; ${NAME} stands for a variable of your own.",
    )
    timeout_s: float = Field(
        default=60.0, gt=0, le=86_400, title="Timeout (seconds)", description="Maximum duration of a call."
    )

    @field_validator("env", "headers")
    @classmethod
    def _holds_no_secret(cls, values: dict[str, str]) -> dict[str, str]:
        for name, value in values.items():
            if is_secret(name, value):
                raise _secret(name)
        return values

    @field_validator("args")
    @classmethod
    def _hold_no_secret(cls, args: list[str]) -> list[str]:
        found = secret_in_words(args)
        if found:
            raise _secret(found)
        return args

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        if not url:
            return url
        try:
            parts = urlsplit(url)
            host = parts.hostname
            _ = parts.port
        except ValueError:
            host, parts = None, urlsplit("")
        if parts.scheme not in {"http", "https"} or not host or "@" in parts.netloc or not url.isprintable():
            raise _refusal("This is no address; write it like https://example.org/mcp, without a user name.")
        found = secret_in_address(url)
        if found:
            raise _secret(found)
        return url

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        if bool(self.command.strip()) == bool(self.url):
            raise _refusal("A server has either a command or an address.")
        if self.headers and self.url.startswith("http:") and urlsplit(self.url).hostname not in _LOCAL_HOSTS:
            raise _refusal("Headers may hold keys, and are sent to an https:// address only.")
        return self

    @property
    def fingerprint(self) -> str:
        """Another one for other settings; the time limit does not count."""
        return sha256(self.model_dump_json(exclude={"timeout_s"}).encode()).hexdigest()[:16]

    @property
    def summary(self) -> str:
        """One line that says where it is."""
        return self.url or " ".join((self.command, *self.args))


def filled_in(name: str, text: str, values: Mapping[str, str]) -> str:
    """A setting with the variables that it names put in.

    Args:
        name: The server, for the error.
        text: The setting.
        values: What the variables stand for.

    Raises:
        ToolError: One stands for nothing.
    """

    def value(found: re.Match[str]) -> str:
        variable = found.group(1)
        if variable not in values:
            raise ToolError(
                f'The MCP server "{name}" needs {variable}, which is neither in the environment nor in the keyring.',
                "Set it, or add the server anew under Settings › Tools and give the secret there.",
            )
        return values[variable]

    return VARIABLE.sub(value, text)


def names_in(text: str) -> list[str]:
    """The variables that a setting names, each once, in order."""
    return list(dict.fromkeys(VARIABLE.findall(text)))


def variables_of(server: McpServer) -> list[str]:
    """The variables that a server's settings name."""
    texts = (*server.args, *server.env.values(), *server.headers.values(), server.url)
    return names_in("\n".join(texts))


def _secret(what: str) -> PydanticCustomError:
    return _refusal(
        f'"{what[:60]}" looks like a secret. '
        f"Write ${{NAME}} for it here; NAME is a variable in the environment or the keyring."
    )


def _refusal(sentence: str) -> PydanticCustomError:
    return PydanticCustomError("refused", "{sentence}", {"sentence": sentence})
