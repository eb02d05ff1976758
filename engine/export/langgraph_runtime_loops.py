"""Runtime of exported LangGraph modules: loops, iterators and subflows.

The export copies the functions that a workflow uses into its module, which then needs nothing of Loopwright: only
LangGraph, python-Levenshtein and the other runtime functions.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from langgraph.errors import GraphBubbleUp

from engine.export.langgraph_runtime_values import (
    NOTHING,
    Record,
    Records,
    State,
    Step,
    Update,
    collect,
    compact_json,
    fitted,
    gave,
    to_text,
)

RECORD_MEMBERS = (
    "index", "input", "result", "feedback", "branch", "reason", "score", "similarity", "cost_usd", "duration_s",
    "warnings",
)  # fmt: skip


def similarity(first: Any, second: Any, least: float = 0.0) -> float:
    """How similar two results are, from 0 to 1: one minus the edit distance by the length of the longer.

    A similarity below `least` may come out smaller than it is, which takes less time.
    """
    from Levenshtein import distance

    one, other = (value if isinstance(value, str) else compact_json(value) for value in (first, second))
    longer = max(len(one), len(other), 1)
    return max(longer - distance(one, other, score_cutoff=int(longer * (1.0 - least)) + 1), 0) / longer


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


def parameters(declared: Mapping[str, tuple[str, Any]], given: Mapping[str, Any]) -> dict[str, Any]:
    """The value of each input of a workflow, by name: the one given, else its default."""
    unknown = sorted(set(given) - set(declared))
    if unknown:
        raise ValueError(f"There is no input {unknown[0]!r}.")
    values: dict[str, Any] = {}
    for name, (kind, default) in declared.items():
        value = given.get(name, default)
        if value is None and name not in given:
            raise ValueError(f"The input {name!r} has no value.")
        values[name] = fitted(value, kind)
    return values


def results_of(end: State, outputs: Mapping[str, str]) -> dict[str, Any]:
    """The results of a workflow by name; one that nothing reached is left out."""
    given = {name: end["_values"].get(node, {}) for name, node in outputs.items()}
    return {name: ports["value"] for name, ports in given.items() if "value" in ports}


def run_part(part: str, graph: Any, state: State, inputs: dict[str, Any], outputs: Mapping[str, str]) -> Update:
    """Run a workflow that is a node of this one; its named state is this one's."""
    start = {"_inputs": inputs, "_values": {}, "_loops": {}, "_named": state["_named"], "_agents": {}}
    end = graph.invoke(start, {"recursion_limit": 1_000_000})
    return {"_values": {part: results_of(end, outputs)}, "_named": end["_named"]}


def run_items(
    name: str,
    graph: Any,
    state: State,
    items: Any,
    results: Sequence[str],
    recorded: dict[str, str],
    *,
    at_once: int,
    on_item_error: str = "fail",
    on_empty: str = "pass",
) -> Update:
    """Run a graph once for each item, several at a time; the records of the items stand in their order.

    `results` are the ports at which an item's result lies, `recorded` those that stand for each node of the body.
    """
    if not isinstance(items, list):
        raise TypeError(f"The items of {name} are no list: {to_text(items)[:60] or 'null'}.")
    given = cast("list[Any]", items)
    if not given and on_empty == "fail":
        raise ValueError(f"There are no items for {name}.")
    now = dict(state)

    def work_on(index: int) -> tuple[dict[str, Any], State | None]:
        at: dict[str, Any] = {"item": given[index], "index": index}
        start = {**now, "_values": {**state["_values"], name: at}}
        try:
            end = graph.invoke(start, {"recursion_limit": 1_000_000})
        except GraphBubbleUp:
            raise
        except Exception as error:
            if on_item_error == "fail":
                raise
            return item_record(index, given[index], None, "failed", str(error)), None
        result, nodes = collect(end, results), {**dict.fromkeys(recorded), **gave_by(end, recorded)}
        if result is NOTHING:
            why = "Nothing reached the aggregator."
            return item_record(index, given[index], None, "no_result", why, nodes), end
        return item_record(index, given[index], result, nodes=nodes), end

    records: list[dict[str, Any]] = []
    if at_once > 1:
        with ThreadPoolExecutor(at_once) as pool:
            records = [record for record, _ in pool.map(work_on, range(len(given)))]
    else:
        for index in range(len(given)):
            record, end = work_on(index)
            records.append(record)
            if end is not None:
                now = {**now, "_named": end["_named"], "_loops": {**end["_loops"]}}
    loops = {loop: now["_loops"][loop] for loop in state["_loops"]}
    return {"_values": {name: items_given(records, len(records))}, "_named": now["_named"], "_loops": loops}


def item_record(
    index: int,
    item: Any,
    result: Any,
    branch: str | None = None,
    reason: str | None = None,
    nodes: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The record of an item."""
    return {
        "index": index, "input": item, "result": result, "feedback": None, "branch": branch, "reason": reason,
        "score": None, "similarity": None, "cost_usd": None, "duration_s": None, "warnings": [], "nodes": nodes or {},
    }  # fmt: skip


def items_given(records: list[dict[str, Any]], count: int) -> dict[str, Any]:
    """What an iterator gives after its last item, by port."""
    failures = [
        {"index": record["index"], "item": record["input"], "error": record["reason"]}
        for record in records
        if record["branch"] == "failed"
    ]
    return {"iterations": records, "count": count, "failures": failures}


def pass_items(name: str, items: Any) -> Update:
    """An iterator that works on nothing: its items are its results."""
    given = cast("list[Any]", items) if isinstance(items, list) else []
    records = [item_record(index, item, item) for index, item in enumerate(given)]
    return {"_values": {name: items_given(records, 0)}}


def item_results(records: Sequence[Mapping[str, Any]], *, keeps_places: bool) -> list[Any]:
    """What the items came to; one that has no result is left out, or keeps its place with null."""
    return [record["result"] for record in records if keeps_places or record["branch"] is None]


def most_frequent(values: Sequence[Any]) -> Any:
    """The value that stands there most often, of equally many the one that came first; null where there is none."""
    votes: dict[str, list[Any]] = {}
    for value in values:
        if value is not None:
            key = json.dumps(value.strip() if isinstance(value, str) else value, sort_keys=True)
            votes.setdefault(key, []).append(value)
    return max(votes.values(), key=len)[0] if votes else None
