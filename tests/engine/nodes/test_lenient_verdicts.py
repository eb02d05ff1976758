"""Verdicts in any JSON dialect are read; truncated, missing or contradictory ones and prose are not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.models.protocol import Finish, Reply
from engine.nodes.judge import JudgeConfig, judge_schema
from engine.nodes.model_calls import faults_by
from engine.nodes.structured_replies import UnreadableReplyError, read_branch, read_judgement
from tests.engine.nodes.context import run_node
from tests.engine.nodes.dialects import PROSE, around, dialect, in_case

NAMES = ["done", "continue", "needs_work"]
RUBRIC = [{"name": "clear", "weight": 2.0}, {"name": "word_choice", "weight": 1.0}]


def judged(text: str, **settings: Any) -> dict[str, Any]:
    config = JudgeConfig.model_validate({"criteria": "Good.", **settings})
    schema = judge_schema(config)
    weights = {one.name: one.weight for one in config.rubric}
    return read_judgement(text, schema, faults_by(schema), weights, config.threshold)


def plain(done: Any, score: Any) -> str:
    return json.dumps({"reason": "r", "score": score, "done": done})


# Routers


@pytest.mark.parametrize(
    "text",
    [
        '{"branch": "done", "reason": "line one\nline two\ttab"}',
        '{"branch": "done", "reason": "x",}',
        '{"branch": "done", /* why */ "reason": "x" // because\n}',
        "{'branch': 'done', 'reason': None, 'sure': True}",
        "{'reason': 'it's all there', 'branch': 'done'}",
        '{"reason": "he wrote "done" twice", "branch": "done"}',
        "{“branch”: “done”, “reason”: “it’s “fine””}",
        "{‘branch’: ‘done’}",
        "{«branch»: «done»}",
        "{„branch“: „done“}",
        "｛“branch”：“done”，“reason”：“x”｝",
        '{branch: done, reason: "x"}',
        '{"BRANCH": "DONE"}',
        '{"Decision": "Done!"}',
        '{"branch": "ｄｏｎｅ"}',
        '{"branch": "「done」"}',
        "ＤＯＮＥ。",
        "“Done”",
        "…done…",
        "Branch: done",
        "**Decision:** done",
        "- **Verdict**: `done`.",
        "### Decision\n\nFinal verdict:\n\n**Done**",
        "Branch： ｄｏｎｅ",
        "1. Decision = done",
        'I weighed {a} and [b].\n\n{"branch": "done"}}',
        '```json\n{"branch": "done"}\n```\nso: {"Branch": "Done", "reason": "again"}',
        '{"branch": "done"}\n\nDecision: done',
        '"{\\"branch\\": \\"done\\"}"',
    ],
)
def test_a_branch_is_read_from_any_json_dialect(text: str) -> None:
    assert read_branch(text, NAMES)[0] == "done"


@pytest.mark.parametrize(("text", "branch"), [("Needs work", "needs_work"), ('{"branch": "NEEDS-WORK"}', "needs_work")])
def test_a_name_of_several_words_may_be_written_as_words(text: str, branch: str) -> None:
    assert read_branch(text, NAMES)[0] == branch


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"branch": "continue", "reason": "an example"}\n```\nMine: {"branch": "done"}',
        '{"branch": "done"} {"branch": "continue"}',
        '{"branch": "continue"}\n\nDecision: done',
        'Format: {"branch": "done"}. Decision: continue',
        '{"branch": "done"} \u2013 Verdict: continue',
        'Say [{"branch": "done"}] Answer = continue',
        "Branch: done\nBranch: continue",
        '{"branch": "done", "branch": "continue"}',
        '{"branch": "done", "Branch": "continue"}',
        '{"branch": "continue", "decision": "done"}',
        "{'branch': 'done', 'branch': 'continue'}",
    ],
)
def test_differing_verdicts_are_unreadable(text: str) -> None:
    with pytest.raises(UnreadableReplyError):
        read_branch(text, NAMES)


def test_differing_verdicts_are_quoted_in_the_error() -> None:
    with pytest.raises(UnreadableReplyError, match=r'differ.*"continue".*"done"'):
        read_branch('{"branch": "continue"} {"branch": "done"}', NAMES)


@pytest.mark.parametrize(
    "text",
    [
        '{"example": {"branch": "done"}, "branch": "conti',
        '[{"branch": "done"}, {"branch": "con',
        '{"branch": "done", "reason": "it is',
        '{"branch": "done", "reason": ["a", "b"}',
        'An example is {"branch": "done"}. Mine: {"branch": "conti',
        '{"branch": }',
        '{"branch": , "reason": "done"}',
        '{"branch": "done" | "continue"}',
        '{"branch": <done or continue>}',
        '{"branch": done or continue, "reason": "x"}',
        '{"branch": done, "reason": ...}',
        '{"branch": "done", ...}',
        '{"verdict": {"branch": "done"}}',
        "Done?",
        "❌ done",
        "¬done",
        "Decision: not done",
        "Decision: done or continue",
        "So the decision: done",
        "Branches:\n- done: it is good\n- continue: it is not",
        "```python\nbranch = pick(done)\n```",
    ],
)
def test_a_truncated_or_unclosed_verdict_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableReplyError):
        read_branch(text, NAMES)


@given(st.data())
def test_a_verdict_written_in_any_dialect_is_read_unchanged(data: st.DataObject) -> None:
    draw = data.draw
    branch = draw(st.sampled_from(NAMES))
    reason = draw(st.text(st.sampled_from("abc dé,:{}[]'\"#/\n\t1.5"), max_size=12))
    key = draw(st.sampled_from(["branch", "Branch", "BRANCH", "decision"]))
    verdict = draw(st.sampled_from([{key: in_case(draw, branch)}, {"reason": reason, key: in_case(draw, branch)}]))

    assert read_branch(around(draw, json.dumps(verdict, ensure_ascii=False)), NAMES)[0] == branch
    simple = {name: "it is so, I think" if name == "reason" else stated for name, stated in verdict.items()}
    assert read_branch(around(draw, dialect(draw, simple)), NAMES)[0] == branch


@given(st.data())
def test_a_verdict_truncated_anywhere_is_unreadable(data: st.DataObject) -> None:
    written = dialect(data.draw, {"example": {"branch": "done"}, "reason": "so", "branch": "done"})
    end = data.draw(st.integers(0, len(written) - 1))

    with pytest.raises(UnreadableReplyError):
        read_branch(f"Here it is: {written[:end]}", NAMES)


@given(st.data(), st.lists(st.sampled_from(NAMES), min_size=2, max_size=2, unique=True))
def test_two_differing_verdicts_are_never_read_as_one(data: st.DataObject, branches: list[str]) -> None:
    forms = [
        data.draw(
            st.sampled_from(
                [dialect(data.draw, {"reason": "x", "branch": one}), f"Decision: {one}", f"**Branch:** {one}"]
            )
        )
        for one in branches
    ]

    with pytest.raises(UnreadableReplyError):
        read_branch("\n\n".join(around(data.draw, form) for form in forms), NAMES)


EXAMPLES = [
    "Example:\n```json\n{}\n```\nThe text still needs work.",
    "A verdict could be, for example: {} - but here more is missing.",
    "(e.g.: {})\n\nI am not sure yet.",
    "For instance:\n\n{}\nor, as another example: {}",
    "Beispiel: {}",
]


@pytest.mark.parametrize("text", EXAMPLES)
def test_json_introduced_as_an_example_is_no_verdict(text: str) -> None:
    with pytest.raises(UnreadableReplyError):
        read_branch(text.replace("{}", '{"reason": "x", "branch": "done"}'), NAMES)
    with pytest.raises(UnreadableReplyError):
        judged(text.replace("{}", plain(done=True, score=9)))


@pytest.mark.parametrize(
    "text", ["In the requested format:\n{}", "It has a good example.\n{}", "Example:\n{}\nVerdict:\n{}"]
)
def test_json_not_introduced_as_an_example_is_a_verdict(text: str) -> None:
    assert read_branch(text.replace("{}", '{"reason": "x", "branch": "done"}'), NAMES)[0] == "done"
    assert judged(text.replace("{}", plain(done=True, score=9)))["done"] is True


@given(
    st.lists(
        st.sampled_from(
            [*PROSE, *NAMES, "not", "is", "{", "}", "[", "]", '"', "'", ":", ",", "branch", "or", "true", "\n"]
        ),
        max_size=12,
    )
)
def test_prose_is_never_read_as_a_verdict(words: list[str]) -> None:
    text = "The text " + " ".join(words)
    if any(line.strip(" '\"{[,").startswith(("branch", "Decision")) for line in text.splitlines()):
        return

    try:
        branch, _ = read_branch(text, NAMES)
    except UnreadableReplyError:
        return
    squeezed = "".join(text.split()).replace("'", "").replace('"', "")
    assert f"branch:{branch}" in squeezed


@pytest.mark.parametrize(
    ("cut", "asked"),
    [
        ("Done", 2),
        ("Decision: done", 2),
        ('{"reason": "x", "branch": "done"', 2),
        ('An example is {"branch": "done"}. My verdict', 2),
        ('I looked at it. {"branch": "done"}', 1),
        ('{"branch": "done"}\n\nThat is because', 1),
    ],
)
async def test_a_truncated_reply_counts_only_with_a_complete_verdict(cut: str, asked: int) -> None:
    replies = [Reply(cut, Finish.LENGTH), Reply("continue", Finish.STOP)]
    ran = await run_node("router", {"criteria": "Good."}, {"input": "x"}, *replies)

    assert len(ran.services.requests) == asked
    assert ("done" in ran.outputs) == (asked == 1)


async def test_a_router_with_differing_verdicts_is_asked_once_more_with_the_error() -> None:
    two = '{"branch": "continue"} {"branch": "done"}'
    ran = await run_node("router", {"criteria": "Good."}, {"input": "x"}, two, two)

    assert len(ran.services.requests) == 2
    assert "differ" in ran.services.requests[1].messages[-1].text
    assert ("continue" in ran.outputs, "done" in ran.outputs) == (True, False)
    assert len(ran.context.warnings) == 2


# Judges


@pytest.mark.parametrize(
    ("text", "done", "score"),
    [
        (plain(True, 8), True, 8.0),
        (plain("true", "8"), True, 8.0),
        (plain("Yes", "8/10"), True, 8.0),
        (plain("NO", "8 out of 10"), False, 8.0),
        (plain("no.", "80%"), False, 8.0),
        (plain(False, "80/100"), False, 8.0),
        (plain(False, "8,5"), False, 8.5),
        (plain(False, " 8.50 "), False, 8.5),
        (plain(False, "１０"), False, 10.0),
        ('{"Reason": "r", "SCORE": 7, "Done": True}', True, 7.0),
        ("{'reason': 'r', 'score': 7.5, 'done': False,}", False, 7.5),
        ('{"reason": "r", "score": 8/10, "done": true}', True, 8.0),
        ('{"reason": "r", "score": 8 out of 10, "done": true}', True, 8.0),
        ('{"reason": "r", "score": 80%, "done": yes}', True, 8.0),
        ('{"reason": "r", "score": 8,5, "done": false}', False, 8.5),
        ('{"reason": "r", "done": false, "score": 8,5}', False, 8.5),
        ("Score: 8/10\nDone: no\nReason: too long", False, 8.0),
        ("**Reason:** fine\n**Score:** 9\n**Done:** Yes", True, 9.0),
        (f"Score: 8\n\n{plain(True, 8)}", True, 8.0),
        (f"{plain(True, 8)} or, as asked: {plain(True, 8.0)}", True, 8.0),
    ],
)
def test_a_judges_verdict_is_read_from_any_json_dialect(text: str, done: bool, score: float) -> None:
    verdict = judged(text)

    assert (verdict["done"], verdict["score"]) == (done, score)


@pytest.mark.parametrize(
    "text",
    [
        plain(True, 11), plain(True, -1), plain(True, "11/10"), plain(True, "120%"), plain(True, "4/5"),
        plain(True, "1,000"), plain(True, "NaN"), plain(True, "inf"), plain(True, "1e999"), plain(True, "eight"),
        plain(True, "8 9"), plain(True, "7-8"), plain(True, None), plain(True, True), plain(True, [8]),
        plain("done", 8), plain("almost", 8), plain(1, 8), plain(None, 8), plain("yes and no", 8),
        '{"reason": "r", "score": NaN, "done": true}', '{"reason": "r", "score": Infinity, "done": true}',
        '{"reason": "r", "score": 1e999, "done": true}', '{"reason": "r", "score": , "done": true}',
        '{"reason": "r", "score": 10 9, "done": true}', '{"reason": "r", "score": 8, 9, "done": true}',
        '{"reason": "r", "score": 8', '{"reason": "r", "score": 8, "done": tru',
        '{"score": 8, "done": true, "reason": "',
        '{"reason": "r", "score": 8, "done": true, "Done": false}', '{"reason": "", "score": 8, "score": 9, "done": 1}',
        f"{plain(True, 8)} {plain(False, 8)}", f"{plain(True, 8)} {plain(True, 9)}", f"Done: no\n{plain(True, 8)}",
        f"Score: 3/10\n{plain(True, 8)}", "Score: 8\nScore: 9\nDone: yes\nReason: x", "Score: 8\nDone: yes",
        "It is done, 8/10.",
    ],
)  # fmt: skip
def test_an_unclear_verdict_of_a_judge_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableReplyError):
        judged(text)


def test_criteria_are_matched_in_any_case_and_missing_ones_are_named() -> None:
    given_scores = {"Clear": "8/10", "WORD CHOICE": "50%"}
    verdict = judged(json.dumps({"reason": "r", "scores": given_scores, "done": False}), rubric=RUBRIC, threshold=7.0)
    assert verdict["scores"] == {"clear": 8.0, "word_choice": 5.0}
    assert (verdict["score"], verdict["done"]) == (7.0, True)

    with pytest.raises(UnreadableReplyError, match="word_choice"):
        judged(json.dumps({"reason": "r", "scores": {"Clear": 8}, "done": False}), rubric=RUBRIC)


def test_scores_of_a_rubric_can_be_lines_of_text() -> None:
    verdict = judged("Clear: 8/10\nWord choice: 5\nReason: so so\nDone: no", rubric=RUBRIC)

    assert verdict["scores"] == {"clear": 8.0, "word_choice": 5.0}


def test_with_a_threshold_only_scores_must_agree() -> None:
    assert judged(f"{plain(True, 8)} {plain(False, 8)}", threshold=7.0)["done"] is True


@given(st.data(), st.booleans(), st.integers(0, 20).map(lambda half: half / 2))
def test_a_judges_verdict_in_any_dialect_is_read_unchanged(data: st.DataObject, done: bool, score: float) -> None:
    draw = data.draw
    stated: Any = draw(st.sampled_from([score, f"{score}", f"{score}/10", f"{score * 10}%", f"{score} out of 10"]))
    word: Any = draw(st.sampled_from([done, "yes" if done else "no", str(done)]))
    verdict = {draw(st.sampled_from(["reason", "Reason"])): "so, so", "SCORE": stated, "done": word}

    read = judged(around(draw, dialect(draw, verdict)))

    assert (read["done"], read["score"], read["reason"]) == (done, pytest.approx(score), "so, so")
