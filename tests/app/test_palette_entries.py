from __future__ import annotations

import pytest

from app.gallery.gallery import bundled_templates
from app.palette import CATEGORY_TITLES, EntryKind, PaletteEntry, palette_entries
from app.search import match_score
from engine.nodes.node_registry import Registry, builtin_registry
from engine.nodes.spec import Category


def listed(typed: str = "") -> list[PaletteEntry]:
    return palette_entries(builtin_registry(), bundled_templates()[0], typed)


def keys(typed: str) -> list[str]:
    return [row.key for row in listed(typed) if row.kind is EntryKind.NODE]


def test_the_beginning_of_a_name_scores_higher_than_of_a_word_and_the_inside_of_a_word_not_at_all() -> None:
    scores = [match_score("exi", (name,)) for name in ("Exit", "Loop and Exit", "Flexible")]
    assert scores == sorted(set(scores), reverse=True)
    assert scores[-1] == 0


def test_a_synonym_scores_lower_than_a_name_and_higher_than_the_description() -> None:
    name, synonym = match_score("chat", ("Chat",)), match_score("chat", ("LLM",), "", ("chat",))
    assert name > synonym > match_score("chat", ("LLM",), "For a chat") > 0


def test_each_typed_word_may_begin_another_word() -> None:
    assert match_score("exit lo", ("Loop and Exit",)) > 0
    assert match_score("exit xx", ("Loop and Exit",)) == 0


@pytest.mark.parametrize(
    ("typed", "node_type"),
    [
        ("prompt", "llm"),
        ("chat", "llm"),
        ("gpt", "llm"),
        ("if", "router"),
        ("repeat", "loop"),
        ("while", "loop"),
        ("http", "tool"),
        ("map", "iterator"),
        ("for each", "iterator"),
        ("human", "approval"),
    ],
)
def test_node_types_are_found_by_the_words_of_other_programs(typed: str, node_type: str) -> None:
    assert keys(typed)[0] == node_type


def test_help_counts_from_three_letters_on_and_less_than_a_name() -> None:
    help_line = "Calls a language model once."
    assert match_score("la", ("LLM",), help_line) == 0
    assert 0 < match_score("lang", ("LLM",), help_line) < match_score("lang", ("Languages",), "")


def test_nothing_typed_fits_everything() -> None:
    assert match_score(" ", ("Loop",)) > 0


def test_case_and_spaces_around_do_not_matter() -> None:
    assert match_score("  LOOP  and ", ("Loop and Exit",)) == match_score("loop and", ("Loop and Exit",))


def test_everything_is_listed_under_its_category_and_then_the_templates() -> None:
    headers = [row.title for row in listed() if row.kind is EntryKind.HEADER]
    assert headers == [CATEGORY_TITLES[category] for category in Category] + ["Templates"]
    registry = builtin_registry()
    offered = {row.key for row in listed() if row.kind is EntryKind.NODE}
    assert offered == {spec.type for spec in registry} - {"exit", "aggregator"}


def test_every_row_has_an_icon_and_a_line_of_help() -> None:
    assert [row.title for row in listed() if row.kind is not EntryKind.HEADER and not (row.icon and row.help)] == []


def test_an_exit_is_not_offered_alone_but_can_be_found() -> None:
    assert "exit" not in {row.key for row in listed()}
    assert keys("exit")[0] == "exit"
    assert "loop" in keys("exit")


def test_a_type_is_found_by_its_name_in_documents_and_its_description() -> None:
    assert keys("loop")[0] == "loop"
    assert "llm" in keys("language")


def test_what_fits_nothing_lists_nothing() -> None:
    assert listed("qqqq") == []


def test_a_category_without_types_has_no_header() -> None:
    registry = Registry(spec for spec in builtin_registry() if spec.category is Category.AI)
    assert [row.title for row in palette_entries(registry, []) if row.kind is EntryKind.HEADER] == ["AI"]
