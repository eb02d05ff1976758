from __future__ import annotations

import json
from typing import Any

import pytest
from markdown_it import MarkdownIt

from engine.store.export_markdown import run_to_markdown
from engine.store.run_sections import state_of
from tests.engine.cli.kit import Events, refine
from tests.engine.store.event_samples import head, one_of_each
from tests.engine.store.memory_store import MemoryStore

HOSTILE = (
    "```\n# Not a heading\n````text\n<script>alert(1)</script>\n\n~~~\n[link](http://x) ![image](http://y)\n"
    "`````` \r```\r\n    ``````\n* list\n| a | b |\n|---|---|\n&lt; **bold**"
)


def page(events: list[Any], document: str = "") -> str:
    store = MemoryStore()
    store.import_run(head(document=document or json.dumps(refine()), parent="", forked_at=""), events)
    return "".join(run_to_markdown(store.find("r"), store.document("r"), state_of(store, "r")))


def events_with(*results: Any, **fields: Any) -> list[Any]:
    event = Events()
    ended = {"usage": fields.get("usage", one_of_each()[-1].usage), "cost_usd": 0.5, "duration_s": 3.25}  # pyright: ignore[reportAttributeAccessIssue]
    events = [event("RunStarted", workflow="Self *refine*", inputs={"task": "Explain tides."}, models=("openai/x",))]
    for number, result in enumerate(results):
        events.append(event("LoopIterationStarted", "loop", index=number, total=5, input_preview=""))
        events.append(event.iteration("loop", number, result, **fields))
    looped = {"iterations_run": len(results), "converged": True, "returned": len(results) - 1}
    end = event("LoopCompleted", "loop", exit_reason="max_iterations", cost_usd=0.5, duration_s=1, **looped)
    return [*events, end, event("RunCompleted", outputs={"answer": results[-1]}, **ended)]


def test_markdown_says_which_part_ran():
    events = [Events()("RunStarted", workflow="w", inputs={}, models=(), extent="only", target="draft")]
    store = MemoryStore()
    store.import_run(head(parent="a", forked_at="draft"), events)
    text = "".join(run_to_markdown(store.find("r"), store.document("r"), state_of(store, "r")))
    assert "- Only draft, with outputs of a\n" in text


def test_markdown_has_inputs_iterations_and_results():
    text = page(events_with("One.", {"a": 1}, feedback="Shorter.", branch="continue", reason="Too long.", score=0.5))
    assert text.startswith(
        "# Self \\*refine\\*\n\n"
        "- Run r, completed\n"
        "- Started 1970-01-01 00:16 UTC, took 3.2 s\n"
        "- 3 tokens, \\$0.50\n"
        "- Models: openai/x\n"
        "\n## Inputs\n\n### task\n\n```text\nExplain tides.\n```\n"
        "\n## Loop loop\n\nStopped after 2 of 5: max iterations reached.\n"
        "\n### Iteration 1\n\nscore 0.5, 0 tokens, \\$0, 1.0 s\n"
        "\nTested: score 0.5; iteration 1 of at most 5.\n"
        "\n**Result**\n\n```text\nOne.\n```\n"
        "\n**Feedback**\n\n```text\nShorter.\n```\n"
        "\n**Verdict: continue**\n\n```text\nToo long.\n```\n"
        "\n### Iteration 2, returned\n"
    )
    assert '\n**Result**\n\n```json\n{\n  "a": 1\n}\n```\n' in text
    assert text.endswith('\n## Results\n\n### answer\n\n```json\n{\n  "a": 1\n}\n```\n')


def kinds_and_fences(text: str) -> tuple[list[str], list[str]]:
    tokens = MarkdownIt("commonmark", {"linkify": False}).enable(["table", "strikethrough"]).parse(text)
    inside = [child.type for token in tokens for child in token.children or ()]
    return [token.type for token in tokens] + inside, [token.content for token in tokens if token.type == "fence"]


@pytest.mark.parametrize("hostile", [HOSTILE, "`" * 50, "~~~\n```", "\n\n```"])
def test_model_text_cannot_leave_its_fenced_block(hostile: str):
    tame = page(events_with("x", feedback="y", branch="z", reason="r"))
    wild = page(events_with(hostile, feedback=hostile + "!", branch=hostile, reason=hostile))
    kinds, fences = kinds_and_fences(wild)
    assert set(kinds) <= {*kinds_and_fences(tame)[0], "text_special"}
    assert "html_block" not in kinds
    assert len(fences) == len(kinds_and_fences(tame)[1])
    normal = hostile.replace("\r\n", "\n").replace("\r", "\n")
    assert [fence.rstrip("\n") for fence in fences[1:4]] == [normal, normal + "!", normal]


def test_error_is_shown_escaped():
    event = Events()
    usage = {"usage": one_of_each()[-1].usage, "cost_usd": None, "duration_s": 1.0}  # pyright: ignore[reportAttributeAccessIssue]
    events = [
        event("RunStarted", workflow="", inputs={}, models=()),
        event(
            "RunFailed", error="<b>No</b> [x](http://y).", remedy="See www.x.org.", node="draft", outputs={}, **usage
        ),
    ]
    text = page(events)
    assert text.startswith("# A run\n\n- Run r, failed\n")
    assert "\n## Error\n\nThe run failed at draft: \\<b\\>No\\</b\\> \\[x\\](http:\\//y). See www\\.x.org.\n" in text


def test_nested_loops_are_below_their_iteration():
    event = Events()
    begun = {"index": 0, "total": 1, "input_preview": ""}
    ended = {
        "iterations_run": 1,
        "exit_reason": "budget",
        "converged": False,
        "returned": 0,
        "cost_usd": 0,
        "duration_s": 1,
    }
    text = page(
        [
            event("RunStarted", workflow="W", inputs={}, models=()),
            event("LoopIterationStarted", "outer", **begun),
            event("LoopIterationStarted", "outer[0].inner", **begun),
            event.iteration("outer[0].inner", 0, "deep"),
            event("LoopCompleted", "outer[0].inner", **ended),
            event.iteration("outer", 0, "shallow"),
            event("LoopCompleted", "outer", **ended),
        ]
    )
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings == [
        "# W",
        "## Loop outer",
        "### Iteration 1, returned",
        "#### Loop outer\\[0\\].inner",
        "##### Iteration 1, returned",
    ]


def test_unreadable_document_does_not_prevent_the_export():
    assert "\n## Loop loop\n" in page(events_with("x"), "{")
