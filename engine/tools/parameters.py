"""What the parameter models of all tools have in common. Knows nothing of any single tool."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

from engine.values import Value


class Parameters(BaseModel):
    """The base of every tool's parameters: unknown names are refused, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _mend(value: object) -> object:
    """Make a model's text encodable: surrogate pairs become their character, lone surrogates U+FFFD."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value


def whole_characters(value: Value) -> Value:
    """A value with all its texts made encodable, as those of `Text` are."""
    text = json.dumps(value, ensure_ascii=False)
    mended = _mend(text)
    return value if mended == text else json.loads(str(mended))


Text = Annotated[str, BeforeValidator(_mend)]
"""A text that may come from a language model. Such a text can hold lone surrogates, which pydantic's `str` refuses."""
