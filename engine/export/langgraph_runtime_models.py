"""Runtime of exported LangGraph modules: model calls, their cost, and structured replies.

The export copies the functions that a workflow uses into its module, which then needs nothing of Loopwright: only
litellm, jsonschema-rs and the other runtime functions.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from jsonschema_rs import validator_for

from engine.nodes.structured_replies import (
    Faults,
    UnreadableReplyError,
    read_branch,
    read_given,
    read_judgement,
    read_structured,
)


class EmptyReplyError(Exception):
    """A reply without text. LangGraph considers it a temporary failure."""


def require_text(text: str) -> str:
    """Return a reply unchanged; an empty one is an error."""
    if not text.strip():
        raise EmptyReplyError("The model's reply is empty.")
    return text


def read_reply(text: str, schema: Mapping[str, Any]) -> Any:
    """Parse the JSON value in a model's reply."""
    return read_structured(text, schema, schema_errors(schema))


def read_answer(answer: Any, schema: Mapping[str, Any]) -> Any:
    """Parse a final answer that a model gave as JSON, or as a text of it."""
    return read_given(answer, schema, schema_errors(schema))


def schema_errors(schema: Mapping[str, Any]) -> Faults:
    """A function that checks a value against a JSON Schema. It returns the depth and a sentence for each error."""
    validator = validator_for(dict(schema))

    def errors(value: Any) -> list[tuple[int, str]]:
        found: list[tuple[int, str]] = []
        for error in validator.iter_errors(value):
            path = [str(step) for step in error.instance_path]
            found.append((len(path), f"{'/'.join(path) or 'the value'}: {error.message}."))
        return found

    return errors


def check_schema(value: Any, schema: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Parse a value if it is a text, and check it against a JSON Schema. Returns the value and the errors."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            return value, [f"the text is not JSON ({error})."]
    return value, [sentence for _, sentence in schema_errors(schema)(value)]


def ask_twice(
    ask: Callable[..., str],
    read: Callable[[str], Any],
    messages: list[Any],
    *,
    allow_empty: bool = False,
    **settings: Any,
) -> tuple[Any, str]:
    """Request a reply that `read` can parse; once more, with the error, if the first cannot be parsed.

    Returns the parsed reply and its text.
    """
    checked: Callable[[str], str] = str if allow_empty else require_text
    text = checked(ask(messages, **settings))
    try:
        return read(text), text
    except UnreadableReplyError as error:
        again = f"That could not be read: {error} Answer again, with the JSON object alone."
    more = [{"role": "assistant", "content": text}, {"role": "user", "content": again}]
    text = checked(ask([*messages, *more], **settings))
    try:
        return read(text), text
    except UnreadableReplyError as error:
        error.asked, error.said = messages[-1]["content"], text
        raise


def choose_branch(
    ask: Callable[..., str], messages: list[Any], names: Sequence[str], fallback: str | None, **settings: Any
) -> tuple[str, str]:
    """Let a model choose a branch. If its verdict is unreadable twice, it counts as the fallback."""
    try:
        return ask_twice(ask, lambda text: read_branch(text, names), messages, **settings)[0]
    except UnreadableReplyError as error:
        if fallback is None:
            raise
        warnings.warn(f'The verdict could not be read ({error}); it counts as "{fallback}".', stacklevel=2)
        return fallback, f"the verdict could not be read, which counts as {fallback}"


def judge(
    ask: Callable[..., str],
    messages: list[Any],
    weights: Mapping[str, float],
    threshold: float | None,
    runs: int,
    **settings: Any,
) -> dict[str, Any]:
    """Let a model judge a result: score, done, and reason. An unreadable verdict counts as not done."""
    schema = settings["schema"]
    faults = schema_errors(schema)
    verdicts: list[dict[str, Any]] = []
    for _ in range(runs):
        try:
            found, _ = ask_twice(
                ask, lambda text: read_judgement(text, schema, faults, weights, threshold), messages, **settings
            )
        except UnreadableReplyError as error:
            warnings.warn(f"The verdict could not be read ({error}); it counts as not done.", stacklevel=2)
            continue
        verdicts.append(found)
    if not verdicts:
        return {"done": False, "score": None, "reason": ""}
    score = sum(verdict["score"] for verdict in verdicts) / len(verdicts)
    most = 2 * sum(verdict["done"] for verdict in verdicts) > runs
    done = most if threshold is None else score >= threshold
    reason = next((verdict["reason"] for verdict in verdicts if verdict["done"] == done), verdicts[0]["reason"])
    return {"done": done, "score": score, "reason": reason}


def complete(messages: list[Any], model: str, fallbacks: Sequence[str] = (), **settings: Any) -> Any:
    """Call a model through litellm; if it fails, the fallbacks in order."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # otherwise litellm downloads its price list
    from litellm import completion

    try:
        return completion(model=model, messages=messages, **settings)
    except Exception:
        if not fallbacks:
            raise
    settings.pop("base_url", None)  # the address is the first model's
    return complete(messages, fallbacks[0], fallbacks[1:], **settings)


def to_litellm(message: dict[str, Any]) -> dict[str, Any]:
    """Convert the tool calls of a message to the format of litellm."""
    calls = [
        {"id": one["id"], "type": "function", "function": {"name": one["name"], "arguments": json.dumps(one["args"])}}
        for one in message.get("tool_calls", ())
    ]
    return {**message, "tool_calls": calls} if calls else message


def tool_calls_of(tool_calls: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """The tool calls of a reply, without those whose arguments are not a JSON object."""
    for call in tool_calls:
        try:
            arguments = json.loads(call.function.arguments or "{}")
        except ValueError:
            continue
        if isinstance(arguments, dict):
            yield {"id": call.id, "name": call.function.name, "args": arguments}


PRICES: dict[str, tuple[float, float]] = {}
SPENT: list[float] = []


def add_cost(model: str, usage: Any) -> None:
    """Add the cost of a model call in US dollars, by PRICES (input and output token) or litellm's price list."""
    tokens_in, tokens_out = getattr(usage, "prompt_tokens", 0), getattr(usage, "completion_tokens", 0)
    if model in PRICES:
        price_in, price_out = PRICES[model]
        SPENT.append(tokens_in * price_in + tokens_out * price_out)
    else:
        from litellm import cost_per_token

        SPENT.append(sum(cost_per_token(model=model, prompt_tokens=tokens_in, completion_tokens=tokens_out)))


def spent_since(before: float) -> float:
    """The cost since then, in US dollars."""
    return sum(SPENT) - before


def check_budget(budget_usd: float) -> None:
    """Refuse a model call if the budget of the run is used up."""
    if sum(SPENT) >= budget_usd:
        raise RuntimeError(f"The budget of {budget_usd:g} US dollars is used up.")
