"""Import time of the engine in a new process, and the heavy modules that it loads."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from functools import partial

from benchmarks.effort import Effort
from benchmarks.processes import ROOT, environment
from benchmarks.tables import Table, aim, milliseconds
from benchmarks.timing import Span, take_turns

_STATEMENTS = {
    "import engine": ("import engine", 0.2),
    "from engine import load, validate, run": ("from engine import load, validate, run", None),
    "import pydantic": ("import pydantic; pydantic.BaseModel", None),
}
_HEAVY = ("litellm", "networkx", "numpy", "lark", "httpx", "keyring", "jsonschema_rs", "Levenshtein")
_PROGRAM = """
import json, sys, time
wall, cpu = time.perf_counter(), time.process_time()
{statement}
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
print(json.dumps({{"wall_s": wall, "cpu_s": cpu, "heavy": [name for name in {heavy!r} if name in sys.modules]}}))
"""


def tables(effort: Effort) -> list[Table]:
    """Measure each statement in new processes."""
    heavy: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as bytecode:
        turns = {name: partial(_import, name, bytecode, heavy) for name in _STATEMENTS}
        take_turns(turns, 1)  # compiles, and does not count
        spans = take_turns(turns, effort.rounds)
    table = Table(
        "Import in a new process",
        ("Statement", "CPU, best, ms", "wall, best, ms", "wall, median, ms", "target", "heavy modules loaded"),
    )
    for name, there in spans.items():
        most = _STATEMENTS[name][1]
        table.add(
            name,
            milliseconds(there.cpu_s),
            milliseconds(there.wall_s),
            milliseconds(there.median_wall_s),
            "–" if most is None else aim(there.wall_s, most, " s"),
            ", ".join(heavy[name]) or "none",
        )
    table.notes.append(
        f"Bytecode is compiled. Heavy modules: {', '.join(_HEAVY)}. The last row is the base of documents."
    )
    return [table]


def _import(name: str, bytecode: str, heavy: dict[str, list[str]]) -> Span:
    # A separate bytecode folder makes figures independent of the machine's bytecode settings.
    variables = environment(PYTHONPYCACHEPREFIX=bytecode, PYTHONDONTWRITEBYTECODE="")
    program = _PROGRAM.format(statement=_STATEMENTS[name][0], heavy=_HEAVY)
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    heavy[name] = answer["heavy"]
    return Span(answer["wall_s"], answer["cpu_s"])
