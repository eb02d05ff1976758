"""Settings of an MCP server, a command to start or an address, and the values of the variables that they name.

A setting holds no secret. It names one as `${NAME}`, which is looked up when the server is needed: in the environment,
in this session, then in the system's keyring. A secret in plain text is refused, and reported by its name only. Nothing
is started or called here.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Final, Self
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from engine.system_keyring import KeyringError, keep_secret, read_secret
from engine.tools.tool import ToolError

_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET_NAME: Final = re.compile(r"key|token|secret|passw|credential|authorization|cookie", re.IGNORECASE)
_HARMLESS_OPTION: Final = re.compile(
    r"tokens|tokeni[sz]|token-(?:limit|count)|keyboard|keyring|keyword|(?:file|path|dir|folder|name|id|url)$",
    re.IGNORECASE,
)
"""Options whose names resemble a secret's: `--max-tokens`, `--key-file`."""
_SECRET_VALUE: Final = re.compile(
    r"(?:Bearer |sk-|gh[opsu]_|github_pat_|glpat-|xox[abprs]-|hf_|AIza|AKIA|eyJ)[A-Za-z0-9_.\-]{12}"
)
"""Beginnings of the keys of well-known services."""
_PAIR: Final = re.compile(r"(-{0,2}[A-Za-z][\w.-]*)(?:=|:\s+)(.+)", re.DOTALL)
_OPTION: Final = re.compile(r"-{1,2}[A-Za-z][\w.-]*")


def secret_in_arguments(arguments: Sequence[str]) -> str:
    """What looks like a secret in a command's arguments; empty if nothing does."""
    for index, argument in enumerate(arguments):
        following = arguments[index + 1] if index + 1 < len(arguments) else ""
        if _OPTION.fullmatch(argument) and not following.startswith("-") and _is_secret_option(argument, following):
            return argument
        if found := _secret_in_argument(argument):
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
    if at and is_login and not _VARIABLE.search(before):
        return f"{parts.scheme}://…@"
    return next((name for name, value in parse_qsl(parts.query) if _is_secret_option(name, value)), "")


def _secret_in_argument(argument: str) -> str:
    if _SECRET_VALUE.match(argument):
        return f"{argument[:3]}…"
    for name, value in _pairs(argument):
        if _is_secret_option(name, value) or _SECRET_VALUE.match(value):
            return name
        if "://" in value and (found := secret_in_address(value)):
            return found
    return secret_in_address(argument) if "://" in argument else ""


def _pairs(argument: str) -> Iterator[tuple[str, str]]:
    """`--name=value`, `NAME=value` and `Name: value`, also where one is the value of another."""
    while found := _PAIR.fullmatch(argument):
        yield found[1], found[2]
        argument = found[2]


def _is_secret(name: str, value: str) -> bool:
    """Whether a value in plain text has a name that says it is a secret."""
    return bool(value and _SECRET_NAME.search(name) and not _VARIABLE.search(value))


def _is_secret_option(name: str, value: str) -> bool:
    return _is_secret(name, value) and not _HARMLESS_OPTION.search(name)


NAME_PATTERN: Final = r"^[a-z][a-z0-9_-]{0,30}$"
"""Pattern of a server's name; its tools are called `SERVER/TOOL`."""

_LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class McpServer(BaseModel):
    """Settings of one server. Keys of other programs that this one does not know are ignored."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", allow_inf_nan=False)

    command: str = Field(default="", title="Command", description="The program to start, such as npx or uvx.")
    args: list[str] = Field(default_factory=list[str], title="Arguments", description="Arguments of the command.")
    env: dict[str, str] = Field(
        default_factory=dict[str, str],
        title="Environment",
        description="Environment variables of the server; ${NAME} stands for a variable of your own.",
    )
    url: str = Field(default="", title="Address", description="URL of a running server.")
    headers: dict[str, str] = Field(
        default_factory=dict[str, str],
        title="Headers",
        description="HTTP headers of each request; ${NAME} stands for a variable of your own.",
    )
    timeout_s: float = Field(
        default=60.0, gt=0, le=86_400, title="Timeout (seconds)", description="Maximum duration of a call."
    )

    @field_validator("env", "headers")
    @classmethod
    def _reject_secret_values(cls, values: dict[str, str]) -> dict[str, str]:
        for name, value in values.items():
            if _is_secret(name, value):
                raise _secret_error(name)
        return values

    @field_validator("args")
    @classmethod
    def _reject_secret_arguments(cls, args: list[str]) -> list[str]:
        found = secret_in_arguments(args)
        if found:
            raise _secret_error(found)
        return args

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        if not url:
            return url
        try:
            parts = urlsplit(url)
            host = parts.hostname
            _ = parts.port
        except ValueError:
            host, parts = None, urlsplit("")
        if parts.scheme not in {"http", "https"} or not host or "@" in parts.netloc or not url.isprintable():
            raise _error("This is not an address; write it like https://example.org/mcp, without a user name.")
        found = secret_in_address(url)
        if found:
            raise _secret_error(found)
        return url

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if bool(self.command.strip()) == bool(self.url):
            raise _error("A server has either a command or an address.")
        if self.headers and self.url.startswith("http:") and urlsplit(self.url).hostname not in _LOCAL_HOSTS:
            raise _error("Headers may hold keys, and are sent to an https:// address only.")
        return self

    @property
    def fingerprint(self) -> str:
        """A hash of the settings without the timeout."""
        return sha256(self.model_dump_json(exclude={"timeout_s"}).encode()).hexdigest()[:16]

    @property
    def summary(self) -> str:
        """The address, or the command on one line."""
        return self.url or " ".join((self.command, *self.args))


def fill_in(name: str, text: str, values: Mapping[str, str]) -> str:
    """Replace the variables in a setting by their values.

    Args:
        name: The server, for the error.
        text: The setting.
        values: The values by variable.

    Raises:
        ToolError: A variable has no value.
    """

    def value(found: re.Match[str]) -> str:
        variable = found.group(1)
        if variable not in values:
            raise ToolError(
                f'The MCP server "{name}" needs {variable}, which is neither in the environment nor in the keyring.',
                "Set it, or add the server again under Settings › Tools and enter the secret there.",
            )
        return values[variable]

    return _VARIABLE.sub(value, text)


def variable_names(text: str) -> list[str]:
    """The variables that a setting names, each once, in order."""
    return list(dict.fromkeys(_VARIABLE.findall(text)))


def variables_of(server: McpServer) -> list[str]:
    """The variables that a server's settings name."""
    texts = (*server.args, *server.env.values(), *server.headers.values(), server.url)
    return variable_names("\n".join(texts))


def _secret_error(what: str) -> PydanticCustomError:
    return _error(
        f'"{what[:60]}" looks like a secret. '
        f"Write ${{NAME}} for it here; NAME is a variable in the environment or the keyring."
    )


def _error(sentence: str) -> PydanticCustomError:
    return PydanticCustomError("refused", "{sentence}", {"sentence": sentence})


class SecretVariables:
    """Values of variables. Safe to use from several threads; its `repr` never shows a value.

    Args:
        environment: Takes precedence; None for that of the process.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = os.environ if environment is None else environment
        self._session: dict[str, str] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def values(self, names: Iterable[str]) -> dict[str, str]:
        """The values of those variables that have one. The keyring may take a while."""
        found = {name: self._value(name) for name in names}
        return {name: value for name, value in found.items() if value is not None}

    def set_for_session(self, name: str, value: str) -> None:
        """Set a variable for as long as the program runs."""
        with self._lock:
            self._session[name] = value

    def store(self, name: str, value: str) -> bool:
        """Set a variable for this session and store it in the system's keyring.

        Returns:
            Whether the computer has a keyring that stores it.
        """
        self.set_for_session(name, value)
        try:
            keep_secret(_keyring_entry(name), value)
        except KeyringError:
            return False
        return True

    def _value(self, name: str) -> str | None:
        if name in self._environment:
            return self._environment[name]
        with self._lock:
            if name in self._session:
                return self._session[name]
        try:
            return read_secret(_keyring_entry(name))
        except KeyringError:  # many computers have no working keyring
            return None


VARIABLES = SecretVariables()
"""The variables of this process."""


def _keyring_entry(name: str) -> str:
    return f"variable:{name}"
