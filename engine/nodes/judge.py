"""The judge of a loop: a model that scores the result of each iteration and decides whether it is done.

It is a part of the loop, not a node of the canvas, but runs and appears in the history like one: `loop[2].judge`. If a
verdict cannot be read, the judge is asked once more; then it counts as not done, with a warning.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from engine.expr import Template, compile_template
from engine.models.protocol import Message
from engine.nodes.context import NodeContext
from engine.nodes.model_calls import ContextFullError, ModelFields, UnreadableReplyError, ask, faults_by
from engine.nodes.spec import Category, NamedText, NodeSpec, Outputs, Port, TextKind
from engine.nodes.structured_replies import read_judgement
from engine.values import Value, to_text

JUDGE: Final = "judge"
"""The judge's id in paths, unless a node of the body has it."""

HIGHEST_SCORE: Final = 10.0


class Criterion(BaseModel):
    """One line of a rubric."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    name: str = Field(
        pattern=r"^[a-z][a-z0-9_]*$",
        max_length=40,
        title="Name",
        description="Name of its score: lowercase letters, digits and _.",
    )
    description: str = Field(default="", title="What counts", description="What gives a high score, in a few words.")
    weight: float = Field(
        default=1.0,
        ge=0,
        le=1000,
        allow_inf_nan=False,
        title="Weight",
        description="Its weight in the total score.",
    )


class JudgeConfig(ModelFields):
    """Settings of a loop's judge."""

    model: str | None = Field(
        default=None,
        title="Model",
        description=(
            "Model that judges. Leave empty for the workflow's model; another model is often stricter, because models "
            "judge their own texts leniently."
        ),
        json_schema_extra={"widget": "model"},
    )
    criteria: str = Field(
        default="",
        title="Criteria",
        description="When the result is good enough, in plain words. The result is always included.",
        json_schema_extra={"widget": "prompt", "group": "first"},
    )
    rubric: list[Criterion] = Field(
        default_factory=list[Criterion],
        max_length=20,
        title="Rubric",
        description="Criteria with a score from 0 to 10 each; the total is their weighted mean.",
    )
    threshold: float | None = Field(
        default=None,
        ge=0,
        le=HIGHEST_SCORE,
        title="Done from a score of",
        description="Minimum total score (0 to 10) for done. Leave empty to let the judge decide.",
    )
    runs: int = Field(
        default=1,
        ge=1,
        le=9,
        title="Times asked",
        description="Number of verdicts on each result; scores are averaged, and the majority decides.",
        json_schema_extra={"group": "more"},
    )
    max_tokens: int | None = Field(
        default=500,
        ge=1,
        title="Max tokens",
        description="Maximum length of the scores and the reason.",
        json_schema_extra={"group": "more"},
    )

    @property
    def is_set(self) -> bool:
        """Whether the judge has criteria."""
        return bool(self.criteria.strip()) or bool(self.rubric)


def judge_text(config: JudgeConfig, names: frozenset[str]) -> NamedText:
    """The criteria as a named text of the loop's settings."""
    after = frozenset({"loop", "nodes", "state"})
    return NamedText("judge.criteria", TextKind.TEMPLATE, config.criteria, names, ports=False, namespaces=after)


def judge_schema(config: JudgeConfig) -> dict[str, Any]:
    """The JSON Schema of a verdict."""
    score = {"type": "number", "minimum": 0, "maximum": HIGHEST_SCORE}
    properties: dict[str, Any] = {"reason": {"type": "string"}}
    required = ["reason", "done"]
    if config.rubric:
        names = [criterion.name for criterion in config.rubric]
        properties["scores"] = {
            "type": "object",
            "properties": dict.fromkeys(names, score),
            "required": names,
            "additionalProperties": False,
        }
        required.append("scores")
    else:
        properties["score"] = score
        required.append("score")
    properties["done"] = {"type": "boolean"}
    return {"type": "object", "properties": properties, "required": required}


def judge_question(config: JudgeConfig, criteria: str, output: str) -> list[Message]:
    """The messages that ask the judge about a result."""
    lines = ["Judge the text below. Reply with one JSON object and nothing else."]
    if criteria:
        lines.append(f"It is done when this holds:\n{criteria}")
    if config.rubric:
        listed = "\n".join(f"- {one.name}: {one.description or one.name.replace('_', ' ')}" for one in config.rubric)
        lines.append(f"Give each of these a score from 0 (not at all) to 10 (could not be better):\n{listed}")
    shape = {"reason": "one sentence: what is good, what is missing"}
    scored = {"scores": {one.name: 5 for one in config.rubric}} if config.rubric else {"score": 5}
    lines.append(f"The object looks like this:\n{json.dumps({**shape, **scored, 'done': False}, ensure_ascii=False)}")
    return [Message("system", "\n\n".join(lines)), Message("user", output)]


async def _run(context: NodeContext[JudgeConfig]) -> Outputs:
    config, prepared = context.config, context.prepared
    assert isinstance(prepared, Template)
    criteria = prepared.render(context.scope).strip()
    schema, messages = judge_schema(config), judge_question(config, criteria, to_text(context.inputs["output"]))
    weights = {one.name: one.weight for one in config.rubric}
    reader = partial(
        read_judgement, schema=schema, faults=faults_by(schema), weights=weights, threshold=config.threshold
    )
    verdicts: list[dict[str, Any]] = []
    for _ in range(config.runs):
        try:
            verdicts.append(await ask(context, config, messages, schema, reader, "verdict"))
        except UnreadableReplyError as error:
            times = "" if isinstance(error, ContextFullError) else ", asked twice"
            context.warn(f"The verdict could not be read{times}: {error} It counts as not done.")
    if not verdicts:
        return {"done": False, "score": None, "reason": "", "scores": {}}
    return _combined(verdicts, config)


def _combined(verdicts: list[dict[str, Any]], config: JudgeConfig) -> Outputs:
    """Combine verdicts: mean scores; done if the mean reaches the threshold, else by majority."""
    count = len(verdicts)
    score = sum(verdict["score"] for verdict in verdicts) / count
    names = verdicts[0]["scores"]
    scores: dict[str, Value] = {name: sum(verdict["scores"][name] for verdict in verdicts) / count for name in names}
    if config.threshold is not None:
        done = score >= config.threshold
    else:
        done = 2 * sum(verdict["done"] for verdict in verdicts) > config.runs
    # The reason of a verdict that agrees with the combined one.
    reason = next((verdict["reason"] for verdict in verdicts if verdict["done"] == done), verdicts[0]["reason"])
    return {"done": done, "score": score, "reason": reason, "scores": scores}


JUDGE_SPEC = NodeSpec(
    type=JUDGE,
    title="Judge",
    category=Category.AI,
    help="Says how good an iteration's result is, and whether it is done.",
    icon="mdi6.gavel",
    config=JudgeConfig,
    inputs=lambda _config: (Port("output", help="The iteration's result."),),
    outputs=lambda _config: (Port("done"), Port("score"), Port("reason"), Port("scores")),
    run=_run,
    prepare=lambda config: compile_template(config.criteria),
    recorded=dict,
    model=lambda config: config.choice,
)
"""How the judge runs. It is not in the palette, because it belongs to a loop."""
