"""Names that cannot have a value are reported before the run; other names are not."""

from __future__ import annotations

from typing import Any

import pytest

from engine import validate
from engine.plan.structure import analyse
from engine.plan.validation import name_problems
from tests.engine.plan.documents import CLOSE, LOOPED, OPEN, document, in_a_row, looped
from tests.engine.plan.test_loop_pairing import NESTED, two_loops
from tests.wording import mentions


def problem_texts(workflow: Any) -> list[str]:
    return [problem.message for problem in validate(workflow) if problem.code == "unknown-name"]


def outside(text: str) -> list[str]:
    return problem_texts(in_a_row(("transform", {"template": f"{{{{input}}}}{text}"})))


def in_body(text: str, **loop: Any) -> list[str]:
    return problem_texts(document({**looped(loop), "a": ("transform", {"template": f"{{{{input}}}}{text}"})}, *LOOPED))


@pytest.mark.parametrize(
    "text",
    [
        "{{loop.index}} {{loop.iteration}} {{loop.max_iterations}} {{loop.input}} {{loop.previous}} {{loop.history}}",
        "{{loop.last.a}}",
        "{{loop.input.title}}",
        "{{loop.previous.items}}",
        "{{ size(loop.history) + loop.index }}",
    ],
)
def test_members_of_loop_are_valid_in_its_body(text: str) -> None:
    assert in_body(text) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{{loop.round}}", "`loop.round` … `loop` has history, index, input, iteration, "),
        ("{{loop.index.more}}", "`loop.index` … a number"),
        ("{{loop.last.b}}", '`b` … "Loop"'),
        ("{{loop.last.text}}", '`text` … "Loop"'),
        ("{{loop.parent.index}}", '"Loop"'),
        ("{{state.seen}}", "'output_key'"),
        ("{{item}}", "`item`"),
        ("{{index}}", "`loop.index`"),
    ],
)
def test_unknown_members_of_loop_are_problems(text: str, says: str) -> None:
    (message,) = in_body(text)

    assert mentions(message, says)


@pytest.mark.parametrize("text", ["{{loop.index}}", "{{loop.last.n}}", "{{loop.parent.index}}"])
def test_loop_is_unknown_outside_of_loops(text: str) -> None:
    (message,) = outside(text)

    assert mentions(message, "`loop` … Loop … Exit")


def test_a_bare_name_is_a_port_and_so_never_unknown() -> None:
    workflow = in_a_row(("transform", {"template": "{{input}} {{whatever}}"}))

    assert problem_texts(workflow) == []
    assert "unconnected-port" in {problem.code for problem in validate(workflow)}


def test_nested_bodies_see_the_loops_around_them() -> None:
    def inner(text: str) -> list[str]:
        nodes = two_loops(b=("transform", {"template": f"{{{{input}}}}{text}"}))
        return problem_texts(document(nodes, *NESTED))

    assert inner("{{loop.parent.index}} {{loop.parent.last.a}} {{loop.last.b}} {{loop.parent.last.two}}") == []
    assert 'the loop "Loop" has b.' in inner("{{loop.last.a}}")[0]
    assert mentions(inner("{{loop.parent.last.b}}")[0], '`b` … "Loop 2"')
    assert mentions(inner("{{loop.parent.parent.index}}")[0], '"Loop 2" … not')


@pytest.mark.parametrize("field", ["until", "score"])
@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("output == '' || similarity > 0.5 || cost_usd < 1.0 || elapsed_s > 5.0", None),
        ("nodes.a == ''", None),
        ("loop.index > 1 && loop.last.a == ''", None),
        ("nodes.b == ''", '`b` … "Loop"'),
        ("nodes.text == ''", '`text` … "Loop"'),
        ("result == ''", "cost_usd, elapsed_s, loop, nodes, output, similarity"),
        ("input == ''", "cost_usd, elapsed_s, loop, nodes, output, similarity"),
    ],
)
def test_expressions_about_an_iteration_have_its_values(field: str, expression: str, says: str | None) -> None:
    problems = problem_texts(document(looped({field: expression}), *LOOPED))

    assert problems == [] if says is None else mentions(problems[0], says)


def test_a_condition_has_only_the_input() -> None:
    assert problem_texts(document(looped({"condition": "size(input) > 0"}), *LOOPED)) == []
    (problem, *_) = problem_texts(document(looped({"condition": "output == ''"}), *LOOPED))
    assert mentions(problem, "`output` … there is input"), problem


def test_each_unknown_name_is_reported_with_its_field() -> None:
    workflow = document(
        {**looped(), "a": ("llm", {"system": "{{loop.x}}", "prompt": "{{input}} {{loop.y}} {{loop.x}}"})}, *LOOPED
    )

    places = [(problem.node, problem.field, problem.message.split()[0]) for problem in name_problems(analyse(workflow))]

    assert places == [("a", "system", "`loop.x`"), ("a", "prompt", "`loop.x`"), ("a", "prompt", "`loop.y`")]


@pytest.mark.parametrize(
    "text",
    [
        "{{loop.history[0].nodes.a}}",
        "{{loop.history[0].nodes}}",
        "{{loop.history[loop.index - 1].result.title}}",
        "{{loop.history.map(one, one.nodes.a)}}",
        "{{loop.history.filter(one, one.score > 1.0)[0].nodes.a}}",
        "{{loop.history[0]['nodes']['a']}}",
        "{{has(loop.history[0].score)}}",
        "{{input.history[0].foo}}",
        "{{[1].map(one, one)}}",
    ],
)
def test_members_of_a_record_are_valid(text: str) -> None:
    assert in_body(text) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "{{loop.history[0].critic}}",
            "`loop.history[…].critic` … record … has index",
        ),
        ("{{loop.history[loop.index].nodes.b}}", '`b` … "Loop"'),
        ("{{loop.history[0]['nodes']['b']}}", '`b` … "Loop"'),
        ("{{loop.history.map(one, one.foo)}}", "`loop.history[…].foo`"),
        ("{{loop.history.exists(one, one.nodes.b == '')}}", '`b` … "Loop"'),
        ("{{loop.history.filter(one, one.foo)}}", "`loop.history[…].foo`"),
        (
            "{{loop.history.filter(one, true).map(one, one.nodes.b)}}",
            '`b` … "Loop"',
        ),
        ("{{loop.history.filter(one, true)[0].foo}}", "`loop.history[…].foo`"),
        ("{{has(loop.history[0].foo)}}", "`loop.history[…].foo`"),
        ("{{loop.history[0].score.more}}", "`score` … a number"),
        ("{{loop.history[0].reason.more}}", "`reason` … a text"),
        ("{{loop.history.result}}", "`loop.history[0].result`"),
        ("{{loop.history[0].nodes.a.title}}", "`a` … a text"),
        ("{{loop.last.a.title}}", "`a` … a text"),
    ],
)
def test_unknown_members_of_a_record_are_problems(text: str, says: str) -> None:
    (message,) = in_body(text)

    assert mentions(message, says)


@pytest.mark.parametrize(
    ("node", "port", "known", "unknown"),
    [
        (("router", {"criteria": "Good?"}), "done", "selected_branch", "branch"),
        (("validator", {"mode": "expression", "expression": "true"}), "valid", "errors", "error"),
        ("approval", "approved", "choice", "answer"),
    ],
)
def test_the_members_of_a_verdict_are_known(node: Any, port: str, known: str, unknown: str) -> None:
    edges = ("text.value -> loop.input", "loop.body -> a.input", f"a.{port} -> exit.input", *CLOSE)

    def about(member: str) -> list[str]:
        return problem_texts(document({**looped({"until": f"nodes.a.{member} == null"}), "a": node}, *edges))

    assert about(known) == []
    assert about(f"{known}.more") == []
    assert mentions(about(unknown)[0], f"`nodes.a.{unknown}` … `a` gives ")


def test_members_of_untyped_outputs_are_not_checked() -> None:
    until = {"until": "nodes.a.title == ''"}
    model = {"prompt": "{{input}}", "reply_schema": {"type": "object"}}
    nodes: list[Any] = [
        ("llm", model),
        ("transform", {"mode": "expression", "expression": "input"}),
        ("transform", {"template": "{{input}}", "on_error": "continue", "error_value": {"title": ""}}),
    ]
    for node in nodes:
        assert problem_texts(document({**looped(until), "a": node}, *LOOPED)) == []


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("{{loop.histroy}}", "loop.history"),
        ("{{loop.Index}}", "loop.index"),
        ("{{loop.last.aa}}", "loop.last.a"),
        ("{{loop.history[0].socre}}", "score"),
        ("{{loop.history[0].nodes.aa}}", "nodes.a"),
        ("{{state.seem}}", "state.seen"),
    ],
)
def test_a_similar_name_is_suggested(text: str, meant: str) -> None:
    nodes = {**looped(), "a": ("transform", {"template": f"{{{{input}}}}{text}", "output_key": "seen"})}

    (problem,) = (problem for problem in validate(document(nodes, *LOOPED)) if problem.code == "unknown-name")

    assert problem.remedy == f'Did you mean "{meant}"? Correct the name.'


@pytest.mark.parametrize(
    ("field", "expression", "meant"),
    [
        ("until", "outptu == ''", "output"),
        ("until", "iteration > 2", "loop.iteration"),
        ("score", "similarty", "similarity"),
        ("condition", "size(inptu) > 1", "input"),
    ],
)
def test_a_similar_name_without_prefix_is_suggested(field: str, expression: str, meant: str) -> None:
    workflow = document(looped({field: expression}), *LOOPED)

    (problem,) = (problem for problem in validate(workflow) if problem.code == "unknown-name")

    assert problem.remedy.startswith(f'Did you mean "{meant}"?')


def test_a_port_from_a_misspelled_name_suggests_the_right_name() -> None:
    workflow = in_a_row(("transform", {"template": "{{input}} {{inptu}}"}))

    (problem,) = (problem for problem in validate(workflow) if problem.code == "unconnected-port")

    assert problem.remedy.startswith('Did you mean "input"?')


@pytest.mark.parametrize(
    ("text", "meant"), [("sise(output)", '"size"'), ("output.startswith('a')", "`output.startsWith('a')`")]
)
def test_a_misspelled_function_suggests_the_right_one(text: str, meant: str) -> None:
    problems = validate(document(looped({"until": text}), *LOOPED))

    assert [(problem.code, problem.remedy) for problem in problems] == [("bad-expression", f"Did you mean {meant}?")]


_UNKNOWN_EVERYWHERE = {
    "prompt": ("llm", {"prompt": "{{input}} {{loop.foo}}"}),
    "system": ("llm", {"prompt": "{{input}}", "system": "{{loop.foo}}"}),
    "template": ("transform", {"template": "{{input}} {{loop.foo}}"}),
    "expression": ("transform", {"mode": "expression", "expression": "input + loop.foo"}),
    "criteria": ("router", {"criteria": "Is {{loop.foo}} good?"}),
    "branches.0.when": (
        "router",
        {"mode": "rules", "branches": [{"name": "done", "when": "loop.foo"}, {"name": "continue", "when": "else"}]},
    ),
    "message": ("approval", {"message": "{{loop.foo}}?"}),
    "agent prompt": ("agent", {"prompt": "{{input}} {{loop.foo}}"}),
    "validator expression": ("validator", {"mode": "expression", "expression": "loop.foo"}),
}


@pytest.mark.parametrize("place", _UNKNOWN_EVERYWHERE)
def test_unknown_names_are_reported_in_every_text_of_a_node(place: str) -> None:
    workflow = document({**looped(), "a": _UNKNOWN_EVERYWHERE[place]}, *LOOPED)

    (problem,) = name_problems(analyse(workflow))

    assert (problem.node, problem.field) == ("a", place.rsplit(maxsplit=1)[-1])


@pytest.mark.parametrize(
    ("field", "config"),
    [
        ("stop_when.0.expression", {"until": "loop.foo"}),
        ("score", {"score": "loop.foo"}),
        ("condition", {"condition": "foo"}),
        ("judge.criteria", {"exit_condition": "judge", "judge": {"criteria": "{{foo}}"}}),
        ("stop_when.0.expression", {"stop_when": [{"condition": "until", "expression": "foo"}]}),
    ],
)
def test_unknown_names_are_reported_in_every_text_of_a_loop(field: str, config: dict[str, Any]) -> None:
    (problem,) = name_problems(analyse(document(looped(config), *LOOPED)))

    assert (problem.node, problem.field) == ("loop", field)


def test_a_loop_without_an_exit_has_no_unknown_names() -> None:
    """Its own problem says why nothing is known of its body."""
    nodes = {"text": "input", "loop": ("loop", {"until": "nodes.a == ''"}), "a": "transform", "out": "output"}

    assert problem_texts(document(nodes, *OPEN, "a.output -> out.value")) == []


def test_a_text_that_does_not_compile_has_no_names() -> None:
    assert outside("{{loop.x}} {{") == []


def test_the_edges_of_the_example_have_no_problems() -> None:
    assert validate(document(looped(), *OPEN, "a.output -> exit.input", *CLOSE)) == []
