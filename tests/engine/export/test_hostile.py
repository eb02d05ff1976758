"""Text of a document never becomes code in an export."""

from __future__ import annotations

import ast
from functools import cache
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from engine import Workflow, loads
from engine.document.model import VERSION
from engine.export.langgraph_module import export_langgraph
from engine.export.python_script import export_python
from engine.export.python_source import docstring, literal, one_line_docstring
from tests.engine.export.kit import module_of
from tests.examples import examples

HOSTILE = [
    '"""; import os; os.abort(); """',
    "'''\nraise SystemExit\n'''",
    "\\",
    '\\"',
    '"',
    '""',
    'ends with a quote"',
    "\\\\\\",
    "\n\nimport os\n",
    "x\r\nraise SystemExit",
    "\u2028raise SystemExit",
    "\x0craise SystemExit",
    "\x00",
    "\u202e)(metsys.so",
    "{x}{0}%s}}{!r}",
    "'); __import__('os').abort(); ('",
    "# type: ignore\n#",
    "N\\N{BULLET}\\x41\\u0041",
    "f'{__import__}'",
]


def document(text: str) -> dict[str, Any]:
    """A document that contains the text in every field for text."""
    nodes = [
        {
            "id": "class",
            "type": "input",
            "title": text,
            "config": {"name": "ask", "default": text, "description": text},
        },
        {
            "id": "loop",
            "type": "loop",
            "title": text,
            "config": {"max_iterations": 2, "judge": {"criteria": text or "x"}},
        },
        {
            "id": "draft",
            "type": "llm",
            "title": text,
            "config": {"system": text, "prompt": text, "model": text or None},
        },
        {
            "id": "way",
            "type": "router",
            "title": text,
            "config": {"criteria": text or "x", "branches": [{"name": "done", "description": text}]},
        },
        {
            "id": "check",
            "type": "validator",
            "title": text,
            "config": {"expression": "size(input) > 0", "message": text},
        },
        {"id": "exit", "type": "exit", "title": text, "config": {"loop": "loop"}},
        {"id": "import", "type": "output", "title": text, "config": {"name": text[:90]}},
    ]
    nodes[4]["config"]["mode"] = "expression"
    pairs = ["class.value loop.input", "loop.body draft.input", "draft.output way.input", "way.done check.input"]
    pairs += ["check.valid exit.input", "exit.output import.value"]
    edges = [dict(zip(("from", "to"), pair.split(), strict=True)) for pair in pairs]
    return {
        "format": "loopwright.workflow", "version": 1, "name": text, "description": text,
        "settings": {"model": text or None}, "nodes": nodes, "edges": edges,
    }  # fmt: skip


def workflow(text: str) -> Workflow:
    return Workflow.model_validate(document(text))


def shape(source: str) -> str:
    """The code of a source without its texts."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


@cache
def benign_shape(export: Any) -> str:
    return shape(export(workflow("plain")).text)


@pytest.mark.parametrize("export", [export_langgraph, export_python])
@pytest.mark.parametrize("text", HOSTILE, ids=repr)
def test_hostile_text_stays_text(export: Any, text: str):
    source = export(workflow(text)).text
    source.encode()
    assert shape(source) == benign_shape(export)


@pytest.mark.parametrize("export", [export_langgraph, export_python])
@examples(25)
@given(text=st.text(min_size=1, max_size=60))
def test_any_text_stays_text(export: Any, text: str):
    assume("{{" not in text and text.strip())
    assert shape(export(workflow(text)).text) == benign_shape(export)


@given(text=st.text())
@example("".join(HOSTILE))
def test_a_literal_evaluates_to_its_value(text: str):
    for value in (text, [text, {text: text}], {"a": [None, True, 1.5, text * 30]}):
        assert ast.literal_eval(literal(value)) == value
        assert ast.literal_eval(literal(value, "        ")) == value


@given(text=st.text(alphabet=st.sampled_from('"\\\n\t ab\u2028\x00')))
def test_a_docstring_ends_where_it_should(text: str):
    for source in (docstring([text, text]), one_line_docstring(text)):
        (statement,) = ast.parse(source).body
        assert isinstance(statement, ast.Expr)
        assert isinstance(statement.value, ast.Constant)


@pytest.mark.parametrize("text", [text for text in HOSTILE if text.strip()], ids=repr)
def test_a_hostile_prompt_reaches_the_model_unchanged(text: str):
    module = module_of(export_langgraph(workflow(text)).text)
    asked: list[Any] = []

    def ask(messages: list[Any], *, node: str, **settings: Any) -> str:
        asked.append((node, messages, settings))
        return '{"branch": "done", "reason": "", "score": 1, "done": false}'

    module.__dict__["ask"] = ask
    results = module.run()
    node, messages, settings = asked[0]
    assert (node, messages[0], settings["model"]) == ("draft", {"role": "system", "content": text}, text)
    assert messages[1]["content"].startswith(text)
    assert list(results) == [text[:90]]


def test_the_python_script_builds_the_same_document():
    for text in HOSTILE:
        built = module_of(export_python(workflow(text)).text).workflow
        assert built.to_json() == {**workflow(text).to_json(), "version": VERSION, "layout": {}}


def test_a_document_file_passes_through_unchanged(tmp_path: Any):
    import json

    source = export_python(loads(json.dumps(document("plain")))).text
    assert module_of(source).workflow.name == "plain"
