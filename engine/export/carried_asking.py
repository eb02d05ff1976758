"""What an exported LangGraph module carries with it, copied as it stands here: asking models and reading replies.

So it needs nothing but the standard library, jsonschema-rs and its siblings, and what reads verdicts in
`engine.nodes.verdicts`, which it carries as well. What is exported holds only the functions that it uses.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jsonschema_rs import validator_for

from engine.nodes.verdicts import (
    Faults,
    UnreadableReplyError,
    read_branch,
    read_given,
    read_judgement,
    read_structured,
)


class EmptyReplyError(Exception):
    """A reply without text. LangGraph takes it for a failure that may pass."""


def with_text(text: str) -> str:
    """A reply that has to have a text."""
    if not text.strip():
        raise EmptyReplyError("The model's reply is empty.")
    return text


def read_reply(text: str, schema: Mapping[str, Any]) -> Any:
    """The JSON value in a model's reply."""
    return read_structured(text, schema, faults_by(schema))


def read_answer(answer: Any, schema: Mapping[str, Any]) -> Any:
    """A final answer that a model gave as JSON, or as a text of it."""
    return read_given(answer, schema, faults_by(schema))


def faults_by(schema: Mapping[str, Any]) -> Faults:
    """What checks a value against a JSON Schema: of each fault how deep it lies, and a sentence."""
    validator = validator_for(dict(schema))

    def faults(value: Any) -> list[tuple[int, str]]:
        found: list[tuple[int, str]] = []
        for error in validator.iter_errors(value):
            place = [str(step) for step in error.instance_path]
            found.append((len(place), f"{'/'.join(place) or 'the value'}: {error.message}."))
        return found

    return faults


def examine(value: Any, schema: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """A value, read as JSON where it is a text, and what in it does not fit a JSON Schema."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            return value, [f"the text is not JSON ({error})."]
    return value, [sentence for _, sentence in faults_by(schema)(value)]


def ask_twice(
    ask: Callable[..., str],
    read: Callable[[str], Any],
    messages: list[Any],
    *,
    allow_empty: bool = False,
    **settings: Any,
) -> tuple[Any, str]:
    """Ask for a reply that can be read; once more, with the error, where the first cannot. Also gives its text."""
    checked: Callable[[str], str] = str if allow_empty else with_text
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


def choose(
    ask: Callable[..., str], messages: list[Any], names: Sequence[str], fallback: str | None, **settings: Any
) -> tuple[str, str]:
    """Let a model choose a branch; a verdict that cannot be read, asked twice, counts as the fallback."""
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
    """Ask a judge about a result: its score, whether it is done, and why. What cannot be read counts as not done."""
    schema = settings["schema"]
    faults = faults_by(schema)
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
