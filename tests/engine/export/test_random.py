"""Random workflows and their modules give the same results, unless the module lists a difference."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest
from hypothesis import event, given

from engine import loads
from engine.export.langgraph_module import export_langgraph
from tests.engine.export.kit import Both, echo, module_of
from tests.engine.semantics.random_workflows import good_documents
from tests.engine.semantics.virtual_time import virtually
from tests.examples import examples

_MATTERS = (
    "is left out",
    "TOOLS",
    "after an error",
    "continues after its error",
    "not restarted",
    "budget",
    "time limit",
    "has no value",
    "waits for its answer",
)


@pytest.mark.slow
@examples(60)
@given(document=good_documents())
def test_a_random_workflow_and_its_module_agree(document: dict[str, Any]):
    workflow = loads(json.dumps(document))
    exported = export_langgraph(workflow)
    module_of(exported.text)
    matters = next((words for words in _MATTERS for one in exported.left_out if words in one), None)
    if matters is not None:
        event(f"something that matters is left out: {matters}")
        return
    both = Both(workflow, echo)

    async def ours() -> Any:
        try:
            return await both.play_ours({})
        except AssertionError:
            return None

    if virtually(ours()) is None:
        event("the workflow fails")
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        both.theirs = both.run_module({})
    assert both.theirs == both.ours.result.outputs
    assert sorted(both.their_calls) == sorted(both.our_calls)
    event("the same")
