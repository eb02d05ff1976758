"""What an exported LangGraph module carries with it, copied as it stands here: loops.

So it needs nothing but the standard library and its siblings. What is exported holds only the functions that it uses.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langgraph.errors import GraphBubbleUp

from engine.exits.similarity import as_text, similarity_from
from engine.export.carried_values import NOTHING, Record, Records, State, Step, Update, gave, to_text

RECORD_MEMBERS = (
    "index", "input", "result", "feedback", "branch", "reason", "score", "similarity", "cost_usd", "duration_s",
    "warnings",
)  # fmt: skip


def begin_loop(loop: str, original: Any, nodes: Sequence[str], spent: float = 0.0) -> Update:
    """Begin a loop with iteration 0; `nodes` are those of its body, `spent` is what the run had cost before."""
    record: dict[str, Any] = {
        "index": 0, "nodes": nodes, "input": original, "body": original, "previous": None, "last": {}, "history": [],
        "given": [], "feedbacks": [], "had_result": False, "results": [], "watched": {}, "memory": {}, "left": False,
        "goes_on": True, "began": time.monotonic(), "spent": spent,
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
    running = loop["watched"].get(name, 0) + 1 if similar is not None and similar >= threshold else 0
    loop["watched"][name] = running
    return running >= patience


def reached_plateau(loop: dict[str, Any], name: str, score: float | None, epsilon: float, patience: int) -> bool:
    """Whether the best score has risen by no more than epsilon in each of so many iterations in a row."""
    best, without_rise = loop["watched"].get(name, (None, 0))
    if best is None:
        best = score
    else:
        without_rise = 0 if score is not None and score > best + epsilon else without_rise + 1
        best = best if score is None else max(best, score)
    loop["watched"][name] = (best, without_rise)
    return without_rise >= patience


def came_back(loop: dict[str, Any], result: Any, threshold: float) -> bool:
    """Whether the result is similar enough to one from before the last."""
    if result is NOTHING:
        return False
    text, earlier = as_text(result), map(as_text, loop["results"][:-1])
    return any(similarity_from(threshold, one, text) is not None for one in earlier)


def as_it_stood(loop: dict[str, Any]) -> Any:
    """The result of an iteration that ended its loop and gave none: the one before, else what it started from."""
    return loop["results"][-1] if loop["results"] else loop["body"]


def leave(state: State, node: str, loop: str, ports: Mapping[str, Any]) -> Update:
    """A node that gives nothing but these ports and ends the loop around it, where there is one."""
    ports = {**ports, "exits_loop": True}  # no port, but tells the node from one that was skipped
    ended = {"_loops": {loop: {**state["_loops"][loop], "left": True}}} if loop else {}
    return {"_values": {node: ports}, **ended}


def remembered(state: State, loop: str, node: str, most: int | None) -> list[Any]:
    """What a node was asked and answered in earlier iterations, or in the last few of them, as messages."""
    turns = state["_loops"][loop]["memory"].get(node, [])
    return [message for turn in (turns if most is None else turns[-most:]) for message in turn]


def remembering(update: Update, state: State, loop: str, asked: str, said: str, answer: Any = None) -> Update:
    """What a node gave, with a note for later iterations of what it was asked and said, or else answered."""
    text = said if said.strip() else to_text(answer)
    if not text.strip():
        return update
    (node,) = update["_values"]
    record = state["_loops"][loop]
    turn = [{"role": "user", "content": asked}, {"role": "assistant", "content": text}]
    memory = {**record["memory"], node: [*record["memory"].get(node, []), turn]}
    return {**update, "_loops": {loop: {**record, "memory": memory}}}


def goes_on_and_remembers(node: str, loop: str, port: str, *value: Any) -> Callable[[Step], Step]:
    """As `goes_on_after_error`, where models remember: what the model had said stays in the node's memory."""

    def changed(step: Step) -> Step:
        def safely(state: State) -> Update:
            try:
                return step(state)
            except GraphBubbleUp:
                raise
            except Exception as error:
                update = gave(node, {port: value[0] if value else str(error)})
                return remembering(update, state, loop, getattr(error, "asked", ""), getattr(error, "said", ""))

        return safely

    return changed


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
    record: dict[str, Any] = {
        "index": loop["index"], "input": loop["body"], "result": result if has_result else None, "feedback": feedback,
        "branch": verdict["selected_branch"] if verdict else None,
        "reason": verdict["reason"] if verdict else (judged or {}).get("reason"),
        "score": (judged or {}).get("score") if score is None else score, "similarity": similar,
        "cost_usd": None, "duration_s": None, "warnings": [], "nodes": {**dict.fromkeys(loop["nodes"]), **nodes},
    }  # fmt: skip
    history, given = [*loop["history"], record], [*loop["given"], nodes]
    if reason is not None:
        return end_loop(names, history, given, reason, at_end, output_mode)
    feedbacks = [*loop["feedbacks"], feedback]
    if feedback_mode == "replace":
        start = feedback
    else:
        pieces = [loop["body"], feedback] if feedback_mode == "append" else [loop["input"], *feedbacks[-window:]]
        if not all(piece is None or isinstance(piece, str) for piece in pieces):
            raise TypeError("Only text can be appended for the next iteration.")
        start = "\n---\n".join(piece or "" for piece in pieces)
    time.sleep(delay_s)
    onward = {
        **loop, "index": loop["index"] + 1, "body": start, "previous": record["result"], "last": nodes,
        "history": history, "given": given, "feedbacks": feedbacks, "had_result": has_result, "left": False,
        "results": [*loop["results"], result] if has_result else loop["results"],
    }  # fmt: skip
    return {"_values": {names[0]: {"body": start}}, "_loops": {names[0]: onward}}


def end_loop(
    names: tuple[str, str], history: list[Any], given: list[Any], reason: str, at_end: str, output_mode: str
) -> Update:
    """What comes out of a loop; `at_end` says what comes out of one that was cut off."""
    chosen = len(history) - 1
    if at_end == "fail":
        raise RuntimeError(f"{names[0]} did not converge within {len(history)} iterations ({reason}).")
    if at_end == "return_with_flag":
        warnings.warn(f"{names[0]} did not converge within {len(history)} iterations.", stacklevel=2)
    if at_end == "return_best":
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


def loop_history(loop: dict[str, Any], most: int) -> Records:
    """The records of a loop's iterations, as texts read them; `most` is how many there will be at the most."""
    blank: dict[str, Any] = {**dict.fromkeys(RECORD_MEMBERS), "nodes": dict.fromkeys(loop["nodes"])}
    wholes = [dict(record) for record in [*loop["history"], blank]]
    *there, last = (Record(whole, nodes=whole.pop("nodes")) for whole in wholes)
    return Records(there, last, most)


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
        if port == "all":
            given[node] = next(iter(ports.values())) if len(ports) == 1 else ports
        elif port == "answer":
            choice = "approve" if "approved" in ports else "reject"
            value = ports["approved"] if "approved" in ports else ports["rejected"]
            given[node] = {"choice": choice, "value": value, "comment": ports["comment"]}
        elif port == "verdict":
            branch = next(name for name in ports if name != "reason")
            given[node] = {"selected_branch": branch, "value": ports[branch], "reason": ports["reason"]}
        elif port == "validity":
            value = ports["valid"] if "valid" in ports else ports["invalid"]
            given[node] = {"valid": "valid" in ports, "value": value, "errors": ports["errors"]}
        else:
            given[node] = ports.get(port)
    return given
