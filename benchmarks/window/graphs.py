"""The documents of both workers."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.workflows import loops_of_ten
from engine import dumps
from engine.document.model import FILE_SUFFIX, Workflow

ACROSS = 4
"""Number of parallel loops."""


def laid_out(nodes: int, edges: int) -> Workflow:
    """Loops of ten nodes with positions: one loop per row, in four columns."""
    workflow = loops_of_ten(nodes, edges)
    places: dict[str, dict[str, float]] = {}
    loop, column = -1, 0
    for node in workflow.nodes:
        if node.type == "loop":
            loop, column = loop + 1, 0
        places[node.id] = {
            "x": loop % ACROSS * 3600.0 + column * 280.0,
            "y": loop // ACROSS * 420.0 + column % 2 * 60.0,
        }
        column += 1
    content = json.loads(dumps(workflow))
    content["layout"] = {"nodes": places}
    return Workflow.model_validate(content)


def written(workflow: Workflow, folder: Path, name: str) -> Path:
    """Write the document to a file."""
    file = folder / f"{name}{FILE_SUFFIX}"
    file.write_text(dumps(workflow), encoding="utf-8")
    return file


def side_by_side(width: int, pieces: int, pause_s: float, folder: Path) -> tuple[Workflow, Path]:
    """Parallel model nodes, and a script with the number of chunks that each streams."""
    ids = [f"n{place}" for place in range(width)]
    nodes: list[dict[str, object]] = [{"id": "text", "type": "input", "config": {"default": "Go."}}]
    nodes += [{"id": node, "type": "llm", "config": {"prompt": "{{input}}"}} for node in ids]
    nodes += [{"id": "join", "type": "transform", "config": {"template": "{{input}}"}}, {"id": "out", "type": "output"}]
    edges = [("text.value", f"{node}.input") for node in ids] + [(f"{node}.output", "join.input") for node in ids]
    wires = [{"from": start, "to": end} for start, end in [*edges, ("join.output", "out.value")]]
    layout = {node: {"x": 320.0, "y": 120.0 * place} for place, node in enumerate(ids)}
    layout |= {"text": {"x": 0.0, "y": 0.0}, "join": {"x": 640.0, "y": 0.0}, "out": {"x": 960.0, "y": 0.0}}
    workflow = Workflow.model_validate(
        {
            "nodes": nodes,
            "edges": wires,
            "settings": {"max_concurrency": width},
            "layout": {"nodes": layout},
        }
    )
    script = folder / "stream.json"
    reply = {"stream": ["word "] * pieces, "chunk_delay_s": pause_s}
    script.write_text(json.dumps({"rules": [], "default": reply}), encoding="utf-8")
    return workflow, script
