"""A workflow as a Python script for our library: the same document, built by `engine.Builder`, and a run of it."""

from __future__ import annotations

from collections.abc import Iterator

from engine.document.model import Workflow
from engine.export.exported import Exported
from engine.export.literals import docstring, literal
from engine.nodes.registry import Registry
from engine.plan.build import build
from engine.values import Value

_END = '''workflow = flow.build()


def main() -> None:
    """Run it; values for inputs come as a JSON object: python THIS_FILE '{"INPUT": "VALUE"}'."""
    inputs = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    result = run_blocking(workflow, inputs)
    for name, value in result.outputs.items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
'''
_IMPORTS = """from __future__ import annotations

import json
import sys

from engine import Builder, run_blocking
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
    if workflow.layout:
        yield "Where the nodes stand on the canvas is left out."
    if workflow.unknown_keys or any(part.unknown_keys for part in (*workflow.nodes, *workflow.edges)):
        yield "Keys of the file that this version does not know are left out."
