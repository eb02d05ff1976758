"""Secrets in documents: problems before a run, and copies of documents without secrets.

Workflow files, exports and histories are shared. Unknown keys, tool arguments, extra parameters, settings of plugins
and server addresses are searched; prompts and other texts are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, cast
from urllib.parse import urlsplit

from engine.document.model import Node, Workflow
from engine.document.problems import Problem
from engine.nodes.node_registry import Registry, builtin_registry
from engine.nodes.spec import NodeConfig
from engine.text_sanitizing import shown
from engine.tools.mcp_settings import secret_in_address
from engine.values import Value

SECRET_CODE: Final = "secret-in-document"  # noqa: S105 - the name of a problem
REMOVED: Final = "(removed)"
"""Replaces a secret in a copy."""

_FREE_FIELDS: Final = frozenset({"arguments", "extra_parameters", "stop_when", "judge"})
_ADDRESS: Final = "api_base"
_SUBFLOW: Final = "workflow"

_SEARCHED: Final = _FREE_FIELDS | {_ADDRESS, _SUBFLOW}

_SECRET_NAME: Final = re.compile(
    r"(api|access|secret|private|auth|subscription|account)_?key|secret|passw(or)?d|credential|authorization|bearer"
    r"|(^|_)(auth|access|id|session|refresh|security|api|bearer)_?token$|^(token|key|auth)$"
)
_SECRET_VALUE: Final = re.compile(
    r"^\s*(bearer|basic)\s|\b((sk|gsk|xai|hf|ghp|pplx|csk|r8|nvapi)[-_]|AIza|AKIA)(?=[\w-]*\d)[\w-]{16,}", re.IGNORECASE
)

_MIN_KEY_LENGTH: Final = 16
"""Length from which a value named just `key` counts as a secret."""

Path = tuple[Any, ...]
"""Keys and indices from the top of a document."""


def secret_problems(workflow: Workflow, registry: Registry) -> Iterator[Problem]:
    """Report each secret in a document; subflows report their own."""
    if not workflow.model_extra and not workflow.settings and _are_plain(workflow.nodes, registry):
        return
    ids: list[str] = [node.id for node in workflow.nodes]
    for path, name in _found(workflow.to_json(), registry):
        place = list(path)
        node: str | None = None
        if place[0] == "nodes":
            node, place = ids[int(place[1])], place[2:]
            place = place[1:] if place[0] == "config" else place
            if place[0] == _SUBFLOW and len(place) > 1:
                continue
        yield Problem(
            SECRET_CODE,
            f'"{shown(name, 60)}" looks like a secret, and a workflow file must not contain one.',
            "Remove it here. The program keeps keys in the system keyring.",
            node=node,
            field=".".join(shown(step, 40) for step in place),
        )


def _are_plain(nodes: Iterable[Node], registry: Registry) -> bool:
    """Whether no node has a field that is searched; most have none."""
    for node in nodes:
        spec = registry.find(node.type)
        if spec is None or node.model_extra or not _plain_fields(spec.config).issuperset(node.config):
            return False
    return True


@lru_cache
def _plain_fields(config: type[NodeConfig]) -> frozenset[str]:
    """The settings of a node type that are not searched."""
    return frozenset(name for name in config.model_fields if name not in _SEARCHED and not _is_secret_name(name))


def without_secrets(workflow: Workflow) -> Workflow:
    """Return a document with its secrets replaced; the same object if it has none."""
    document = workflow.to_json()
    found = list(_found(document, builtin_registry()))
    return Workflow.model_validate(_masked(document, [path for path, _ in found])) if found else workflow


def text_without_secrets(document: Value) -> Value:
    """Return a JSON document, valid or not, with its secrets replaced."""
    if not isinstance(document, dict):
        return document
    return _masked(document, [path for path, _ in _found(document, builtin_registry())])


def _found(document: Mapping[str, Any], registry: Registry) -> Iterator[tuple[Path, str]]:
    """Yield the paths and names of the secrets in a document."""
    known = {"format", "version", "name", "description", "settings", "nodes", "edges", "layout"}
    for key, value in document.items():
        if key not in known:
            yield from _within((key,), key, value)
    settings = document.get("settings")
    yield from _within(("settings",), "", settings)
    nodes = document.get("nodes")
    for index, node in enumerate(cast("list[Any]", nodes) if isinstance(nodes, list) else []):
        if isinstance(node, dict):
            yield from _in_node(("nodes", index), cast("dict[str, Any]", node), registry)


def _in_node(path: Path, node: Mapping[str, Any], registry: Registry) -> Iterator[tuple[Path, str]]:
    for key, value in node.items():
        if key not in {"id", "type", "title", "config", "enabled"}:
            yield from _within((*path, key), key, value)
    config: Any = node.get("config")
    spec = registry.find(str(node.get("type")))
    fields: Any = spec.config.model_fields if spec is not None else {}
    for key, value in (cast("dict[str, Any]", config) if isinstance(config, dict) else {}).items():
        place = (*path, "config", key)
        if key == _SUBFLOW and isinstance(value, dict) and "nodes" in value:
            inner = cast("dict[str, Any]", value)
            yield from (((*place, *rest), name) for rest, name in _found(inner, registry))
        elif key not in fields or key in _FREE_FIELDS or key == _ADDRESS or _is_secret_name(key):
            yield from _within(place, key, value)


def _within(path: Path, name: str, value: Any) -> Iterator[tuple[Path, str]]:
    """Yield the secrets in a value at any depth."""
    pending: list[tuple[Path, str, Any]] = [(path, name, value)]
    while pending:
        place, called, one = pending.pop()
        if isinstance(one, dict):
            pending += [((*place, key), key, inner) for key, inner in cast("dict[str, Any]", one).items()]
        elif isinstance(one, list):
            pending += [((*place, index), called, inner) for index, inner in enumerate(cast("list[Any]", one))]
        elif called == _ADDRESS:
            if isinstance(one, str) and (secret_in_address(one) or _has_login(one)):
                yield place, called
        elif _is_secret(called, one):
            yield place, called


def _is_secret(name: str, value: Any) -> bool:
    if isinstance(value, bool) or value is None or value in {"", REMOVED}:
        return False
    if isinstance(value, str) and ("${" in value or "{{" in value):  # a reference to a variable or port
        return False
    if name.lower() == "key":  # many tools use it for other things
        return isinstance(value, str) and len(value) >= _MIN_KEY_LENGTH and not any(c.isspace() for c in value)
    return _is_secret_name(name) or (isinstance(value, str) and _SECRET_VALUE.search(value) is not None)


@lru_cache(maxsize=1024)
def _is_secret_name(name: str) -> bool:
    """Whether a name says that its value is a secret: `api_key`, `apiKey`, `X-Auth-Token`, `password`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return _SECRET_NAME.search(re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")) is not None


def _has_login(address: str) -> bool:
    try:
        return "@" in urlsplit(address).netloc
    except ValueError:
        return False


def _masked(document: Mapping[str, Any], paths: list[Path]) -> dict[str, Any]:
    """Copy a document with the values at these paths replaced."""

    def copy(value: Any, here: list[Path]) -> Any:
        if () in here:
            return _without_login(value) if isinstance(value, str) and "://" in value else REMOVED
        by_step: dict[str | int, list[Path]] = {}
        for path in here:
            by_step.setdefault(path[0], []).append(path[1:])
        if not by_step:
            return value
        if isinstance(value, dict):
            entries = cast("dict[str, Any]", value)
            return {key: copy(one, by_step.get(key, [])) for key, one in entries.items()}
        return [copy(one, by_step.get(index, [])) for index, one in enumerate(cast("list[Any]", value))]

    return copy(dict(document), paths)


def _without_login(address: str) -> str:
    try:
        parts = urlsplit(address)
    except ValueError:
        return REMOVED
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
