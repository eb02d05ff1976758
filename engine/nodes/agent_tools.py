"""The tools that an agent may be given: those of the registry, and its own, which reach into the run around it."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any, Final

from engine.models.protocol import ToolDefinition
from engine.tools.registry import all_tools, find_tool
from engine.tools.tool import ToolError

FINISH: Final = "finish"
ASK_PERSON: Final = "ask_person"
EXIT_LOOP: Final = "exit_loop"
SEND_NOTE: Final = "send_note"


@dataclass(frozen=True, slots=True)
class OwnTool:
    """A tool that the agent itself carries out.

    Attributes:
        name: How models and documents call it.
        title: How people call it.
        help: One line on what it does, for people.
        description: What it does, for the model.
        parameters: A JSON Schema of what it takes.
    """

    name: str
    title: str
    help: str
    description: str
    parameters: dict[str, Any]

    @property
    def definition(self) -> ToolDefinition:
        """The tool as a model is told of it."""
        return ToolDefinition(self.name, self.description, self.parameters)


def _texts(**descriptions: str) -> dict[str, Any]:
    """The schema of an object of texts, all required."""
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": text} for name, text in descriptions.items()},
        "required": list(descriptions),
        "additionalProperties": False,
    }


EXIT_LOOP_TOOL: Final = OwnTool(
    EXIT_LOOP,
    "End the loop",
    "Ends the loop around it; what stands then is the result.",
    "Ends the loop that you work in. Call it only when nothing is left to improve, and write nothing beside it.",
    {"type": "object", "properties": {}, "additionalProperties": False},
)
_OWN: Final = {
    tool.name: tool
    for tool in (
        OwnTool(
            ASK_PERSON,
            "Ask a person",
            "Asks a person a question, and waits for the answer.",
            "Asks a person a question and waits for the answer. Ask only what you cannot find out by yourself.",
            _texts(question="The question."),
        ),
        EXIT_LOOP_TOOL,
        OwnTool(
            SEND_NOTE,
            "Send a note",
            "Sends a note to another node, which gets it with its next model call.",
            "Sends a note to another node of the workflow, which reads it with its next call.",
            _texts(to="The node's id, such as worker or loop[0].worker.", text="What it is to know."),
        ),
    )
}


def finish_tool(reply_schema: dict[str, Any] | None) -> ToolDefinition:
    """The tool by which an agent ends its work, with an answer of that form."""
    answer = reply_schema if reply_schema is not None else {"type": "string", "description": "The final answer."}
    # What the form refers to is looked for at the top of the whole.
    definitions = {key: answer[key] for key in ("$defs", "definitions") if key in answer}
    form = {key: part for key, part in answer.items() if key not in definitions}
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {"answer": form},
        "required": ["answer"],
    } | definitions
    return ToolDefinition(FINISH, "Ends your work with the final answer.", parameters)


def tool_choices() -> dict[str, tuple[str, str]]:
    """Title and help of each tool that an agent may be given, by name, in the order in which they are offered."""
    ordinary = {tool.name: (tool.title, tool.help) for tool in all_tools().values()}
    return ordinary | {tool.name: (tool.title, tool.help) for tool in _OWN.values()}


def tool_definition(name: str) -> ToolDefinition:
    """A tool as a model is told of it.

    Raises:
        ToolError: There is none of that name.
    """
    if name in _OWN:
        return _OWN[name].definition
    try:
        tool = find_tool(name)
    except ToolError:
        raise unknown_tool(name, tuple(tool_choices())) from None
    return ToolDefinition(tool.name, tool.help, tool.parameters.model_json_schema())


def unknown_tool(name: str, known: tuple[str, ...]) -> ToolError:
    """The error that says that there is no such tool among these."""
    near = difflib.get_close_matches(name[:100].lower(), known, n=1)
    question = f'Did you mean "{near[0]}"? ' if near else ""
    return ToolError(f'There is no tool "{name[:100]}".', f"{question}The tools are: {', '.join(known)}.")
