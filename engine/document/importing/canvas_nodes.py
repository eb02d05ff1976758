"""The settings of a canvas's cards, one function a kind of card: foreign settings in, ours out, and a line for each.

The canvas is a JSON file of nodes and edges as editors in a browser save it: `maxIterations`, `systemPrompt`, handles.
How cards are connected is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.document.importing.canvas_card import (
    Card,
    Config,
    Converter,
    asks,
    choice,
    number,
    port_name,
    seconds,
    text,
)
from engine.document.importing.report import Report
from engine.document.importing.tools import TOOLS, our_tool
from engine.document.importing.values import as_list, as_number, as_object, as_text, as_whole
from engine.document.wording import shown

_EXITS: Final = {
    "max_iterations": "max_iterations",
    "evaluator": "evaluator",
    "stable_output": "stable_output",
    "judge": "judge",
}
_LOOP_MODES: Final = {"replace": "replace", "append": "append"}
_COUNT: Final = (1, 50)


def _loop(card: Card, report: Report) -> Config:
    fields = card.fields
    # What this form has no word for is switched off here: prompts stay as they were written.
    config: Config = {"max_iterations": 5, "inject_feedback": False}
    given = fields.take("maxIterations", "max_iterations")
    if given is not None:
        count = as_whole(given)
        if count is None:
            report.left(f"{card.place}, maxIterations", f"{shown(given, 40)} is no whole number; 5 is taken.")
        else:
            config["max_iterations"] = min(max(count, _COUNT[0]), _COUNT[1])
            told = report.carried if count == config["max_iterations"] else report.changed
            told(f"{card.place}, maxIterations", f"max_iterations: {config['max_iterations']}.")
    choice(card, report, config, ("exitCondition", "exit_condition"), "exit_condition", _EXITS, is_vital=True)
    choice(card, report, config, ("feedbackMode", "feedback_mode"), "feedback_mode", _LOOP_MODES)
    threshold = fields.take("stabilityThreshold", "stability_threshold")
    if threshold is not None:
        number = as_number(threshold)
        if number is None or not 0 <= number <= 1:
            report.left(f"{card.place}, stabilityThreshold", f"{shown(threshold, 40)} is no number from 0 to 1.")
        else:
            config["stability_threshold"] = number
            report.carried(f"{card.place}, stabilityThreshold", f"It stops at a similarity of {number:g} or more.")
    seconds(card, report, config)
    return config


def _llm(card: Card, report: Report) -> Config:
    config: Config = {}
    asks(card, report, config)
    text(card, report, config, ("systemPrompt", "system_prompt", "system"), "system")
    text(card, report, config, ("prompt", "userPrompt", "user_prompt", "promptTemplate", "template"), "prompt")
    schema = card.fields.take("responseSchema", "jsonSchema", "outputSchema", "schema")
    if isinstance(schema, dict) and schema:
        config["reply_schema"] = schema
        report.carried(f"{card.place}, responseSchema", "reply_schema.")
    elif schema not in (None, "", {}):
        report.left(f"{card.place}, responseSchema", "It is no JSON Schema.")
    return config


def _router(card: Card, report: Report) -> Config:
    config: Config = {}
    asks(card, report, config)
    text(card, report, config, ("criteria", "prompt", "systemPrompt", "system_prompt", "condition"), "criteria")
    mode = as_text(card.fields.take("mode")).lower()
    if mode and mode not in {"llm", "model", "ai"}:
        report.changed(f"{card.place}, mode", f'"{shown(mode, 40)}": here a model decides; rules have to be written.')
    given = as_list(card.fields.take("branches", "routes", "options"))
    branches = [branch for entry in given if (branch := _branch(entry))]
    others = dict.fromkeys(key for entry in given for key in as_object(entry) if key not in _OF_A_BRANCH)
    report.left_keys(f"{card.place}, branches", others)
    if not branches:
        names = [name for name in map(port_name, card.used) if name not in {"", "reason", "output", "value"}]
        branches = [{"name": name, "description": ""} for name in dict.fromkeys(names)]
    if branches:
        config["branches"] = branches
        report.carried(f"{card.place}, branches", f"{', '.join(branch['name'] for branch in branches)}.")
    if not config.get("criteria"):
        report.left(f"{card.place}, criteria", "The file does not say by what it decides; write the criteria.")
    return config


_OF_A_BRANCH: Final = frozenset({"name", "label", "id", "description", "condition", "criteria"})


def _branch(entry: object) -> dict[str, str] | None:
    if isinstance(entry, str):
        return {"name": port_name(entry), "description": ""} if port_name(entry) else None
    parts = as_object(entry)
    name = port_name(as_text(parts.get("name") or parts.get("label") or parts.get("id")))
    said = as_text(parts.get("description") or parts.get("condition") or parts.get("criteria"))
    return {"name": name, "description": said} if name else None


def _transform(card: Card, report: Report) -> Config:
    mode = as_text(card.fields.take("mode", "transformType")).lower()
    template = as_text(card.fields.take("template"))
    expression = as_text(card.fields.take("expression", "script", "code", "jsonpath", "path"))
    if template.strip() or mode in {"template", ""}:
        if expression:
            report.left(f"{card.place}, expression", "The template is taken.")
        if mode:
            told = report.carried if mode == "template" else report.left
            told(f"{card.place}, mode", "It fills in a template.")
        report.carried(f"{card.place}, template", "template.")
        return {"mode": "template", "template": template or "{{input}}"}
    report.left(f"{card.place}, mode", f'What is made by "{shown(mode, 40)}" has to be written anew.')
    report.left(
        f"{card.place}, expression",
        f"{shown(expression, 120) or 'Nothing'} is in another language; write an expression anew.",
    )
    return {"mode": "expression", "expression": expression}


def _validator(card: Card, report: Report) -> Config:
    schema = card.fields.take("schema", "jsonSchema", "json_schema")
    if isinstance(schema, dict):
        report.carried(f"{card.place}, schema", "json_schema.")
        return {"mode": "schema", "json_schema": schema}
    if schema is not None:
        report.left(f"{card.place}, schema", "It is no JSON Schema; write one.")
        return {"mode": "schema", "json_schema": schema}
    expression = as_text(card.fields.take("expression", "condition", "rule", "script", "code"))
    if expression:
        report.left(f"{card.place}, expression", f"{shown(expression, 120)} is in another language; write it anew.")
        return {"mode": "expression", "expression": expression}
    report.left(f"{card.place}, schema", "There is none; any JSON passes.")
    return {"mode": "schema", "json_schema": {}}


_INPUT_TYPES: Final = {
    **dict.fromkeys(("text", "string", "textarea", "str"), "text"),
    **dict.fromkeys(("json", "object"), "json"),
    **dict.fromkeys(("number", "integer", "float", "int"), "number"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    **dict.fromkeys(("list", "array"), "list"),
}


def _input(card: Card, report: Report) -> Config:
    config: Config = {"name": as_text(card.fields.take("name", "inputName")) or card.title or card.id}
    given = as_text(card.fields.take("dataType", "inputType", "valueType", "data_type")).lower()
    config["type"] = _INPUT_TYPES.get(given, "any" if not given else "text")
    if given and given not in _INPUT_TYPES:
        report.changed(f"{card.place}, dataType", f'"{shown(given, 40)}" is read as text here.')
    default = card.fields.take("defaultValue", "default", "value")
    if default is not None:
        config["default"] = default
    text(card, report, config, ("description", "placeholder"), "description")
    report.carried(f"{card.place}, name", f'The input "{shown(config["name"], 60)}".')
    if default is not None:
        report.carried(f"{card.place}, defaultValue", "default.")
    if config["type"] == given or given in _INPUT_TYPES:
        report.carried(f"{card.place}, dataType", f"type: {config['type']}.")
    return config


def _output(card: Card, report: Report) -> Config:
    name = as_text(card.fields.take("name", "outputName")) or card.title or card.id
    report.carried(f"{card.place}, name", f'The output "{shown(name, 60)}".')
    return {"name": name}


def _tool(card: Card, report: Report) -> Config:
    wish = as_text(card.fields.take("toolName", "tool_name", "tool", "name")) or card.kind
    tool = our_tool(wish, TOOLS)
    given = card.fields.take("arguments", "args", "toolInput", "parameters", "input")
    arguments = as_object(given)
    if arguments:
        report.carried(f"{card.place}, arguments", f"{shown(', '.join(arguments), 120)}.")
    elif given is not None:
        report.left(f"{card.place}, arguments", "They are no JSON object with names.")
    if not tool:
        report.left(f"{card.place}, toolName", f'There is no tool "{shown(wish, 60)}" here; choose one.')
    elif tool == wish:
        report.carried(f"{card.place}, toolName", f"{tool}.")
    else:
        report.changed(f"{card.place}, toolName", f'"{shown(wish, 60)}" is "{tool}" here; look at its arguments.')
    return {"tool": tool or wish, "arguments": arguments}


def _iterator(card: Card, report: Report) -> Config:
    config: Config = {}
    mode = as_text(card.fields.take("mode")).lower()
    number(card, report, config, ("maxConcurrency", "concurrency", "max_concurrency"), "max_concurrency", whole=True)
    if mode == "sequential":
        config["max_concurrency"] = 1
        report.carried(f"{card.place}, mode", "One item after the other.")
    elif mode:
        report.carried(f"{card.place}, mode", "Several items at once.")
    return config


_GATHER: Final = {"array": "collect", "collect": "collect", "concat": "join", "join": "join", "first": "first"}


def _aggregator(card: Card, report: Report) -> Config:
    config: Config = {}
    choice(card, report, config, ("strategy", "mode"), "mode", _GATHER)
    separator = card.fields.take("separator")
    if isinstance(separator, str):
        config["separator"] = separator
        report.carried(f"{card.place}, separator", "separator.")
    return config


def _approval(card: Card, report: Report) -> Config:
    config: Config = {}
    text(card, report, config, ("message", "prompt", "instructions"), "message")
    return config


def _exit(card: Card, report: Report) -> Config:
    report.carried(card.place, "The end of its loop.")
    return {}


CONVERTERS: Final[Mapping[str, tuple[str, Converter]]] = {
    "input": ("input", _input),
    "output": ("output", _output),
    **dict.fromkeys(("llm", "ai", "chat", "prompt", "model"), ("llm", _llm)),
    "router": ("router", _router),
    "transform": ("transform", _transform),
    "validator": ("validator", _validator),
    "approval": ("approval", _approval),
    **dict.fromkeys(("tool", *TOOLS), ("tool", _tool)),
    "iterator": ("iterator", _iterator),
    "aggregator": ("aggregator", _aggregator),
    "loop": ("loop", _loop),
    "exit": ("exit", _exit),
}
"""By the kind of card: the node type here, and what makes its settings."""
