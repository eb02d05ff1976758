"""The exit condition `time`: the loop has run for some time."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from engine.exits.condition import (
    ChartSeries,
    ConditionConfig,
    ConditionSpec,
    Evidence,
    PythonTest,
    SeriesSource,
    compare,
    stateless,
)
from engine.formatting import format_duration

TIMEOUT: Final = "timeout"
_NAME: Final = "time"


class TimeLimitConfig(ConditionConfig):
    """Settings of the condition `time`."""

    seconds: float = Field(
        default=60.0,
        gt=0,
        allow_inf_nan=False,
        title="Time (seconds)",
        description="The loop stops after the iteration in which this much time has passed.",
    )


def _explain(config: TimeLimitConfig, evidence: Evidence) -> str:
    elapsed = evidence.number(_NAME)
    return "time unknown" if elapsed is None else f"time {compare(elapsed, config.seconds, format_duration)}"


def _explain_stop(config: TimeLimitConfig, evidence: Evidence) -> str:
    elapsed = evidence.number(_NAME) or 0.0
    return f"{format_duration(elapsed)} of {format_duration(config.seconds)} had passed"


SPEC = ConditionSpec(
    name=_NAME,
    label="After an amount of time",
    help="Stops after the iteration in which an amount of time has passed.",
    config=TimeLimitConfig,
    make=stateless(
        TIMEOUT, lambda config, iteration: iteration.elapsed_s >= config.seconds, lambda iteration: iteration.elapsed_s
    ),
    explain=_explain,
    explain_stop=_explain_stop,
    exit_reason=TIMEOUT,
    exit_reason_label="time limit reached",
    is_limit=True,
    is_shared_reason=True,
    series=ChartSeries(SeriesSource.TIME),
    to_python=lambda config, _writer: PythonTest(f"time.monotonic() - loop['started'] >= {config.seconds!r}"),
)
