"""What an exported LangGraph module carries with it, copied as it stands here: graphs within a graph.

So it needs nothing but the standard library, LangGraph and its siblings. What is exported holds only the functions that
it uses.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from langgraph.errors import GraphBubbleUp

from engine.export.carried_loops import gave_by
from engine.export.carried_values import NOTHING, State, Update, collect, fitted, to_text


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
    """What is kept of an item."""
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
