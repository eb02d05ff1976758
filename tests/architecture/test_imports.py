"""Importing the engine is cheap: slow imports happen on first use."""

from __future__ import annotations

import json

import pytest

from tests.architecture.project import ROOT, in_a_new_process

SLOW = {
    "Levenshtein", "httpx", "jsonschema_rs", "keyring", "lark", "litellm", "networkx", "numpy",
    "re2", "rich", "typer", "xllamacpp",
}  # fmt: skip


def _loaded_after(program: str, *arguments: str) -> set[str]:
    output = in_a_new_process(f"import sys, json\n{program}\nprint(json.dumps(list(sys.modules)))", *arguments)
    return {name.partition(".")[0] for name in json.loads(output.splitlines()[-1])}


def test_import_engine_loads_nothing_slow_and_no_pydantic():
    assert _loaded_after("import engine") & (SLOW | {"pydantic"}) == set()


def test_the_public_api_loads_nothing_slow():
    assert _loaded_after("from engine import *") & SLOW == set()


@pytest.mark.parametrize("name", ["self-refine", "agentic-search"])
def test_opening_a_template_loads_nothing_slow(name: str):
    loaded = _loaded_after("import engine; engine.load(sys.argv[1])", str(ROOT / "templates" / f"{name}.loop.json"))
    assert loaded & SLOW == set()


def test_validating_loads_no_model_no_network_and_no_vector_library():
    path = ROOT / "templates" / "agentic-search.loop.json"
    loaded = _loaded_after("import engine; assert not engine.validate(engine.load(sys.argv[1]))", str(path))
    assert loaded & {"httpx", "keyring", "litellm", "numpy", "xllamacpp", "Levenshtein"} == set()
