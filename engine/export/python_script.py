"""Export of a workflow as a Python script that builds it with `engine.Builder` and runs it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.document.model import Node, Settings, Workflow
from engine.export.python_source import Exported, docstring, literal
from engine.nodes.agent_tools import ASK_PERSON
from engine.nodes.node_registry import Registry
from engine.plan.compiler import compile_workflow
from engine.plan.execution_plan import GraphPlan
from engine.runner.capabilities import tools_in
from engine.runner.run import has_money_budget
from engine.tools.registry import all_tools
from engine.tools.web_tools import HTTP_GET
from engine.values import Value

_MAIN = '''workflow = flow.build()


def json_object(text: str) -> dict[str, Any]:
    """Parse the inputs on the command line."""
    try:
        values = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"this is not JSON ({error})") from error
    if not isinstance(values, dict):
        raise argparse.ArgumentTypeError("this is not a JSON object")
    return values


%FOLDER%def main() -> int:
    """Run the workflow with the inputs and options of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "inputs", nargs="?", type=json_object, default={}, help='values for inputs: {"INPUT": "VALUE"}'
    )
%ARGUMENTS%    given = parser.parse_args()
%MISSING%    try:
        result = run_blocking(workflow, given.inputs%OPTIONS%)
    except EngineError as error:
        print(error, file=sys.stderr)
        return 1 if isinstance(error, RunError) else 2
    for name, value in result.outputs.items():
        print(f"{name}: {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''
_FOLDER = '''def existing_folder(text: str) -> Path:
    """Parse a folder on the command line."""
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError("there is no such folder")
    return Path(text)


'''


@dataclass(frozen=True, slots=True)
class _Permission:
    """Something that a run can be allowed, under its name in `loopwright run`.

    Attributes:
        name: The field of `RunOptions`.
        help: What the option allows.
        needed_for: What the workflow needs it for; empty if it is optional.
    """

    name: str
    help: str
    needed_for: str = ""

    @property
    def option(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def argument(self) -> str:
        kind = 'type=existing_folder, metavar="PATH"' if self.name == "folder" else 'action="store_true"'
        return f'    parser.add_argument("{self.option}", {kind}, help="{self.help}")\n'


def _permissions(graph: GraphPlan, settings: Settings) -> Iterator[_Permission]:
    """The permissions that make a difference to a run of the workflow."""
    known = all_tools()
    tools = [known[name] for name in dict.fromkeys(name for _, name in tools_in(graph)) if name in known]
    if any(tool.uses_folder for tool in tools):
        is_needed = any(tool.uses_folder and not tool.runs_code for tool in tools)
        reason = "the files that its tools use" if is_needed else ""
        yield _Permission("folder", "the one folder that tools may read and write", reason)
    if HTTP_GET in tools:
        yield _Permission("allow_private_addresses", "let http_get access this computer and private networks")
    if any(tool.runs_code for tool in tools):
        yield _Permission("allow_code", "let tools run code on this computer", "the code that its tools run")
    if settings.budget_usd is not None or has_money_budget(graph):
        yield _Permission("allow_unknown_price", "run although the price of a model is unknown")


def _main(permissions: list[_Permission]) -> str:
    """The part of the script that runs the workflow."""
    needed = [(one.name, f"{one.option} for {one.needed_for}") for one in permissions if one.needed_for]
    missing = ""
    if needed:
        listed = "".join(f"        (given.{name}, {text!r}),\n" for name, text in needed)
        missing = (
            f"    needed = (\n{listed}    )\n"
            "    missing = [what for is_given, what in needed if not is_given]\n"
            "    if missing:\n"
            "        print(f\"If you trust this workflow, add {' and '.join(missing)}.\", file=sys.stderr)\n"
            "        return 2\n"
        )
    options = ", ".join(f"{one.name}=given.{one.name}" for one in permissions)
    main = _MAIN.replace("%FOLDER%", _FOLDER if _uses_folder(permissions) else "").replace("%MISSING%", missing)
    main = main.replace("%ARGUMENTS%", "".join(one.argument for one in permissions))
    return main.replace("%OPTIONS%", f", RunOptions({options})" if options else "")


def _uses_folder(permissions: list[_Permission]) -> bool:
    return any(one.name == "folder" for one in permissions)


def export_python(workflow: Workflow, registry: Registry | None = None) -> Exported:
    """Export a workflow as a Python script.

    Raises:
        DocumentError: The document has errors.
    """
    plan = compile_workflow(workflow, registry)
    permissions = list(_permissions(plan.graph, Settings.model_validate(workflow.settings)))
    settings: Value = workflow.settings
    head = f"{workflow.name!r}, description={literal(workflow.description)}, settings={literal(settings)}"
    lines = [f"flow = Builder({head})"]
    for node in workflow.nodes:
        config: Value = node.config
        arguments = [repr(node.type), f"id={node.id!r}"]
        arguments += [f"title={node.title!r}"] if node.title else []
        arguments += [] if node.enabled else ["enabled=False"]
        pinned: Value = node.pinned
        arguments += [f"config={literal(config)}"] if node.config else []
        arguments += [f"pinned={literal(pinned)}"] if node.pinned else []
        lines.append(f"flow.add({', '.join(arguments)})")
    lines += [f"flow.connect({edge.from_!r}, {edge.to!r})" for edge in workflow.edges]
    names = ["Builder", "EngineError", "RunError", *(["RunOptions"] if permissions else []), "run_blocking"]
    path = "from pathlib import Path\n" if _uses_folder(permissions) else ""
    imports = (
        "from __future__ import annotations\n\nimport argparse\nimport json\nimport sys\n"
        f"{path}from typing import Any\n\nfrom loopwright import {', '.join(names)}\n"
    )
    about = docstring([workflow.name or "A workflow", workflow.description, "Exported by Loopwright for its library."])
    text = f"{about}\n\n{imports}\n" + "\n".join(lines) + f"\n{_main(permissions)}"
    return Exported(text, tuple(_left_out(workflow)))


def _left_out(workflow: Workflow) -> Iterator[str]:
    asking = [f'"{node.title or node.id}"' for node in workflow.nodes if node.enabled and _asks_people(node)]
    if asking:
        yield (
            f"Nobody answers the questions of {', '.join(asking)}: the script waits for an answer. "
            "Run the workflow with 'loopwright run', or answer in code: engine.start, Run.answer."
        )
    if workflow.layout:
        yield "The positions of the nodes on the canvas are left out."
    if workflow.unknown_keys or any(part.unknown_keys for part in (*workflow.nodes, *workflow.edges)):
        yield "Keys of the file that this version does not know are left out."


def _asks_people(node: Node) -> bool:
    """Whether a node may ask a person."""
    tools: Value = node.config.get("tools")
    may_ask = isinstance(tools, list) and ASK_PERSON in tools
    return node.type == "approval" or (node.type == "agent" and (may_ask or bool(node.config.get("require_approval"))))
