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
import os
import re
import threading
import unicodedata
import weakref
from collections import OrderedDict
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field

from engine.bundled import resources_folder
from engine.safe_file_io import decode_text
from engine.tools.sandbox import Parent, allowed_folder, open_ordinary, shown
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
    """A file that a search may read. Two that compare equal hold the same text, as far as the file system can tell.

    Attributes:
        name: Its path relative to the folder, joined by `/`.
        path: Where it is.
        modified_ns: When it was last changed, in nanoseconds.
        size: Bytes.
    """

    name: str
    path: Path
    modified_ns: int
    size: int


def find_text_files(folder: Path) -> tuple[TextFile, ...]:
    """List a folder's text files, sorted by name, without hidden files and folders, links, and what cannot be listed.

    Raises:
        ToolError: There are more files or bytes than a search reads.
    """
    found: list[TextFile] = []
    entries = total = 0
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        entries += len(folders) + len(files)
        if entries > _MAX_ENTRIES:
            raise _too_much(folder, f"more than {_MAX_ENTRIES:,} files and folders")
        for name in files:
            path = Path(place, name)
            if name.startswith(".") or path.suffix.lower() not in TEXT_SUFFIXES or path.is_symlink():
                continue
            try:
                status = path.stat()
            except OSError:  # It went away while the folder was read.
                continue
            # A name that is no UTF-8 would otherwise carry lone surrogates into the results.
            readable = os.fsencode(path.relative_to(folder).as_posix()).decode("utf-8", "replace")
            found.append(TextFile(readable, path, status.st_mtime_ns, status.st_size))
            total += status.st_size
            _check_limits(folder, found, total)
    return tuple(sorted(found, key=lambda file: file.name))


def _check_limits(folder: Path, found: list[TextFile], total: int) -> None:
    """Refuse the folder if the file found last, or all of them together, are too much."""
    if len(found) > MAX_FILES:
        raise _too_much(folder, f"more than {MAX_FILES:,} text files")
    if found[-1].size > MAX_FILE_BYTES:
        raise _too_much(folder, f"a file of more than {MAX_FILE_BYTES:,} bytes, {shown(found[-1].name)}")
    if total > MAX_TOTAL_BYTES:
        raise _too_much(folder, f"more than {MAX_TOTAL_BYTES:,} bytes of text")


def _too_much(folder: Path, what: str) -> ToolError:
    return ToolError(
        f"The folder {shown(str(folder))} holds {what}: too much to search.",
        "Name a smaller folder, or move what need not be found elsewhere.",
    )


def read_text(file: TextFile) -> str:
    """Read a file as text as `decode_text` does; bytes that do not fit become U+FFFD.

    A file that cannot be read, is no ordinary file or holds binary data gives an empty text: one bad file does not
    spoil the search through the others.
    """
    try:
        descriptor = open_ordinary(Parent(file.path.parent, None), file.path.name, os.O_RDONLY)
        with os.fdopen(descriptor, "rb") as stream:
            content = stream.read(MAX_FILE_BYTES)
    except OSError:
        return ""
    text = decode_text(content, errors="replace")
    return "" if "\0" in text else text


MAX_PASSAGE_CHARACTERS = 1_500
"""How long a passage grows before the next paragraph opens a new one, and where a longer paragraph is cut."""

_MAX_HEADING_CHARACTERS = 200
_LINE_END = re.compile(r"\r\n|\r|\n")
_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a file.

    Attributes:
        title: The headings that it stands under, outermost first, joined by ' > '.
        line: The line of the file where it starts, from 1.
        text: Its text, without the headings.
    """

    title: str
    line: int
    text: str


def cut_into_passages(text: str, name: str, *, markdown: bool) -> list[Passage]:
    """Cut a file's text.

    Args:
        text: The whole file.
        name: The title of what stands under no heading.
        markdown: Whether lines that open with `#` are headings; the underlined kind is read as plain text.
    """
    passages: list[Passage] = []
    for title, first_line, lines in _sections(_LINE_END.split(text), name, markdown=markdown):
        passages.extend(_cut_section(title, first_line, lines))
    return passages


def _sections(lines: list[str], name: str, *, markdown: bool) -> Iterator[tuple[str, int, list[str]]]:
    """Give each section's title, the number of its first line and its lines."""
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
    """A heading without the `#` that may close it, which stand apart: `C#` keeps its own."""
    text = line.strip()
    unclosed = text.rstrip("#")
    return (unclosed.rstrip() if not unclosed or unclosed[-1] in " \t" else text)[:_MAX_HEADING_CHARACTERS]


def _title(headings: list[tuple[int, str]], name: str) -> str:
    return " > ".join(text for _, text in headings if text) or name


def _cut_section(title: str, first_line: int, lines: list[str]) -> Iterator[Passage]:
    taken: list[str] = []
    length = 0
    start = first_line
    for number, paragraph in _paragraphs(first_line, lines):
        if taken and length + len(paragraph) > MAX_PASSAGE_CHARACTERS:
            yield Passage(title, start, "\n\n".join(taken))
            taken, length = [], 0
        if not taken:
            start = number
        taken.append(paragraph)
        length += len(paragraph)
    if taken:
        yield Passage(title, start, "\n\n".join(taken))


def _paragraphs(first_line: int, lines: list[str]) -> Iterator[tuple[int, str]]:
    """Give blocks between empty lines with the numbers of their first lines, each cut at the longest allowed length."""
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
_KEPT_INDEXES = 4

_TOKENIZER = "porter unicode61 remove_diacritics 2"
_SCHEMA = f"CREATE VIRTUAL TABLE passages USING fts5(title, text, content='', tokenize='{_TOKENIZER}')"
_SELECT = """
    SELECT rowid, -bm25(passages, 3.0, 1.0) AS score FROM passages WHERE passages MATCH ?
    ORDER BY score DESC, rowid LIMIT ?
"""

_WORD = re.compile(r"[^\W_]+")
# Words that say nothing about what a question is about. In a small folder a rare 'I' would otherwise outweigh 'loop'.
_FILLER_TEXT = """
    a about am an and any are as at be been but by can could did do does for from get had has have how i if in into is
    it its know me much my no not of on or our please s should so some t tell than that the their them then there
    these they this to us want was we were what when where which who why will with would you your
"""
_FILLERS = frozenset(_FILLER_TEXT.split())


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found. A higher score is a better match; scores of different folders do not compare."""

    file: str
    passage: Passage
    score: float


def search_folder(folder: Path, query: str, limit: int) -> list[Hit]:
    """Find the passages of a folder that match any word of a query best.

    Args:
        folder: An existing folder, resolved.
        query: Any text: it has no syntax, nothing in it is an operator.
        limit: The most passages to give.

    Returns:
        The best first; equal scores in the order of file names and lines. Empty if nothing matches.

    Raises:
        ToolError: The folder holds too much, or this Python's SQLite cannot search texts.
    """
    files = find_text_files(folder)
    expression = match_expression(query)
    return _cache.index_of(folder, files).search(expression, limit) if expression else []


def match_expression(query: str) -> str:
    """Write a query as an FTS5 expression: its words in quotes, joined by OR; empty if it has none.

    Fillers such as 'how' and 'the' are left out unless there is nothing else. Long queries are cut: what counts are the
    first 64 different words in the first 10,000 characters.
    """
    text = unicodedata.normalize("NFC", query[:_MAX_QUERY_CHARACTERS]).lower()
    words = list(dict.fromkeys(_WORD.findall(text)))
    telling = [word for word in words if word not in _FILLERS] or words
    return " OR ".join(f'"{word}"' for word in telling[:_MAX_WORDS])


class _Index:
    """The passages of one folder. The table holds words only; texts and names stay in Python, whatever they hold."""

    def __init__(self, files: tuple[TextFile, ...]) -> None:
        import sqlite3

        self.files = files
        self._lock = threading.Lock()
        self._passages: list[tuple[str, Passage]] = []
        for file in files:
            self._passages.extend((file.name, passage) for passage in _passages_of(file))
            if len(self._passages) > _MAX_PASSAGES:
                raise ToolError(
                    f"The folder holds more than {_MAX_PASSAGES:,} passages: too much to search.",
                    "Name a smaller folder.",
                )
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        # Also when the index is dropped for a newer one, and when the interpreter ends.
        weakref.finalize(self, self._connection.close)
        with _sqlite_errors_told(), self._connection:
            self._connection.execute(_SCHEMA)
            self._connection.executemany(
                "INSERT INTO passages (rowid, title, text) VALUES (?, ?, ?)",
                ((row, passage.title, passage.text) for row, (_, passage) in enumerate(self._passages)),
            )

    def search(self, expression: str, limit: int) -> list[Hit]:
        with _sqlite_errors_told(), self._lock:
            rows = self._connection.execute(_SELECT, (expression, limit)).fetchall()
        hits: list[Hit] = []
        for row, score in rows:
            file, passage = self._passages[int(row)]
            hits.append(Hit(file, passage, float(score)))
        return hits


def _passages_of(file: TextFile) -> list[Passage]:
    markdown = file.path.suffix.lower() in MARKDOWN_SUFFIXES
    return cut_into_passages(read_text(file), file.name, markdown=markdown)


@contextmanager
def _sqlite_errors_told() -> Generator[None]:
    import sqlite3

    try:
        yield
    except sqlite3.Error as error:
        raise ToolError(
            f"This Python's SQLite cannot search texts ({error}).", "Use a Python whose SQLite has the FTS5 extension."
        ) from error


@dataclass(slots=True)
class _Slot:
    """The newest index of a folder, and a lock so that searches side by side build it once."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    index: _Index | None = None


class _IndexCache:
    """The indexes of the folders that were searched last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: OrderedDict[Path, _Slot] = OrderedDict()

    def index_of(self, folder: Path, files: tuple[TextFile, ...]) -> _Index:
        with self._lock:
            slot = self._slots.setdefault(folder, _Slot())
            self._slots.move_to_end(folder)
            if len(self._slots) > _KEPT_INDEXES:
                self._slots.popitem(last=False)
        with slot.lock:
            if slot.index is None or slot.index.files != files:
                slot.index = _Index(files)
            return slot.index


_cache = _IndexCache()


class SearchFilesParameters(Parameters):
    """What `search_files` is asked."""

    query: Text = Field(
        title="Query",
        description="What to look for, in words or as a question; it has no special syntax.",
    )
    folder: Text = Field(
        default="",
        title="Folder",
        description="A folder inside the one that the run was given ('.' is that one itself); empty: the handbook.",
        max_length=1000,
    )
    limit: int = Field(
        default=5,
        title="Max passages",
        description="How many passages to give at most, the best first.",
        ge=1,
        le=50,
    )


async def search_files(parameters: SearchFilesParameters, context: ToolContext) -> Value:
    """Search, and give a list of `{file, title, line, text, score}`, best first: a higher score is a better match.

    `text` is a passage of about 1,500 characters at most, `line` where it starts, `title` the headings above it.
    Nothing found is an empty list. A folder is read and indexed once, and again only when a file in it changes.

    Raises:
        ToolError: The folder is missing, not allowed, or holds more than a search reads.
    """
    return await asyncio.to_thread(_search, parameters, context)


def _search(parameters: SearchFilesParameters, context: ToolContext) -> list[Value]:
    folder = _folder_to_search(parameters.folder, context)
    return [_as_value(hit) for hit in search_folder(folder, parameters.query, parameters.limit)]


def _as_value(hit: Hit) -> Value:
    return {
        "file": hit.file,
        "title": hit.passage.title,
        "line": hit.passage.line,
        "text": hit.passage.text,
        "score": round(hit.score, 6),
    }


def _folder_to_search(folder: str, context: ToolContext) -> Path:
    handbook = resources_folder() / "handbook"
    if not folder.strip():
        return handbook
    root = allowed_folder(context.folder)
    try:
        allowed = root.resolve(strict=True)
        wanted = (allowed / folder).resolve(strict=True)
        listable = wanted.is_dir()
    except (OSError, ValueError, RuntimeError) as error:  # Missing; a NUL in the name; a circle of links.
        raise ToolError(
            f"The folder {shown(folder)} cannot be searched: it is not there.",
            "Check the spelling; the path starts at the folder that the run was given.",
        ) from error
    if not wanted.is_relative_to(allowed):
        raise ToolError(
            f"The folder {shown(folder)} lies outside the folder that the run was given.",
            "Name a folder inside it, or start the run with --folder and another one.",
        )
    if not listable:
        raise ToolError(f"{shown(folder)} is no folder.", "Name the folder that holds the file.")
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
