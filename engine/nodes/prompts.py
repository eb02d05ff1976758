"""What node types share that have prompts: the settings, and the messages that come of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import Field

from engine.expr import Scope, Template, compile_template
from engine.models.protocol import Message
from engine.nodes.context import NodeContext
from engine.nodes.model_fields import ModelFields
from engine.nodes.spec import NamedText, Port, TextKind
from engine.nodes.texts import CACHED_TEXTS, named_ports, uses
from engine.values import to_text


class PromptFields(ModelFields):
    """Settings shared by the node types that have prompts."""

    system: str = Field(
        default="",
        title="System prompt",
        description="The model's role and rules. {{name}} inserts the value of the port with that name.",
        json_schema_extra={"widget": "prompt"},
    )
    prompt: str = Field(
        default="",
        title="Prompt",
        description=("The request to the model. {{input}} inserts the input; without it, the input is appended."),
        json_schema_extra={"widget": "prompt"},
    )


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts, compiled once a run."""

    system: Template | None
    prompt: Template
    names_input: bool


def prompt_texts(config: PromptFields) -> tuple[NamedText, ...]:
    """The prompts as texts that name values."""
    return _texts(config.system, config.prompt)


@lru_cache(maxsize=CACHED_TEXTS)
def _texts(system: str, prompt: str) -> tuple[NamedText, ...]:
    return NamedText("system", TextKind.TEMPLATE, system), NamedText("prompt", TextKind.TEMPLATE, prompt)


def prompt_inputs(config: PromptFields) -> tuple[Port, ...]:
    """The input ports: `input`, and one for each bare name in the prompts."""
    return _inputs(config.system, config.prompt)


@lru_cache(maxsize=CACHED_TEXTS)
def _inputs(system: str, prompt: str) -> tuple[Port, ...]:
    texts = _texts(system, prompt)
    needed = uses(texts, "input") or not prompt.strip()
    return (
        Port("input", help="What the prompt calls {{input}}.", required=needed, gate=True, many=True),
        *named_ports(texts, beside=("input",)),
    )


def prepare_prompts(config: PromptFields) -> Prompts:
    """Compile the prompts."""
    return _prompts(config.system, config.prompt)


@lru_cache(maxsize=CACHED_TEXTS)
def _prompts(system: str, prompt: str) -> Prompts:
    names_input = uses(_texts(system, prompt), "input")
    return Prompts(compile_template(system) if system else None, compile_template(prompt), names_input)


def prompt_messages(context: NodeContext[Any]) -> list[Message]:
    """The messages that a conversation begins with."""
    prompts: Prompts = context.prepared
    scope: Scope = context.scope
    prompt = prompts.prompt.render(scope)
    if not prompts.names_input and "input" in context.inputs:
        given = to_text(context.inputs["input"])
        prompt = f"{prompt}\n\n{given}" if prompt else given
    if context.iteration_note is not None:
        prompt = context.iteration_note.added_to(prompt)
    messages = [*context.memory, Message("user", prompt)]
    if prompts.system is not None:
        messages.insert(0, Message("system", prompts.system.render(scope)))
    return messages
