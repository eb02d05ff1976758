"""Foreign workflows in both formats, and helpers for reports."""

from __future__ import annotations

import json
from typing import Any

from engine.importing.reader import ImportResult, import_text
from engine.importing.report import Outcome

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


def rf_node(card_id: str, kind: str, label: str = "", x: float = 0, y: float = 0, **config: Any) -> dict[str, Any]:
    """A node of a canvas, as a browser editor saves it."""
    return {
        "id": card_id,
        "type": kind,
        "position": {"x": x, "y": y},
        "data": {"label": label, "config": config},
        "selected": False,
        "width": 220,
    }


def rf_edge(source: str, target: str, handle: str = "output", to: str = "input") -> dict[str, Any]:
    """An edge of a canvas."""
    return {
        "id": f"{source}-{target}-{handle}",
        "source": source,
        "target": target,
        "sourceHandle": handle,
        "targetHandle": to,
    }


def canvas(nodes: list[dict[str, Any]], edges: list[dict[str, Any]], **more: Any) -> str:
    """The text of a canvas."""
    return json.dumps({"name": "Canvas", "nodes": nodes, "edges": edges, "viewport": {"zoom": 1}, **more})


def evaluated(**loop: Any) -> str:
    """Input, loop (draft, router, transform as feedback), exit, output, and an output for the count."""
    settings = {"maxIterations": 4, "exitCondition": "evaluator", "feedbackMode": "replace", **loop}
    return canvas(
        [
            rf_node("in-1", "input", "Topic", 0, 0, name="topic", dataType="text"),
            rf_node("loop-1", "loop", "Refine", 300, 0, **settings),
            rf_node("draft", "llm", "Draft", 600, 0, prompt="Write: {{input}}", systemPrompt="You write."),
            rf_node("judge", "router", "Good?", 900, 0, criteria="Is it good?"),
            rf_node("again", "transform", "Again", 900, 200, template="Better: {{draft.output}}"),
            rf_node("exit-1", "exit", "Exit", 1200, 0),
            rf_node("out", "output", "Text", 1500, 0),
            rf_node("rounds", "output", "Rounds", 1500, 200),
        ],
        [
            rf_edge("in-1", "loop-1"),
            rf_edge("loop-1", "draft"),
            rf_edge("draft", "judge"),
            rf_edge("judge", "exit-1", "done"),
            rf_edge("judge", "again", "continue"),
            rf_edge("again", "draft"),
            rf_edge("exit-1", "out"),
            rf_edge("loop-1", "rounds", "count"),
        ],
    )


def read(text: str, *, is_yaml: bool | None = None) -> ImportResult:
    """Import a text."""
    return import_text(text, source="foreign", name="stem", is_yaml=is_yaml)


def config(imported: ImportResult, node: str) -> dict[str, Any]:
    """The settings of a node."""
    return imported.workflow.node(node).config


def edges(imported: ImportResult) -> set[str]:
    """All edges, each as `a.b -> c.d`."""
    return {str(edge) for edge in imported.workflow.edges}


def messages(imported: ImportResult, outcome: Outcome) -> dict[str, str]:
    """The messages with an outcome, by place."""
    return {entry.place: entry.message for entry in imported.entries if entry.outcome is outcome}
