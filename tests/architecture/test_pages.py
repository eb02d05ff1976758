"""The documentation pages: links lead somewhere, commands exist, examples run."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
import typer

import engine
from app.entry import window_arguments
from engine.cli.main import app
from engine.models.embedded import EMBEDDED_NOTE
from tests.architecture.markdown import anchors, blocks, links, read
from tests.architecture.project import ROOT, in_a_new_process, pages

PAGES = [page.relative_to(ROOT).as_posix() for page in pages()]
_SHELLS = ("sh", "powershell")


def _broken(page: str, link: str) -> str | None:
    """The error of a link, or None."""
    if re.match(r"[a-z]+:", link):
        return None if link.startswith("https://") else "no https address"
    path, _, anchor = unquote(link).partition("#")
    target = ((ROOT / page).parent / path).resolve() if path else ROOT / page
    if not target.is_relative_to(ROOT) or not target.exists():
        return "leads nowhere"
    return "no such heading" if anchor and anchor not in anchors(target) else None


def _command_lines(page: str) -> Iterator[list[str]]:
    """The words of every command in a page's shell blocks, without comments and pipes."""
    for block in blocks(page):
        if block.language in _SHELLS:
            for line in block.text.replace("\\", "/").splitlines():
                words = shlex.split(line, comments=True)
                yield words[: words.index("|")] if "|" in words else words


def _program_calls() -> list[tuple[str, list[str]]]:
    """The page and arguments of every call of a command in a page; files to open are none."""
    found: list[tuple[str, list[str]]] = []
    for page in PAGES:
        for words in _command_lines(page):
            for at, word in enumerate(words):
                if word.rpartition("/")[2] == "loopwright":
                    if window_arguments(words[at + 1 :]) is None:
                        found.append((page, words[at + 1 :]))
                    break
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str):
    broken = {link: _broken(page, link) for link in links(read(page))}
    assert {link: fault for link, fault in broken.items() if fault} == {}


@pytest.mark.parametrize(
    ("link", "fault"),
    [
        ("docs/no-such-page.md", "leads nowhere"),
        ("docs/library.md#no-such-heading", "no such heading"),
        ("../outside.md", "leads nowhere"),
        ("http://example.org", "no https address"),
        ("docs/library.md#in-a-script", None),
        ("#windows", None),
        ("docs", None),
    ],
)
def test_a_broken_link_is_detected(link: str, fault: str | None):
    assert _broken("README.md", link) == fault


def test_every_page_can_be_reached_from_the_readme():
    reached: set[str] = set()
    waiting = ["README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        for link in links(read(page)):
            target = ((ROOT / page).parent / link.partition("#")[0]).resolve()
            if target.suffix == ".md" and target.is_file():
                waiting.append(target.relative_to(ROOT).as_posix())
    expected = {page for page in PAGES if page.startswith("docs/") or "/" not in page}
    assert expected - reached == set()


@pytest.mark.parametrize(("page", "arguments"), _program_calls())
def test_every_command_in_a_page_is_valid(page: str, arguments: list[str]):
    if window_arguments(arguments) is not None:
        return
    command = typer.main.get_command(app)
    context = command.make_context("loopwright", list(arguments))
    while hasattr(command, "resolve_command") and (rest := [*context._protected_args, *context.args]):
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)


def test_the_readme_shows_the_program():
    assert sum(page == "README.md" for page, _ in _program_calls()) >= 8


def test_every_make_target_in_a_page_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {words[1] for page in PAGES for words in _command_lines(page) if words[:1] == ["make"] and len(words) > 1}
    assert named
    assert named <= targets


def test_the_windows_steps_name_existing_files():
    (block,) = [block for block in blocks("README.md") if block.language == "powershell"]
    text = block.text.replace("\\", "/")
    assert all((ROOT / name).is_file() for name in re.findall(r"[\w./-]+\.(?:lock|json)", text))
    assert "requirements.lock" in text


def test_the_python_of_the_readme_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (block,) = [block for block in blocks("README.md") if block.language == "python"]
    replies = tmp_path / "replies.json"
    replies.write_text('{"rules": [], "default": "Wet."}', encoding="utf-8")
    monkeypatch.setenv("LOOPWRIGHT_MODEL", f"scripted:{replies}")
    assert in_a_new_process(block.text) == "Wet. max_iterations\n"


@pytest.mark.parametrize("page", ["README.md", "docs/library.md"])
def test_the_built_in_model_is_described_honestly(page: str):
    assert EMBEDDED_NOTE in " ".join(read(page).split())


def test_the_changelog_has_the_version():
    assert engine.__version__ in read("CHANGELOG.md")
    assert "version" in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dynamic"]


def test_every_module_and_folder_named_in_a_page_exists():
    name = re.compile(r"`((?:engine|app|tests|benchmarks|docs|templates|resources)/[\w/-]+(?:\.py)?)`")
    named = {(page, path) for page in PAGES if page != "CHANGELOG.md" for path in name.findall(read(page))}
    assert len(named) > 20
    assert [(page, path) for page, path in sorted(named) if not (ROOT / path).exists()] == []
