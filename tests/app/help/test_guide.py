"""The contents, search and links of the user guide, without a window."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.help.guide import START, Contents, Guide, anchor_of, pictures_in, template_of
from engine.bundled import docs_folder


@pytest.fixture(scope="module")
def guide() -> Guide:
    return Guide.read(docs_folder())


def made(folder: Path, **pages: str) -> Guide:
    for name, text in pages.items():
        file = folder / f"{name.replace('__', '/')}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return Guide.read(folder)


def pages_in(contents: tuple[Contents, ...]) -> list[str]:
    return [name for entry in contents for name in ([entry.page] if entry.page else []) + pages_in(entry.below)]


def test_every_page_of_the_docs_is_in_the_contents_once(guide: Guide) -> None:
    listed = pages_in(guide.contents)

    assert sorted(listed) == sorted(guide.pages.keys() - {START, "example-plugin/README.md"})
    assert [group.title for group in guide.contents] == ["Use it", "Build workflows", "Program with it"]
    assert listed[0] == "window.md"


def test_pages_of_a_subfolder_are_below_its_start_page(tmp_path: Path) -> None:
    guide = made(
        tmp_path,
        README="# Docs\n\n**Use it**\n\n- [One](one.md): it.\n- [More](more/README.md)\n",
        one="# Page one",
        more__README="# More\n\n## Nodes\n\n- [Two](two.md)\n- [Again](../one.md)\n",
        more__two="# Two",
    )

    assert guide.contents == (
        Contents(
            "Use it",
            below=(
                Contents("One", "one.md"),
                Contents("More", "more/README.md", (Contents("Nodes", below=(Contents("Two", "more/two.md"),)),)),
            ),
        ),
    )


@pytest.fixture
def small(tmp_path: Path) -> Guide:
    page = """# Loops

A *loop* repeats. See [`Exit`](exit.md#when-it-ends).

```sh
# not a heading about cats
```

## When to stop?

After **five** iterations, or with `max_iterations`.
"""
    exit_page = "# Exit\n\nEnds a loop.\n\n## When it ends\n\n| Setting | Meaning |\n| --- | --- |\n| cats | many |\n"
    return made(tmp_path, README="# D\n\n**All**\n\n- [Loops](loops.md)\n- [Exit](exit.md)", loops=page, exit=exit_page)


def found(guide: Guide, query: str) -> list[tuple[str, str]]:
    return [(hit.page.name, hit.section.anchor) for hit in guide.search(query)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("stop", [("loops.md", "when-to-stop")]),
        ("LOOP rep", [("loops.md", "")]),
        ("oop", []),
        ("loop", [("loops.md", ""), ("loops.md", "when-to-stop"), ("exit.md", "")]),
        ("cats", [("loops.md", ""), ("exit.md", "when-it-ends")]),
        ("max_iter", [("loops.md", "when-to-stop")]),
        ("five zebras", []),
        ("  ", []),
        ("(", []),
    ],
)
def test_search_finds_sections_with_all_words(small: Guide, query: str, expected: list[tuple[str, str]]) -> None:
    assert found(small, query) == expected


def test_headings_come_before_texts_and_then_the_order_of_the_contents(small: Guide) -> None:
    assert found(small, "when") == [("loops.md", "when-to-stop"), ("exit.md", "when-it-ends")]
    assert found(small, "exit")[0] == ("exit.md", "")


def test_snippet_is_plain_text_around_the_hit(guide: Guide, small: Guide) -> None:
    assert small.search("five")[0].snippet == "After five iterations, or with max_iterations."
    assert "cats many" in small.search("many")[0].snippet
    for hit in guide.search("budget"):
        assert len(hit.snippet) <= 124
        assert not {"`", "|", "*"} & set(hit.snippet) or hit.page.name.startswith(("reference", "semantics"))


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("exit.md#when-it-ends", ("exit.md", "when-it-ends")),
        ("#when-to-stop", ("loops.md", "when-to-stop")),
        ("./exit.md", ("exit.md", "")),
        ("../outside.md", ("", "")),
        ("https://example.org", ("", "")),
    ],
)
def test_links_are_resolved_from_their_page(small: Guide, link: str, target: tuple[str, str]) -> None:
    assert small.resolve("loops.md", link) == target


def test_every_link_of_a_shown_page_leads_somewhere(guide: Guide) -> None:
    from tests.architecture.markdown import links

    for name in guide.pages:
        shown = guide.shown_markdown(name, "dark")
        for link in links(shown):
            page, anchor = guide.resolve(name, link)
            is_picture = (guide.folder / name).parent.joinpath(link).suffix == ".png"
            assert page or is_picture or template_of(link) or link.startswith("https://"), (name, link)
            assert not anchor or anchor in {section.anchor for section in guide.pages[page].sections}, (name, link)


def test_links_out_of_the_guide_become_text_and_those_to_tests_go(tmp_path: Path) -> None:
    kept = "`[a](b.md)` [t](../templates/x.loop.json)"
    text = f"# A\n\nSee [the code](../app/main.py). [`test_x`](../tests/test_x.py) {kept}"
    guide = made(tmp_path, a=text)

    assert guide.shown_markdown("a.md", "dark") == f"# A\n\nSee the code.  {kept}"


def test_pictures_are_those_of_the_theme_where_there_is_one(tmp_path: Path) -> None:
    (tmp_path / "x-dark.png").touch()
    guide = made(tmp_path, a="# A\n\n![X](x-light.png) ![Y](y-light.png)")

    assert pictures_in(guide.shown_markdown("a.md", "dark")) == ["x-dark.png", "y-light.png"]
    assert pictures_in(guide.shown_markdown("a.md", "light")) == ["x-light.png", "y-light.png"]


def test_anchors_are_those_of_code_hosts() -> None:
    assert anchor_of("Fork from here: what's `reused`?") == "fork-from-here-whats-reused"
