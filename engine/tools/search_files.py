"""The tool `search_files`: finds passages in a folder's text and Markdown files, ranked by BM25.

Without a folder it searches the bundled handbook, so a workflow that searches works without setup. The index is an
SQLite FTS5 table in memory, cached per folder until a file is added, removed or changed.

A file is split into passages: a section, or as many paragraphs of a long section as fit. Ranking is FTS5's own `bm25()`
(Robertson and Zaragoza, 'The Probabilistic Relevance Framework: BM25 and Beyond', 2009, with k1 = 1.2 and b = 0.75),
negated so that higher is better; a word in a heading counts more than one in the text. Words are compared without case,
accents and, by Porter's stemmer, English endings. In a script without spaces, only a whole run of characters matches.
"""

from __future__ import annotations

import asyncio
import functools
import os
import re
import threading
import unicodedata
import weakref
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field

from engine.bundled import resources_folder
from engine.errors import Fix
from engine.formatting import format_count
from engine.safe_file_io import decode_text
from engine.tools.sandbox import OpenFolder, open_regular_file, quoted, require_folder
from engine.tools.tool import Parameters, Text, Tool, ToolContext, ToolError
from engine.values import Value

MARKDOWN_SUFFIXES = frozenset({".md", ".markdown"})
TEXT_SUFFIXES = frozenset({".txt", ".text"}) | MARKDOWN_SUFFIXES

MAX_FILES = 2_000
MAX_FILE_BYTES = 4_000_000
MAX_TOTAL_BYTES = 32_000_000
_MAX_ENTRIES = 100_000


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file that a search may read. Equal objects have the same text, as far as the file system can tell.

    Attributes:
        name: Its path relative to the folder, joined by `/`.
        path: Its path.
        modified_ns: Time of the last change, in nanoseconds.
        size: Size in bytes.
    """

    name: str
    path: Path
    modified_ns: int
    size: int


def find_text_files(folder: Path) -> tuple[TextFile, ...]:
    """List a folder's text files, sorted by name, without hidden, linked and unreadable ones.

    Raises:
        ToolError: The folder exceeds the limits of a search.
    """
    found: list[TextFile] = []
    entries = total = 0
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        entries += len(folders) + len(files)
        if entries > _MAX_ENTRIES:
            raise _too_large(folder, f"more than {format_count(_MAX_ENTRIES)} files and folders")
        for name in files:
            path = Path(parent, name)
            if name.startswith(".") or path.suffix.lower() not in TEXT_SUFFIXES or path.is_symlink():
                continue
            try:
                status = path.stat()
            except OSError:  # it was deleted while the folder was read
                continue
            # A name that is not UTF-8 would otherwise carry lone surrogates into the results.
            readable = os.fsencode(path.relative_to(folder).as_posix()).decode("utf-8", "replace")
            found.append(TextFile(readable, path, status.st_mtime_ns, status.st_size))
            total += status.st_size
            _check_limits(folder, found, total)
    return tuple(sorted(found, key=lambda file: file.name))


def _check_limits(folder: Path, found: list[TextFile], total: int) -> None:
    """Refuse the folder if the last file or all files together exceed a limit."""
    if len(found) > MAX_FILES:
        raise _too_large(folder, f"more than {format_count(MAX_FILES)} text files")
    if found[-1].size > MAX_FILE_BYTES:
        raise _too_large(
            folder, f"a file of more than {format_count(MAX_FILE_BYTES, 'byte')}, {quoted(found[-1].name)}"
        )
    if total > MAX_TOTAL_BYTES:
        raise _too_large(folder, f"more than {format_count(MAX_TOTAL_BYTES, 'byte')} of text")


def _too_large(folder: Path, what: str) -> ToolError:
    return ToolError(
        f"The folder {quoted(str(folder))} contains {what}: too much to search.",
        "Choose a smaller folder, or move some files elsewhere.",
    )


def read_text(file: TextFile) -> str:
    """Read a file as text like `decode_text`; invalid bytes become U+FFFD.

    A file that cannot be read, is not a regular file or is binary has an empty text, so that it does not prevent
    searching the others.
    """
    try:
        descriptor = open_regular_file(OpenFolder(file.path.parent, None), file.path.name, os.O_RDONLY)
        with os.fdopen(descriptor, "rb") as stream:
            content = stream.read(MAX_FILE_BYTES)
    except OSError:
        return ""
    text = decode_text(content, errors="replace")
    return "" if "\0" in text else text


MAX_PASSAGE_CHARACTERS = 1_500
"""Maximum length of a passage of several paragraphs, and the length at which a long paragraph is split."""

_MAX_HEADING_CHARACTERS = 200
_LINE_END = re.compile(r"\r\n|\r|\n")
_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a file.

    Attributes:
        title: The headings above it, outermost first, joined by ' > '.
        line: Its first line in the file, from 1.
        text: Its text, without the headings.
    """

    title: str
    line: int
    text: str


def split_into_passages(text: str, name: str, *, markdown: bool) -> list[Passage]:
    """Split a file's text into passages.

    Args:
        text: The whole file.
        name: The title of text without a heading above it.
        markdown: Whether lines that start with `#` are headings; underlined headings count as text.
    """
    passages: list[Passage] = []
    for title, first_line, lines in _sections(_LINE_END.split(text), name, markdown=markdown):
        passages.extend(_split_section(title, first_line, lines))
    return passages


def _sections(lines: list[str], name: str, *, markdown: bool) -> Iterator[tuple[str, int, list[str]]]:
    """Yield each section's title, the number of its first line, and its lines."""
    headings: list[tuple[int, str]] = []
    start = 0
    fence = ""
    for number, line in enumerate(lines):
        if not markdown:
            break
        mark = _FENCE.match(line)
        if mark is not None and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        heading = None if fence else _HEADING.match(line)
        if heading is None:
            continue
        yield _title(headings, name), start + 1, lines[start:number]
        level = len(heading[1])
        headings = [(other, text) for other, text in headings if other < level]
        headings.append((level, _heading_text(line[heading.end() :])))
        start = number + 1
    yield _title(headings, name), start + 1, lines[start:]


def _heading_text(line: str) -> str:
    """A heading without a closing `#` after a space: `C#` keeps its own."""
    text = line.strip()
    unclosed = text.rstrip("#")
    return (unclosed.rstrip() if not unclosed or unclosed[-1] in " \t" else text)[:_MAX_HEADING_CHARACTERS]


def _title(headings: list[tuple[int, str]], name: str) -> str:
    return " > ".join(text for _, text in headings if text) or name


def _split_section(title: str, first_line: int, lines: list[str]) -> Iterator[Passage]:
    paragraphs: list[str] = []
    length = 0
    start = first_line
    for number, paragraph in _paragraphs(first_line, lines):
        if paragraphs and length + len(paragraph) > MAX_PASSAGE_CHARACTERS:
            yield Passage(title, start, "\n\n".join(paragraphs))
            paragraphs, length = [], 0
        if not paragraphs:
            start = number
        paragraphs.append(paragraph)
        length += len(paragraph)
    if paragraphs:
        yield Passage(title, start, "\n\n".join(paragraphs))


def _paragraphs(first_line: int, lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield blocks between empty lines with the numbers of their first lines, split at the maximum length."""
    block: list[str] = []
    length = 0
    for number, line in enumerate([*lines, ""], first_line):
        if block and (not line.strip() or length + len(line) > MAX_PASSAGE_CHARACTERS):
            yield number - len(block), "\n".join(block)
            block, length = [], 0
        for at in range(0, len(line) - MAX_PASSAGE_CHARACTERS, MAX_PASSAGE_CHARACTERS):
            yield number, line[at : at + MAX_PASSAGE_CHARACTERS]
        rest = line[(len(line) - 1) // MAX_PASSAGE_CHARACTERS * MAX_PASSAGE_CHARACTERS :] if line else ""
        if rest.strip():
            block.append(rest)
            length += len(rest)


_MAX_QUERY_CHARACTERS = 10_000
_MAX_WORDS = 64
_MAX_PASSAGES = 100_000
_MAX_CACHED_INDEXES = 4

_TOKENIZER = "porter unicode61 remove_diacritics 2"
_SCHEMA = f"CREATE VIRTUAL TABLE passages USING fts5(title, text, content='', tokenize='{_TOKENIZER}')"
_SELECT = """
    SELECT rowid, -bm25(passages, 3.0, 1.0) AS score FROM passages WHERE passages MATCH ?
    ORDER BY score DESC, rowid LIMIT ?
"""

_WORD = re.compile(r"[^\W_]+")
# Words that say nothing about the topic of a question. In a small folder a rare 'I' would otherwise outweigh 'loop'.
_STOP_WORD_TEXT = """
    a about am an and any are as at be been but by can could did do does for from get had has have how i if in into is
    it its know me much my no not of on or our please s should so some t tell than that the their them then there
    these they this to us want was we were what when where which who why will with would you your
"""
_STOP_WORDS = frozenset(_STOP_WORD_TEXT.split())


def match_expression(query: str) -> str:
    """Convert a query to an FTS5 expression: its words in quotes, joined by OR; empty without words.

    Stop words such as 'how' and 'the' are left out unless there are no others. A long query is limited to the first 64
    different words in the first 10,000 characters.
    """
    text = unicodedata.normalize("NFC", query[:_MAX_QUERY_CHARACTERS]).lower()
    words = list(dict.fromkeys(_WORD.findall(text)))
    significant = [word for word in words if word not in _STOP_WORDS] or words
    return " OR ".join(f'"{word}"' for word in significant[:_MAX_WORDS])


class _Index:
    """The passages of one folder. The table indexes words only; texts and names stay in Python."""

    def __init__(self, files: tuple[TextFile, ...]) -> None:
        import sqlite3

        self.files = files
        self._lock = threading.Lock()
        self._passages: list[tuple[str, Passage]] = []
        for file in files:
            markdown = file.path.suffix.lower() in MARKDOWN_SUFFIXES
            passages = split_into_passages(read_text(file), file.name, markdown=markdown)
            self._passages.extend((file.name, passage) for passage in passages)
            if len(self._passages) > _MAX_PASSAGES:
                raise ToolError(
                    f"The folder contains more than {format_count(_MAX_PASSAGES)} passages: too much to search.",
                    "Choose a smaller folder.",
                )
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        # Also when a newer index replaces this one, and when the interpreter ends.
        weakref.finalize(self, self._connection.close)
        with _explain_sqlite_errors(), self._connection:
            self._connection.execute(_SCHEMA)
            self._connection.executemany(
                "INSERT INTO passages (rowid, title, text) VALUES (?, ?, ?)",
                ((row, passage.title, passage.text) for row, (_, passage) in enumerate(self._passages)),
            )

    def search(self, expression: str, limit: int) -> list[Value]:
        """The passages that match, best first; equal scores in the order of file names and lines."""
        with _explain_sqlite_errors(), self._lock:
            rows = self._connection.execute(_SELECT, (expression, limit)).fetchall()
        found = ((*self._passages[int(row)], float(score)) for row, score in rows)
        return [
            {"file": file, "title": one.title, "line": one.line, "text": one.text, "score": round(score, 6)}
            for file, one, score in found
        ]


@contextmanager
def _explain_sqlite_errors() -> Generator[None]:
    import sqlite3

    try:
        yield
    except sqlite3.Error as error:
        raise ToolError(
            f"This Python's SQLite has no full-text search ({error}).", "Use a Python with the FTS5 extension."
        ) from error


@dataclass(slots=True)
class _Slot:
    """The newest index of a folder, and a lock so that concurrent searches of the folder build it once."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    index: _Index | None = None


@functools.lru_cache(maxsize=_MAX_CACHED_INDEXES)
def _slot_of(_folder: Path) -> _Slot:
    return _Slot()


def _index_of(folder: Path, files: tuple[TextFile, ...]) -> _Index:
    slot = _slot_of(folder)
    with slot.lock:
        if slot.index is None or slot.index.files != files:
            slot.index = _Index(files)
        return slot.index


class SearchFilesParameters(Parameters):
    """Parameters of `search_files`."""

    query: Text = Field(title="Query", description="Words or a question; there is no special syntax.")
    folder: Text = Field(
        default="",
        title="Folder",
        description="A folder inside the run's folder ('.' for the folder itself). Empty: the handbook.",
        max_length=1000,
    )
    limit: int = Field(
        default=5, title="Max passages", description="Maximum number of passages, best first.", ge=1, le=50
    )


async def search_files(parameters: SearchFilesParameters, context: ToolContext) -> Value:
    """Search: a list of `{file, title, line, text, score}`, best first; a higher score is a better match.

    `text` is a passage of about 1,500 characters at most, `line` its first line, `title` the headings above it. The
    list is empty if nothing is found. A folder is indexed once, and again only when a file in it changes.

    Raises:
        ToolError: The folder is missing, not allowed, or too large.
    """
    return await asyncio.to_thread(_search, parameters, context)


def _search(parameters: SearchFilesParameters, context: ToolContext) -> list[Value]:
    folder = _folder_to_search(parameters.folder, context)
    files = find_text_files(folder)
    expression = match_expression(parameters.query)
    return _index_of(folder, files).search(expression, parameters.limit) if expression else []


def _folder_to_search(folder: str, context: ToolContext) -> Path:
    handbook = resources_folder() / "handbook"
    if not folder.strip():
        return handbook
    root = require_folder(context.folder)
    try:
        allowed = root.resolve(strict=True)
        wanted = (allowed / folder).resolve(strict=True)
        listable = wanted.is_dir()
    except (OSError, ValueError, RuntimeError) as error:  # missing; a NUL in the name; a cycle of links
        raise ToolError(
            f"The folder {quoted(folder)} cannot be searched: it does not exist.",
            "Check the spelling; the path starts at the run's folder.",
        ) from error
    if not wanted.is_relative_to(allowed):
        raise ToolError(
            f"The folder {quoted(folder)} is outside the run's folder.",
            "Choose a folder inside it, or let the run use another one.",
            fix=Fix.CHOOSE_FOLDER,
        )
    if not listable:
        raise ToolError(f"{quoted(folder)} is not a folder.", "Choose the folder that contains the file.")
    return wanted


SEARCH_FILES = Tool(
    name="search_files",
    title="Search files",
    help="Finds passages in text and Markdown files, best first (a higher score is a better match).",
    parameters=SearchFilesParameters,
    output_type="list",
    run=search_files,
    uses_folder=True,
    idempotent=True,
)
