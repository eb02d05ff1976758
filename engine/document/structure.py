"""From a JSON object in the present form to a `Workflow`, or to a list of all that is wrong with its structure.

Only what the model cannot hold is refused here (a node that is no object, an edge without an end). Whether the workflow
makes sense is not known here.
"""

from __future__ import annotations

from pydantic import ValidationError

from engine.document.json_rules import JsonPath
from engine.document.migrate import is_newer
from engine.document.model import Workflow
from engine.document.places import MAX_PROBLEMS, broken, kind_of, problem_at
from engine.document.problems import DocumentError, Problem
from engine.values import Value

MAX_PARTS = 50_000
"""The most nodes and the most edges of one document; a thousand already fill a wall."""

_EXPECTED = {
    "string_type": "a text",
    "bool_type": "true or false",
    "dict_type": "an object",
    "model_type": "an object",
    "tuple_type": "a list",
}


def to_workflow(document: dict[str, Value], source: str) -> Workflow:
    """Make the document's model.

    Args:
        document: An object that keeps the rules of `json_rules`, in the present form or a newer one.
        source: What to call it in messages.

    Raises:
        DocumentError: The model cannot hold it; its `problems` name every place.
    """
    for key in ("nodes", "edges"):
        parts = document.get(key)
        if isinstance(parts, list) and len(parts) > MAX_PARTS:
            message = f"{source}: The document has {len(parts)} {key}; the most that is opened is {MAX_PARTS}."
            raise DocumentError(message, "Divide the workflow into several files.")
    try:
        # Only the names of the file count: a key `from_` is one that we do not know, and is kept.
        return Workflow.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False)[:MAX_PROBLEMS]
        problems = [_problem(document, detail["type"], detail["loc"], detail["input"]) for detail in details]
        newer = is_newer(Workflow.model_construct(version=document["version"]))
        remedy = "A newer version of the program wrote it: update yours." if newer else ""
        raise broken(source, problems, remedy) from None


def _problem(document: dict[str, Value], kind: str, path: JsonPath, value: object) -> Problem:
    what = f'"{path[-1]}"' if isinstance(path[-1], str) else f"Entry {path[-1]} of {path[-2]}"
    if kind == "missing":
        return problem_at(document, path, "missing-key", f"{what} is missing.", f"Add {what}.")
    expected = _EXPECTED[kind]
    message = f"{what} is {kind_of(value)}, not {expected}."
    return problem_at(document, path, "wrong-kind", message, f"Make it {expected}.")
