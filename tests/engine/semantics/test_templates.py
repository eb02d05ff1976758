"""Every template with scripted replies: its calls, its exit reason and its outputs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.bundled import templates_folder
from engine.document.files import load
from engine.models.protocol import Reply, ToolCall
from engine.runner.declared_inputs import declared_inputs
from tests.engine.semantics.kit import Played, play
from tests.engine.semantics.models import Answer, Call, by_node, verdict

NAMES = sorted(file.name.removesuffix(".loop.json") for file in templates_folder().glob("*.loop.json"))


async def template(name: str, ends: str = "completed", **answers: Any) -> Played:
    """A template with its sample input, and replies by node id."""
    return await run(name, by_node(**answers), ends)


async def run(name: str, answer: Answer, ends: str = "completed", **more: Any) -> Played:
    """A template with its sample input."""
    workflow = load(templates_folder() / f"{name}.loop.json")
    return await play(workflow, answer, {}, ends=ends, **more)


def judged(score: float, reason: str = "because", *, done: bool = False, **scores: float) -> str:
    """A valid verdict of a judge."""
    given: dict[str, Any] = {"scores": scores} if scores else {"score": score}
    return json.dumps({"reason": reason, "done": done, **given})


@pytest.mark.parametrize("name", NAMES)
def test_a_template_has_sample_inputs_a_description_and_a_layout(name: str) -> None:
    workflow = load(templates_folder() / f"{name}.loop.json")
    assert all(declared.default is not None for declared in declared_inputs(workflow))
    assert workflow.description.rpartition(". For ")[2].endswith(".")
    assert ". For " in workflow.description
    assert set(workflow.layout["nodes"]) == set(workflow.nodes_by_id)


async def test_self_refine_writes_three_times_from_its_own_critique() -> None:
    played = await template("self-refine", draft=["one", "two", "three"], critique=["shorter", "warmer", "fine"])
    assert played.result.outputs == {"text": "three"}
    assert "two" in played.model.prompts("draft")[2]
    assert "warmer" in played.model.prompts("draft")[2]


async def test_agentic_search_continues_until_the_notes_suffice() -> None:
    played = await template(
        "agentic-search",
        plan=["stop loop text", "stable output"],
        enough=[verdict("continue", "no threshold"), verdict("done")],
        answer="By stable_output.",
    )
    assert played.result.outputs == {"answer": "By stable_output."}
    assert played.loop.exit_reason == "evaluator_done"
    assert "no threshold" in played.model.prompts("plan")[1]


async def test_classify_makes_one_call_with_a_structured_reply() -> None:
    reply = {"reason": "It is broken.", "kind": "complaint"}
    played = await template("classify", classify=json.dumps(reply))
    assert played.result.outputs == {"kind": "complaint", "details": reply}
    assert len(played.model.calls) == 1


async def test_classify_requests_again_without_a_category() -> None:
    good = json.dumps({"reason": "r", "kind": "praise"})
    played = await template("classify", classify=[json.dumps({"reason": "r", "kind": "rant"}), good])
    assert played.result.outputs["kind"] == "praise"


async def test_the_calculator_agent_calculates_and_answers() -> None:
    code = "print(4.20 * 3.65 * 1.1 / 1.44)"
    says = [Reply("", tool_calls=(ToolCall("1", "python", {"code": code}),)), "You need 12 boxes."]
    played = await run("calculator-agent", by_node(calculator=says), allow_code=True)
    (step,) = played.result.outputs["steps"]
    assert played.result.outputs["answer"] == "You need 12 boxes."
    assert step["tool"] == "python"
    assert step["result"]["stdout"].startswith("11.7")


async def test_the_summary_is_shortened_until_it_is_stable() -> None:
    played = await template("converging-summary", summarize=["A long first summary.", "Short.", "Short."])
    assert played.result.outputs == {"summary": "Short.", "rounds": 3}
    assert played.loop.exit_reason == "stable_output"


async def test_the_writer_revises_until_the_critic_approves() -> None:
    played = await template("writer-and-critic", writer=["one", "two"], critic=["It lacks a date.", "APPROVED"])
    assert played.result.outputs == {"text": "two", "approved": True}
    assert "It lacks a date." in played.model.prompts("writer")[1]
    assert "one" in played.model.prompts("writer")[1]


async def test_a_text_that_is_never_approved_is_flagged() -> None:
    played = await template("writer-and-critic", writer="same", critic="No.")
    assert played.result.outputs == {"text": "same", "approved": False}
    assert played.loop.exit_reason == "max_iterations"


async def test_the_best_version_of_a_document_is_returned() -> None:
    verdicts = [judged(0, "stiff", clear=5, tone=5, complete=5), judged(0, clear=8, tone=8, complete=8)]
    played = await template(
        "document-improvement",
        rewrite=["v1", "v2", "v3", "v4"],
        judge=[*verdicts, judged(0, clear=4, tone=4, complete=4), judged(0, clear=1, tone=1, complete=1)],
    )
    assert played.result.outputs == {"document": "v2"}
    assert played.loop.exit_reason == "max_iterations"
    assert "stiff" in played.model.prompts("rewrite")[1]


async def test_a_document_that_is_good_enough_ends_the_loop() -> None:
    played = await template("document-improvement", rewrite="v1", judge=judged(0, clear=9, tone=9, complete=9))
    assert played.result.outputs == {"document": "v1"}
    assert played.loop.exit_reason == "judge_done"


async def test_the_refiner_exits_the_loop_when_the_critic_has_nothing_to_add() -> None:
    played = await template(
        "refine-or-exit",
        first_draft="A keeper.",
        critic=["Name him.", "Nothing to add."],
        refiner=["Jon, a keeper.", Reply("", tool_calls=(ToolCall("1", "exit_loop", {}),))],
    )
    assert played.result.outputs == {"story": "Jon, a keeper."}
    assert played.loop.exit_reason == "exit_loop"
    assert len(played.loop.iterations) == 2
    assert "Jon, a keeper." in played.model.prompts("critic")[1]


async def test_lgtm_ends_a_code_review_immediately() -> None:
    played = await template(
        "code-review", code=["def a", "def b"], review=["Rename it.", "LGTM"], judge=judged(3, "a fault is left")
    )
    assert played.result.outputs == {"code": "def b", "exit_reason": "until"}
    assert "Rename it." in played.model.prompts("code")[1]


async def test_a_judge_ends_a_code_review_without_lgtm() -> None:
    played = await template("code-review", code="def a", review="Fine, I think.", judge=judged(9, done=True))
    assert played.result.outputs == {"code": "def a", "exit_reason": "judge_done"}


async def test_two_agents_negotiate_until_one_agrees_and_remember_the_conversation() -> None:
    played = await template("negotiation", buyer=["140?", "165."], seller=["200.", "AGREED: 165."])
    assert played.result.outputs == {"outcome": "AGREED: 165.", "agreed": True}
    texts = [message.text for message in played.model.calls[2].request.messages]
    assert any("140?" in text for text in texts)
    assert texts[-1] == "The seller says: 200."


async def test_json_is_rewritten_until_it_is_valid() -> None:
    good = {"name": "Pancakes", "minutes": 20, "ingredients": ["flour"]}
    played = await template("valid-json", write=["no json", json.dumps({"name": "P"}), json.dumps(good)])
    assert played.result.outputs == {"json": good}
    assert "is not JSON" in played.model.prompts("write")[1]
    assert "minutes" in played.model.prompts("write")[2].rpartition("Errors in the last version:")[2]


async def test_json_that_is_never_valid_fails_the_run() -> None:
    played = await template("valid-json", ends="failed", write="no json")
    assert played.result.outputs == {}


async def test_an_extraction_fills_the_gaps_that_the_validator_reports() -> None:
    first = {"title": "Bookbinding", "date": "12 May", "place": None, "leader": "Mara Lind", "seats": 14, "price": 35}
    whole = {**first, "place": "old print shop"}
    played = await template("multi-pass-extraction", extract=[json.dumps(first), json.dumps(whole)])
    assert played.result.outputs == {"record": whole}
    assert played.loop.exit_reason == "until"
    assert "place" in played.model.prompts("extract")[1].rpartition("Missing or wrong:")[2]


async def test_the_best_of_several_attempts_is_returned() -> None:
    scores = [
        judged(0, fit=5, fresh=5),
        judged(0, fit=9, fresh=9),
        judged(0, fit=9, fresh=1),
        judged(0, fit=2, fresh=2),
    ]
    played = await template("best-of-several", write=["a", "b", "c", "d"], judge=scores)
    assert played.result.outputs["best"] == "b"
    assert [record["result"] for record in played.result.outputs["tries"]] == ["a", "b", "c", "d"]


async def test_many_texts_are_summarized_in_loops_and_then_combined() -> None:
    def summarize(call: Call) -> str:
        return f"sum of {call.indices[0]}"

    played = await template("map-reduce-summary", summarize=summarize, combine="The report.")
    assert played.result.outputs == {"report": "The report."}
    (prompt,) = played.model.prompts("combine")
    assert prompt.startswith("sum of 0\n\nsum of 1\n\nsum of 2")
    assert [call.path for call in played.model.calls if call.node == "summarize" and call.indices[0] == 2] == [
        "each[2].loop[0].summarize",
        "each[2].loop[1].summarize",
    ]
