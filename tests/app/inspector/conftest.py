"""An inspector over a document, on the screen, with helpers that find the editors in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.inspector.editor import Editor
from app.inspector.inspector import Inspector
from app.inspector.model_list import ModelSource
from app.inspector.properties_pages import NodePage, NodesPage
from app.session import Session
from engine.document.builder import Builder
from engine.document.model import Node, Workflow
from engine.runner.options import RunOptions
from engine.values import Value
from tests.app.conftest import MakeSession

MODELS = ["embedded:smollm2-135m", "openai/gpt-4o-mini"]


@dataclass
class Bench:
    """An inspector with its session."""

    qtbot: QtBot
    session: Session
    inspector: Inspector

    def select(self, *node_ids: str) -> None:
        self.session.select(node_ids)

    def editor(self, field: str) -> Any:
        """The editor of a displayed field; expands the advanced fields if needed."""
        page = self.inspector.page
        if isinstance(page, NodesPage):
            page.create_form()
        assert page.form is not None
        if page.form.row(field) is None:
            page.form.advanced_button.click()
        row = page.form.row(field)
        assert row is not None, field
        assert isinstance(row.editor, Editor)
        return row.editor

    def problems(self, field: str) -> list[str]:
        """The displayed problems of a field."""
        page = self.inspector.page
        assert page.form is not None
        row = page.form.row(field)
        assert row is not None
        return row.problems.texts

    @property
    def page(self) -> NodePage:
        page = self.inspector.page
        assert isinstance(page, NodePage)
        return page

    def config(self, node_id: str) -> dict[str, Value]:
        node = self.session.node(node_id)
        assert node is not None
        return node.config

    def analyzed(self) -> None:
        """Wait until the document is analyzed."""
        self.qtbot.waitUntil(lambda: self.session.structure.workflow is self.session.workflow)

    def run(self, script: Path, **inputs: Value) -> None:
        """Run the document to its end with a scripted model."""
        with self.qtbot.waitSignal(self.session.shown.ended):
            self.session.start_run(inputs, RunOptions(model=f"scripted:{script}"))
        self.settle()

    def settle(self) -> None:
        """Wait until the inspector shows the run."""
        self.qtbot.waitUntil(lambda: not self.inspector._run_timer.isActive())


OpenInspector = Callable[..., Bench]


@pytest.fixture
def open_inspector(qtbot: QtBot, make_session: MakeSession) -> OpenInspector:
    def make(workflow: Workflow | None = None) -> Bench:
        session = make_session(workflow)
        inspector = Inspector(session, ModelSource(MODELS))
        qtbot.addWidget(inspector)
        inspector.resize(340, 900)
        with qtbot.waitActive(inspector):
            inspector.show()
            inspector.activateWindow()
        return Bench(qtbot, session, inspector)

    return make


@pytest.fixture
def one_node(open_inspector: OpenInspector) -> Callable[..., Bench]:
    """An inspector in which the one node `it` of a document is selected."""

    def make(node_type: str, **config: Value) -> Bench:
        bench = open_inspector(Workflow(nodes=(Node(id="it", type=node_type, config=config),)))
        bench.select("it")
        return bench

    return make


def refine() -> Workflow:
    """A draft that is criticized and revised, at most twice."""
    flow = Builder("Refine", description="Writes a text twice.")
    task = flow.add("input", id="task", name="task")
    loop = flow.add("loop", id="loop", title="Refine", max_iterations=3, inject_feedback=False)
    draft = flow.add("llm", id="draft", title="Draft", system="Be brief.", prompt="Write: {{input}}", temperature=0.5)
    critique = flow.add("llm", id="critique", title="Critique", prompt="Judge {{draft}}.")
    merge = flow.add("transform", id="merge", template="{{loop.input}}: {{draft}} / {{critique}}")
    end = flow.add("exit", id="end", loop="loop")
    text = flow.add("output", id="text", name="text")
    flow.connect(task["value"], loop["input"])
    flow.connect(loop["body"], draft["input"])
    flow.connect(draft["output"], critique["draft"])
    flow.connect(draft["output"], merge["draft"])
    flow.connect(critique["output"], merge["critique"])
    flow.connect(draft["output"], end["input"])
    flow.connect(merge["output"], end["feedback"])
    flow.connect(end["output"], text["value"])
    return flow.build()


@pytest.fixture
def write_script(tmp_path: Path) -> Callable[..., Path]:
    """Writes the file of a scripted model: replies by node, and a price."""

    def write(price: object = None, **replies: object) -> Path:
        rules = [
            {"node": node, "replies": reply} if isinstance(reply, list) else {"node": node, "reply": reply}
            for node, reply in replies.items()
        ]
        path = tmp_path / "replies.json"
        path.write_text(json.dumps({"rules": rules, **({"price": price} if price is not None else {})}))
        return path

    return write


@pytest.fixture
def refine_script(write_script: Callable[..., Path]) -> Path:
    return write_script(
        {"input_usd_per_million_tokens": 1.0, "output_usd_per_million_tokens": 10.0},
        draft=["one", "two", "three"],
        critique=["longer", "shorter", "fine"],
    )
