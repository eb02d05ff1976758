"""Foreign workflows for tests, in both forms, and what the tests ask of a report."""

from __future__ import annotations

import json
from typing import Any

from engine.document.importing import Fate, Imported, import_text

DEV_CYCLE = """
name: build-until-fine
description: Build a module until a reviewer has nothing left to say.

agents:
  builder:
    description: Writes small modules.
    tools: [read, bash]
    model: gpt-4o-mini
  checker:
    description: Reads code.
  referee:
    description: Decides whether the work is over.
    resultSchema:
      type: object
      required: [done]
      properties:
        done: {type: boolean}
        reason: {type: string}

steps:
  - id: plan-it
    agent: builder
    instructions: Plan a cache.
  - id: dev-cycle
    dependsOn: [plan-it]
    timeout: 10m
    retries: 2
    loop:
      maxIterations: 4
      untilAgent: referee
      until: "steps.check-it.content.contains('FINE') || iteration > 7"
      delay: 1m30s
      outputMode: cumulative
      steps:
        - id: build
          agent: builder
          instructions: Build round {{iteration}}. Keep {{braces}}.
        - id: check-it
          agent: checker
          dependsOn: [build]
          instructions: Check it. Say FINE when it is.
          timeout: 45s

options:
  onStepFailure: abort
  stepTimeout: 2m
"""

FAN_OUT = """
name: each-city
agents:
  lister:
    description: Lists cities.
    resultSchema:
      type: object
      required: [cities]
      properties: {cities: {type: array, items: {type: object}}}
  writer: {description: Writes a line about a city.}
  reader: {description: Reads a line.}
steps:
  - id: list-cities
    agent: lister
    instructions: List two cities.
  - id: each
    dependsOn: [list-cities]
    loop:
      forEach: "steps.list-cities.result.cities"
      maxConcurrency: 3
      steps:
        - {id: write, agent: writer, instructions: "Write about it, number {{index}}."}
        - {id: read, agent: reader, dependsOn: [write], instructions: Read it.}
  - id: sum-up
    agent: writer
    dependsOn: [each]
    instructions: Sum it up.
"""


def card(card_id: str, kind: str, label: str = "", x: float = 0, y: float = 0, **config: Any) -> dict[str, Any]:
    """A card of a canvas, as an editor in a browser saves it."""
    return {
        "id": card_id,
        "type": kind,
        "position": {"x": x, "y": y},
        "data": {"label": label, "config": config},
        "selected": False,
        "width": 220,
    }


def wire(source: str, target: str, handle: str = "output", to: str = "input") -> dict[str, Any]:
    """An edge of a canvas."""
    return {
        "id": f"{source}-{target}-{handle}",
        "source": source,
        "target": target,
        "sourceHandle": handle,
        "targetHandle": to,
    }


def canvas(nodes: list[dict[str, Any]], edges: list[dict[str, Any]], **more: Any) -> str:
    """A canvas as a text."""
    return json.dumps({"name": "Canvas", "nodes": nodes, "edges": edges, "viewport": {"zoom": 1}, **more})


def evaluated(**loop: Any) -> str:
    """Input, loop (draft, router, transform that leads back), exit, output, and an output of the count."""
    settings = {"maxIterations": 4, "exitCondition": "evaluator", "feedbackMode": "replace", **loop}
    return canvas(
        [
            card("in-1", "input", "Topic", 0, 0, name="topic", dataType="text"),
            card("loop-1", "loop", "Refine", 300, 0, **settings),
            card("draft", "llm", "Draft", 600, 0, prompt="Write: {{input}}", systemPrompt="You write."),
            card("judge", "router", "Good?", 900, 0, criteria="Is it good?"),
            card("again", "transform", "Again", 900, 200, template="Better: {{draft.output}}"),
            card("exit-1", "exit", "Exit", 1200, 0),
            card("out", "output", "Text", 1500, 0),
            card("rounds", "output", "Rounds", 1500, 200),
        ],
        [
            wire("in-1", "loop-1"),
            wire("loop-1", "draft"),
            wire("draft", "judge"),
            wire("judge", "exit-1", "done"),
            wire("judge", "again", "continue"),
            wire("again", "draft"),
            wire("exit-1", "out"),
            wire("loop-1", "rounds", "count"),
        ],
    )


def read(text: str, *, is_yaml: bool | None = None) -> Imported:
    """Import a text."""
    return import_text(text, source="foreign", name="stem", is_yaml=is_yaml)


def config(imported: Imported, node: str) -> dict[str, Any]:
    """The settings of a node."""
    return imported.workflow.node(node).config


def edges(imported: Imported) -> set[str]:
    """All edges, each as `a.b -> c.d`."""
    return {str(edge) for edge in imported.workflow.edges}


def told(imported: Imported, fate: Fate) -> dict[str, str]:
    """The messages of a fate by place."""
    return {entry.place: entry.message for entry in imported.entries if entry.fate is fate}
