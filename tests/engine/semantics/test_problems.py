"""Documents with problems: each has a place and a remedy, all are reported at once, and the document does not run."""

from __future__ import annotations

import pytest

from engine import DocumentError, start, validate
from tests.engine.semantics.documents import (
    Part,
    around,
    entry,
    flow,
    formula,
    judge,
    leave,
    llm,
    loop,
    part,
    raw,
    result,
    transform,
)
from tests.engine.semantics.kit import options
from tests.engine.semantics.models import FunctionModel
from tests.engine.semantics.problem_checks import line, one_problem, refused

_GOOD = [{"id": "text", "type": "input"}, {"id": "out", "type": "output"}]


_GOOD_EDGE = {"from": "text.value", "to": "out.value"}


def test_a_valid_document_has_no_problems() -> None:
    assert validate(raw(_GOOD, [_GOOD_EDGE])) == []


def test_duplicate_node_ids() -> None:
    problem = one_problem(raw([*_GOOD, {"id": "text", "type": "input"}], [_GOOD_EDGE]))

    assert problem.node == "text"


@pytest.mark.parametrize("node_id", ["Draft", "1st", "", "a b", "a-b", "a\nb", "é"])
def test_a_malformed_id(node_id: str) -> None:
    problems = refused(raw([*_GOOD, {"id": node_id, "type": "transform", "config": {"template": "x"}}], [_GOOD_EDGE]))

    assert [problem.node for problem in problems] == [node_id]


def test_an_unknown_type_suggests_a_similar_one() -> None:
    problem = one_problem(raw([*_GOOD, {"id": "a", "type": "llmm"}], [_GOOD_EDGE]))

    assert problem.node == "a"
    assert "llmm" in problem.message
    assert "llm" in problem.remedy.replace("llmm", "")


def test_an_edge_to_an_unknown_node() -> None:
    edges = [_GOOD_EDGE, {"from": "nobody.value", "to": "out.value"}, {"from": "text.value", "to": "nowhere.input"}]

    problems = refused(raw(_GOOD, edges))

    assert {problem.edge for problem in problems} == {"nobody.value -> out.value", "text.value -> nowhere.input"}
    assert any("nobody" in problem.message for problem in problems)


@pytest.mark.parametrize(
    "edge",
    [
        {"from": "text.output", "to": "out.value"},
        {"from": "text.value", "to": "out.input"},
        {"from": "text", "to": "out.value"},
        {"from": "text.value", "to": "out"},
        {"from": "text.", "to": ".value"},
        {"from": "text.value.x", "to": "out.value"},
    ],
)
def test_an_edge_to_an_unknown_port(edge: dict[str, str]) -> None:
    problems = refused(raw(_GOOD, [_GOOD_EDGE, edge]))

    assert {problem.edge for problem in problems} == {f"{edge['from']} -> {edge['to']}"}


@pytest.mark.parametrize(
    ("node", "port"),
    [
        (transform("a", "{{input}}"), "input"),
        (transform("a", "{{critique}}"), "critique"),
        (formula("a", "score + 1"), "score"),
        (llm("a", "{{input}}"), "input"),
        (judge("a"), "input"),
        (part("a", "validator"), "input"),
        (part("a", "tool", tool="read_file"), "path"),
    ],
)
def test_an_unconnected_required_port(node: Part, port: str) -> None:
    problem = one_problem(line(node, edges="text -> out"))

    assert (problem.node, problem.port) == ("a", port)


def test_an_unconnected_output() -> None:
    problem = one_problem(flow(result()))

    assert (problem.node, problem.port) == ("out", "value")


def test_two_edges_into_a_port_that_takes_one() -> None:
    workflow = flow(
        entry("a"), entry("b"), transform("t", "{{left}}"), result(), edges="a -> t.left\nb -> t.left\nt -> out"
    )

    problem = one_problem(workflow)

    assert (problem.node, problem.port) == ("t", "left")


def test_a_duplicate_edge() -> None:
    assert refused(raw(_GOOD, [_GOOD_EDGE, _GOOD_EDGE]))


def test_types_that_never_fit() -> None:
    workflow = flow(
        entry("flag", type="boolean"),
        part("read", "tool", tool="read_file", arguments={"path": "a"}),
        result(),
        edges="flag -> read.max_bytes\nread -> out",
    )

    problem = one_problem(workflow)

    assert problem.edge == "flag.value -> read.max_bytes"
    assert "boolean" in problem.message
    assert "number" in problem.message


def test_a_cycle_names_its_nodes() -> None:
    workflow = line(transform("a"), transform("b"), edges="text -> a -> b -> a\nb -> out")

    problems = refused(workflow)

    text = " ".join(str(problem) for problem in problems)
    assert "a" in text
    assert "b" in text
    assert any("loop" in problem.remedy.lower() for problem in problems)


def test_an_edge_from_a_node_to_itself() -> None:
    assert refused(line(transform("a"), edges="text -> a -> out\na -> a"))


def test_duplicate_input_or_output_names() -> None:
    workflow = flow(
        entry("a", name="same"), entry("b", name="same"), result("x"), result("y", name="x"), edges="a -> x\nb -> y"
    )

    nodes = {problem.node for problem in refused(workflow)}

    assert nodes & {"a", "b"}
    assert nodes & {"x", "y"}


def test_all_problems_are_reported_at_once_and_in_a_stable_order() -> None:
    workflow = flow(
        entry(),
        llm("a", temperature="hot", max_tokens=0),
        transform("b", "{{missing}} {{broken"),
        formula("c", "1 +"),
        part("d", "nonsense"),
        leave("e", "nobody"),
        loop("f"),
        result(),
        edges="text -> a.nothing",
    )

    problems = refused(workflow)

    assert {"a", "b", "c", "d", "e", "f", "out"} <= {problem.node for problem in problems}
    assert len([problem for problem in problems if problem.node == "a"]) >= 2
    assert validate(workflow) == validate(workflow)


def test_the_error_of_a_run_names_the_first_problem_and_the_number_of_problems() -> None:
    workflow = line(llm("a", temperature="hot"), transform("b", "{{x}}"), edges="text -> a -> out")

    with pytest.raises(DocumentError) as caught:
        start(workflow, {"text": "x"}, options(FunctionModel("")))

    assert len(caught.value.problems) == 2
    assert str(caught.value).count("\n") == 0


def test_a_problem_is_json_and_a_sentence() -> None:
    problem = one_problem(line(llm("a", temperature="hot"), edges="text -> a -> out"))

    data = problem.to_json()
    assert (data["severity"], data["node"], data["field"]) == ("error", "a", "temperature")
    assert data["code"]
    assert str(problem).startswith('error: node "a", field "temperature": ')


def test_an_empty_document() -> None:
    one_problem(raw([], []))


def test_validating_runs_nothing() -> None:
    model = FunctionModel("x")

    validate(around(llm("draft"), edges="loop -> draft -> exit"))

    assert model.calls == []
