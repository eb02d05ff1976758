"""Runtime of exported LangGraph modules: loops, iterators and subflows.

The export copies the functions that a workflow uses into its module, which then needs nothing of Loopwright: only
LangGraph, python-Levenshtein and the other runtime functions.
"""

from __future__ import annotations

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
    as_type,
    compact_json,
    node_outputs,
    port_value,
    to_text,
)
from engine.plan.validation import RECORD_MEMBERS


def similarity(first: Any, second: Any, threshold: float = 0.0) -> float:
    """Similarity of two results, from 0 to 1: one minus the edit distance divided by the length of the longer text.

    A similarity below the threshold may be returned too small, which takes less time.
    """
    from Levenshtein import distance

    one, other = (value if isinstance(value, str) else compact_json(value) for value in (first, second))
    longer = max(len(one), len(other), 1)
    return max(longer - distance(one, other, score_cutoff=int(longer * (1.0 - threshold)) + 1), 0) / longer


def start_loop(loop: str, original: Any, nodes: Sequence[str], spent: float = 0.0) -> Update:
    """Start a loop with iteration 0; `nodes` are the nodes of its body, `spent` is the cost of the run so far."""
    record: dict[str, Any] = {
        "index": 0, "nodes": nodes, "input": original, "body": original, "previous": None, "last": {}, "history": [],
        "outputs": [], "feedbacks": [], "had_result": False, "results": [], "watched": {}, "memory": {},
        "exited": False, "continues": True, "started": time.monotonic(), "spent": spent,
    }  # fmt: skip
    return {"_values": {loop: {"body": original}}, "_loops": {loop: record}}


def skip_loop(loop: str, end: str, original: Any, reason: str) -> Update:
    """A loop without iterations: its input is its result; without an input it has no output."""
    outcome: dict[str, Any] = {"iterations": [], "count": 0, "exit_reason": reason, "converged": False}
    ports: dict[str, Any] = {} if original is NOTHING else {"output": original, **outcome}
    result = {} if original is NOTHING else {"output": original}
    return {"_values": {loop: ports, end: result}, "_loops": {loop: {"continues": False}}}


def current_result(loop: dict[str, Any]) -> Any:
    """The result of an iteration that exits its loop without one: the previous result, else the iteration input."""
    return loop["results"][-1] if loop["results"] else loop["body"]


def exit_loop(state: State, node: str, loop: str, ports: Mapping[str, Any]) -> Update:
    """Exit the loop around a node, if there is one. The node has only these outputs."""
    ports = {**ports, "exits_loop": True}  # not a port: tells the node from a skipped one
    exited = {"_loops": {loop: {**state["_loops"][loop], "exited": True}}} if loop else {}
    return {"_values": {node: ports}, **exited}


def memory_messages(state: State, loop: str, node: str, window: int | None) -> list[Any]:
    """The messages of a node in earlier iterations, or in the last few of them."""
    turns = state["_loops"][loop]["memory"].get(node, [])
    return [message for turn in (turns if window is None else turns[-window:]) for message in turn]


def with_memory(update: Update, state: State, loop: str, asked: str, said: str, answer: Any = None) -> Update:
    """Add a node's prompt and reply (or else its answer) to its memory for later iterations."""
    text = said if said.strip() else to_text(answer)
    if not text.strip():
        return update
    (node,) = update["_values"]
    record = state["_loops"][loop]
    turn = [{"role": "user", "content": asked}, {"role": "assistant", "content": text}]
    memory = {**record["memory"], node: [*record["memory"].get(node, []), turn]}
    return {**update, "_loops": {loop: {**record, "memory": memory}}}


def continue_on_error(node: str, port: str, *value: Any, memory: str = "") -> Callable[[Step], Step]:
    """Continue the run if a node fails: with a value at a port, or else with the error message.

    `memory` is the loop in which the node remembers what its model had written.
    """

    def decorator(step: Step) -> Step:
        def safe_step(state: State) -> Update:
            try:
                return step(state)
            except GraphBubbleUp:
                raise
            except Exception as error:
                update = node_outputs(node, {port: value[0] if value else str(error)})
                asked, said = getattr(error, "asked", ""), getattr(error, "said", "")
                return with_memory(update, state, memory, asked, said) if memory else update

        return safe_step

    return decorator


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
    """Record an iteration, then start the next one or end the loop."""
    has_result = result is not NOTHING
    feedback = (result if has_result else None) if feedback is NOTHING else feedback
    record: dict[str, Any] = {
        "index": loop["index"], "input": loop["body"], "result": result if has_result else None, "feedback": feedback,
        "branch": verdict["selected_branch"] if verdict else None,
        "reason": verdict["reason"] if verdict else (judged or {}).get("reason"),
        "score": (judged or {}).get("score") if score is None else score, "similarity": similar,
        "cost_usd": None, "duration_s": None, "warnings": [], "nodes": {**dict.fromkeys(loop["nodes"]), **nodes},
    }  # fmt: skip
    history, outputs = [*loop["history"], record], [*loop["outputs"], nodes]
    if reason is not None:
        return end_loop(names, history, outputs, reason, at_end, output_mode)
    feedbacks = [*loop["feedbacks"], feedback]
    if feedback_mode == "replace":
        start = feedback
    else:
        parts = [loop["body"], feedback] if feedback_mode == "append" else [loop["input"], *feedbacks[-window:]]
        if not all(part is None or isinstance(part, str) for part in parts):
            raise TypeError("Only text can be appended for the next iteration.")
        start = "\n---\n".join(part or "" for part in parts)
    time.sleep(delay_s)
    following = {
        **loop, "index": loop["index"] + 1, "body": start, "previous": record["result"], "last": nodes,
        "history": history, "outputs": outputs, "feedbacks": feedbacks, "had_result": has_result, "exited": False,
        "results": [*loop["results"], result] if has_result else loop["results"],
    }  # fmt: skip
    return {"_values": {names[0]: {"body": start}}, "_loops": {names[0]: following}}


def end_loop(
    names: tuple[str, str], history: list[Any], outputs: list[Any], reason: str, at_end: str, output_mode: str
) -> Update:
    """End a loop; `at_end` chooses the result of a loop that reached a limit."""
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
        output = outputs[chosen]
    elif output_mode == "all_iterations":
        is_text = all(value is None or isinstance(value, str) for value in results)
        sections = (f"--- iteration {number} ---\n{to_text(value)}" for number, value in enumerate(results, 1))
        output = "\n".join(sections) if is_text else results
    converged = not set(reason.split("+")) <= {"max_iterations", "budget", "timeout"}
    outcome = {"iterations": history, "count": len(history), "exit_reason": reason, "converged": converged}
    values = {names[0]: {"output": output, **outcome}, names[1]: {"output": output}}
    return {"_values": values, "_loops": {names[0]: {"continues": False}}}


def loop_history(loop: dict[str, Any], max_iterations: int) -> Records:
    """The records of a loop's iterations, for templates and expressions."""
    blank: dict[str, Any] = {**dict.fromkeys(RECORD_MEMBERS), "nodes": dict.fromkeys(loop["nodes"])}
    records = [dict(record) for record in [*loop["history"], blank]]
    *existing, last = (Record(record, nodes=record.pop("nodes")) for record in records)
    return Records(existing, last, max_iterations)


def continues(loop: str) -> Callable[[State], bool]:
    """A condition for LangGraph: whether a loop has another iteration."""
    return lambda state: state["_loops"][loop]["continues"]


def body_outputs(state: State, recorded: dict[str, str]) -> dict[str, Any]:
    """The output of each node of a loop's body in the iteration that just ended, without skipped nodes."""
    outputs: dict[str, Any] = {}
    for node, port in recorded.items():
        ports = state["_values"].get(node, {})
        if not ports:
            continue
        if port == "all":
            outputs[node] = next(iter(ports.values())) if len(ports) == 1 else ports
        elif port == "answer":
            choice = "approve" if "approved" in ports else "reject"
            value = ports["approved"] if "approved" in ports else ports["rejected"]
            outputs[node] = {"choice": choice, "value": value, "comment": ports["comment"]}
        elif port == "verdict":
            branch = next(name for name in ports if name != "reason")
            outputs[node] = {"selected_branch": branch, "value": ports[branch], "reason": ports["reason"]}
        elif port == "validity":
            value = ports["valid"] if "valid" in ports else ports["invalid"]
            outputs[node] = {"valid": "valid" in ports, "value": value, "errors": ports["errors"]}
        else:
            outputs[node] = ports.get(port)
    return outputs


def input_values(declared: Mapping[str, tuple[str, Any]], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The value of each input of a workflow by name, with defaults for missing ones."""
    unknown = sorted(set(inputs) - set(declared))
    if unknown:
        raise ValueError(f"There is no input {unknown[0]!r}.")
    values: dict[str, Any] = {}
    for name, (kind, default) in declared.items():
        value = inputs.get(name, default)
        if value is None and name not in inputs:
            raise ValueError(f"The input {name!r} has no value.")
        values[name] = as_type(value, kind)
    return values


def workflow_outputs(end: State, outputs: Mapping[str, str]) -> dict[str, Any]:
    """The outputs of a workflow by name, without those that no live value has reached."""
    ports = {name: end["_values"].get(node, {}) for name, node in outputs.items()}
    return {name: values["value"] for name, values in ports.items() if "value" in values}


def run_subflow(node: str, graph: Any, state: State, inputs: dict[str, Any], outputs: Mapping[str, str]) -> Update:
    """Run a subflow, which shares the named state."""
    start = {"_inputs": inputs, "_values": {}, "_loops": {}, "_named": state["_named"], "_agents": {}}
    end = graph.invoke(start, {"recursion_limit": 1_000_000})
    return {"_values": {node: workflow_outputs(end, outputs)}, "_named": end["_named"]}


def run_items(
    name: str,
    graph: Any,
    state: State,
    items: Any,
    results: Sequence[str],
    recorded: dict[str, str],
    *,
    max_concurrency: int,
    on_item_error: str = "fail",
    on_empty: str = "pass",
) -> Update:
    """Run a graph once for each item, several at a time. The records keep the order of the items.

    `results` are the ports that provide an item's result, `recorded` the recorded port of each node of the body.
    """
    if not isinstance(items, list):
        raise TypeError(f"The items of {name} are not a list: {to_text(items)[:60] or 'null'}.")
    all_items = cast("list[Any]", items)
    if not all_items and on_empty == "fail":
        raise ValueError(f"There are no items for {name}.")
    current = dict(state)

    def process(index: int) -> tuple[dict[str, Any], State | None]:
        item = all_items[index]
        start = {**current, "_values": {**state["_values"], name: {"item": item, "index": index}}}
        try:
            end = graph.invoke(start, {"recursion_limit": 1_000_000})
        except GraphBubbleUp:
            raise
        except Exception as error:
            if on_item_error == "fail":
                raise
            return item_record(index, item, None, "failed", str(error)), None
        result, nodes = port_value(end, results), {**dict.fromkeys(recorded), **body_outputs(end, recorded)}
        if result is NOTHING:
            return item_record(index, item, None, "no_result", "Nothing reached the aggregator.", nodes), end
        return item_record(index, item, result, nodes=nodes), end

    records: list[dict[str, Any]] = []
    if max_concurrency > 1:
        with ThreadPoolExecutor(max_concurrency) as pool:
            records = [record for record, _ in pool.map(process, range(len(all_items)))]
    else:
        for index in range(len(all_items)):
            record, end = process(index)
            records.append(record)
            if end is not None:
                current = {**current, "_named": end["_named"], "_loops": {**end["_loops"]}}
    loops = {loop: current["_loops"][loop] for loop in state["_loops"]}
    values = {name: iterator_outputs(records, len(records))}
    return {"_values": values, "_named": current["_named"], "_loops": loops}


def item_record(
    index: int,
    item: Any,
    result: Any,
    branch: str | None = None,
    reason: str | None = None,
    nodes: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The record of an item."""
    record: dict[str, Any] = {**dict.fromkeys(RECORD_MEMBERS), "index": index, "input": item, "result": result}
    return {**record, "branch": branch, "reason": reason, "warnings": [], "nodes": nodes or {}}


def iterator_outputs(records: list[dict[str, Any]], count: int) -> dict[str, Any]:
    """The outputs of an iterator by port."""
    failures = [
        {"index": record["index"], "item": record["input"], "error": record["reason"]}
        for record in records
        if record["branch"] == "failed"
    ]
    return {"iterations": records, "count": count, "failures": failures}


def pass_items(name: str, items: Any) -> Update:
    """An iterator that processes nothing: its items are its results."""
    all_items = cast("list[Any]", items) if isinstance(items, list) else []
    records = [item_record(index, item, item) for index, item in enumerate(all_items)]
    return {"_values": {name: iterator_outputs(records, 0)}}


def item_results(records: Sequence[Mapping[str, Any]], *, keeps_failed: bool) -> list[Any]:
    """The results of the items. Items without a result are left out, or keep their place with null."""
    return [record["result"] for record in records if keeps_failed or record["branch"] is None]
