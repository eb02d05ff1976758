"""Settings of React Flow nodes: one function for each node type, which also reports every setting it reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from engine.document.model import FILE_SUFFIX, Workflow
from engine.importing.fields import (
    TOOLS,
    FieldReader,
    as_integer,
    as_list,
    as_number,
    as_object,
    as_seconds,
    as_text,
    map_model,
    map_tool,
)
from engine.importing.report import ImportReport
from engine.text_sanitizing import shown

Config = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ForeignNode:
    """A node of the canvas.

    Attributes:
        id: Its foreign id.
        type: Its normalized type: `loop`.
        title: Its label.
        fields: Its settings.
        source_handles: The handles at which edges start, in the file's order.
    """

    id: str
    type: str
    title: str
    fields: FieldReader
    source_handles: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """How the report names the node."""
        return f"node {self.id}"


Convert = Callable[[ForeignNode, ImportReport], Config]

ConvertNested = Callable[[dict[str, Any], ImportReport, str], Workflow]
"""Converts the canvas of a subflow. The text is the workflow's name if the canvas has none."""


def port_name(text: str) -> str:
    """Turn a foreign name into a valid port name; empty if nothing is left."""
    name = "".join(c if c.isascii() and c.isalnum() else "_" for c in text.strip().lower()).strip("_")[:40]
    return f"n{name}" if name[:1].isdigit() else name


def _choice(
    node: ForeignNode,
    report: ImportReport,
    config: Config,
    names: tuple[str, ...],
    key: str,
    choices: Mapping[str, str],
    *,
    is_required: bool = False,
) -> None:
    """Read a setting with a fixed set of values. An unknown value is kept, as a problem, only if `is_required`."""
    given = node.fields.pop(*names)
    if given is None:
        return
    value = choices.get(as_text(given).strip().lower().replace("-", "_"))
    if value is not None:
        config[key] = value
        report.carried_over(f"{node.place}, {names[0]}", f"{key}: {value}.")
        return
    if is_required:
        config[key] = given
    remedy = "Choose another value." if is_required else "The default is used."
    report.left_out(f"{node.place}, {names[0]}", f'The value "{shown(given, 40)}" does not exist here. {remedy}')


def _timeout(node: ForeignNode, report: ImportReport, config: Config) -> None:
    given = node.fields.pop("timeout", "timeoutSeconds", "timeout_seconds")
    seconds = as_seconds(given)
    if seconds is not None and seconds > 0:
        config["timeout_s"] = seconds
        report.carried_over(f"{node.place}, timeout", f"timeout_s: {seconds:g}.")
    elif given is not None:
        report.left_out(f"{node.place}, timeout", f"{shown(given, 40)} is not a duration.")


def _number(
    node: ForeignNode,
    report: ImportReport,
    config: Config,
    names: tuple[str, ...],
    key: str,
    *,
    is_integer: bool = False,
) -> None:
    given = node.fields.pop(*names)
    if given is None:
        return
    number = as_integer(given) if is_integer else as_number(given)
    if number is None or number < (1 if is_integer else 0):
        report.left_out(f"{node.place}, {names[0]}", f"{shown(given, 40)} is not a valid number.")
        return
    config[key] = number
    report.carried_over(f"{node.place}, {names[0]}", f"{key}: {number:g}.")


def _text(node: ForeignNode, report: ImportReport, config: Config, names: tuple[str, ...], key: str) -> None:
    given = node.fields.pop(*names)
    text = as_text(given)
    if text.strip():
        config[key] = text
        report.carried_over(f"{node.place}, {names[0]}", f"{key}.")
    elif given not in (None, ""):
        report.left_out(f"{node.place}, {names[0]}", "It is not a text.")


def _model(node: ForeignNode, report: ImportReport, config: Config) -> None:
    name = as_text(node.fields.pop("model", "modelId", "model_id")).strip()
    provider = as_text(node.fields.pop("provider")).strip()
    if name:
        config["model"], message = map_model(name, provider)
        if provider:
            report.carried_over(f"{node.place}, provider", "It is the prefix of the model's name.")
        (report.carried_over if config["model"] == name else report.changed)(f"{node.place}, model", message)
    elif provider:
        report.left_out(f"{node.place}, provider", "No model is given, so the workflow's default is used.")


def _model_call(node: ForeignNode, report: ImportReport, config: Config) -> None:
    """Read the settings of a model call."""
    _model(node, report, config)
    _number(node, report, config, ("temperature",), "temperature")
    _number(node, report, config, ("maxTokens", "max_tokens"), "max_tokens", is_integer=True)
    _number(node, report, config, ("topP", "top_p"), "top_p")
    _timeout(node, report, config)


_EXIT_CONDITIONS: Final = {name: name for name in ("max_iterations", "evaluator", "stable_output", "judge")}
_FEEDBACK_MODES: Final = {"replace": "replace", "append": "append"}
_MAX_ITERATIONS_RANGE: Final = (1, 50)


def _loop(node: ForeignNode, report: ImportReport) -> Config:
    fields = node.fields
    # The foreign format has no iteration note; without this, prompts would get text that the author did not write.
    config: Config = {"max_iterations": 5, "inject_feedback": False}
    given = fields.pop("maxIterations", "max_iterations")
    if given is not None:
        place = f"{node.place}, maxIterations"
        count = as_integer(given)
        if count is None:
            report.left_out(place, f"{shown(given, 40)} is not an integer; 5 is used.")
        else:
            low, high = _MAX_ITERATIONS_RANGE
            config["max_iterations"] = min(max(count, low), high)
            add_entry = report.carried_over if count == config["max_iterations"] else report.changed
            add_entry(place, f"max_iterations: {config['max_iterations']}.")
    conditions = ("exitCondition", "exit_condition")
    chosen: Config = {}
    _choice(node, report, chosen, conditions, "stop_when", _EXIT_CONDITIONS, is_required=True)
    name = chosen.get("stop_when", "max_iterations")
    condition: Config = {} if name == "max_iterations" else {"condition": name}
    _choice(node, report, config, ("feedbackMode", "feedback_mode"), "feedback_mode", _FEEDBACK_MODES)
    given = fields.pop("stabilityThreshold", "stability_threshold")
    if given is not None:
        place = f"{node.place}, stabilityThreshold"
        threshold = as_number(given)
        if threshold is None or not 0 <= threshold <= 1:
            report.left_out(place, f"{shown(given, 40)} is not a number from 0 to 1.")
        elif name != "stable_output":
            report.left_out(place, "The loop has no condition that compares results.")
        else:
            condition["threshold"] = threshold
            report.carried_over(place, f"The loop stops at a similarity of {threshold:g} or more.")
    if condition:
        config["stop_when"] = [condition]
    _timeout(node, report, config)
    return config


def _llm(node: ForeignNode, report: ImportReport) -> Config:
    config: Config = {}
    _model_call(node, report, config)
    _text(node, report, config, ("systemPrompt", "system_prompt", "system"), "system")
    _text(node, report, config, ("prompt", "userPrompt", "user_prompt", "promptTemplate", "template"), "prompt")
    schema = node.fields.pop("responseSchema", "jsonSchema", "outputSchema", "schema")
    if isinstance(schema, dict) and schema:
        config["reply_schema"] = schema
        report.carried_over(f"{node.place}, responseSchema", "reply_schema.")
    elif schema not in (None, "", {}):
        report.left_out(f"{node.place}, responseSchema", "It is not a JSON Schema.")
    return config


def _router(node: ForeignNode, report: ImportReport) -> Config:
    config: Config = {}
    _model_call(node, report, config)
    _text(node, report, config, ("criteria", "prompt", "systemPrompt", "system_prompt", "condition"), "criteria")
    mode = as_text(node.fields.pop("mode")).lower()
    if mode and mode not in {"llm", "model", "ai"}:
        message = f'Instead of "{shown(mode, 40)}", a model decides here. Rules have to be rewritten.'
        report.changed(f"{node.place}, mode", message)
    entries = as_list(node.fields.pop("branches", "routes", "options"))
    branches = [branch for entry in entries if (branch := _branch(entry))]
    unknown_keys = dict.fromkeys(key for entry in entries for key in as_object(entry) if key not in _BRANCH_KEYS)
    report.left_out_keys(f"{node.place}, branches", unknown_keys)
    if not branches:
        names = [name for name in map(port_name, node.source_handles) if name not in {"", "reason", "output", "value"}]
        branches = [{"name": name, "description": ""} for name in dict.fromkeys(names)]
    if branches:
        config["branches"] = branches
        report.carried_over(f"{node.place}, branches", f"{', '.join(branch['name'] for branch in branches)}.")
    if not config.get("criteria"):
        report.left_out(f"{node.place}, criteria", "The file has no criteria for the decision. Write them.")
    return config


_BRANCH_KEYS: Final = frozenset({"name", "label", "id", "description", "condition", "criteria"})


def _branch(entry: object) -> dict[str, str] | None:
    if isinstance(entry, str):
        return {"name": port_name(entry), "description": ""} if port_name(entry) else None
    members = as_object(entry)
    name = port_name(as_text(members.get("name") or members.get("label") or members.get("id")))
    description = as_text(members.get("description") or members.get("condition") or members.get("criteria"))
    return {"name": name, "description": description} if name else None


def _transform(node: ForeignNode, report: ImportReport) -> Config:
    mode = as_text(node.fields.pop("mode", "transformType")).lower()
    template = as_text(node.fields.pop("template"))
    expression = as_text(node.fields.pop("expression", "script", "code", "jsonpath", "path"))
    if template.strip() or mode in {"template", ""}:
        if expression:
            report.left_out(f"{node.place}, expression", "The node has a template, which is used instead.")
        if mode:
            add_entry = report.carried_over if mode == "template" else report.left_out
            add_entry(f"{node.place}, mode", "The node fills in a template.")
        report.carried_over(f"{node.place}, template", "template.")
        return {"mode": "template", "template": template or "{{input}}"}
    report.left_out(f"{node.place}, mode", f'The mode "{shown(mode, 40)}" does not exist here.')
    _foreign_expression(node, report, expression)
    return {"mode": "expression", "expression": expression}


def _foreign_expression(node: ForeignNode, report: ImportReport, expression: str) -> None:
    message = f"{shown(expression, 120) or 'It'} is in another language. Rewrite the expression."
    report.left_out(f"{node.place}, expression", message)


def _validator(node: ForeignNode, report: ImportReport) -> Config:
    schema = node.fields.pop("schema", "jsonSchema", "json_schema")
    if isinstance(schema, dict):
        report.carried_over(f"{node.place}, schema", "json_schema.")
        return {"mode": "schema", "json_schema": schema}
    if schema is not None:
        report.left_out(f"{node.place}, schema", "It is not a JSON Schema. Write one.")
        return {"mode": "schema", "json_schema": schema}
    expression = as_text(node.fields.pop("expression", "condition", "rule", "script", "code"))
    if expression:
        _foreign_expression(node, report, expression)
        return {"mode": "expression", "expression": expression}
    report.left_out(f"{node.place}, schema", "The file has no schema, so any JSON is valid.")
    return {"mode": "schema", "json_schema": {}}


_INPUT_TYPES: Final = {
    **dict.fromkeys(("text", "string", "textarea", "str"), "text"),
    **dict.fromkeys(("json", "object"), "json"),
    **dict.fromkeys(("number", "integer", "float", "int"), "number"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    **dict.fromkeys(("list", "array"), "list"),
}


def _input(node: ForeignNode, report: ImportReport) -> Config:
    config: Config = {"name": as_text(node.fields.pop("name", "inputName")) or node.title or node.id}
    given = as_text(node.fields.pop("dataType", "inputType", "valueType", "data_type")).lower()
    config["type"] = _INPUT_TYPES.get(given, "any" if not given else "text")
    if given and given not in _INPUT_TYPES:
        report.changed(f"{node.place}, dataType", f'The type "{shown(given, 40)}" does not exist here; text is used.')
    default = node.fields.pop("defaultValue", "default", "value")
    if default is not None:
        config["default"] = default
    _text(node, report, config, ("description", "placeholder"), "description")
    report.carried_over(f"{node.place}, name", f'The input "{shown(config["name"], 60)}".')
    if default is not None:
        report.carried_over(f"{node.place}, defaultValue", "default.")
    if given in _INPUT_TYPES:
        report.carried_over(f"{node.place}, dataType", f"type: {config['type']}.")
    return config


def _output(node: ForeignNode, report: ImportReport) -> Config:
    name = as_text(node.fields.pop("name", "outputName")) or node.title or node.id
    report.carried_over(f"{node.place}, name", f'The output "{shown(name, 60)}".')
    return {"name": name}


def _tool(node: ForeignNode, report: ImportReport) -> Config:
    foreign_name = as_text(node.fields.pop("toolName", "tool_name", "tool", "name")) or node.type
    tool = map_tool(foreign_name, TOOLS)
    given = node.fields.pop("arguments", "args", "toolInput", "parameters", "input")
    arguments = as_object(given)
    if arguments:
        report.carried_over(f"{node.place}, arguments", f"{shown(', '.join(arguments), 120)}.")
    elif given is not None:
        report.left_out(f"{node.place}, arguments", "They are not a JSON object.")
    place, quoted = f"{node.place}, toolName", f'"{shown(foreign_name, 60)}"'
    if not tool:
        report.left_out(place, f"The tool {quoted} does not exist here. Choose another.")
    elif tool == foreign_name:
        report.carried_over(place, f"{tool}.")
    else:
        report.changed(place, f'The tool {quoted} is "{tool}" here. Check its arguments.')
    return {"tool": tool or foreign_name, "arguments": arguments}


def _iterator(node: ForeignNode, report: ImportReport) -> Config:
    config: Config = {}
    mode = as_text(node.fields.pop("mode")).lower()
    names = ("maxConcurrency", "concurrency", "max_concurrency")
    _number(node, report, config, names, "max_concurrency", is_integer=True)
    if mode == "sequential":
        config["max_concurrency"] = 1
        report.carried_over(f"{node.place}, mode", "One item after the other.")
    elif mode:
        report.carried_over(f"{node.place}, mode", "Several items at the same time.")
    return config


_AGGREGATOR_MODES: Final = {
    "array": "collect",
    "collect": "collect",
    "concat": "join",
    "join": "join",
    "first": "first",
}


def _aggregator(node: ForeignNode, report: ImportReport) -> Config:
    config: Config = {}
    _choice(node, report, config, ("strategy", "mode"), "mode", _AGGREGATOR_MODES)
    separator = node.fields.pop("separator")
    if isinstance(separator, str):
        config["separator"] = separator
        report.carried_over(f"{node.place}, separator", "separator.")
    return config


def _approval(node: ForeignNode, report: ImportReport) -> Config:
    config: Config = {}
    _text(node, report, config, ("message", "prompt", "instructions"), "message")
    return config


def _exit(node: ForeignNode, report: ImportReport) -> Config:
    report.carried_over(node.place, "The end of its loop.")
    return {}


NODE_CONVERTERS: Final[Mapping[str, tuple[str, Convert]]] = {
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
"""By foreign node type: the node type here, and the function that converts the settings."""

SUBFLOW_TYPES: Final = frozenset({"subflow", "sub_flow", "subworkflow", "sub_workflow", "workflow", "subgraph"})
"""Foreign node types that stand for another workflow."""

_NESTED_CANVAS_KEYS: Final = ("workflow", "graph", "definition", "subgraph", "flow", "canvas")
_SUBFLOW_NAME_KEYS: Final = (
    *("file", "path", "workflowName", "workflow_name", "workflowId", "workflow_id", "subflowId", "name"),
)


def subflow_config(node: ForeignNode, report: ImportReport, convert_nested: ConvertNested) -> Config:
    """Convert the settings of a subflow.

    A nested canvas becomes the embedded workflow. If the node only names a workflow, the settings get a file name;
    that file is not opened.
    """
    nested = next(
        (name for name in _NESTED_CANVAS_KEYS if as_list(as_object(node.fields.peek(name)).get("nodes"))), None
    )
    name_keys = [*_SUBFLOW_NAME_KEYS, *(k for k in _NESTED_CANVAS_KEYS if isinstance(node.fields.peek(k), str))]
    foreign_name = next((as_text(node.fields.peek(k)) for k in name_keys if as_text(node.fields.peek(k))), "")
    name = foreign_name or node.title or node.id
    file = _subflow_file(name)
    for key in name_keys:
        given = as_text(node.fields.pop(key))
        if given:
            message = f'The file "{file}" in the folder of this workflow.'
            if given != foreign_name:
                message = f'The name "{shown(foreign_name, 40)}" is used instead.'
            report.changed(f"{node.place}, {key}", message)
    if nested is None:
        message = f'The file does not contain the other workflow. Import it too and save it as "{file}".'
        report.changed(node.place, message)
        return {"file": file}
    nested_report = ImportReport()
    workflow = convert_nested(as_object(node.fields.pop(nested)), nested_report, name)
    report.carried_over(f"{node.place}, {nested}", f"The embedded workflow, with {len(workflow.nodes)} nodes.")
    report.add_nested(node.place, nested_report)
    return {"file": file, "workflow": {key: value for key, value in workflow.to_json().items() if key != "layout"}}


def subflow_port(config: Config, node_type: str, handle: str) -> str:
    """The port of a subflow for a foreign handle.

    Args:
        config: The subflow's settings.
        node_type: `input` for an input port, `output` for an output port.
        handle: The foreign name. If it matches no port, the first port is used.
    """
    nodes = [as_object(node) for node in as_list(as_object(config.get("workflow")).get("nodes"))]
    ends = [node for node in nodes if node.get("type") == node_type]
    names = [as_text(as_object(node.get("config")).get("name")) or as_text(node.get("id")) for node in ends]
    matching = (name for name in names if handle == name or (handle and port_name(handle) == port_name(name)))
    return next(matching, names[0] if names else port_name(handle) or node_type)


def _subflow_file(name: str) -> str:
    """A file name in the workflow's folder: everything that could lead to another folder is removed."""
    plain = re.sub(r"[^\w. -]+", "-", name.strip().removesuffix(".json").removesuffix(".loop")).strip("-. ")
    return f"{plain[:80] or 'part'}{FILE_SUFFIX}"
