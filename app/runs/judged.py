"""What a loop's judge said of an iteration: its scores, one by one, and its reason. No Qt here."""

from __future__ import annotations

from app.runs.executions import NOTHING, Executions, NodePicture
from engine.document.model import Workflow, make_id
from engine.formatting import format_score
from engine.nodes.judge import JUDGE
from engine.store.stopping import loop_config
from engine.values import Value


def judge_in(executions: Executions, loop_id: str, place: str) -> NodePicture:
    """How the judge of a loop was asked in one iteration (`loop[2]`); it stands beside the nodes of the body."""
    body = [node for node, loop in executions.parents.items() if loop == loop_id]
    return executions.nodes.get(f"{place}.{make_id(JUDGE, body)}", NOTHING)


def score_lines(workflow: Workflow, loop_id: str, judge: NodePicture) -> list[str]:
    """The score of each criterion of the rubric: `clarity: 8 (weight 2)`; none where there is no rubric."""
    config = loop_config(workflow, loop_id).judge
    scores = judge.outputs.get("scores")
    if config is None or not isinstance(scores, dict):
        return []
    known = {criterion.name: criterion.weight for criterion in config.rubric}
    is_weighted = len(set(known.values())) > 1
    return [
        f"{name.replace('_', ' ')}: {_number(score)}{f' (weight {known[name]:g})' if is_weighted else ''}"
        for name, score in scores.items()
        if name in known
    ]


def verdict_text(workflow: Workflow, loop_id: str, judge: NodePicture) -> str:
    """What the judge said: done or not, the score, the scores of the rubric, why; empty where it has said nothing."""
    given = judge.outputs
    if "done" not in given:
        return ""
    found = "Done" if given["done"] is True else "Not done"
    score = given.get("score")
    head = f"{found}, score {_number(score)} of 10" if score is not None else found
    reason = given.get("reason")
    lines = [head, *score_lines(workflow, loop_id, judge)]
    return "\n".join([*lines, *(["", reason] if isinstance(reason, str) and reason else [])])


def _number(value: Value) -> str:
    return format_score(value) if isinstance(value, int | float) else "–"
