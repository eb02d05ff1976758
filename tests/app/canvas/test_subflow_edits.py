"""Wrapping nodes in a subflow, and replacing a subflow by its nodes."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from hypothesis import assume, event, given, reject
from hypothesis import strategies as st
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.canvas.loop_edits import Document
from app.canvas.subflow_edits import extract_subflow, inline_subflow
from app.node_layout import Box, auto_layout, stored_position
from engine import validate
from engine.bundled import templates_folder
from engine.document.files import load
from engine.document.model import Workflow
from engine.document.operations import OperationError, SetConfig
from engine.document.problems import has_errors
from engine.nodes.node_names import node_name
from engine.nodes.node_registry import builtin_registry
from engine.plan.structure import analyse
from tests.app.canvas.conftest import Hand, MakeCanvas, settle
from tests.app.canvas.documents import nested, node, refine, workflow
from tests.engine.semantics.documents import entry, flow, part, result, rules, transform
from tests.engine.semantics.kit import play


def opened(document: Workflow) -> Document:
    structure = analyse(document)
    boxes = {one.id: Box(160, 84) for one in document.nodes}
    positions = auto_layout(document, structure, boxes)
    positions |= {one.id: found for one in document.nodes if (found := stored_position(document, one.id)) is not None}
    return Document(document, structure, builtin_registry(), positions, boxes)


def edges(document: Workflow) -> set[str]:
    return {f"{edge.from_} -> {edge.to}" for edge in document.edges}


def ports_in_order(document: Workflow) -> dict[str, list[str]]:
    """The sources of each port, in the order in which their values are joined."""
    return {to: [edge.from_ for edge in document.edges if edge.to == to] for to in {edge.to for edge in document.edges}}


def extracted(document: Workflow, *node_ids: str) -> Workflow:
    return extract_subflow(opened(document), node_ids).apply(document)[0]


def inlined(document: Workflow, node_id: str = "subflow") -> Workflow:
    return inline_subflow(opened(document), node_id).apply(document)[0]


def content(document: Workflow, node_id: str = "subflow") -> Workflow:
    return Workflow.model_validate(document.node(node_id).config["workflow"])


def steps() -> Workflow:
    """Two inputs, three models in a row of which the second has both inputs, and two outputs."""
    return workflow(
        [
            node("task", "input"),
            node("tone", "input"),
            node("plan", "llm", "Plan", prompt="{{input}}"),
            node("draft", "llm", "Draft", prompt="{{input}} {{tone}}"),
            node("polish", "llm", "Polish", prompt="{{input}}"),
            node("text", "output"),
            node("first", "output"),
        ],
        [
            "task.value -> plan.input",
            "plan.output -> draft.input",
            "tone.value -> draft.tone",
            "draft.output -> polish.input",
            "polish.output -> text.value",
            "draft.output -> first.value",
        ],
    )


def test_values_from_outside_become_inputs_and_used_values_outputs():
    document = extracted(steps(), "plan", "draft")
    assert edges(document) == {
        "task.value -> subflow.input",
        "tone.value -> subflow.tone",
        "subflow.result -> polish.input",
        "subflow.result -> first.value",
        "polish.output -> text.value",
    }
    assert edges(content(document)) == {
        "input.value -> plan.input",
        "plan.output -> draft.input",
        "tone.value -> draft.tone",
        "draft.output -> result.value",
    }
    assert not has_errors(validate(document))


def test_each_used_value_is_an_output_of_its_own():
    document = extracted(steps(), "plan", "draft", "polish")
    assert {"subflow.polish_output -> text.value", "subflow.draft_output -> first.value"} <= edges(document)


def test_nodes_in_between_come_along_and_the_ends_of_the_workflow_stay():
    document = extracted(steps(), "task", "plan", "polish", "text")
    assert {one.id for one in content(document).nodes} >= {"plan", "draft", "polish"}
    assert {one.id for one in document.nodes} == {"task", "tone", "text", "first", "subflow"}


def test_unconnected_nodes_are_fed_and_connected_to_free_ends():
    document = workflow([node("text", "input"), node("draft", "llm"), node("out", "output")], [])
    assert edges(extracted(document, "draft")) == {"text.value -> subflow.input", "subflow.result -> out.value"}


def test_a_whole_loop_is_extracted():
    document = extracted(refine(), "draft", "loop")
    assert {one.id for one in content(document).nodes} >= {"loop", "draft", "exit"}
    assert not has_errors(validate(document))


def test_a_body_becomes_a_subflow_in_the_loop():
    document = extracted(refine(), "draft")
    assert analyse(document).bodies["loop"].nodes == {"subflow"}
    assert not has_errors(validate(document))


def test_nodes_that_need_their_loop_are_refused():
    document = workflow(
        [
            node("task", "input"),
            node("loop", "loop"),
            node("draft", "llm", prompt="{{input}} in iteration {{loop.iteration}}"),
            node("exit", "exit", loop="loop"),
            node("text", "output"),
        ],
        [
            "task.value -> loop.input",
            "loop.body -> draft.input",
            "draft.output -> exit.input",
            "exit.output -> text.value",
        ],
    )
    with pytest.raises(OperationError) as refused:
        extract_subflow(opened(document), ["draft"])
    assert f"“{node_name(document, 'draft')}”" in refused.value.message
    assert "draft" not in str(refused.value)


def test_a_subflow_whose_value_is_used_by_its_name_is_not_unwrapped():
    document = extracted(refine(), "draft")
    document = SetConfig(("score",), {"loop": "size(string(nodes.subflow))"}).apply(document)[0]
    with pytest.raises(OperationError) as refused:
        inline_subflow(opened(document), "subflow")
    assert f"“{node_name(document, 'loop')}”" in refused.value.message
    assert "`" not in str(refused.value)


def test_the_node_that_uses_a_value_by_its_name_is_to_be_selected_too():
    review = load(templates_folder() / "code-review.loop.json")
    title = review.nodes_by_id["loop"].title
    with pytest.raises(OperationError) as refused:
        extract_subflow(opened(review), ["review"])
    assert f"“{title}”" in refused.value.message
    assert refused.value.remedy == f"Select “{title}” too."
    assert not has_errors(validate(extracted(review, "review", "loop")))


@pytest.mark.parametrize("selected", [[], ["task"], ["text"]])
def test_nothing_to_wrap_is_refused(selected: list[str]):
    with pytest.raises(OperationError):
        extract_subflow(opened(steps()), selected)


def nested_files(outer: str, file: str) -> Workflow:
    """A subflow with a subflow in it, each with a copy of its file."""
    copy = refine().model_dump(by_alias=True, mode="json")
    inner = workflow([node("inner", "subflow", file=file, workflow=copy)], []).model_dump(by_alias=True, mode="json")
    return workflow([node("subflow", "subflow", file=outer, workflow=inner)], [])


@pytest.mark.parametrize(
    ("outer", "file", "expected"),
    [
        ("", "parts/inner.loop.json", "parts/inner.loop.json"),
        ("outer.loop.json", "parts/inner.loop.json", "parts/inner.loop.json"),
        ("parts/outer.loop.json", "inner.loop.json", "parts/inner.loop.json"),
        ("parts/outer.loop.json", "../inner.loop.json", "inner.loop.json"),
        ("../outer.loop.json", "../inner.loop.json", "../../inner.loop.json"),
        ("parts/outer.loop.json", "/inner.loop.json", "/inner.loop.json"),
    ],
)
def test_files_of_unwrapped_subflows_stay_the_same(outer: str, file: str, expected: str):
    assert inlined(nested_files(outer, file)).node("inner").config["file"] == expected


def test_files_of_wrapped_subflows_stay_the_same():
    wrapped = extracted(inlined(nested_files("", "parts/inner.loop.json")), "inner")
    assert content(wrapped).node("inner").config["file"] == "parts/inner.loop.json"
    assert inlined(wrapped).node("inner").config["file"] == "parts/inner.loop.json"


def test_a_subflow_without_its_workflow_cannot_be_unwrapped():
    document = workflow([node("part", "subflow", file="missing.loop.json")], [])
    with pytest.raises(OperationError):
        inline_subflow(opened(document), "part")


def test_unwrapping_gives_ids_that_are_free_and_updates_references():
    inner = refine().model_dump(by_alias=True, mode="json")
    document = workflow(
        [node("draft", "llm"), node("part", "subflow", workflow=inner), node("out", "output")],
        ["draft.output -> part.task", "part.text -> out.value"],
    )
    flat = inlined(document, "part")
    assert flat.node("exit").config["loop"] == "loop"
    assert edges(flat) == {
        "draft.output -> loop.input",
        "loop.body -> draft_2.input",
        "draft_2.output -> exit.input",
        "exit.output -> out.value",
    }


def test_an_unconnected_input_of_a_subflow_stays_an_input():
    inner = refine().model_dump(by_alias=True, mode="json")
    document = workflow([node("part", "subflow", workflow=inner), node("out", "output")], ["part.text -> out.value"])
    flat = inlined(document, "part")
    assert flat.node("task").type == "input"
    assert "task.value -> loop.input" in edges(flat)


def test_the_model_of_a_subflow_stays_that_of_its_nodes():
    inner: dict[str, Any] = refine().model_dump(by_alias=True, mode="json") | {"settings": {"model": "demo"}}
    document = workflow([node("part", "subflow", workflow=inner)], [])
    assert inlined(document, "part").node("draft").config["model"] == "demo"


def branches(rule: str, **more: Any) -> Workflow:
    """A router with two branches that join again."""
    return flow(
        entry(),
        rules("way", {"left": rule, "right": "else"}),
        transform("one", "[one:{{input}}]"),
        transform("two", "[two:{{input}}]"),
        transform("both", "[both:{{input}}]"),
        result(),
        edges="text -> way\nway.left -> one -> both\nway.right -> two -> both -> out",
        **more,
    )


def outputs(document: Workflow) -> Any:
    return asyncio.run(play(document)).result.outputs


@pytest.mark.parametrize("rule", ["true", "false"])
@pytest.mark.parametrize("selected", [["both"], ["way", "both"], ["one"], ["two"]], ids=" ".join)
def test_a_subflow_after_a_router_gives_the_same_result(rule: str, selected: list[str]):
    document = branches(rule)
    assert outputs(extracted(document, *selected)) == outputs(document) != {}


def test_branches_that_join_in_one_port_are_one_input():
    document = extracted(branches("true"), "both")
    assert {"one.output -> subflow.input", "two.output -> subflow.input"} <= edges(document)


@pytest.mark.parametrize("selected", [["one", "both"], ["one", "two"]], ids=" ".join)
def test_nodes_on_different_branches_are_refused(selected: list[str]):
    with pytest.raises(OperationError, match="branch"):
        extract_subflow(opened(branches("true")), selected)


def test_a_node_that_runs_always_is_not_wrapped_with_one_on_a_branch():
    document = flow(
        entry(),
        rules("way", {"left": "true", "right": "else"}),
        transform("always", "fixed"),
        transform("one", "{{input}} {{more}}"),
        result(),
        result("kept"),
        edges="text -> way.input\nway.left -> one -> out\nalways -> one.more\nalways -> kept",
    )
    with pytest.raises(OperationError, match="branch"):
        extract_subflow(opened(document), ["always", "one"])


@pytest.mark.parametrize("rule", ["true", "false"])
def test_inputs_that_always_have_a_value_together_are_wrapped_whatever_the_branches_before(rule: str):
    document = flow(
        entry(),
        rules("way", {"left": rule, "right": "else"}),
        transform("one", "[one:{{input}}]"),
        transform("both", "[both:{{input}}]"),
        transform("last", "{{input}} {{text}}"),
        result(),
        edges="text -> way\nway.left -> one -> both\nway.right -> both -> last -> out\ntext -> last.text",
    )
    wrapped = extracted(document, "last")
    assert len(edges(wrapped) & {"both.output -> subflow.input", "text.value -> subflow.text"}) == 2
    assert outputs(wrapped) == outputs(document) != {}


@pytest.mark.parametrize("selected", [["b"], ["a"], ["c"], ["b", "all"], ["c", "all"]], ids=" ".join)
def test_values_that_join_keep_their_order(selected: list[str]):
    document = flow(
        entry(),
        *(transform(name, name + "{{input}}") for name in "abc"),
        transform("all"),
        result(),
        edges="\n".join(["text -> a -> all -> out", "text -> b -> all", "text -> c -> all"]),
    )
    wrapped = extracted(document, *selected)
    assert outputs(wrapped) == outputs(inlined(wrapped)) == outputs(document) == {"out": "aseed\n\nbseed\n\ncseed"}


def test_other_keys_of_edges_survive():
    edge = [{"from": edge.from_, "to": edge.to, "color": str(edge)} for edge in steps().edges]
    document = Workflow.model_validate({**steps().model_dump(), "edges": edge})
    wrapped = extracted(document, "plan", "draft")
    back = inlined(wrapped)
    assert {str(edge): edge.model_extra for edge in back.edges} == {
        str(edge): {"color": str(edge)} for edge in back.edges
    }


INNER = flow(entry("given"), transform("made_of", "<{{input}}>"), result("made"), edges="given -> made_of -> made")


@pytest.mark.parametrize(
    ("more", "reason"),
    [({"enabled": False}, "disabled"), ({"pinned": {"made": "kept"}}, "pinned")],
    ids=["disabled", "pinned"],
)
def test_a_subflow_that_does_not_run_is_not_unwrapped(more: dict[str, Any], reason: str):
    part_node = node("part", "subflow", workflow=INNER.to_json()) | more
    document = workflow([node("text", "input"), part_node, node("out", "output")], ["text.value -> part.given"])
    with pytest.raises(OperationError, match=reason):
        inline_subflow(opened(document), "part")


@pytest.mark.parametrize(
    ("config", "reason"),
    [({"on_error": "continue"}, "fail"), ({"retries": 2}, "retries"), ({"timeout_s": 5}, "timeout")],
    ids=["continues", "retries", "timeout"],
)
def test_a_subflow_with_settings_that_its_nodes_lack_is_not_unwrapped(config: dict[str, Any], reason: str):
    document = workflow([node("part", "subflow", workflow=INNER.to_json(), **config)], [])
    with pytest.raises(OperationError, match=reason):
        inline_subflow(opened(document), "part")


def test_a_subflow_in_a_loop_whose_default_would_be_lost_is_not_unwrapped():
    inner = flow(
        entry("given"),
        entry("tone", default="plain"),
        transform("say", "{{input}} {{tone}}"),
        result("made"),
        edges="given -> say -> made\ntone -> say.tone",
    )
    document = flow(
        entry(),
        part("loop", "loop", max_iterations=2),
        part("part", "subflow", workflow=inner.to_json()),
        part("exit", "exit", loop="loop"),
        result(),
        edges="text -> loop.input\nloop.body -> part.given\npart.made -> exit.input\nexit.output -> out",
    )
    with pytest.raises(OperationError, match="tone"):
        inline_subflow(opened(document), "part")


def test_unwrapping_that_makes_a_new_error_is_refused():
    inner = flow(entry("topic", name="text"), transform("say"), result("made"), edges="topic -> say -> made").to_json()
    document = workflow(
        [node("text", "input"), node("part", "subflow", workflow=inner), node("out", "output"), node("kept", "output")],
        ["part.made -> out.value", "text.value -> kept.value"],
    )
    with pytest.raises(OperationError, match=r"cannot be unwrapped.*\"text\""):
        inline_subflow(opened(document), "part")


@st.composite
def selections(draw: st.DrawFn) -> tuple[Workflow, list[str]]:
    """A document of models in layers, with a loop, and some of its nodes."""
    document = draw(st.sampled_from([nested(), refine(), steps(), branches("true")]))
    names = [one.id for one in document.nodes]
    return document, draw(st.lists(st.sampled_from(names), min_size=1, unique=True))


@given(selections())
def test_unwrapping_gives_the_document_back(case: tuple[Workflow, list[str]]):
    document, selected = case
    try:
        wrapped = extracted(document, *selected)
    except OperationError:
        reject()
    assert not has_errors(validate(wrapped))
    back = inlined(wrapped)
    assert edges(back) == edges(document)
    assert ports_in_order(back) == ports_in_order(document)
    assert {one.id: one for one in back.nodes} == {one.id: one for one in document.nodes}
    places = {one.id: stored_position(back, one.id) for one in back.nodes}
    for one, other in itertools.combinations([place for place in places.values() if place is not None], 2):
        assert abs(one[0] - other[0]) >= 160 or abs(one[1] - other[1]) >= 84


@st.composite
def flows_with_a_subflow(draw: st.DrawFn) -> Workflow:
    """A workflow with a router, and a subflow with one to three inputs, each connected to any value before or none."""
    sources = ["text.value", "way.left", "way.right", "one.output", "both.output"]
    names = ["a", "b", "c"][: draw(st.integers(1, 3))]
    edges = [
        f"{source} -> part.{name}"
        for name in names
        for source in draw(st.lists(st.sampled_from(sources), max_size=2, unique=True))
    ]
    connected = {edge.rpartition(".")[2] for edge in edges}
    steps = [f"step_{number}" for number in range(draw(st.integers(1, 4)))]
    inner_edges = []
    for number, step in enumerate(steps):
        before = [*(f"{name}.value" for name in names), *(f"{other}.output" for other in steps[:number])]
        ports = ["input", "more"] if draw(st.booleans()) else ["input"]
        for port in ports:
            froms = draw(st.lists(st.sampled_from(before), min_size=port == "more", max_size=2, unique=True))
            inner_edges += [f"{one} -> {step}.{port}" for one in froms[: 1 if port == "more" else 2]]
    wanted = draw(st.lists(st.sampled_from([*steps, *names]), min_size=1, max_size=2, unique=True))
    uses_more = {edge.split(" -> ")[1].partition(".")[0] for edge in inner_edges if edge.endswith(".more")}
    defaults = {name: None if name in connected and draw(st.booleans()) else name for name in names}
    texts = {step: f"[{step}:{{{{input}}}}{'{{more}}' if step in uses_more else ''}]" for step in steps}
    inner = workflow(
        [
            *(node(name, "input", default=defaults[name]) for name in names),
            *(node(one, "transform", template=texts[one]) for one in steps),
            *(node(f"made_{number}", "output") for number, _ in enumerate(wanted)),
        ],
        [
            *inner_edges,
            *(
                f"{one}.{'value' if one in names else 'output'} -> made_{number}.value"
                for number, one in enumerate(wanted)
            ),
        ],
    )
    return workflow(
        [
            node("text", "input", default="seed"),
            node(
                "way",
                "router",
                mode="rules",
                branches=[
                    {"name": "left", "when": draw(st.sampled_from(["true", "false"]))},
                    {"name": "right", "when": "else"},
                ],
            ),
            node("one", "transform", template="<{{input}}>"),
            node("both", "transform", template="({{input}})"),
            node("part", "subflow", workflow=inner.to_json()),
            *(node(f"end_{number}", "output") for number, _ in enumerate(wanted)),
        ],
        [
            "text.value -> way.input",
            "way.left -> one.input",
            "one.output -> both.input",
            "way.right -> both.input",
            *edges,
            *(f"part.made_{number} -> end_{number}.value" for number, _ in enumerate(wanted)),
        ],
    )


@given(flows_with_a_subflow())
def test_unwrapping_changes_no_result(document: Workflow):
    assume(not has_errors(validate(document)))
    try:
        back = inlined(document, "part")
    except OperationError as refusal:
        event(f"refused: {refusal.remedy}")
        return
    event("unwrapped")
    assert outputs(back) == outputs(document)


def test_undo_restores_the_nodes(hand: Hand) -> None:
    before = hand.session.workflow
    hand.session.select(["draft"])
    hand.canvas.actions_by_name["wrap_subflow"].trigger()
    assert hand.session.selection == ("subflow",)
    assert hand.session.undo_title == "Wrap Draft in a subflow"
    hand.session.undo()
    assert hand.session.workflow == before


def test_wrap_and_unwrap_by_keyboard(hand: Hand, qtbot: QtBot) -> None:
    hand.session.select(["loop", "exit"])
    with qtbot.waitSignal(hand.session.changed):
        hand.key(Qt.Key.Key_E, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    assert set(hand.canvas.view.nodes) == {"task", "subflow", "text"}
    settle(hand, qtbot)
    with qtbot.waitSignal(hand.session.changed):
        hand.key(Qt.Key.Key_L, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    assert set(hand.canvas.view.nodes) == {"task", "loop", "draft", "exit", "text"}
    assert set(hand.session.selection) == {"loop", "draft", "exit"}


def test_a_frame_is_put_around_the_selection_and_unwrapped(hand: Hand) -> None:
    hand.session.select(["draft", "exit"])
    hand.key(Qt.Key.Key_G, Qt.KeyboardModifier.ControlModifier)
    frame = hand.canvas.view.annotations.items["frames", "frame_1"]
    assert frame.scene_rect.contains(hand.item("draft").card_rect)
    hand.canvas.navigation.choose(frame)
    hand.canvas.actions_by_name["unwrap"].trigger()
    assert not hand.canvas.view.annotations.items
    assert set(hand.canvas.view.nodes) == {"task", "loop", "draft", "exit", "text"}


def test_a_refused_wrap_says_why(make_canvas: MakeCanvas, qtbot: QtBot) -> None:
    hand = make_canvas(steps())
    hand.session.select(["task"])
    with qtbot.waitSignal(hand.session.refused):
        hand.canvas.commands.wrap_in_subflow()
    assert hand.session.undo_title is None
