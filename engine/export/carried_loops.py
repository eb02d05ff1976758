"""What an exported LangGraph module carries with it, copied as it stands here: loops.

So it needs nothing but the standard library and its siblings. What is exported holds only the functions that it uses.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

from engine.export.carried_values import NOTHING, State, Update, to_text


def with_note(prompt: str, loop: dict[str, Any], at_most: int) -> str:
    """The prompt with a note on which iteration this is, and what the one before gave."""
    place, given = f"This is iteration {loop['index'] + 1} of {at_most}.", to_text(loop["previous"])
    if loop["index"] == 0:
        note = place
    elif given and given in prompt:
        note = f"{place} What the iteration before gave stands above; improve on it."
    else:
        note = f"{place} The iteration before gave:\n{given}\n\nImprove on it."
    return f"{prompt}\n\n{note}" if prompt else note


def similarity(first: Any, second: Any) -> float:
    """How alike two results are, from 0 to 1: one minus the edit distance by the length of the longer."""
    one, other = (value if isinstance(value, str) else to_text(value) or "null" for value in (first, second))
    if one == other:
        return 1.0
    row = list(range(len(other) + 1))
    for number, sign in enumerate(one, 1):
        before, row[0] = row[0], number
        for place, its in enumerate(other, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (sign != its))
    return 1.0 - row[-1] / max(len(one), len(other))


def begin_loop(loop: str, original: Any) -> Update:
    """Begin a loop with iteration 0."""
    record: dict[str, Any] = {
        "index": 0, "input": original, "body": original, "previous": None, "last": {}, "history": [],
        "given": [], "feedbacks": [], "had_result": False, "stable": {}, "goes_on": True, "began": time.monotonic(),
    }  # fmt: skip
    return {"_values": {loop: {"body": original}}, "_loops": {loop: record}}


def pass_by(loop: str, end: str, original: Any, reason: str) -> Update:
    """A loop that runs no iteration: its input is its result; with nothing at its input it gives nothing."""
    over: dict[str, Any] = {"iterations": [], "count": 0, "exit_reason": reason, "converged": False}
    ports: dict[str, Any] = {} if original is NOTHING else {"output": original, **over}
    result = {} if original is NOTHING else {"output": original}
    return {"_values": {loop: ports, end: result}, "_loops": {loop: {"goes_on": False}}}


def stayed(loop: dict[str, Any], name: str, similar: float | None, threshold: float, patience: int) -> bool:
    """Whether the result was similar enough to the one before, that many times in a row."""
    running = loop["stable"].get(name, 0) + 1 if similar is not None and similar >= threshold else 0
    loop["stable"][name] = running
    return running >= patience


def end_iteration(
    loop: dict[str, Any],
    names: tuple[str, str],
    *,
    result: Any,
    feedback: Any,
    nodes: dict[str, Any],
    reason: str | None,
    verdict: dict[str, Any] | None = None,
    judged: dict[str, Any] | None = None,
    score: float | None = None,
    similar: float | None = None,
    feedback_mode: str = "replace",
    window: int = 0,
    delay_s: float = 0.0,
    at_end: str = "return_last",
    output_mode: str = "final",
) -> Update:
    """Record an iteration; then go on with the next one, or end the loop."""
    has_result = result is not NOTHING
    feedback = (result if has_result else None) if feedback is NOTHING else feedback
    record = {
        "index": loop["index"], "input": loop["body"], "result": result if has_result else None, "feedback": feedback,
        "branch": verdict["selected_branch"] if verdict else None,
        "reason": verdict["reason"] if verdict else (judged or {}).get("reason"),
        "score": (judged or {}).get("score") if score is None else score, "similarity": similar,
        "cost_usd": None, "duration_s": None,
    }  # fmt: skip
    history, given = [*loop["history"], record], [*loop["given"], nodes]
    if reason is not None:
        return end_loop(names, history, given, reason, at_end, output_mode)
    feedbacks = [*loop["feedbacks"], feedback]
    if feedback_mode == "replace":
        body = feedback
    else:
        pieces = [loop["body"], feedback] if feedback_mode == "append" else [loop["input"], *feedbacks[-window:]]
        if not all(piece is None or isinstance(piece, str) for piece in pieces):
            raise TypeError("Only text can be appended for the next iteration.")
        body = "\n---\n".join(piece or "" for piece in pieces)
    time.sleep(delay_s)
    onward = {
        **loop, "index": loop["index"] + 1, "body": body, "previous": record["result"], "last": nodes,
        "history": history, "given": given, "feedbacks": feedbacks, "had_result": has_result,
    }  # fmt: skip
    return {"_values": {names[0]: {"body": body}}, "_loops": {names[0]: onward}}


def end_loop(
    names: tuple[str, str], history: list[Any], given: list[Any], reason: str, at_end: str, output_mode: str
) -> Update:
    """What comes out of a loop."""
    chosen = len(history) - 1
    if reason == "max_iterations" and at_end == "fail":
        raise RuntimeError(f"{names[0]} did not stop by itself within {len(history)} iterations.")
    if reason == "max_iterations" and at_end == "return_with_flag":
        warnings.warn(f"{names[0]} did not stop by itself within {len(history)} iterations.", stacklevel=2)
    if reason == "max_iterations" and at_end == "return_best":
        scores = [-1e308 if record["score"] is None else record["score"] for record in history]
        chosen = scores.index(max(scores))
    results = [record["result"] for record in history]
    output = results[chosen]
    if output_mode == "last_iteration":
        output = given[chosen]
    elif output_mode == "all_iterations":
        is_text = all(value is None or isinstance(value, str) for value in results)
        written = (f"--- iteration {number} ---\n{to_text(value)}" for number, value in enumerate(results, 1))
        output = "\n".join(written) if is_text else results
    converged = not set(reason.split("+")) <= {"max_iterations", "budget", "timeout"}
    over = {"iterations": history, "count": len(history), "exit_reason": reason, "converged": converged}
    ended = {"_values": {names[0]: {"output": output, **over}, names[1]: {"output": output}}}
    return {**ended, "_loops": {names[0]: {"goes_on": False}}}


def goes_on(loop: str) -> Callable[[State], bool]:
    """Whether a loop has another iteration to make, as LangGraph asks it of the state."""
    return lambda state: state["_loops"][loop]["goes_on"]


def gave_by(state: State, recorded: dict[str, str]) -> dict[str, Any]:
    """What each node of a loop's body gave in the iteration just ended, by id; nodes that were skipped are left out."""
    given: dict[str, Any] = {}
    for node, port in recorded.items():
        ports = state["_values"].get(node, {})
        if not ports:
            continue
        if port == "verdict":
            branch = next(name for name in ports if name != "reason")
            given[node] = {"selected_branch": branch, "value": ports[branch], "reason": ports["reason"]}
        elif port == "validity":
            value = ports["valid"] if "valid" in ports else ports["invalid"]
            given[node] = {"valid": "valid" in ports, "value": value, "errors": ports["errors"]}
        else:
            given[node] = ports.get(port)
    return given
