"""Secrets in documents are refused before a run, and copies do not have them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine import Workflow, validate
from engine.document.files import dumps, load, loads, save
from engine.errors import EngineError
from engine.export.langgraph_module import export_langgraph
from engine.export.python_script import export_python
from engine.nodes.node_registry import builtin_registry
from engine.nodes.output import SPEC as OUTPUT
from engine.nodes.spec import NodeConfig
from engine.plan.secrets import REMOVED, SECRET_CODE, without_secrets
from engine.runner.run import start
from engine.store.run_file import run_to_json
from tests.engine.semantics.documents import Part, entry, flow, llm, off, part, result
from tests.engine.store.event_samples import head, one_of_each

VALUE = "q7Zt4Lw9Xk2Bv8Rp3Nc6"
KEY = f"sk-{VALUE}"


def with_node(node: Part) -> Workflow:
    return flow(entry(), node, result(), edges="text -> out")


SECRETS: list[tuple[Workflow, str | None, str]] = [
    (with_node(llm("a", api_key=VALUE)), "a", "api_key"),
    (with_node(llm("a", apiKey=VALUE)), "a", "apiKey"),
    (with_node(llm("a", **{"X-API-Key": VALUE})), "a", "X-API-Key"),
    (with_node(llm("a", password="hunter2")), "a", "password"),
    (with_node(llm("a", token=VALUE)), "a", "token"),
    (with_node(llm("a", authorization="Basic abc")), "a", "authorization"),
    (with_node(llm("a", secret=12345)), "a", "secret"),
    (with_node(llm("a", headers={"Authorization": f"Bearer {VALUE}"})), "a", "headers.Authorization"),
    (with_node(llm("a", note={"deep": [{"client_secret": VALUE}]})), "a", "note.deep.0.client_secret"),
    (with_node(llm("a", anything=KEY)), "a", "anything"),
    (with_node(llm("a", key=VALUE)), "a", "key"),
    (with_node(llm("a", extra_parameters={"api_key": VALUE})), "a", "extra_parameters.api_key"),
    (with_node(llm("a", api_base="https://me:word@models.example/v1")), "a", "api_base"),
    (with_node(llm("a", api_base=f"https://models.example/v1?key={VALUE}")), "a", "api_base"),
    (with_node(llm("a", api_base=f"https://models.example/v1?api_key={VALUE}&x=1")), "a", "api_base"),
    (with_node(off(llm("a", api_key=VALUE))), "a", "api_key"),
    (with_node(off(llm("a", extra_parameters={"api_key": VALUE}))), "a", "extra_parameters.api_key"),
    (with_node(part("a", "gone", api_key=VALUE)), "a", "api_key"),
    (with_node(part("a", "tool", tool="http_get", arguments={"api_key": VALUE})), "a", "arguments.api_key"),
    (with_node(part("a", "tool", tool="shell", arguments={"command": f"x -k {KEY}"})), "a", "arguments.command"),
    (flow(entry(), result(), edges="text -> out", settings={"api_key": VALUE}), None, "settings.api_key"),
    (
        with_node(llm("a")).model_copy(update={"settings": {"openai": {"apikey": VALUE}}}),
        None,
        "settings.openai.apikey",
    ),
]


@pytest.mark.parametrize(("workflow", "node", "field"), SECRETS)
def test_a_secret_is_an_error_that_does_not_repeat_it(workflow: Workflow, node: str | None, field: str) -> None:
    found = [problem for problem in validate(workflow) if problem.code == SECRET_CODE]

    assert [(problem.node, problem.field, problem.severity) for problem in found] == [(node, field, "error")]
    assert VALUE not in "\n".join(str(problem) for problem in validate(workflow))
    assert "keyring" in found[0].remedy


@pytest.mark.parametrize(("workflow", "node", "field"), SECRETS)
async def test_a_document_with_a_secret_neither_runs_nor_is_exported(
    workflow: Workflow, node: str | None, field: str
) -> None:
    with pytest.raises(EngineError):
        start(workflow, {"text": "x"})
    for export in (export_python, export_langgraph):
        with pytest.raises(EngineError):
            export(workflow)


@pytest.mark.parametrize(("workflow", "node", "field"), SECRETS)
def test_a_copy_without_secrets_is_otherwise_equal(workflow: Workflow, node: str | None, field: str) -> None:
    copy = without_secrets(workflow)

    assert copy != workflow
    assert VALUE not in dumps(copy)
    assert [problem for problem in validate(copy) if problem.code == SECRET_CODE] == []
    assert [one.id for one in copy.nodes] == [one.id for one in workflow.nodes]
    assert copy.edges == workflow.edges
    assert without_secrets(copy) is copy


@pytest.mark.parametrize(
    "node",
    [
        llm("a", max_tokens=5, output_key="draft"),
        llm("a", api_key="${OPENAI_API_KEY}"),
        llm("a", api_key=""),
        llm("a", api_key=None),
        llm("a", api_base="http://localhost:8080/v1"),
        llm("a", api_base="https://models.example/v1?version=2024-01-01"),
        llm("a", reply_schema={"type": "object", "properties": {"password": {"type": "string"}}}),
        llm("a", prompt="Write a text about the api_key sk-... of a museum."),
        llm("a", extra_parameters={"top_k": 40, "thinking": {"budget_tokens": 100}}),
        part("a", "tool", tool="server/get", arguments={"key": "settings", "max_tokens": 3}),
        llm("a", keywords="tides", tokens=3, monkey="banana"),
    ],
)
def test_values_that_only_resemble_secrets_are_allowed(node: Part) -> None:
    workflow = with_node(node)

    assert [problem for problem in validate(workflow) if problem.code == SECRET_CODE] == []
    assert without_secrets(workflow) is workflow


class _WithKey(NodeConfig):
    api_key: str = ""
    note: str = ""


def test_a_secret_in_a_declared_setting_of_a_plugin_is_an_error_and_its_texts_are_not_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry = builtin_registry().with_types(
        [replace(OUTPUT, type="plugged", config=_WithKey, summary=lambda _config: "")]
    )
    workflow = with_node(part("a", "plugged", api_key=VALUE, note="Basic ideas"))

    found = [problem for problem in validate(workflow, registry) if problem.code == SECRET_CODE]
    assert [(problem.node, problem.field) for problem in found] == [("a", "api_key")]
    monkeypatch.setattr("engine.plan.secrets.builtin_registry", lambda: registry)
    copy = without_secrets(workflow)
    assert copy.nodes_by_id["a"].config == {"api_key": REMOVED, "note": "Basic ideas"}


def test_a_secret_in_a_subflow_is_refused_and_removed_too() -> None:
    inner = with_node(llm("a", api_key=VALUE)).to_json()
    workflow = flow(entry(), part("part", "subflow", file="x.loop.json", workflow=inner), result(), edges="text -> out")

    (found,) = [problem for problem in validate(workflow) if problem.code == SECRET_CODE]
    assert found.node == "part"
    assert VALUE not in dumps(without_secrets(workflow))


def test_a_persons_own_file_is_saved_unchanged(tmp_path: Path) -> None:
    workflow = with_node(llm("a", api_key=VALUE))
    save(workflow, tmp_path / "own.loop.json")

    assert load(tmp_path / "own.loop.json") == workflow


def test_a_stored_run_of_an_older_version_is_exported_without_its_secrets() -> None:
    document = dumps(with_node(llm("a", api_key=VALUE, temperature=0.5)))

    text = "".join(run_to_json(head(document=document), one_of_each()))

    assert VALUE not in text
    exported = loads(json.loads(text)["run"]["document"], source="x")
    assert exported.nodes_by_id["a"].config["api_key"] == REMOVED
    assert exported.nodes_by_id["a"].config["temperature"] == 0.5


@pytest.mark.parametrize("document", ["", "{", "[]", '{"nodes": 3}', '{"nodes": [1, {"config": []}]}', "null"])
def test_a_stored_text_that_is_not_a_document_is_exported_unchanged(document: str) -> None:
    text = "".join(run_to_json(head(document=document), one_of_each()))

    assert json.loads(text)["run"]["document"] == document
