"""The parts of a workflow in steps, as they stand in the file, and in which order they can be made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.document.importing.report import Report
from engine.document.importing.values import Fields, as_list, as_object, as_text
from engine.document.wording import shown


@dataclass(frozen=True, slots=True)
class Step:
    """A step.

    Attributes:
        id: Its foreign id.
        agent: The agent that does it; empty for none.
        instructions: What it is told.
        depends: The ids of the steps that it waits for and whose outputs it sees.
        loop: Its loop, as the file has it; None where it runs once.
        fields: What else the file says of it.
        prefix: What stands before it in the report.
    """

    id: str
    agent: str
    instructions: str
    depends: tuple[str, ...]
    loop: dict[str, Any] | None
    fields: Fields
    prefix: str = ""

    @property
    def place(self) -> str:
        """How the report names it."""
        return f"step {self.prefix}{self.id}"


def read_steps(entries: Sequence[object], report: Report, prefix: str = "") -> list[Step]:
    """The steps of a list; those that cannot be read are told and left out."""
    steps: dict[str, Step] = {}
    for number, entry in enumerate(entries):
        members = as_object(entry)
        step_id = as_text(members.get("id"))
        fields = Fields({name: told for name, told in members.items() if name != "id"})
        if not step_id or step_id in steps:
            report.left(f"step {prefix}{number + 1}", "It has no id of its own.")
            continue
        loop = fields.take("loop")
        depends = fields.take("dependsOn", "depends_on")
        names = [depends] if isinstance(depends, str) else as_list(depends)
        steps[step_id] = Step(
            step_id,
            as_text(fields.take("agent")),
            as_text(fields.take("instructions", "prompt")),
            tuple(dict.fromkeys(as_text(name) for name in names)),
            as_object(loop) if loop is not None else None,
            fields,
            prefix,
        )
    return list(steps.values())


def in_order(steps: Iterable[Step], report: Report) -> list[tuple[Step, tuple[str, ...]]]:
    """The steps, each after those that it depends on, with the dependencies that there are."""
    waiting = {step.id: step for step in steps}
    known = set(waiting)
    needs: dict[str, tuple[str, ...]] = {}
    for step in waiting.values():
        needs[step.id] = tuple(name for name in step.depends if name in known and name != step.id)
        for name in step.depends:
            if name not in needs[step.id]:
                why = "It cannot wait for itself." if name == step.id else "There is no such step beside it."
                report.left(f"{step.place}, dependsOn {shown(name, 60)}", why)
    ordered: list[tuple[Step, tuple[str, ...]]] = []
    made: set[str] = set()
    while waiting:
        ready = [step for step in waiting.values() if made.issuperset(needs[step.id])]
        for step in ready or [next(iter(waiting.values()))]:
            there = tuple(name for name in needs[step.id] if name in made)
            for name in needs[step.id]:
                if name not in made:
                    report.left(f"{step.place}, dependsOn {shown(name, 60)}", "The two wait for each other.")
            ordered.append((step, there))
            made.add(step.id)
            del waiting[step.id]
    return ordered


def ends_of(ordered: Iterable[tuple[Step, tuple[str, ...]]]) -> list[str]:
    """The ids of the steps that no other depends on."""
    listed = list(ordered)
    needed = {name for _, there in listed for name in there}
    return [step.id for step, _ in listed if step.id not in needed]
