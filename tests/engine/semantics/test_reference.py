"""Random loops, run by the engine and by the reference interpreter: both must agree."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from engine import Workflow
from tests.engine.semantics.documents import Part, around, llm, rules, transform
from tests.engine.semantics.kit import begin, finish
from tests.engine.semantics.models import by_node
from tests.engine.semantics.reference import Case, Outcome, interpret
from tests.examples import examples

_MOST = 6
_TEXT = st.text(alphabet="ab!é𝄞{} \n", max_size=6)
_VERDICT = st.builds(lambda text, end: text + end, _TEXT, st.sampled_from(["", "", "!"]))


@st.composite
def _cases(draw: st.DrawFn) -> Case:
    exit_condition = draw(st.sampled_from(["max_iterations", "evaluator", "stable_output"]))
    wirings = ["unconnected", "dangling", "feedback"] + (["transform"] if exit_condition != "evaluator" else [])
    return Case(
        drafts=tuple(draw(st.lists(_TEXT, min_size=_MOST, max_size=_MOST))),
        critiques=tuple(draw(st.lists(_VERDICT, min_size=_MOST, max_size=_MOST))),
        wiring=draw(st.sampled_from(wirings)),
        exit_condition=exit_condition,
        feedback_mode=draw(st.sampled_from(["replace", "append", "append_window"])),
        window=draw(st.integers(1, 4)),
        cap=draw(st.integers(1, _MOST)),
        threshold=draw(st.sampled_from([0.0, 0.5, 0.75, 0.9, 1.0])),
        patience=draw(st.integers(1, 3)),
        until_reads=draw(st.sampled_from([None, None, "aa", "b"])),
        on_max_iterations=draw(st.sampled_from(["return_last", "return_best", "return_with_flag", "fail"])),
        output_mode=draw(st.sampled_from(["final", "last_iteration", "all_iterations"])),
    )


_ROUTER = rules("check", {"done": "input.endsWith('!')", "continue": "else"})
_AGAIN = transform("again", "more: {{input}}")


def _workflow(case: Case) -> Workflow:
    body: list[Part] = [
        llm("draft", allow_empty=True),
        llm("critique", allow_empty=True),
        transform("join", "{{size(start)}}:{{draft}}/{{critique}}"),
    ]
    edges = ["loop -> draft -> critique -> join.critique", "draft -> join.draft", "loop -> join.start"]
    if case.wiring == "transform":
        body.append(transform("wrap", "[{{input}}]"))
        edges.append("join -> wrap -> exit")
    else:
        body.append(_ROUTER)
        edges += ["join -> check", "check.done -> exit" if case.exit_condition == "evaluator" else "join -> exit"]
    if case.wiring in {"dangling", "feedback"}:
        body.append(_AGAIN)
        edges.append("check.continue -> again" + (" -> exit.feedback" if case.wiring == "feedback" else ""))
    config: dict[str, Any] = {
        "max_iterations": case.cap,
        "exit_condition": case.exit_condition,
        "feedback_mode": case.feedback_mode,
        "append_window": case.window,
        "stability_threshold": case.threshold,
        "stability_patience": case.patience,
        "until": "" if case.until_reads is None else f"nodes.critique.contains('{case.until_reads}')",
        "on_max_iterations": case.on_max_iterations,
        "score": "size(output)",
        "output_mode": case.output_mode,
    }
    return around(*body, edges="\n".join(edges), **config)


def _output(case: Case, value: Any) -> object:
    if case.output_mode == "all_iterations":
        pieces = re.split(r"^--- iteration (\d+) ---\n", value, flags=re.MULTILINE)[1:]
        return [(pieces[index], pieces[index + 1].rstrip("\n")) for index in range(0, len(pieces), 2)]
    if case.output_mode == "last_iteration":
        return {name: value[name] for name in ("draft", "critique")}
    return value


async def _played(case: Case, text: str) -> Outcome:
    answer = by_node(
        draft=lambda call: case.drafts[call.iteration], critique=lambda call: case.critiques[call.iteration]
    )
    played = await finish(*begin(_workflow(case), answer, {"text": text}))
    failed = played.result.status == "failed"
    return Outcome(
        iteration_inputs=[str(start) for start in played.iteration_inputs],
        results=[str(value) for value in played.results],
        reason=played.loop.exit_reason,
        failed=failed,
        output=None if failed else _output(case, played.out),
    )


@examples(120)
@given(case=_cases(), text=_TEXT)
def test_the_engine_and_the_reference_interpreter_agree(case: Case, text: str) -> None:
    expected = interpret(case, text)
    event(f"{expected.reason}, failed: {expected.failed}")

    assert asyncio.run(_played(case, text)) == expected
