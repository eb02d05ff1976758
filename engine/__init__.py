"""Loopwright's engine: workflows in which a language model improves its own work, without any window.

    from engine import load, run_blocking

    result = run_blocking(load("self-refine.loop.json"), {"topic": "the sea"})
    print(result.outputs, result.loops["loop"].exit_reason)

Names are loaded on first use, so that importing this costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.batch.batch import Batch, BatchOptions, BatchResult, run_batch
    from engine.batch.read_table import read_table
    from engine.batch.rows import inputs_of_table
    from engine.document.builder import Builder
    from engine.document.files import dumps, load, loads, save
    from engine.document.model import Workflow
    from engine.document.problems import DocumentError, Problem
    from engine.errors import EngineError
    from engine.export.langgraph_module import export_langgraph
    from engine.export.python_script import export_python
    from engine.export.python_source import Exported
    from engine.importing.reader import ImportResult, import_file, import_text
    from engine.nodes.context import Answer
    from engine.plan.compiler import compile_workflow as compile  # noqa: A004 - the public name
    from engine.plan.execution_plan import Plan
    from engine.plan.partial_run import Extent, Part
    from engine.plan.validation import validate
    from engine.run_state.result import LoopResult, RunError, RunResult
    from engine.runner.declared_inputs import InputError
    from engine.runner.options import RunOptions
    from engine.runner.run import Run, run, run_blocking, start
    from engine.store import open_store
    from engine.store.partial_runs import PartialRunPlan, last_run, plan_partial_run, start_partial_run
    from engine.store.resume import Changes, ForkPlan, fork, plan_fork, resume, resume_with
    from engine.store.store_protocol import Store, StoreError

__version__ = "0.1.0"

_HOMES = {
    "engine.batch.batch": ("Batch", "BatchOptions", "BatchResult", "run_batch"),
    "engine.batch.rows": ("inputs_of_table",),
    "engine.batch.read_table": ("read_table",),
    "engine.document.builder": ("Builder",),
    "engine.document.files": ("dumps", "load", "loads", "save"),
    "engine.document.model": ("Workflow",),
    "engine.document.problems": ("DocumentError", "Problem"),
    "engine.errors": ("EngineError",),
    "engine.export.python_source": ("Exported",),
    "engine.export.langgraph_module": ("export_langgraph",),
    "engine.export.python_script": ("export_python",),
    "engine.importing.reader": ("ImportResult", "import_file", "import_text"),
    "engine.nodes.context": ("Answer",),
    "engine.plan.compiler": ("compile",),
    "engine.plan.execution_plan": ("Plan",),
    "engine.plan.partial_run": ("Extent", "Part"),
    "engine.plan.validation": ("validate",),
    "engine.runner.options": ("RunOptions",),
    "engine.runner.declared_inputs": ("InputError",),
    "engine.run_state.result": ("LoopResult", "RunError", "RunResult"),
    "engine.runner.run": ("Run", "run", "run_blocking", "start"),
    "engine.store.store_protocol": ("Store", "StoreError"),
    "engine.store": ("open_store",),
    "engine.store.partial_runs": ("PartialRunPlan", "last_run", "plan_partial_run", "start_partial_run"),
    "engine.store.resume": ("Changes", "ForkPlan", "fork", "plan_fork", "resume", "resume_with"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Answer",
    "Batch",
    "BatchOptions",
    "BatchResult",
    "Builder",
    "Changes",
    "DocumentError",
    "EngineError",
    "Exported",
    "Extent",
    "ForkPlan",
    "ImportResult",
    "InputError",
    "LoopResult",
    "Part",
    "PartialRunPlan",
    "Plan",
    "Problem",
    "Run",
    "RunError",
    "RunOptions",
    "RunResult",
    "Store",
    "StoreError",
    "Workflow",
    "compile",
    "dumps",
    "export_langgraph",
    "export_python",
    "fork",
    "import_file",
    "import_text",
    "inputs_of_table",
    "last_run",
    "load",
    "loads",
    "open_store",
    "plan_fork",
    "plan_partial_run",
    "read_table",
    "resume",
    "resume_with",
    "run",
    "run_batch",
    "run_blocking",
    "save",
    "start",
    "start_partial_run",
    "validate",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'engine' has no attribute {name!r}")
    home = importlib.import_module(_HOME_OF[name])
    value = getattr(home, "compile_workflow" if name == "compile" else name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
