"""The exit condition `judge`: the loop's judge, a model, accepts the result."""

from __future__ import annotations

from typing import Final

from engine.exits.condition import ConditionConfig, ConditionSpec, Evidence, Need, PythonTest, stateless
from engine.formatting import format_score

JUDGE: Final = "judge"
_REASON: Final = "judge_done"


def _explain(_config: ConditionConfig, evidence: Evidence) -> str:
    last = evidence.last
    score = "" if last.score is None else f" (score {format_score(last.score)})"
    verdict = "accepted" if last.tested.get(JUDGE) is True else "did not accept"
    return f"the judge {verdict} the result{score}{evidence.quoted_reason}"


SPEC = ConditionSpec(
    name=JUDGE,
    label="When a reviewer says it's done",
    card_label="reviewer",
    help="Stops when the loop's judge, a model that reviews each result, accepts it.",
    config=ConditionConfig,
    make=stateless(
        _REASON, lambda _config, iteration: iteration.is_judged_done is True, lambda iteration: iteration.is_judged_done
    ),
    explain=_explain,
    exit_reason=_REASON,
    exit_reason_label="the judge accepted the result",
    needs=frozenset({Need.JUDGE}),
    to_python=lambda _config, _writer: PythonTest("judged and judged['done']"),
)
