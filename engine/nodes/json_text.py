"""Reading JSON that came as text: from a model, a person or another node.

What comes out keeps the rules of documents (`engine.document.json_rules`): Python's reader alone would let NaN, 1e999
and any depth pass, which nothing behind it can write again.
"""

from __future__ import annotations

import json

from engine.document.json_rules import faults
from engine.values import Value


def parse_json(text: str) -> Value:
    """The value that a text of JSON stands for.

    Raises:
        ValueError: It is no JSON, or holds a number that is not finite or objects too deep inside one another.
    """
    try:
        value: Value = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("objects and lists stand too deep inside one another") from None
    fault = next(faults(value), None)
    if fault is not None:
        raise ValueError(f"{fault.message[0].lower()}{fault.message[1:].rstrip('.')}")
    return value


def _refuse_constant(name: str) -> Value:
    raise ValueError(f"{name} is no JSON value")
