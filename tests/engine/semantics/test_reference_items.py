"""Random nested iterators and loops, run by the engine and by the reference interpreter."""

from __future__ import annotations

from itertools import count

from hypothesis import event, given
from hypothesis import strategies as st

from engine.events import LoopIterationStarted
from tests.engine.semantics.documents import Part, each, entry, flow, formula, gather, leave, loop, result, transform
from tests.engine.semantics.kit import begin, finish
from tests.engine.semantics.reference_items import Each, Failed, Mark, Refuse, Repeat, Step, interpret
from tests.engine.semantics.virtual_time import virtually
from tests.examples import examples

_PLAIN = st.one_of(st.builds(Mark, st.sampled_from("ab")), st.builds(Refuse, st.sampled_from("abc")))


def _around(inner: st.SearchStrategy[Step]) -> st.SearchStrategy[Step]:
    body = st.lists(inner, min_size=1, max_size=3).map(tuple)
    errors, modes = st.sampled_from(["fail", "skip", "collect"]), st.sampled_from(["join", "first", "vote"])
    letters = st.text("abc", min_size=0, max_size=4)
    return st.one_of(
        st.builds(Repeat, st.integers(1, 3), body), st.builds(Each, letters, errors, modes, st.integers(0, 3), body)
    )


_STEPS = st.lists(st.recursive(_PLAIN, _around, max_leaves=6), min_size=1, max_size=3).map(tuple)


class _Drawn:
    """The workflow for the steps."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.edges: list[str] = []
        self._numbers = count()

    def chain(self, steps: tuple[Step, ...], source: str) -> str:
        for step in steps:
            source = self._step(step, source, next(self._numbers))
        return source

    def _step(self, step: Step, source: str, number: int) -> str:
        name = f"n{number}"
        match step:
            case Mark():
                self._add(transform(name, f"{{{{input}}}}{step.letter}"), source, "input")
            case Refuse():
                test = f"input.endsWith('{step.letter}') ? string(1 / 0) : input"
                self._add(formula(name, test), source, "input")
            case Repeat():
                self._add(loop(name, max_iterations=step.times), source, "input")
                self._add(leave(f"end{number}", of=name), self.chain(step.body, f"{name}.body"), "input")
                return f"end{number}.output"
            case Each():
                split = f"[{', '.join(f'items + {letter!r}' for letter in step.letters)}]"
                config = {"max_concurrency": step.at_once, "on_item_error": step.on_item_error}
                self._add(each(name, source="expression", expression=split, **config), source, "items")
                end = gather(f"end{number}", of=name, mode=step.mode, separator="-")
                self._add(end, self.chain(step.body, f"{name}.item"), "input")
                self._add(transform(f"text{number}"), f"end{number}.output", "input")
                return f"text{number}.output"
        return f"{name}.output"

    def _add(self, part: Part, source: str, port: str) -> None:
        self.parts.append(part)
        self.edges.append(f"{source} -> {part.id}.{port}")


@examples(150)
@given(steps=_STEPS)
def test_the_engine_and_the_reference_interpreter_agree_on_items(steps: tuple[Step, ...]) -> None:
    drawn = _Drawn()
    end = drawn.chain(steps, "text.value")
    workflow = flow(entry(), *drawn.parts, result(), edges="\n".join([*drawn.edges, f"{end} -> out.value"]))

    async def run() -> tuple[str, object, int]:
        played = await finish(*begin(workflow, "", {"text": "s"}))
        begun = len(played.of(LoopIterationStarted))
        return played.result.status, played.result.outputs.get("out"), begun

    status, out, begun = virtually(run())

    event(f"{status}, {'with' if begun else 'without'} iterations")
    try:
        assert (status, out) == ("completed", interpret(steps, "s"))
    except Failed:
        assert status == "failed"
