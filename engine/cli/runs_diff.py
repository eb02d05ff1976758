"""`loopwright runs diff`: two places of runs beside each other, with the words marked that differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from engine.cli.exit_codes import ExitCode
from engine.cli.history import StorePath, history
from engine.formatting import format_count

if TYPE_CHECKING:
    from engine.store.base import Store
    from engine.store.parts import Part
    from engine.text_diff import Span

_CONTEXT: Final = 3
_STYLES: Final = {"equal": ("", "", ""), "delete": ("[-", "-]", "red"), "insert": ("{+", "+}", "green")}


def runs_diff(
    context: typer.Context,
    first: Annotated[str, typer.Argument(metavar="RUN[@PLACE]", help="A run, or a place in it: ab12@loop[0].")],
    second: Annotated[str, typer.Argument(metavar="RUN[@PLACE]", help="The other; @loop[1] alone is in the same run.")],
    node: Annotated[str, typer.Option(metavar="ID", help="Compare what that node did in the two iterations.")] = "",
    part: Annotated[str, typer.Option(metavar="PART", help="result, feedback, prompt or reply.")] = "result",
    as_json: Annotated[bool, typer.Option("--json", help="Write the pieces as one JSON object.")] = False,
    store: StorePath = None,
) -> int:
    """Compare two runs, iterations or nodes word by word: [-what is gone-] and {+what is new+}.

    Example: loopwright runs diff ab12@loop[0] @loop[2] --node critique --part prompt
    """
    from engine.cli.output import out, write_json
    from engine.text_diff import differences

    which = _part(part)
    with history(context, store) as kept:
        name, _, place = first.partition("@")
        other, _, other_place = second.partition("@")
        run_id = kept.find(name).run_id
        other_id = kept.find(other).run_id if other else run_id
        text = _text(kept, run_id, place, node, which)
        other_text = _text(kept, other_id, other_place, node, which)
    spans = differences(text, other_text)
    if as_json:
        write_json({"spans": [{"kind": str(span.kind), "text": span.text} for span in spans]})
        return ExitCode.DONE
    if all(span.kind == "equal" for span in spans):
        out().line("They are the same.")
        return ExitCode.DONE
    for line in _lines_near_changes(spans):
        out().pieces(line)
    return ExitCode.DONE


def _part(text: str) -> Part:
    from engine.errors import EngineError
    from engine.store.parts import Part
    from engine.text_sanitizing import shown

    try:
        return Part(text)
    except ValueError:
        raise EngineError(f'"{shown(text, 40)}" cannot be compared.', f"Choose one of: {', '.join(Part)}.") from None


def _text(store: Store, run_id: str, place: str, node: str, part: Part) -> str:
    from engine.store.parts import text_at

    return text_at(store, run_id, ".".join(step for step in (place, node) if step), part)


_Line = list[tuple[str, str]]
"""The pieces of a line, each with its style."""


def _lines_near_changes(spans: Sequence[Span]) -> Iterator[_Line]:
    """The lines with changes in them and some around, with what is left out told in its place."""
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
    """The text in lines, each with whether something in it differs; changes are marked on every line of theirs."""
    line: _Line = []
    is_changed = False
    for span in spans:
        before, after, style = _STYLES[span.kind]
        parts = span.text.split("\n")
        for number, part in enumerate(parts):
            last = number == len(parts) - 1
            # A newline that is gone or new would not be seen without its marks.
            if part or (not last and before):
                line.append((f"{before}{part}{after}", style))
            is_changed = is_changed or bool(before and (part or not last))
            if not last:
                yield line, is_changed
                line, is_changed = [], False
    if line:
        yield line, is_changed
