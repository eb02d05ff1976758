"""The exit condition `evaluator`: the router that controls the loop chose `done`."""

from __future__ import annotations

from typing import Final

from engine.exits.condition import ConditionConfig, ConditionSpec, Evidence, Need, PythonTest, stateless

EVALUATOR: Final = "evaluator"
DONE: Final = "done"
"""The branch of a router that ends its loop."""
_REASON: Final = "evaluator_done"


def _explain(_config: ConditionConfig, evidence: Evidence) -> str:
    if evidence.last.branch is None:
        return "the evaluator chose nothing"
    return f"the evaluator chose '{evidence.last.branch}'{evidence.quoted_reason}"


SPEC = ConditionSpec(
    name=EVALUATOR,
    label="When a router chooses 'done'",
    card_label="router",
    help="Stops when the router that controls the loop chooses its branch 'done'.",
    config=ConditionConfig,
    make=stateless(_REASON, lambda _config, iteration: iteration.branch == DONE, lambda iteration: iteration.branch),
    explain=_explain,
    exit_reason=_REASON,
    exit_reason_label="the evaluator chose 'done'",
    needs=frozenset({Need.EVALUATOR}),
    to_python=lambda _config, _writer: PythonTest(f"verdict and verdict['selected_branch'] == {DONE!r}"),
)
