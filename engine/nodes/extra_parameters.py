"""The type of `extra_parameters`: parameters of a provider's own, without what other fields say.

Secrets in them are found where those of the whole document are (`engine.plan.secrets`).
"""

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
_TOKEN_LIMITS: Final = frozenset(
    {
        *("maxtokens", "maxcompletiontokens", "maxoutputtokens", "maxnewtokens", "maxlength", "maxgenerationlength"),
        *("npredict", "numpredict", "maxtokenstosample", "maxgentokens"),
        *("bestof", "candidatecount", "numreturnsequences", "numgenerations"),
    }
)
"""Names under which servers take the length or the number of replies, which a budget has to know."""

_SECRET_NAME: Final = re.compile(
    r"(api|access|secret|private|auth|subscription|account)_?key|secret|passw(or)?d|credential|authorization|bearer"
    r"|(^|_)(auth|access|id|session|refresh|security|api|bearer)_?token$|^(token|key|auth)$"
)
_SECRET_VALUE: Final = re.compile(
    r"^\s*(bearer|basic)\s|\b((sk|gsk|xai|hf|ghp|pplx|csk|r8|nvapi)[-_]|AIza|AKIA)(?=[\w-]*\d)[\w-]{16,}", re.IGNORECASE
)


def _checked(parameters: dict[str, Value]) -> dict[str, Value]:
    for name in parameters:
        instead = _RESERVED.get(_plain(name))
        if instead is not None:
            raise PydanticCustomError("reserved_parameter", "reserved", {"name": name[:60], "instead": instead})
    for name in _names(parameters):
        if _plain(name) in _TOKEN_LIMITS:
            raise PydanticCustomError("reserved_parameter", "reserved", {"name": name[:60], "instead": _SET_ELSEWHERE})
    return parameters


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def is_secret_name(name: str) -> bool:
    """Whether a name says that its value is a secret: `api_key`, `apiKey`, `X-Auth-Token`, `password`."""
    return _SECRET_NAME.search(_snake(name)) is not None


def is_secret_value(value: str) -> bool:
    """Whether a text looks like a key of a well-known service, or a header with one."""
    return _SECRET_VALUE.search(value) is not None


def _snake(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()).strip("_")


def _names(parameters: dict[str, Value]) -> Iterator[str]:
    """Every name at any depth."""
    pending: list[Value] = [parameters]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            yield from value
            pending += value.values()
        elif isinstance(value, list):
            pending += value


ExtraParameters = Annotated[dict[str, Any], AfterValidator(_checked)]
"""A JSON object whose top-level names are none of the request's own, and which holds no limit of tokens."""
