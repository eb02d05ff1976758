"""What an exported LangGraph module carries with it, copied as it stands here: asking models and reading replies.

So it needs nothing but the standard library and its siblings. What is exported holds only the functions that it uses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

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


def schema_errors(value: Any, schema: Mapping[str, Any], place: str = "value") -> list[str]:
    """What does not fit a JSON Schema, as far as type, enum, required, properties and items say."""
    kinds: dict[str, Any] = {
        "object": dict, "array": list, "string": str, "boolean": bool, "null": type(None),
        "number": (int, float), "integer": int,
    }  # fmt: skip
    wanted = schema.get("type", [])
    names = [wanted] if isinstance(wanted, str) else wanted
    is_number_only = isinstance(value, bool) and "boolean" not in names
    if names and (is_number_only or not any(isinstance(value, kinds[name]) for name in names)):
        return [f"{place} is no {' or '.join(names)}."]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{place} is none of {schema['enum']}."]
    errors: list[str] = []
    if isinstance(value, dict):
        errors += [f"{place} has no {name!r}." for name in schema.get("required", ()) if name not in value]
        for name, inner in schema.get("properties", {}).items():
            errors += schema_errors(value[name], inner, f"{place}.{name}") if name in value else []
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for number, item in enumerate(cast("list[Any]", value)):
            errors += schema_errors(item, schema["items"], f"{place}[{number}]")
    return errors


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
