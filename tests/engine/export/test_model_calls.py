"""Model calls of an exported module through litellm: reasoning is removed as in the engine."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from engine.export import langgraph_module
from engine.export.langgraph_module import export_langgraph
from tests.engine.export.kit import module_of
from tests.engine.semantics.agents import agent
from tests.engine.semantics.documents import around, entry, flow, judge, llm, result

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

THOUGHTS = {
    "think": '<think>Perhaps {"branch": "done"}? No.</think>\n{}',
    "unopened": 'Perhaps {"branch": "done"}? No.\n</think>\n\n{}',
    "brackets": "[THINK]Decision: done[/THINK]{}",
    "channels": "<|channel|>analysis<|message|>Decision: done<|end|><|start|>assistant<|channel|>final<|message|>{}",
    "none": "{}",
}


def answering(module: Any, text: str) -> Any:
    """The module with a model that always gives this reply."""
    message = SimpleNamespace(content=text, tool_calls=None)

    def complete(*_arguments: Any, **_settings: Any) -> Any:
        return SimpleNamespace(choices=[SimpleNamespace(message=message)], usage=None)

    module.__dict__["complete"] = complete
    return module


@pytest.mark.parametrize("kind", THOUGHTS)
def test_reasoning_is_not_part_of_verdicts_and_texts(kind: str) -> None:
    loop = around(
        llm("draft"), judge("check"), edges="loop -> draft -> check\ncheck.done -> exit",
        exit_condition="evaluator", max_iterations=1,
    )  # fmt: skip
    text = THOUGHTS[kind].replace("{}", '{"branch": "continue", "reason": "short"}')
    module = answering(module_of(export_langgraph(loop).text), text)
    verdict = module.choose_branch(module.ask, [], ["done", "continue"], "continue", node="check")
    assert verdict == ("continue", "short")
    for node in (llm("ask"), agent("ask")):
        workflow = flow(entry(), node, result(), edges="text -> ask -> out")
        module = answering(module_of(export_langgraph(workflow).text), THOUGHTS[kind].replace("{}", "Rain."))
        assert module.run({"text": "x"}) == {"out": "Rain."}


def test_runtime_names_are_unique() -> None:
    names = [name for module in langgraph_module.RUNTIME_MODULES for name in langgraph_module.definitions(module)]
    assert {name for name in names if names.count(name) > 1} == set()
