"""Settings of React Flow nodes: one function for each node type, which also reports every setting it reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from engine.document.model import FILE_SUFFIX, Workflow, stem_of
from engine.importing.fields import TOOLS, as_number, as_text, map_tool
from engine.importing.report import FieldReader, ImportReport
from engine.text_sanitizing import shown
from engine.values import as_list, as_object

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
        config: Its settings here, filled in by the converter of its type.
    """

    id: str
    type: str
    title: str
    fields: FieldReader
    source_handles: tuple[str, ...] = ()
    config: Config = field(default_factory=dict[str, Any])

    def read_text(self, key: str, *names: str) -> None:
        """Convert a text."""
        given = self.fields.pop(*names)
        text = as_text(given)
        if text.strip():
            self.config[key] = text
            self.fields.carried_over(names[0], f"{key}.")
        elif given not in (None, ""):
            self.fields.left_out(names[0], "It is not a text.")

    def read_choice(self, choices: Mapping[str, str], key: str, *names: str, is_required: bool = False) -> Any:
        """Convert a setting with a fixed set of values. An unknown value is returned only if it `is_required`."""
        given = self.fields.pop(*names)
        if given is None:
            return None
        value = choices.get(as_text(given).strip().lower().replace("-", "_"))
        if value is not None:
            self.fields.carried_over(names[0], f"{key}: {value}.")
            return value
        remedy = "Choose another value." if is_required else "The default is used."
        self.fields.left_out(names[0], f'The value "{shown(given, 40)}" does not exist here. {remedy}')
        return given if is_required else None

    def read_model_call(self) -> None:
        """Convert the settings of a model call."""
        self.fields.pop_model(self.config, "provider")
        self.fields.pop_sampling(self.config)
        self.read_timeout()

    def read_timeout(self) -> None:
        """Convert the timeout."""
        self.fields.pop_seconds(self.config, "timeout_s", "timeout", "timeoutSeconds", "timeout_seconds")


def port_name(text: str) -> str:
    """Turn a foreign name into a valid port name; empty if nothing is left."""
    name = "".join(c if c.isascii() and c.isalnum() else "_" for c in text.strip().lower()).strip("_")[:40]
    return f"n{name}" if name[:1].isdigit() else name


_EXIT_CONDITIONS: Final = {name: name for name in ("max_iterations", "evaluator", "stable_output", "judge")}
_FEEDBACK_MODES: Final = {"replace": "replace", "append": "append"}


def _loop(node: ForeignNode) -> None:
    fields, config = node.fields, node.config
    # The foreign format has no iteration note; without this, prompts would get text that the author did not write.
    config |= {"max_iterations": 5, "inject_feedback": False}
    fields.pop_count(config, "max_iterations", "maxIterations", "max_iterations", high=50, is_raised=True)
    names = ("exitCondition", "exit_condition")
    name = node.read_choice(_EXIT_CONDITIONS, "stop_when", *names, is_required=True)
    condition: Config = {} if name is None or name == "max_iterations" else {"condition": name}
    mode = node.read_choice(_FEEDBACK_MODES, "feedback_mode", "feedbackMode", "feedback_mode")
    if mode is not None:
        config["feedback_mode"] = mode
    given = fields.pop("stabilityThreshold", "stability_threshold")
    if given is not None:
        threshold = as_number(given)
        if threshold is None or not 0 <= threshold <= 1:
            fields.left_out("stabilityThreshold", f"{shown(given, 40)} is not a number from 0 to 1.")
        elif name != "stable_output":
            fields.left_out("stabilityThreshold", "The loop has no condition that compares results.")
        else:
            condition["threshold"] = threshold
            fields.carried_over("stabilityThreshold", f"The loop stops at a similarity of {threshold:g} or more.")
    if condition:
        config["stop_when"] = [condition]
    node.read_timeout()


def _llm(node: ForeignNode) -> None:
    node.read_model_call()
    node.read_text("system", "systemPrompt", "system_prompt", "system")
    node.read_text("prompt", "prompt", "userPrompt", "user_prompt", "promptTemplate", "template")
    schema = node.fields.pop("responseSchema", "jsonSchema", "outputSchema", "schema")
    if isinstance(schema, dict) and schema:
        node.config["reply_schema"] = schema
        node.fields.carried_over("responseSchema", "reply_schema.")
    elif schema not in (None, "", {}):
        node.fields.left_out("responseSchema", "It is not a JSON Schema.")


_BRANCH_KEYS: Final = frozenset({"name", "label", "id", "description", "condition", "criteria"})


def _router(node: ForeignNode) -> None:
    node.read_model_call()
    node.read_text("criteria", "criteria", "prompt", "systemPrompt", "system_prompt", "condition")
    mode = as_text(node.fields.pop("mode")).lower()
    if mode and mode not in {"llm", "model", "ai"}:
        message = f'Instead of "{shown(mode, 40)}", a model decides here. Rules have to be rewritten.'
        node.fields.changed("mode", message)
    entries = as_list(node.fields.pop("branches", "routes", "options"))
    branches = [branch for entry in entries if (branch := _branch(entry))]
    unknown_keys = dict.fromkeys(key for entry in entries for key in as_object(entry) if key not in _BRANCH_KEYS)
    node.fields.report.left_out_keys(f"{node.fields.place}, branches", unknown_keys)
    if not branches:
        names = [name for name in map(port_name, node.source_handles) if name not in {"", "reason", "output", "value"}]
        branches = [{"name": name, "description": ""} for name in dict.fromkeys(names)]
    if branches:
        node.config["branches"] = branches
        node.fields.carried_over("branches", f"{', '.join(branch['name'] for branch in branches)}.")
    if not node.config.get("criteria"):
        node.fields.left_out("criteria", "The file has no criteria for the decision. Write them.")


def _branch(entry: object) -> dict[str, str] | None:
    members = {"name": entry} if isinstance(entry, str) else as_object(entry)
    name = port_name(as_text(members.get("name") or members.get("label") or members.get("id")))
    description = as_text(members.get("description") or members.get("condition") or members.get("criteria"))
    return {"name": name, "description": description} if name else None


def _transform(node: ForeignNode) -> None:
    fields = node.fields
    mode = as_text(fields.pop("mode", "transformType")).lower()
    template = as_text(fields.pop("template"))
    expression = as_text(fields.pop("expression", "script", "code", "jsonpath", "path"))
    if template.strip() or mode in {"template", ""}:
        if expression:
            fields.left_out("expression", "The node has a template, which is used instead.")
        if mode:
            (fields.carried_over if mode == "template" else fields.left_out)("mode", "The node fills in a template.")
        fields.carried_over("template", "template.")
        node.config.update(mode="template", template=template or "{{input}}")
    else:
        fields.left_out("mode", f'The mode "{shown(mode, 40)}" does not exist here.')
        _foreign_expression(node, expression)


def _foreign_expression(node: ForeignNode, expression: str) -> None:
    message = f"{shown(expression, 120) or 'It'} is in another language. Rewrite the expression."
    node.fields.left_out("expression", message)
    node.config.update(mode="expression", expression=expression)


def _validator(node: ForeignNode) -> None:
    schema = node.fields.pop("schema", "jsonSchema", "json_schema")
    if schema is None:
        expression = as_text(node.fields.pop("expression", "condition", "rule", "script", "code"))
        if expression:
            _foreign_expression(node, expression)
            return
    node.config.update(mode="schema", json_schema={} if schema is None else schema)
    if isinstance(schema, dict):
        node.fields.carried_over("schema", "json_schema.")
    elif schema is not None:
        node.fields.left_out("schema", "It is not a JSON Schema. Write one.")
    else:
        node.fields.left_out("schema", "The file has no schema, so any JSON is valid.")


_INPUT_TYPES: Final = {
    **dict.fromkeys(("text", "string", "textarea", "str"), "text"),
    **dict.fromkeys(("json", "object"), "json"),
    **dict.fromkeys(("number", "integer", "float", "int"), "number"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    **dict.fromkeys(("list", "array"), "list"),
}


def _input(node: ForeignNode) -> None:
    fields, config = node.fields, node.config
    config["name"] = as_text(fields.pop("name", "inputName")) or node.title or node.id
    given = as_text(fields.pop("dataType", "inputType", "valueType", "data_type")).lower()
    config["type"] = _INPUT_TYPES.get(given, "any" if not given else "text")
    if given and given not in _INPUT_TYPES:
        fields.changed("dataType", f'The type "{shown(given, 40)}" does not exist here; text is used.')
    default = fields.pop("defaultValue", "default", "value")
    if default is not None:
        config["default"] = default
    node.read_text("description", "description", "placeholder")
    fields.carried_over("name", f'The input "{shown(config["name"], 60)}".')
    if default is not None:
        fields.carried_over("defaultValue", "default.")
    if given in _INPUT_TYPES:
        fields.carried_over("dataType", f"type: {config['type']}.")


def _output(node: ForeignNode) -> None:
    node.config["name"] = name = as_text(node.fields.pop("name", "outputName")) or node.title or node.id
    node.fields.carried_over("name", f'The output "{shown(name, 60)}".')


def _tool(node: ForeignNode) -> None:
    fields = node.fields
    foreign_name = as_text(fields.pop("toolName", "tool_name", "tool", "name")) or node.type
    tool = map_tool(foreign_name, TOOLS)
    given = fields.pop("arguments", "args", "toolInput", "parameters", "input")
    arguments = as_object(given)
    if arguments:
        fields.carried_over("arguments", f"{shown(', '.join(arguments), 120)}.")
    elif given is not None:
        fields.left_out("arguments", "They are not a JSON object.")
    quoted = f'"{shown(foreign_name, 60)}"'
    if not tool:
        fields.left_out("toolName", f"The tool {quoted} does not exist here. Choose another.")
    elif tool == foreign_name:
        fields.carried_over("toolName", f"{tool}.")
    else:
        fields.changed("toolName", f'The tool {quoted} is "{tool}" here. Check its arguments.')
    node.config.update(tool=tool or foreign_name, arguments=arguments)


def _iterator(node: ForeignNode) -> None:
    mode = as_text(node.fields.pop("mode")).lower()
    names = ("maxConcurrency", "concurrency", "max_concurrency")
    node.fields.pop_count(node.config, "max_concurrency", *names, low=0, high=1000)
    if mode == "sequential":
        node.config["max_concurrency"] = 1
        node.fields.carried_over("mode", "One item after the other.")
    elif mode:
        node.fields.carried_over("mode", "Several items at the same time.")


_AGGREGATOR_MODES: Final = {
    "array": "collect",
    "collect": "collect",
    "concat": "join",
    "join": "join",
    "first": "first",
}


def _aggregator(node: ForeignNode) -> None:
    mode = node.read_choice(_AGGREGATOR_MODES, "mode", "strategy", "mode")
    if mode is not None:
        node.config["mode"] = mode
    separator = node.fields.pop("separator")
    if isinstance(separator, str):
        node.config["separator"] = separator
        node.fields.carried_over("separator", "separator.")


def _approval(node: ForeignNode) -> None:
    node.read_text("message", "message", "prompt", "instructions")


def _exit(node: ForeignNode) -> None:
    node.fields.report.carried_over(node.fields.place, "The end of its loop.")


NODE_CONVERTERS: Final[Mapping[str, tuple[str, Callable[[ForeignNode], None]]]] = {
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


def convert_subflow(
    node: ForeignNode, convert_nested: Callable[[dict[str, Any], ImportReport, str], Workflow]
) -> Config:
    """Convert the settings of a subflow.

    A nested canvas becomes the embedded workflow. If the node only names a workflow, the settings get a file name;
    that file is not opened.

    Args:
        node: The node.
        convert_nested: Converts the nested canvas; the text is the workflow's name if the canvas has none.
    """
    fields = node.fields
    nested = next((name for name in _NESTED_CANVAS_KEYS if as_list(as_object(fields.peek(name)).get("nodes"))), None)
    name_keys = [*_SUBFLOW_NAME_KEYS, *(key for key in _NESTED_CANVAS_KEYS if isinstance(fields.peek(key), str))]
    foreign_name = next((as_text(fields.peek(key)) for key in name_keys if as_text(fields.peek(key))), "")
    name = foreign_name or node.title or node.id
    file = _subflow_file(name)
    for key in name_keys:
        given = as_text(fields.pop(key))
        if given == foreign_name and given:
            fields.changed(key, f'The file "{file}" in the folder of this workflow.')
        elif given:
            fields.changed(key, f'The name "{shown(foreign_name, 40)}" is used instead.')
    if nested is None:
        message = f'The file does not contain the other workflow. Import it too and save it as "{file}".'
        fields.report.changed(fields.place, message)
        return {"file": file}
    nested_report = ImportReport()
    workflow = convert_nested(as_object(fields.pop(nested)), nested_report, name)
    fields.carried_over(nested, f"The embedded workflow, with {len(workflow.nodes)} nodes.")
    fields.report.add_nested(fields.place, nested_report)
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
    plain = re.sub(r"[^\w. -]+", "-", stem_of(name.strip()).removesuffix(".json")).strip("-. ")
    return f"{plain[:80] or 'part'}{FILE_SUFFIX}"
