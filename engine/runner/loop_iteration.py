"""One iteration of a loop: a pass through its body, then its score, its judge, and whether the loop stops after it."""

from __future__ import annotations

import time
from typing import Final

from engine.errors import EngineError
from engine.events import LoopIterationCompleted, LoopIterationStarted
from engine.exits.condition import EndedIteration
from engine.exits.loop_expressions import score_of
from engine.nodes.agent_tools import EXIT_LOOP
from engine.nodes.iteration_note import IterationNote
from engine.runner.budget import Account, BudgetError
from engine.runner.feedback import outcome_of
from engine.runner.iteration_record import IterationRecord
from engine.runner.level import Level, LoopExit
from engine.runner.loop_scope import GivenByNodes, LoopFrame
from engine.runner.loop_state import Ended, LoopState
from engine.runner.node import run_leaf
from engine.runner.retry import NodeFailure
from engine.runner.scheduler import GraphRun
from engine.values import Value, to_text

PREVIEW_LENGTH: Final = 200


async def run_iteration(loop: LoopState, index: int, body_input: Value, *, is_told: bool) -> tuple[Ended, str | None]:
    """Make one iteration, tell it and record it.

    Args:
        loop: The loop.
        index: The iteration's number, from 0.
        body_input: What it starts from.
        is_told: Whether it had begun before the run broke off.

    Returns:
        The iteration, and why the loop stops after it; None where it goes on.

    Raises:
        NodeFailure, BudgetError: A node of the body, or the judge, failed.
        EngineError: It cannot be told whether the loop stops.
    """
    core, plan = loop.level.core, loop.plan
    if not is_told:
        core.bus.emit(LoopIterationStarted, loop.path, index, plan.max_iterations, to_text(body_input)[:PREVIEW_LENGTH])
    started = time.perf_counter()
    run = _pass(loop, index, body_input)
    frame = run.level.frame
    assert frame is not None, "a body runs in a frame"
    await run.run()
    known = core.replay.iteration(loop.path, index) if core.replay is not None else None
    if known is not None:
        if core.replay is not None and plan.judge is not None:  # it stands in no graph that is gone through again
            core.replay.charge(f"{run.level.prefix}{plan.judge.id}", run.level.account)
        ended = _known(loop, run, frame, known)
        loop.ended.append(ended)
        return ended, _known_reason(loop, run, ended)
    ended = _taken_up(loop, run, frame, body_input)
    ended.record.duration_s = time.perf_counter() - started
    reason: str | None = None
    failure: EngineError | None = None
    try:
        reason = await _decided(loop, run, ended)
    except (BudgetError, NodeFailure):  # of the judge, which is asked anew
        raise
    except EngineError as error:
        failure = error
    ended.record.usage, ended.record.cost_usd = run.level.account.usage, run.level.account.cost_usd
    ended.record.duration_s = time.perf_counter() - started
    ended.record.warnings = (*core.warnings.inside(f"{loop.path}[{index}]"), *ended.record.warnings)
    core.bus.emit(LoopIterationCompleted, loop.path, *ended.record.fields())
    loop.ended.append(ended)
    if failure is not None:
        raise failure
    return ended, reason


def _pass(loop: LoopState, index: int, body_input: Value) -> GraphRun:
    """The body, ready to run."""
    body, level, last = loop.plan.body, loop.level, loop.ended[-1] if loop.ended else None
    most = loop.plan.max_iterations
    previous = last.record.result if last is not None else None
    given = last.given if last is not None else None
    frame = LoopFrame(body, index, most, loop.original, previous, given, loop.history, level.frame)
    note = IterationNote(index + 1, most, previous) if loop.tells_iteration else None
    account = Account(loop.path, loop.account)
    prefix, memory = f"{loop.path}[{index}].", loop.memory
    inner = Level(level.core, account, prefix, frame, note, memory=memory, names=level.names, exit=LoopExit())
    run = GraphRun(body, inner)
    assert body.input_slot is not None
    run.values[body.input_slot] = body_input
    for slot, value in loop.constants:
        run.values[slot] = value
    return run


def _taken_up(loop: LoopState, run: GraphRun, frame: LoopFrame, body_input: Value) -> Ended:
    """What a pass came to, with its similarity and score."""
    outcome, account = outcome_of(run, loop.plan), run.level.account
    if _is_exited(run) and not outcome.has_result:
        outcome.result = outcome.feedback = _as_it_stood(loop, body_input)
        outcome.has_result = True
    record = IterationRecord(
        index=frame.index,
        input=body_input,
        result=outcome.result,
        feedback=outcome.feedback,
        branch=outcome.branch,
        reason=outcome.reason,
        score=None,
        similarity=loop.similarity(outcome.result) if outcome.has_result else None,
        usage=account.usage,
        cost_usd=account.cost_usd,
        duration_s=0.0,
        warnings=tuple(f"{loop.path}[{frame.index}]: {warning}" for warning in outcome.warnings),
        nodes=GivenByNodes(loop.plan.body, run.given).with_skipped(),
    )
    return Ended(record, run.given, frame, outcome.has_result)


def _known(loop: LoopState, run: GraphRun, frame: LoopFrame, known: LoopIterationCompleted) -> Ended:
    """An iteration that had ended before the run broke off, as it was told then."""
    loop.count_earlier(known.duration_s)
    record = IterationRecord(*(getattr(known, name) for name in IterationRecord.__slots__))
    record.nodes = GivenByNodes(loop.plan.body, run.given).with_skipped()  # missing in older histories
    done = record.tested.get("judge")
    judged = done if isinstance(done, bool) else None
    has_result = outcome_of(run, loop.plan).has_result or _is_exited(run)
    return Ended(record, run.given, frame, has_result, judged)


def _is_exited(run: GraphRun) -> bool:
    """Whether a node of the body has ended the loop."""
    return run.level.exit is not None and run.level.exit.is_wanted


def _as_it_stood(loop: LoopState, body_input: Value) -> Value:
    """The result of an iteration that ended the loop and gave none: the one before, else what it started from."""
    last = next((ended for ended in reversed(loop.ended) if ended.has_result), None)
    return last.record.result if last is not None else body_input


def _known_reason(loop: LoopState, run: GraphRun, ended: Ended) -> str | None:
    """Why the loop stops after an iteration that had ended before the run broke off."""
    replay = loop.level.core.replay
    if loop.score is not None and ended.record.score is None:  # it failed then, or a fork has asked for it since
        ended.record.score = score_of(loop.score, loop.scope(ended))
    seen = _observed(loop, ended)
    if replay is not None and replay.went_on_after(loop.path, ended.record.index):
        return None
    return EXIT_LOOP if _is_exited(run) else loop.decision.reason(seen)


async def _decided(loop: LoopState, run: GraphRun, ended: Ended) -> str | None:
    """Score the iteration, ask the judge, and return the exit reason; None where the loop continues."""
    if loop.score is not None:
        ended.record.score = score_of(loop.score, loop.scope(ended))
    if _is_exited(run):
        _observed(loop, ended)
        return EXIT_LOOP
    if loop.plan.judge is not None and ended.has_result:
        early = loop.decision.reason_before_judge(_seen(loop, ended))
        if early is not None:
            _observed(loop, ended)
            return early
        await _judge(loop, run.level, ended)
    return loop.decision.reason(_observed(loop, ended))


async def _judge(loop: LoopState, level: Level, ended: Ended) -> None:
    """Ask the judge about the result, as a node of the iteration that stands in no graph."""
    judge = loop.plan.judge
    assert judge is not None
    place = Level(level.core, level.account, level.prefix, names=loop.groups(ended))
    given = await run_leaf(place, judge, loop.names(ended))
    score, reason = given.get("score"), given.get("reason")
    ended.is_judged_done = given.get("done") is True
    if ended.record.score is None and isinstance(score, (int, float)):
        ended.record.score = float(score)
    if ended.record.reason is None and isinstance(reason, str):
        ended.record.reason = reason


def _seen(loop: LoopState, ended: Ended) -> EndedIteration:
    record = ended.record
    return EndedIteration(
        record.index,
        record.result,
        record.branch,
        record.similarity,
        loop.scope(ended) if loop.decision.needs_scope else {},
        ended.has_result,
        record.score,
        ended.is_judged_done,
        loop.account.spent_usd,
        loop.elapsed_s,
    )


def _observed(loop: LoopState, ended: Ended) -> EndedIteration:
    """Let the conditions observe the iteration, and note what they looked at."""
    seen = _seen(loop, ended)
    loop.decision.observe(seen)
    if not ended.record.tested:
        ended.record.tested = loop.decision.tested(seen)
    return seen
