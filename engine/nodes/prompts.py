"""What node types share that have prompts: the settings, and the messages that come of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import Field

from engine.expr import Scope, Template, compile_template
from engine.models.base import Message
from engine.nodes.context import NodeContext
from engine.nodes.model_fields import ModelFields
from engine.nodes.spec import NamedText, Port, TextKind
from engine.nodes.texts import named_ports, uses
from engine.values import to_text


class PromptFields(ModelFields):
    """Settings shared by the node types that have prompts."""

    system: str = Field(
        default="",
        title="System prompt",
        description="Who the model is and how it works. {{name}} puts in what reaches the port of that name.",
        json_schema_extra={"widget": "prompt"},
    )
    prompt: str = Field(
        default="",
        title="Prompt",
        description="What the model is asked. {{input}} puts in the input; without it, the input comes last.",
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
    return (
        NamedText("system", TextKind.TEMPLATE, config.system),
        NamedText("prompt", TextKind.TEMPLATE, config.prompt),
    )


def prompt_inputs(config: PromptFields) -> tuple[Port, ...]:
    """The input ports: `input`, and one for each bare name in the prompts."""
    texts = prompt_texts(config)
    needed = uses(texts, "input") or not config.prompt.strip()
    return (
        Port("input", help="What the prompt calls {{input}}.", required=needed, gate=True, many=True),
        *named_ports(texts, beside=("input",)),
    )


def prepare_prompts(config: PromptFields) -> Prompts:
    """Compile the prompts."""
    system = compile_template(config.system) if config.system else None
    return Prompts(system, compile_template(config.prompt), uses(prompt_texts(config), "input"))


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
