from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from engine.tools import search_files as search_module
from engine.tools.search_files import SearchFilesParameters, match_expression, search_files
from engine.tools.tool import ToolContext, ToolError
from engine.values import Value, compact_json


async def search(query: str, folder: Path | None = None, name: str = ".", limit: int = 5) -> list[dict[str, Value]]:
    """Search a folder, or the handbook if none is given."""
    parameters = SearchFilesParameters(query=query, folder=name if folder else "", limit=limit)
    found = await search_files(parameters, ToolContext(folder=folder))
    assert isinstance(found, list)
    return [hit for hit in found if isinstance(hit, dict)]


async def files(query: str, folder: Path | None = None, **more: int) -> list[Value]:
    return [hit["file"] for hit in await search(query, folder, **more)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "apples.md").write_text("# Apples\n\nIntro.\n\n## Storing\n\nKeep them in a cool cellar.\n")
    (tmp_path / "pears.txt").write_text("Pears do not keep.\n\nEat pears at once.\n")
    (tmp_path / "sub" / "plums.markdown").write_text("Plums are dried in the sun.\n")
    (tmp_path / "program.py").write_text("cellar = 1\n")
    (tmp_path / ".hidden.md").write_text("cellar\n")
    return tmp_path


# What is found


async def test_result_has_location_and_the_whole_passage(folder: Path) -> None:
    (hit,) = await search("cellar", folder)
    score = hit.pop("score")
    assert isinstance(score, float)
    assert score > 0
    assert hit == {
        "file": "apples.md",
        "title": "Apples > Storing",
        "line": 7,
        "text": "Keep them in a cool cellar.",
    }


async def test_better_match_is_first_with_a_higher_score(folder: Path) -> None:
    hits = await search("keep pears", folder)
    assert [hit["file"] for hit in hits] == ["pears.txt", "apples.md"]
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)  # type: ignore[type-var]


async def test_words_match_without_case_accents_and_endings(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Die CAFÉS stopped looping\n")
    for query in ("cafe", "Café", "cafe\u0301", "stops", "loops", "STOPPING"):
        assert await files(query, tmp_path) == ["a.md"], query


async def test_heading_words_count_more_than_text_words(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Other\nbudget and some more words here\n")
    (tmp_path / "b.md").write_text("# Budget\nother and some more words here\n")
    assert await files("budget", tmp_path) == ["b.md", "a.md"]


async def test_equal_scores_are_ordered_by_name_and_line(tmp_path: Path) -> None:
    for name in ("c", "a", "b"):
        (tmp_path / f"{name}.txt").write_text("same words\n")
    assert await files("words", tmp_path) == ["a.txt", "b.txt", "c.txt"]


async def test_limit_is_respected(tmp_path: Path) -> None:
    for number in range(60):
        (tmp_path / f"{number:02}.txt").write_text("word\n")
    assert len(await search("word", tmp_path)) == 5
    assert len(await search("word", tmp_path, limit=50)) == 50
    assert await files("word", tmp_path, limit=1) == ["00.txt"]
    for limit in (0, 51):
        with pytest.raises(ValidationError):
            SearchFilesParameters(query="x", limit=limit)


async def test_stop_words_do_not_outweigh_significant_words(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("How do I\n")
    (tmp_path / "b.txt").write_text("loop here\n\n")
    (tmp_path / "c.txt").write_text("loop there\n\n")
    assert await files("How do I loop?", tmp_path) == ["b.txt", "c.txt"]
    assert await files("how do", tmp_path) == ["a.txt"]


# Any text is a query

HOSTILE = [
    '"',
    '"" OR',
    "NEAR(a b, 2)",
    "title:x",
    "a AND",
    "NOT",
    "(",
    "*",
    "^a",
    "a-b",
    "{a}:",
    "';--",
    "a\0b",
    "\ud800",
    "+",
    "½",
]


@pytest.mark.parametrize("query", [*HOSTILE, "", " \n", "loop " * 20_000, "x" * 100_000, "(" * 100_000])
async def test_no_query_is_an_error(query: str, folder: Path) -> None:
    assert isinstance(await search(query, folder), list)


@pytest.mark.parametrize(
    "operator", ["cellar AND nowhere", "cellar NOT keep", '"cellar nowhere"', "-cellar", "text:cellar*"]
)
async def test_operators_are_words(operator: str, folder: Path) -> None:
    assert "apples.md" in await files(operator, folder)


@settings(deadline=None)
@given(st.text(st.characters(), max_size=200))
@example('a" OR "b')
@example("\udcff\ud800")
async def test_any_text_is_a_valid_query(query: str) -> None:
    hits = await search(query)
    assert len(hits) <= 5
    for hit in hits:
        compact_json(hit).encode()


def test_expression_has_each_significant_word_once() -> None:
    assert match_expression("Stop the LOOP, stop!") == '"stop" OR "loop"'
    assert match_expression("the the") == '"the"'
    assert match_expression("?!") == ""
    assert match_expression(" ".join(f"w{number}" for number in range(100))).count(" OR ") == 63


async def test_nothing_found_is_an_empty_list(folder: Path) -> None:
    assert await search("zeppelin", folder) == []
    (folder / "empty").mkdir()
    assert await search("cellar", folder, "empty") == []


# The index is made once and never stale


async def test_second_search_reads_no_files(folder: Path) -> None:
    assert await files("cellar", folder) == ["apples.md"]
    before = (folder / "apples.md").stat()
    (folder / "apples.md").write_text((folder / "apples.md").read_text().replace("cellar", "barrel"))
    os.utime(folder / "apples.md", ns=(before.st_atime_ns, before.st_mtime_ns))

    assert await files("cellar", folder) == ["apples.md"]
    assert await files("barrel", folder) == []


async def test_changed_files_are_noticed(folder: Path) -> None:
    assert await files("cellar", folder) == ["apples.md"]
    (folder / "apples.md").write_text("no longer\n")
    assert await files("cellar", folder) == []
    (folder / "new.txt").write_text("cellar\n")
    assert await files("cellar", folder) == ["new.txt"]
    (folder / "new.txt").unlink()
    assert await files("cellar", folder) == []


async def test_concurrent_searches_agree(folder: Path) -> None:
    found = await asyncio.gather(*(search("keep cellar pears", folder) for _ in range(20)))
    assert all(one == found[0] for one in found)
    assert found[0]


async def test_only_recent_indexes_are_cached(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "a.txt").write_text(f"word{number}\n")
        assert await files(f"word{number}", tmp_path / str(number)) == ["a.txt"]
    assert search_module._slot_of.cache_info().currsize == 4
    assert await files("word0", tmp_path / "0") == ["a.txt"]


async def test_a_folder_that_is_slow_to_read_does_not_delay_the_search_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("slow", "quick"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("Apples.")
    read_text, goes_on = search_module.read_text, threading.Event()

    def read_slowly(file: search_module.TextFile) -> str:
        if file.path.parent.name == "slow":
            goes_on.wait(30)
        return read_text(file)

    monkeypatch.setattr(search_module, "read_text", read_slowly)
    slow = asyncio.create_task(search("apples", tmp_path, "slow"))
    try:
        await asyncio.sleep(0.2)
        found = await asyncio.wait_for(asyncio.shield(asyncio.create_task(search("apples", tmp_path, "quick"))), 5)
    finally:
        goes_on.set()

    assert len(found) == len(await slow) == 1


async def test_missing_fts5_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "_SCHEMA", "CREATE VIRTUAL TABLE passages USING no_such_module(text)")
    with pytest.raises(ToolError, match="no such module") as caught:
        await search("x", folder)
    assert "FTS5" in caught.value.remedy


# Which folder


async def test_handbook_is_searched_without_a_folder(folder: Path) -> None:
    assert "stable-output.md" in await files("text no longer changes")
    parameters = SearchFilesParameters(query="text no longer changes", folder="  ")
    found = await search_files(parameters, ToolContext(folder=folder))
    assert found == await search("text no longer changes")


async def test_folder_inside_the_allowed_one_is_searched(folder: Path) -> None:
    for name in ("sub", "./sub/", str(folder / "sub"), "sub/../sub"):
        assert [hit["file"] for hit in await search("plums", folder, name)] == ["plums.markdown"]


@pytest.mark.parametrize("name", ["..", "/", "/etc", "link", "sub/../..", "~"])
async def test_folder_outside_is_refused(folder: Path, name: str) -> None:
    inside = folder / "sub"
    (inside / "link").symlink_to(folder)
    with pytest.raises(ToolError, match=r"outside the run's folder|does not exist") as caught:
        await search("x", inside, name)
    assert "folder" in caught.value.remedy


async def test_without_an_allowed_folder_only_the_handbook_is_searched() -> None:
    with pytest.raises(ToolError, match="no folder") as caught:
        await search_files(SearchFilesParameters(query="x", folder="/etc"), ToolContext())
    assert caught.value.fix == "choose_folder"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gone", "does not exist"),
        ("a\0b", "does not exist"),
        ("circle", "does not exist"),
        ("n" * 999, "does not exist"),
        ("pears.txt", "is not a folder"),
    ],
)
async def test_invalid_folder_is_an_error(folder: Path, name: str, says: str) -> None:
    (folder / "circle").symlink_to("circle")
    with pytest.raises(ToolError, match=says):
        await search("x", folder, name)


# Which files


async def test_links_pipes_and_hidden_folders_are_ignored(folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / ".git" / "a.md").write_text("cellar")
    (folder / "link.md").symlink_to("apples.md")
    os.mkfifo(folder / "pipe.md")
    assert await files("cellar", folder) == ["apples.md"]
    listed = [file.name for file in search_module.find_text_files(folder)]
    assert listed == ["apples.md", "pears.txt", "pipe.md", "sub/plums.markdown"]


async def test_damaged_and_binary_files_do_not_prevent_a_search(tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9 cellar\n")
    (tmp_path / "binary.txt").write_bytes(b"cellar\0\1\2")
    (tmp_path / "wide.txt").write_text("cellar", encoding="utf-16")
    (tmp_path / "marked.txt").write_text("cellar", encoding="utf-8-sig")
    hits = await search("cellar", tmp_path)
    assert {hit["file"]: hit["text"] for hit in hits} == {
        "latin.txt": "caf\ufffd cellar",
        "wide.txt": "cellar",
        "marked.txt": "cellar",
    }


@pytest.mark.skipif(os.name == "nt", reason="file names are text there")
async def test_invalid_utf8_in_a_name_is_replaced(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("cellar")
    assert await files("cellar", tmp_path) == ["caf\ufffd.txt"]


def test_unreadable_file_has_no_text(tmp_path: Path) -> None:
    assert search_module.read_text(search_module.TextFile("a.txt", tmp_path / "a.txt", 0, 0)) == ""


@pytest.mark.parametrize(
    ("limit", "value", "says"),
    [
        ("MAX_FILES", 2, "more than 2 text files"),
        ("MAX_FILE_BYTES", 40, "a file of more than 40 bytes, 'apples.md'"),
        ("MAX_TOTAL_BYTES", 80, "more than 80 bytes of text"),
        ("_MAX_ENTRIES", 3, "more than 3 files and folders"),
    ],
)
async def test_too_large_folder_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, says: str
) -> None:
    monkeypatch.setattr(search_module, limit, value)
    with pytest.raises(ToolError, match=says) as caught:
        await search("x", folder)
    assert "smaller folder" in caught.value.remedy


def test_many_folders_take_linear_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{number}.md" for number in range(500)]
    for name in names:
        (tmp_path / name).touch()
    walked = [(str(tmp_path), [], names), *((str(tmp_path / f"folder-{number}"), [], []) for number in range(40_000))]
    monkeypatch.setattr(search_module.os, "walk", lambda _folder: walked)
    started = time.thread_time()

    assert len(search_module.find_text_files(tmp_path)) == 500

    assert time.thread_time() - started < 1


async def test_too_many_passages_are_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "_MAX_PASSAGES", 2)
    with pytest.raises(ToolError, match="more than 2 passages"):
        await search("x", folder)


async def test_file_deleted_during_listing_is_ignored(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = list(os.walk(folder))
    (folder / "pears.txt").unlink()
    monkeypatch.setattr(os, "walk", lambda _: iter(listed))
    assert [file.name for file in search_module.find_text_files(folder)] == ["apples.md", "sub/plums.markdown"]
