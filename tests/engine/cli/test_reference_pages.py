from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import reference_pages
from benchmarks.reference_pages import main, pages, write_pages
from engine.settings import SETTINGS, variable_of

COMMITTED = Path(__file__).parents[3] / "docs" / "reference"


def test_committed_reference_is_up_to_date():
    found = {file.relative_to(COMMITTED).as_posix(): file.read_text("utf-8") for file in COMMITTED.rglob("*.md")}
    assert found == pages(), "run `make docs`"


def test_settings_page_has_every_setting_with_its_variable():
    page = pages()["settings.md"]
    assert "| `max_iterations_cap` | Max iterations per loop | integer, at least 1, at most 10000 | `50` | " in page
    for name in SETTINGS:
        assert f"| `{name}` |" in page
        assert f"`{variable_of(name)}`" in page


def test_there_is_a_page_for_each_node_type_and_each_command():
    names = set(pages())
    assert {"README.md", "tools.md", "nodes/llm.md", "nodes/loop.md", "commands/run.md"} <= names
    assert "commands/models-set-key.md" in names


def test_page_has_ports_limits_defaults_and_help():
    loop = pages()["nodes/loop.md"]
    assert "| `input` | any | required, takes several edges " in loop
    assert "| `stop_when[].threshold` | Similarity | number, at least 0, at most 1 | `0.95` | " in loop


def test_command_page_has_example_and_options():
    run = pages()["commands/run.md"]
    assert "```sh\nloopwright run self-refine" in run
    assert "| `--max-iterations-cap` `N` |  | Upper limit" in run


def test_only_obsolete_generated_pages_are_removed(tmp_path: Path):
    write_pages(tmp_path)
    stale = tmp_path / "nodes" / "gone.md"
    stale.write_text((tmp_path / "nodes" / "llm.md").read_text("utf-8"), "utf-8")
    own = tmp_path / "notes.md"
    own.write_text("mine", "utf-8")
    assert write_pages(tmp_path) == len(pages())
    assert not stale.exists()
    assert own.read_text("utf-8") == "mine"


def test_make_docs_writes_the_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    main([str(tmp_path)])
    assert capsys.readouterr().out == f"{len(pages())} pages in {tmp_path / 'reference'}\n"
    assert (tmp_path / "reference" / "README.md").read_text("utf-8") == pages()["README.md"]


def test_tags_in_code_are_not_escaped() -> None:
    assert reference_pages._cell("a < b | `<c>`") == "a &lt; b \\| `<c>`"  # pyright: ignore[reportPrivateUsage]
