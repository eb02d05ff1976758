"""A workflow as a Python script for our library: the same document, built by `engine.Builder`, and a run of it."""

from __future__ import annotations

from collections.abc import Iterator

from engine.document.model import Node, Workflow
from engine.export.exported import Exported
from engine.export.literals import docstring, literal
from engine.nodes.agent_tools import ASK_PERSON
from engine.nodes.registry import Registry
from engine.plan.build import build
from engine.values import Value

_END = '''workflow = flow.build()


def main() -> None:
    """Run it; values for inputs come as a JSON object: python THIS_FILE '{"INPUT": "VALUE"}'."""
    inputs = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    try:
        result = run_blocking(workflow, inputs)
    except EngineError as error:
        sys.exit(str(error))
    for name, value in result.outputs.items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
'''
_IMPORTS = """from __future__ import annotations

import json
import sys

from engine import Builder, EngineError, run_blocking
"""


def export_python(workflow: Workflow, registry: Registry | None = None) -> Exported:
    """The script, and what it leaves out.

    Raises:
        DocumentError: The document has errors.
    """
    build(workflow, registry)
    left_out = tuple(_left_out(workflow))
    about = [workflow.name or "A workflow", workflow.description, "Written by Loopwright, for its library."]
    settings: Value = workflow.settings
    head = f"{workflow.name!r}, description={literal(workflow.description)}, settings={literal(settings)}"
    lines = [f"flow = Builder({head})"]
    for node in workflow.nodes:
        config: Value = node.config
        parts = [repr(node.type), f"id={node.id!r}"]
        parts += [f"title={node.title!r}"] if node.title else []
        parts += [] if node.enabled else ["enabled=False"]
        parts += [f"config={literal(config)}"] if node.config else []
        lines.append(f"flow.add({', '.join(parts)})")
    lines += [f"flow.connect({edge.from_!r}, {edge.to!r})" for edge in workflow.edges]
    text = f"{docstring(about)}\n\n{_IMPORTS}\n" + "\n".join(lines) + f"\n{_END}"
    return Exported(text, left_out)


def _left_out(workflow: Workflow) -> Iterator[str]:
    asking = [f'"{node.title or node.id}"' for node in workflow.nodes if node.enabled and _asks_people(node)]
    if asking:
        yield (
            f"Nobody is asked: at {', '.join(asking)} the script waits for an answer that nobody can give. "
            "Run the workflow with 'loopwright run', or answer in code: engine.start, Run.answer."
        )
    if workflow.layout:
        yield "Where the nodes stand on the canvas is left out."
    if workflow.unknown_keys or any(part.unknown_keys for part in (*workflow.nodes, *workflow.edges)):
        yield "Keys of the file that this version does not know are left out."


def _asks_people(node: Node) -> bool:
    """Whether a node may wait for a person's answer."""
    tools: Value = node.config.get("tools")
    may_ask = isinstance(tools, list) and ASK_PERSON in tools
    return node.type == "approval" or (node.type == "agent" and (may_ask or bool(node.config.get("require_approval"))))
