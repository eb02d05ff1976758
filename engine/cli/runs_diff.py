"""Implements `loopwright runs diff`: compare texts of runs word by word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from engine.cli.exit_codes import ExitCode
from engine.cli.history import StorePath, history
from engine.formatting import format_count

if TYPE_CHECKING:
    from engine.store.run_sections import Section
    from engine.store.store_protocol import Store
    from engine.text_diff import Span

_CONTEXT: Final = 3
_STYLES: Final = {"equal": ("", "", ""), "delete": ("[-", "-]", "red"), "insert": ("{+", "+}", "green")}


def runs_diff(
    context: typer.Context,
    first: Annotated[str, typer.Argument(metavar="RUN[@PLACE]", help="Run, or a place in it: ab12@loop[0].")],
    second: Annotated[str, typer.Argument(metavar="RUN[@PLACE]", help="The other; @loop[1] is in the same run.")],
    node: Annotated[str, typer.Option(metavar="ID", help="Compare this node in the two iterations.")] = "",
    part: Annotated[str, typer.Option(metavar="PART", help="result, feedback, prompt or reply.")] = "result",
    as_json: Annotated[bool, typer.Option("--json", help="Write the differences as one JSON object.")] = False,
    store: StorePath = None,
) -> int:
    """Compare two runs, iterations or nodes word by word: [-deleted-] and {+inserted+}.

    Example: loopwright runs diff ab12@loop[0] @loop[2] --node critique --part prompt
    """
    from engine.cli.output import out, write_json
    from engine.text_diff import differences

    which = _part(part)
    with history(context, store) as stored:
        name, _, place = first.partition("@")
        other, _, other_place = second.partition("@")
        run_id = stored.find(name).run_id
        other_id = stored.find(other).run_id if other else run_id
        text = _text(stored, run_id, place, node, which)
        other_text = _text(stored, other_id, other_place, node, which)
    spans = differences(text, other_text)
    if as_json:
        write_json({"spans": [{"kind": str(span.kind), "text": span.text} for span in spans]})
        return ExitCode.DONE
    if all(span.kind == "equal" for span in spans):
        out().line("No differences.")
        return ExitCode.DONE
    for line in _lines_near_changes(spans):
        out().pieces(line)
    return ExitCode.DONE


def _part(text: str) -> Section:
    from engine.errors import EngineError
    from engine.store.run_sections import Section
    from engine.text_sanitizing import shown

    try:
        return Section(text)
    except ValueError:
        raise EngineError(
            f'"{shown(text, 40)}" is not a part of an iteration.', f"Parts: {', '.join(Section)}."
        ) from None


def _text(store: Store, run_id: str, place: str, node: str, part: Section) -> str:
    from engine.store.run_sections import section_text

    return section_text(store, run_id, ".".join(step for step in (place, node) if step), part)


_Line = list[tuple[str, str]]
"""The parts of a line, each with its style."""


def _lines_near_changes(spans: Sequence[Span]) -> Iterator[_Line]:
    """The changed lines with some context; a line with a count stands for those in between."""
    lines = list(_lines(spans))
    wanted: set[int] = set()
    for number, (_, is_changed) in enumerate(lines):
        if is_changed:
            wanted.update(range(number - _CONTEXT, number + _CONTEXT + 1))
    left_out = 0
    for number, (line, _) in enumerate(lines):
        if number in wanted:
            if left_out:
                yield [(_gap(left_out), "dim")]
            left_out = 0
            yield line
        else:
            left_out += 1
    if left_out:
        yield [(_gap(left_out), "dim")]


def _gap(count: int) -> str:
    return f"... {format_count(count, 'equal line')} ..."


def _lines(spans: Sequence[Span]) -> Iterator[tuple[_Line, bool]]:
    """The lines, each with whether it contains a change; a change of several lines is marked on each."""
    line: _Line = []
    is_changed = False
    for span in spans:
        before, after, style = _STYLES[span.kind]
        parts = span.text.split("\n")
        for number, part in enumerate(parts):
            last = number == len(parts) - 1
            # Without its marks, a deleted or inserted newline would be invisible.
            if part or (not last and before):
                line.append((f"{before}{part}{after}", style))
            is_changed = is_changed or bool(before and (part or not last))
            if not last:
                yield line, is_changed
                line, is_changed = [], False
    if line:
        yield line, is_changed
