"""Cards of a canvas that stand for another workflow: its canvas where the card holds it, else only its name.

A card that holds a canvas becomes a subflow with that workflow in it. Of one that only names a workflow the file to
look for is written down; nothing is opened because a file names it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from engine.document.importing.canvas_card import Card, Config, port_name
from engine.document.importing.report import Report
from engine.document.importing.values import as_list, as_object, as_text
from engine.document.model import FILE_SUFFIX, Workflow
from engine.document.wording import shown

SUBFLOWS: Final = frozenset({"subflow", "sub_flow", "subworkflow", "sub_workflow", "workflow", "subgraph"})
"""What such a card is called."""

Reader = Callable[[dict[str, Any], Report, str], Workflow]
"""Makes a document of a canvas, telling what became of each thing; the text is its name where it has none."""

_INSIDE: Final = ("workflow", "graph", "definition", "subgraph", "flow", "canvas")
_NAMES: Final = ("file", "path", "workflowName", "workflow_name", "workflowId", "workflow_id", "subflowId", "name")


def subflow_config(card: Card, report: Report, read: Reader) -> Config:
    """The settings of a subflow."""
    inside = next((name for name in _INSIDE if as_list(as_object(card.fields.peek(name)).get("nodes"))), None)
    named = [*_NAMES, *(name for name in _INSIDE if isinstance(card.fields.peek(name), str))]
    wish = next((as_text(card.fields.peek(name)) for name in named if as_text(card.fields.peek(name))), "")
    file = _file(wish or card.title or card.id)
    for name in named:
        given = as_text(card.fields.take(name))
        if given:
            said = f'The file "{file}" beside this workflow, as the card calls it.'
            report.changed(
                f"{card.place}, {name}", said if given == wish else f'The name "{shown(wish, 40)}" is taken.'
            )
    if inside is None:
        report.changed(card.place, f'The other workflow is not in this file: import it, too, and save it as "{file}".')
        return {"file": file}
    within = Report()
    workflow = read(as_object(card.fields.take(inside)), within, wish or card.title or card.id)
    report.carried(f"{card.place}, {inside}", f"The workflow in it, with {len(workflow.nodes)} nodes.")
    report.add_within(card.place, within)
    return {"file": file, "workflow": {key: told for key, told in workflow.to_json().items() if key != "layout"}}


def subflow_port(config: Config, node_type: str, handle: str) -> str:
    """Our port of a subflow for a handle.

    Args:
        config: The settings of the subflow.
        node_type: `input` for a port that is led to, `output` for one that is started from.
        handle: The foreign name; where it names none of several, the first is meant.
    """
    nodes = [as_object(node) for node in as_list(as_object(config.get("workflow")).get("nodes"))]
    ends = [node for node in nodes if node.get("type") == node_type]
    names = [as_text(as_object(node.get("config")).get("name")) or as_text(node.get("id")) for node in ends]
    called = (name for name in names if handle == name or (handle and port_name(handle) == port_name(name)))
    return next(called, names[0] if names else port_name(handle) or node_type)


def _file(name: str) -> str:
    """A file of ours beside the workflow, called like that: whatever leads elsewhere is taken out of the name."""
    plain = re.sub(r"[^\w. -]+", "-", name.strip().removesuffix(".json").removesuffix(".loop")).strip("-. ")
    return f"{plain[:80] or 'part'}{FILE_SUFFIX}"
