"""The engine as a library: validate, compile and run documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.document.model import Workflow
from engine.document.problems import Problem
from engine.events import AnyEvent
from engine.nodes.iteration_cap import MAX_ITERATIONS_CAP
from engine.nodes.registry import Registry
from engine.plan.check import check
from engine.plan.compiler import compile_workflow
from engine.plan.execution_plan import Plan
from engine.run_state.result import RunError, RunResult
from engine.runner.background import run_and_wait
from engine.runner.options import RunOptions
from engine.runner.run import start
from engine.values import Value


def validate(
    workflow: Workflow, *, registry: Registry | None = None, max_iterations_cap: int = MAX_ITERATIONS_CAP
) -> list[Problem]:
    """Everything that is wrong with a document, each with its place. Nothing is executed.

    Args:
        workflow: The document.
        registry: The node types; None for the built-in ones.
        max_iterations_cap: The most iterations that a loop may ask for.
    """
    return check(workflow, registry, max_iterations_cap=max_iterations_cap)


def compile(  # noqa: A001 - the public name is `engine.compile`
    workflow: Workflow, *, registry: Registry | None = None, max_iterations_cap: int = MAX_ITERATIONS_CAP
) -> Plan:
    """Compile a document once, for any number of runs.

    `start`, `run`, `run_blocking` and `run_batch` take the plan in place of the document. It is immutable, and its runs
    may overlap. It keeps its registry; a run with another `max_iterations_cap` uses its own cap.

    Args:
        workflow: The document.
        registry: The node types; None for the built-in ones.
        max_iterations_cap: The most iterations that a loop may have.

    Raises:
        DocumentError: The document has errors; its `problems` list all of them, warnings included.
    """
    return compile_workflow(workflow, registry, max_iterations_cap=max_iterations_cap)


async def run(
    workflow: Workflow | Plan,
    inputs: Mapping[str, Value] | None = None,
    options: RunOptions | None = None,
    *,
    on_event: Callable[[AnyEvent], None] | None = None,
) -> RunResult:
    """Run a workflow to its end.

    Args:
        workflow: The document, or its plan.
        inputs: Values of its inputs, by name.
        options: How it is to be done.
        on_event: Called with every event, in a thread of its own. One that is slow does not slow the run.

    Raises:
        RunError: The run failed; its `result` holds what had come out.
        DocumentError: The document has errors; nothing was run.
        InputError: The inputs do not fit; nothing was run.
        ModelError: A model that it names does not exist; nothing was run.
    """
    started = start(workflow, inputs, options, on_event=on_event)
    try:
        result = await started.result()
    except BaseException:
        started.cancel()
        await started.result()
        raise
    await started.delivered()
    if result.status != "completed":
        raise RunError(result)
    return result


def run_blocking(
    workflow: Workflow | Plan,
    inputs: Mapping[str, Value] | None = None,
    options: RunOptions | None = None,
    *,
    on_event: Callable[[AnyEvent], None] | None = None,
) -> RunResult:
    """Run a workflow to its end and wait for it: `run` for scripts and for notebooks whose own loop is busy.

    Ctrl+C stops the run, then raises KeyboardInterrupt. Raises what `run` raises.
    """
    return run_and_wait(run(workflow, inputs, options, on_event=on_event))
