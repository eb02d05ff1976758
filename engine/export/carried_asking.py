"""What an exported LangGraph module carries with it, copied as it stands here: asking models and reading replies.

So it needs nothing but the standard library, jsonschema-rs and its siblings. What is exported holds only the functions
that it uses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jsonschema_rs import validator_for

from engine.export.carried_values import to_text


def find_json(text: str, schema: Mapping[str, Any]) -> Any:
    """The JSON value in a model's reply: all of it, a fenced block, or from the first brace to the last."""
    failure = "there is no JSON in it."
    fenced = re.findall(r"```[a-zA-Z]*\n(.*?)```", text, re.DOTALL)
    braces = [text[text.find(a) : text.rfind(b) + 1] for a, b in ("{}", "[]") if 0 <= text.find(a) < text.rfind(b)]
    for candidate in [text, *fenced, *braces]:
        try:
            value = json.loads(candidate)
        except ValueError:
            continue
        errors = schema_errors(value, schema)
        if not errors:
            return value
        failure = errors[0]
    raise ValueError(failure)


def schema_errors(value: Any, schema: Mapping[str, Any]) -> list[str]:
    """What in a value does not follow a JSON Schema, a sentence each."""
    sentences: list[str] = []
    for error in validator_for(dict(schema)).iter_errors(value):
        place = "/".join(str(step) for step in error.instance_path)
        sentences.append(f"{place or 'the value'}: {error.message}.")
    return sentences


def examine(value: Any, schema: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """A value, read as JSON where it is a text, and what in it does not fit a JSON Schema."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            return value, [f"the text is not JSON ({error})."]
    return value, schema_errors(value, schema)


def ask_twice(ask: Callable[..., str], read: Callable[[str], Any], messages: list[Any], **settings: Any) -> Any:
    """Ask for a reply that can be read; once more, with the error, where the first cannot."""
    text = ask(messages, **settings)
    try:
        return read(text)
    except ValueError as error:
        again = f"That could not be read: {error} Answer again, with the JSON object alone."
    more = [{"role": "assistant", "content": text}, {"role": "user", "content": again}]
    return read(ask([*messages, *more], **settings))


def read_branch(text: str, names: Sequence[str]) -> tuple[str, str]:
    """The branch that a model chose, and its reason."""
    bare = text.strip(" \t\r\n!\"#$%&'()*+,-./:;<=>?@[\\]^`{|}~").casefold()
    if bare in names:
        return bare, ""
    schema = {"type": "object", "properties": {"branch": {"type": "string"}}, "required": ["branch"]}
    verdict = find_json(text, schema)
    branch = verdict["branch"].strip(" \t\r\n!\"#$%&'()*+,-./:;<=>?@[\\]^`{|}~").casefold()
    if branch not in names:
        raise ValueError(f"{json.dumps(verdict['branch'])} is none of {', '.join(names)}.")
    return branch, to_text(verdict.get("reason"))


def choose(
    ask: Callable[..., str], messages: list[Any], names: Sequence[str], fallback: str | None, **settings: Any
) -> tuple[str, str]:
    """Let a model choose a branch; a verdict that cannot be read, asked twice, counts as the fallback."""
    try:
        return ask_twice(ask, lambda text: read_branch(text, names), messages, **settings)
    except ValueError:
        if fallback is None:
            raise
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
    verdicts: list[dict[str, Any]] = []
    for _ in range(runs):
        try:
            found = ask_twice(ask, lambda text: find_json(text, settings["schema"]), messages, **settings)
        except ValueError:
            continue
        total = sum(weights.values())
        scored = [found["scores"][name] * weight for name, weight in weights.items()]
        score = sum(scored) / total if weights and total else 0.0 if weights else float(found["score"])
        done = found["done"] if threshold is None else score >= threshold
        verdicts.append({"done": done, "score": score, "reason": found["reason"]})
    if not verdicts:
        return {"done": False, "score": None, "reason": ""}
    score = sum(verdict["score"] for verdict in verdicts) / len(verdicts)
    most = 2 * sum(verdict["done"] for verdict in verdicts) > runs
    done = most if threshold is None else score >= threshold
    reason = next((verdict["reason"] for verdict in verdicts if verdict["done"] == done), verdicts[0]["reason"])
    return {"done": done, "score": score, "reason": reason}
