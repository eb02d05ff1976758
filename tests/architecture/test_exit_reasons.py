"""The exit reasons in docs/workflow-file.md are those of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from engine.exits.loop_conditions import condition_specs, exit_reason_labels, has_converged
from engine.nodes.agent_tools import EXIT_LOOP
from engine.runner.iterator_run import ALL_ITEMS
from tests.architecture.markdown import read
from tests.architecture.project import sources

_ENDS = {"self._emit_completed", "self._pass_through", "self._return", "self._cut_off"}


def _on_the_page() -> list[tuple[str, bool]]:
    """Each reason, and whether a loop with it has converged."""
    section = read("docs/workflow-file.md").partition("\n## Exit reasons\n")[2].partition("\n## ")[0]
    return [
        (name, said == "yes") for name, said in re.findall(r"^\| `(\w+)` \| .+ \| (yes|no) \|$", section, re.MULTILINE)
    ]


def _texts(nodes: Iterator[ast.expr | None]) -> set[str]:
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def _in_the_code() -> set[str]:
    """The reasons that exit conditions declare, and those of loops and iterators."""
    found = {EXIT_LOOP, ALL_ITEMS}
    found |= {spec.reason for spec in condition_specs().values() if not spec.inner}
    for path, module in sources("engine").items():
        if path in {"engine/runner/loop_run.py", "engine/runner/iterator_run.py"}:
            nodes = list(ast.walk(module))
            calls = (node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) in _ENDS)
            found |= _texts(call.args[0] for call in calls)
            found |= _texts(node.value for node in nodes if isinstance(node, ast.Return))
    return found


def test_the_page_has_every_reason_once():
    assert sorted(name for name, _ in _on_the_page()) == sorted(exit_reason_labels())


def test_the_labels_of_reasons_match_the_code():
    assert set(exit_reason_labels()) == _in_the_code()


@pytest.mark.parametrize(
    "reason", ["max_iterations", "until", "plateau+until", "budget", "timeout+until", "budget+timeout"]
)
def test_the_page_says_which_reasons_mean_converged(reason: str):
    converged = {name for name, is_yes in _on_the_page() if is_yes}
    assert has_converged(reason) is not converged.isdisjoint(reason.split("+"))
