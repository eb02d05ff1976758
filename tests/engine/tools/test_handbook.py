from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.bundled import resources_folder
from engine.tools.search_files import SearchFilesParameters, search_files
from engine.tools.tool import ToolContext

PAGES = sorted((resources_folder() / "handbook").glob("*.md"))


def test_handbook_has_its_pages() -> None:
    assert 12 <= len(PAGES) <= 20


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_is_short_with_one_title_and_sections(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1
    assert len(re.findall(r"^## ", text, re.MULTILINE)) >= 2
    assert 150 <= len(text.split()) <= 500
    assert text[-2] != "\n" == text[-1]


@pytest.mark.parametrize(
    ("query", "page", "words"),
    [
        ("How do I stop a loop when the text no longer changes?", "stable-output.md", "exit condition"),
        ("stop loop text same", "stable-output.md", "stable_output"),
        ('search: "text does not change" AND stop', "stable-output.md", "stable_output"),
        ("The loop stops when the text is unchanged.", "stable-output.md", "stable_output"),
        ("what are the exit conditions", "exit-conditions.md", "max_iterations"),
        ("how much will it cost me", "cost-and-budgets.md", "tokens"),
        ("the model flatters me", "failure-modes.md", "praises"),
        ("write a critique prompt", "critique-prompts.md", "critique"),
        ("levenshtein distance", "similarity.md", "Levenshtein"),
        ("append or replace feedback", "feedback-modes.md", "append"),
        ("tiny model offline", "small-models.md", "offline"),
        ("json schema enum", "structured-replies.md", "enum"),
        ("what is a hallucination", "glossary.md", "made up"),
        ("overwrite a file", "web-and-file-tools.md", "draft-2.md"),
        ("temperature for judges", "temperature.md", "0"),
    ],
)
async def test_informal_question_finds_the_right_page(query: str, page: str, words: str) -> None:
    found = await search_files(SearchFilesParameters(query=query), ToolContext())
    assert isinstance(found, list)
    passages = [hit for hit in found if isinstance(hit, dict)]
    assert passages[0]["file"] == page
    assert any(hit["file"] == page and words in str(hit["text"]) for hit in passages)


async def test_question_of_the_search_template_finds_the_answer_first() -> None:
    query = "How do I stop a loop when the text no longer changes?"
    found = await search_files(SearchFilesParameters(query=query, limit=1), ToolContext())
    assert isinstance(found, list)
    assert isinstance(found[0], dict)
    assert "Add the condition `stable_output`" in str(found[0]["text"])
