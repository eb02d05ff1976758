"""The type of `extra_parameters`: parameters of a provider's own, without secrets and without what other fields say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Final

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from engine.values import Value

_SET_ELSEWHERE: Final = "the program or another field of the node sets it"
_NO_REQUEST: Final = "it is not part of a model's request"
_RESERVED: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            "messages",
            "prompt",
            "input",
            "system",
            "model",
            "models",
            "fallbacks",
            "stream",
            "streamoptions",
            "n",
            "tools",
            "toolchoice",
            "responseformat",
            "temperature",
            "topp",
            "maxtokens",
            "maxcompletiontokens",
            "stop",
            "seed",
            "reasoningeffort",
        ),
        _SET_ELSEWHERE,
    ),
    **dict.fromkeys(
        (
            "apibase",
            "baseurl",
            "apiversion",
            "organization",
            "customllmprovider",
            "headers",
            "extraheaders",
            "extrabody",
            "extraquery",
            "timeout",
            "maxretries",
            "numretries",
            "mockresponse",
        ),
        _NO_REQUEST,
    ),
}
_SECRET_NAME: Final = re.compile(
    r"(api|access|secret|private|auth|subscription|account)_?key|secret|passw(or)?d|credential|authorization|bearer"
    r"|(^|_)(auth|access|id|session|refresh|security|api|bearer)_?token$|^(token|key|auth)$"
)
_SECRET_VALUE: Final = re.compile(
    r"^\s*(bearer|basic)\s|\b((sk|gsk|xai|hf|ghp|pplx|csk|r8|nvapi)[-_]|AIza|AKIA)(?=[\w-]*\d)[\w-]{16,}", re.IGNORECASE
)


def _checked(parameters: dict[str, Value]) -> dict[str, Value]:
    for name in parameters:
        instead = _RESERVED.get(re.sub(r"[^a-z0-9]", "", name.lower()))
        if instead is not None:
            raise PydanticCustomError("reserved_parameter", "reserved", {"name": name[:60], "instead": instead})
    for name, value in _entries(parameters):
        if is_secret_name(name) or (isinstance(value, str) and is_secret_value(value)):
            raise PydanticCustomError("secret_parameter", "secret", {"name": name[:60]})
    return parameters


def is_secret_name(name: str) -> bool:
    """Whether a name says that its value is a secret: `api_key`, `apiKey`, `X-Auth-Token`, `password`."""
    return _SECRET_NAME.search(_snake(name)) is not None


def is_secret_value(value: str) -> bool:
    """Whether a text looks like a key of a well-known service, or a header with one."""
    return _SECRET_VALUE.search(value) is not None


def _snake(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()).strip("_")


def _entries(parameters: dict[str, Value]) -> Iterator[tuple[str, Value]]:
    """Every named value at any depth; entries of a list go by the list's name."""
    pending = list(parameters.items())
    while pending:
        name, value = pending.pop()
        yield name, value
        if isinstance(value, dict):
            pending += value.items()
        elif isinstance(value, list):
            pending += [(name, inner) for inner in value]


ExtraParameters = Annotated[dict[str, Any], AfterValidator(_checked)]
"""A JSON object whose names at its top are none of the request's own, and in which no secret stands."""
