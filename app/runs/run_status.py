"""Status text, progress, budget and models of a run. No widgets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from app.runs.run_view_model import node_of
from engine.formatting import format_duration, format_money, format_spending, format_tokens
from engine.models.protocol import EMBEDDED_MODEL, GGUF_PREFIX, RECORDED_PREFIX, SCRIPTED_PREFIX
from engine.run_state.state import NodeState
from engine.settings import budget_limit

if TYPE_CHECKING:
    from app.runs.run_view_model import RunViewModel
    from engine.document.model import Workflow
    from engine.plan.structure import Structure


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget of a run and what is spent of it, in US dollars or tokens (`unit`)."""

    spent: float
    limit: float
    unit: str

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return min(self.spent / self.limit, 1.0) if self.limit > 0 else 1.0

    @property
    def text(self) -> str:
        """Text such as `$0.017 of $0.05`."""
        return format_spending(self.spent, self.limit, self.unit)


def run_budget(
    workflow: Workflow, default_usd: float | None, default_tokens: float | None, view_model: RunViewModel | None
) -> Budget | None:
    """Return the budget in dollars, else the one in tokens; None if there is neither."""
    limit = budget_limit(workflow, "budget_usd", default_usd)
    if limit is not None:
        return Budget((view_model.cost_usd or 0.0) if view_model is not None else 0.0, limit, "usd")
    limit = budget_limit(workflow, "budget_tokens", default_tokens)
    if limit is not None:
        return Budget(view_model.usage.total_tokens if view_model is not None else 0, limit, "tokens")
    return None


def progress(view_model: RunViewModel, workflow: Workflow) -> tuple[int, int]:
    """Return progress and total of a run: iterations of its loops, or nodes if it has no loops."""
    outer = [loop for path, loop in view_model.loops.items() if "." not in path]
    if outer:
        # A loop that stopped early has nothing left to do.
        done = sum(len(loop.iterations) for loop in outer)
        total = sum(len(loop.iterations) if loop.exit_reason else max(loop.total, 1) for loop in outer)
        return done, max(total, 1)
    if any(node.type == "loop" for node in workflow.nodes):
        return 0, 1
    done = len(view_model.nodes) - len(view_model.state.open)
    return done, max(sum(view_model.takes_part(node.id) for node in workflow.nodes), done, 1)


def state_line(view_model: RunViewModel, workflow: Workflow, now: float) -> str:
    """Return a line on a run: what is running or how it ended, tokens, cost and time.

    Args:
        view_model: The run.
        workflow: The document as it runs.
        now: The current time, in seconds since the epoch.
    """
    duration = view_model.duration_s
    if duration is None and not view_model.is_over:  # unknown for a run that was interrupted
        duration = view_model.running_s(now)
    parts = [*([view_model.origin] if view_model.origin else []), _state(view_model, workflow)]
    if view_model.state.part is not None and not view_model.prefix:
        part = view_model.state.part
        parts.append(str(replace(part, node=node_title(part.node, workflow))))
    if view_model.usage.total_tokens:
        parts += [format_tokens(view_model.usage), format_money(view_model.cost_usd)]
    return " · ".join([*parts, *([format_duration(duration)] if duration is not None else [])])


def _state(view_model: RunViewModel, workflow: Workflow) -> str:
    if view_model.status == "failed":
        return "Failed"
    if view_model.is_over:
        return {"completed": "Done", "cancelled": "Stopped"}.get(view_model.status, "Not finished")
    word = "Paused" if view_model.status == "paused" else "Running"
    running = (path for path, node in view_model.state.open.items() if node.state is NodeState.RUNNING)
    inner = [path for path in running if path not in view_model.loops]
    if not inner:
        return word
    name = node_title(inner[-1], workflow)
    more = f" and {len(inner) - 1} more" if len(inner) > 1 else ""
    # Imported here, because the window shows its bars before it loads the node types.
    from app.runs.loop_status import unit_of

    around = inner[-1].rpartition("[")[0]
    loop, unit = view_model.loops.get(around), unit_of(workflow, node_of(around))
    iteration = f", {unit} {loop.current + 1} of {loop.total}" if loop is not None else ""
    return f"{word}: {name}{more}{iteration}"


def is_running(view_model: RunViewModel) -> bool:
    """Return whether any node is running, other than those that wait for an answer inside."""
    return any(
        node.state is NodeState.RUNNING
        and path not in view_model.loops
        and not any(asked.startswith(f"{path}.") for asked in view_model.questions)
        for path, node in view_model.state.open.items()
    )


def question_line(view_model: RunViewModel, workflow: Workflow) -> str:
    """Return a line on who waits for an answer; empty if nobody does."""
    if not view_model.questions:
        return ""
    first, *others = view_model.questions
    more = f" and {len(others)} more" if others else ""
    return f"Waiting for you: {node_title(first, workflow)}{more}"


def node_title(path: str, workflow: Workflow) -> str:
    """Return the name of the node at a path."""
    node = workflow.nodes_by_id.get(node_of(path))
    if node is not None and node.title:
        return node.title
    # Imported here, because the window shows its bars before it loads the node types.
    from engine.nodes.node_names import node_name

    return node_name(workflow, node_of(path))


def model_label(name: str) -> str:
    """Return a short label of a model."""
    if name == EMBEDDED_MODEL:
        return "Built-in demo model"
    if name.startswith(SCRIPTED_PREFIX):
        return "Scripted"
    if name.startswith(RECORDED_PREFIX):
        return "Recorded"
    short = name.removeprefix(GGUF_PREFIX).replace("\\", "/").rpartition("/")[2]
    return (short.removesuffix(".gguf") if name.startswith(GGUF_PREFIX) else short) or name


def models_in_use(structure: Structure, default: str) -> tuple[str, ...]:
    """Return the models that a run of a document may call, fallbacks included, in the order of its nodes.

    Args:
        structure: The document.
        default: The model of workflows that name none.
    """
    # Imported here, because the window shows its bars before it loads the compiler.
    from engine.plan.compiler import models_called

    own = structure.workflow.settings.get("model")
    default = own if isinstance(own, str) and own else default
    choices = (choice for _, choice in models_called(structure, structure.workflow.nodes_by_id))
    names = (model.name or default for choice in choices for model in choice.chain)
    return tuple(dict.fromkeys(names)) or (default,)
