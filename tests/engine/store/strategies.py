"""Hypothesis strategies of events with any values."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, get_args

from hypothesis import strategies as st

from engine import events as events_module
from engine.events import AnyEvent
from engine.models.protocol import Finish, Message, ModelCall, Reply, Request, ToolCall, ToolDefinition, Usage
from engine.store.codec import KIND_CODES

# With lone halves of surrogate pairs, and with two of them side by side, which is not the character that they make.
_PARTS = st.sampled_from(["", "$", "é", "\ud83d", "\ud83d\ude00", "😀", "\0", "\u2028", "שלום", "x" * 70, "y" * 600])
TEXTS = st.lists(st.one_of(_PARTS, st.text(max_size=8)), max_size=4).map("".join)
NUMBERS = st.one_of(
    st.integers(), st.integers(min_value=10**40, max_value=10**60), st.floats(allow_nan=False, allow_infinity=False)
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(TEXTS, inner, max_size=4),
        # What the store writes instead of a value must never be taken for one.
        st.fixed_dictionaries({"$": st.one_of(st.integers(-3, 3), inner, st.lists(st.lists(inner, max_size=2)))}),
    ),
    max_leaves=12,
)
_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_MAYBE_FLOATS = st.none() | _FLOATS
_COUNTS = st.integers(0, 10**9)
USAGES = st.builds(Usage, _COUNTS, _COUNTS, st.booleans())
_TOOL_CALLS = st.lists(
    st.builds(ToolCall, TEXTS, TEXTS, TEXTS | st.dictionaries(TEXTS, VALUES, max_size=2)), max_size=2
).map(tuple)
_MESSAGES = st.builds(
    Message, st.sampled_from(["system", "user", "assistant", "tool"]), TEXTS, st.just(()) | _TOOL_CALLS, TEXTS
)
_TOOLS = st.lists(st.builds(ToolDefinition, TEXTS, TEXTS, st.dictionaries(TEXTS, VALUES, max_size=2)), max_size=2)
_REQUESTS = st.builds(
    Request,
    st.lists(_MESSAGES, max_size=3).map(tuple),
    _MAYBE_FLOATS,
    st.none() | _COUNTS,
    st.none() | st.dictionaries(TEXTS, VALUES, max_size=3),
    st.none() | _COUNTS,
    TEXTS,
    st.just(()) | _TOOLS.map(tuple),
    _MAYBE_FLOATS,
    st.just(()) | st.lists(TEXTS, max_size=2).map(tuple),
    st.none() | TEXTS,
    st.none() | st.dictionaries(TEXTS, VALUES, min_size=1, max_size=2),
)
_NO_TEXT = st.just("") | TEXTS
_SOME_TEXTS = st.lists(TEXTS, max_size=2).map(tuple)
REPLIES = st.builds(
    Reply,
    TEXTS,
    st.sampled_from(Finish),
    USAGES,
    TEXTS,
    _MAYBE_FLOATS,
    st.just(()) | _TOOL_CALLS,
    _NO_TEXT,
    _NO_TEXT,
    st.just(()) | _SOME_TEXTS,
)
CALLS = st.builds(ModelCall, TEXTS, _REQUESTS, REPLIES, _MAYBE_FLOATS, _FLOATS)
_PORTS = st.dictionaries(TEXTS, VALUES, max_size=3)
_PATHS = st.sampled_from(
    ["", "draft", "loop", "loop[0].draft", "loop[12].draft", "outer[1].inner", "outer[1].inner[0].x"]
)

_BY_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "str": TEXTS,
    "str | None": st.none() | TEXTS,
    "int": _COUNTS,
    "int | None": st.none() | _COUNTS,
    "float": _FLOATS,
    "float | None": _MAYBE_FLOATS,
    "bool": st.booleans(),
    "Value": VALUES,
    "dict[str, Value]": _PORTS,
    "dict[str, Value] | None": st.none() | _PORTS,
    "Outputs": _PORTS,
    "ModelCall": CALLS,
    "Request | None": st.none() | _REQUESTS,
    "tuple[ModelCall, ...]": st.lists(CALLS, max_size=2).map(tuple),
    "tuple[str, ...]": st.lists(TEXTS, max_size=3).map(tuple),
    "Usage": USAGES,
    "Usage | None": st.none() | USAGES,
}


def events(run_id: str = "r", seq: int = 0) -> st.SearchStrategy[AnyEvent]:
    """Any event of that number."""
    return st.one_of(*(_of(kind, run_id, seq) for kind in KIND_CODES))


def logs(run_id: str = "r") -> st.SearchStrategy[list[AnyEvent]]:
    """A log of any events, numbered with gaps."""

    def numbered(log: list[tuple[AnyEvent, int]]) -> list[AnyEvent]:
        seq = -1
        numbered: list[AnyEvent] = []
        for event, gap in log:
            seq += 1 + gap
            numbered.append(dataclasses.replace(event, seq=seq))
        return numbered

    return st.lists(st.tuples(events(run_id), st.integers(0, 2)), max_size=12).map(numbered)


def _of(kind: type[AnyEvent], run_id: str, seq: int) -> st.SearchStrategy[AnyEvent]:
    own = [field for field in dataclasses.fields(kind) if field.name not in {"run_id", "seq", "time", "path"}]
    fields = {field.name: _of_type(str(field.type)) for field in own}
    times = st.floats(0, 4e9)
    return st.builds(kind, run_id=st.just(run_id), seq=st.just(seq), time=times, path=_PATHS, **fields)


def _of_type(annotation: str) -> st.SearchStrategy[Any]:
    if annotation in _BY_TYPE:
        return _BY_TYPE[annotation]
    literal = vars(events_module).get(annotation) or Literal["approval", "question"]
    return st.sampled_from(get_args(literal))
