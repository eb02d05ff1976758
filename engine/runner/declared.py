"""The inputs that a workflow declares, for whoever asks a person for their values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from engine.document.model import Workflow
from engine.nodes.input import InputConfig
from engine.nodes.spec import PortType
from engine.text_sanitizing import one_line, shown
from engine.values import Value, to_text

MAX_FILE_BYTES: Final = 10_000_000
"""The largest file from which the value of an input is read."""


@dataclass(frozen=True, slots=True)
class Declared:
    """An input that a workflow declares.

    Attributes:
        name: What `-i` calls it.
        type: What kind of value it takes.
        default: What a run takes that gives no value; None where one must be given.
        description: A line for the person who fills it in.
    """

    name: str
    type: PortType
    default: Value
    description: str

    def __str__(self) -> str:
        usual = "required" if self.default is None else f"default {one_line(json.dumps(to_text(self.default)), 50)}"
        return f"{shown(self.name, 60)} ({self.type}, {usual})"

    def to_json(self) -> dict[str, Any]:
        """It as a JSON object."""
        return {
            "name": self.name,
            "type": str(self.type),
            "required": self.default is None,
            "default": self.default,
            "description": self.description,
        }


def declared_inputs(workflow: Workflow) -> list[Declared]:
    """The inputs that a workflow declares and that are not switched off; of those with problems what can be read."""
    return _inputs(workflow, is_enabled=True)


def still_declared(workflow: Workflow, given: Mapping[str, Value]) -> dict[str, Value]:
    """The values that an earlier run was given, without those of inputs that are switched off in the document now."""
    off, declared = ({item.name for item in _inputs(workflow, is_enabled=on)} for on in (False, True))
    return {name: value for name, value in given.items() if name in declared or name not in off}


def _inputs(workflow: Workflow, *, is_enabled: bool) -> list[Declared]:
    found: list[Declared] = []
    for node in workflow.nodes:
        if node.type != "input" or node.enabled is not is_enabled:
            continue
        try:
            config = InputConfig.model_validate(node.config)
        except ValidationError:
            continue
        found.append(Declared(config.name or node.id, config.type, config.default, config.description))
    return found
