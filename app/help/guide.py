"""The pages of the user guide: contents, sections, links and full-text search. No Qt here.

The guide is the folder `docs`. Its start page, `README.md`, lists the pages in groups; a `README.md` in a subfolder
lists the pages of that folder.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from engine.document.model import is_workflow_file

START: Final = "README.md"
"""The name of the page with the table of contents."""

SNIPPET_LENGTH: Final = 120
"""Length of the text around a hit in characters."""

_FENCE = re.compile(r"^(```+)[^\n]*\n.*?^\1 *$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[((?:[^\]\[]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
_IMAGE = re.compile(r"!\[([^\]]*)\]\(([^()\s]+)\)")
_PIECE = re.compile(
    rf"{_FENCE.pattern}|!\[(?P<alt>[^\]]*)\]\((?P<picture>[^()\s]+)\)"
    rf"|\[(?P<label>(?:[^\]\[]|\[[^\]]*\])*)\]\((?P<link>[^()\s]+)\)|`[^`\n]*`",
    re.MULTILINE | re.DOTALL,
)
"""A code block, a picture, a link or code, whichever begins first."""

_HEADING = re.compile(r"^(#{1,6}) +(.+?)#* *$", re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->\s*", re.DOTALL)
_GROUP = re.compile(r"^(?:## +|\*\*)([^*\n]+?)(?:\*\*)? *$", re.MULTILINE)
_MARKUP = re.compile(r"^```.*|[*`]|^[ >]*(?:#{1,6} +|- |\d+\. )?|^\|?[ :|-]+\|?$|\|", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page below one heading.

    Attributes:
        heading: The heading; that of the page for its beginning.
        anchor: The fragment of links to it; empty for the beginning of the page.
        text: Its text without markup.
    """

    heading: str
    anchor: str
    text: str


@dataclass(frozen=True)
class Page:
    """A page of the guide.

    Attributes:
        name: Its path in the guide, such as `reference/nodes/llm.md`.
        title: Its title.
        markdown: Its text in Markdown.
    """

    name: str
    title: str
    markdown: str

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """Its sections in order."""
        literals = [found.span() for found in _FENCE.finditer(self.markdown)]
        headings = [
            found
            for found in _HEADING.finditer(self.markdown)
            if not any(start <= found.start() < end for start, end in literals)
        ]
        starts = [0, *(found.end() for found in headings[1:])]
        ends = [*(found.start() for found in headings[1:]), len(self.markdown)]
        names = [self.title, *(_plain(found[2]) for found in headings[1:])]
        return tuple(
            Section(name, anchor_of(name) if at else "", _plain(self.markdown[start:end]))
            for at, (name, start, end) in enumerate(zip(names, starts, ends, strict=True))
        )


@dataclass(frozen=True)
class Contents:
    """A group in the table of contents, or a page with the pages below it.

    Attributes:
        title: Its title.
        page: The name of its page; empty for a group.
        below: What it contains.
    """

    title: str
    page: str = ""
    below: tuple[Contents, ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """A section that contains all words of a search.

    Attributes:
        page: The page.
        section: The section.
        snippet: The text around the first word that was found.
    """

    page: Page
    section: Section
    snippet: str


def anchor_of(heading: str) -> str:
    """Return the fragment that links to a heading, as code hosts derive it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


@dataclass
class Guide:
    """All pages of the guide.

    Attributes:
        folder: The folder of the pages and pictures.
        pages: The pages by name.
    """

    folder: Path
    pages: dict[str, Page] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Guide:
        """Read all pages.

        Raises:
            OSError: The folder cannot be read.
        """
        guide = cls(folder)
        for file in sorted(folder.rglob("*.md")):
            text = _COMMENT.sub("", file.read_text(encoding="utf-8"))
            title = _HEADING.search(text)
            name = file.relative_to(folder).as_posix()
            guide.pages[name] = Page(name, _plain(title[2]) if title else file.stem, text)
        return guide

    @cached_property
    def contents(self) -> tuple[Contents, ...]:
        """The table of contents: the groups of the start page with their pages."""
        return self._listed(START, {START})

    @cached_property
    def titles(self) -> dict[str, str]:
        """The titles of the pages in the table of contents, by name, in its order."""
        titles: dict[str, str] = {}
        waiting = list(reversed(self.contents))
        while waiting:
            entry = waiting.pop()
            if entry.page:
                titles[entry.page] = entry.title
            waiting += reversed(entry.below)
        return titles

    def _listed(self, start: str, known: set[str]) -> tuple[Contents, ...]:
        text = self.pages[start].markdown
        groups = list(_GROUP.finditer(text))
        ends = [*(group.start() for group in groups[1:]), len(text)]
        listed = (
            Contents(group[1], below=tuple(self._entries(start, text[group.end() : end], known)))
            for group, end in zip(groups, ends, strict=True)
        )
        return tuple(group for group in listed if group.below)

    def _entries(self, start: str, text: str, known: set[str]) -> Iterator[Contents]:
        for label, link in _LINK.findall(text):
            name = self.resolve(start, link)[0]
            if name and name not in known:
                known.add(name)
                below = self._listed(name, known) if posixpath.basename(name) == START else ()
                yield Contents(_plain(label), name, below)

    def resolve(self, page: str, link: str) -> tuple[str, str]:
        """Return the page and the fragment to which a link on a page leads; no page if it leads out of the guide."""
        path, _, anchor = unquote(link).partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
        return (target, anchor) if target in self.pages else ("", "")

    def prepare_search(self) -> None:
        """Split all pages into sections, which the first search would do otherwise. May be called in a thread."""
        for page in self.pages.values():
            _ = page.sections

    def search(self, query: str) -> list[Hit]:
        """Return the sections with all words of a query, best first. A word matches at the beginning of words."""
        wanted = words_of(query)
        if not wanted:
            return []
        found: list[tuple[int, Hit]] = []
        for page in self._in_order():
            for section in page.sections:
                texts = (f"{page.title} {section.heading}", section.text)
                matches = [[bool(word.search(text)) for text in texts] for word in wanted]
                if all(any(places) for places in matches):
                    in_heading = sum(places[0] for places in matches)
                    found.append((in_heading, Hit(page, section, _snippet(section.text, wanted))))
        return [hit for _, hit in sorted(found, key=lambda scored: -scored[0])]

    def _in_order(self) -> list[Page]:
        """Return the pages to search: those in the table of contents, in its order, then the others but itself."""
        return [self.pages[name] for name in dict.fromkeys([*self.titles, *self.pages]) if name != START]

    def shown_markdown(self, name: str, theme: str) -> str:
        """Return the text of a page as the window shows it.

        Links that lead out of the guide become plain text, and those to the program's tests are left out; pictures are
        those of the theme, where there is one.

        Args:
            name: The page.
            theme: `dark` or `light`.
        """

        def shown(piece: re.Match[str]) -> str:
            if piece["picture"]:
                return f"![{piece['alt']}]({self._picture_for(piece['picture'], theme)})"
            link = piece["link"]
            if not link or is_external(link) or template_of(link) or self.resolve(name, link)[0]:
                return piece[0]
            return "" if "/tests/" in link else piece["label"]

        return _PIECE.sub(shown, self.pages[name].markdown)

    def _picture_for(self, link: str, theme: str) -> str:
        themed = re.sub(r"-(?:dark|light)(?=\.\w+$)", f"-{theme}", link)
        return themed if (self.folder / themed).is_file() else link


def is_external(link: str) -> bool:
    """Whether a link leads to a web page."""
    return link.startswith(("https://", "http://"))


def template_of(link: str) -> str:
    """Return the file name of the bundled template to which a link leads; empty if it leads elsewhere."""
    folder, _, name = link.rpartition("/")
    return name if folder.endswith("templates") and is_workflow_file(name) else ""


def pictures_in(markdown: str) -> list[str]:
    """Return the paths of all pictures of a page, each once."""
    return list(dict.fromkeys(piece["picture"] for piece in _PIECE.finditer(markdown) if piece["picture"]))


def words_of(query: str) -> list[re.Pattern[str]]:
    """Return a pattern for each word of a query, which matches at the beginning of words."""
    return [re.compile(rf"(?<!\w){re.escape(word)}", re.IGNORECASE) for word in query.split()]


def _snippet(text: str, wanted: list[re.Pattern[str]]) -> str:
    line = " ".join(text.split())
    first = min((found.start() for word in wanted if (found := word.search(line))), default=0)
    start = max(0, min(first - SNIPPET_LENGTH // 3, len(line) - SNIPPET_LENGTH))
    start = line.find(" ", start) + 1 if start else 0
    end = start + SNIPPET_LENGTH
    return f"{'…' if start else ''}{line[start:end].strip()}{'…' if end < len(line) else ''}"


def _plain(markdown: str) -> str:
    text = _IMAGE.sub(r"\1", _COMMENT.sub("", markdown))
    return _MARKUP.sub("", _LINK.sub(r"\1", text)).strip()
