"""Generated node ids, and names of files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.document.model import Node, Workflow, is_node_id, is_workflow_file, make_id, stem_of, unique_id
from tests.engine.document.strategies import ids
from tests.examples import examples


@pytest.mark.parametrize(
    ("wish", "made"),
    [
        ("draft", "draft"),
        ("First Draft (v2)!", "first_draft_v2"),
        ("Überarbeiten", "uberarbeiten"),
        ("3 steps", "node_3_steps"),
        ("批評", "node"),
        ("", "node"),
        ("___", "node"),
        ("taken", "taken_2"),
        ("many", "many_4"),
        ("many_2", "many_4"),
        ("many_3", "many_4"),
        ("gap_9", "gap_9"),
        ("zero_0", "zero_0_2"),
        ("x" * 1000, "x" * 40),
        ("x" * 39 + " y", "x" * 39),
        ("\ud800a", "a"),
    ],
)
def test_generated_id_resembles_the_text_and_gets_a_number_if_taken(wish: str, made: str) -> None:
    assert make_id(wish, {"taken", "many", "many_2", "many_3", "zero_0"}) == made


@examples(100)
@given(st.text(st.characters(exclude_categories=[])), st.sets(ids()))
def test_every_text_gives_a_free_valid_id(wish: str, taken: set[str]) -> None:
    made = make_id(wish, taken)
    assert is_node_id(made)
    assert made not in taken


def test_ids_of_the_workflow_are_taken() -> None:
    workflow = Workflow(nodes=(Node(id="draft", type="llm"),))
    assert unique_id(workflow, "Draft") == "draft_2"
    # A changed workflow does not remember the ids of the one that it came from.
    assert unique_id(workflow.model_copy(update={"nodes": ()}), "Draft") == "draft"


@pytest.mark.parametrize("text", ["", "A", "1a", "a-b", "a.b", "a\n", "é", "a٣", "_a"])
def test_invalid_ids_are_recognized(text: str) -> None:
    assert not is_node_id(text)


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("mine.loop.json", "mine"),
        ("mine.loopwright", "mine"),
        ("v1.2.LOOP.JSON", "v1.2"),
        ("Mine.Loopwright", "Mine"),
    ],
)
def test_both_suffixes_are_those_of_workflow_files(name: str, stem: str) -> None:
    assert is_workflow_file(name)
    assert stem_of(name) == stem


@pytest.mark.parametrize("name", ["mine.json", "loopwright", "mine.loop", "mine.loop.json.autosave", ""])
def test_other_names_are_no_workflow_files(name: str) -> None:
    assert not is_workflow_file(name)
    assert stem_of(name) == name
