"""A full-text index over a folder: SQLite FTS5 in memory, ranked by BM25.

Ranking is FTS5's own `bm25()` (Robertson and Zaragoza, 'The Probabilistic Relevance Framework: BM25 and Beyond', 2009,
with k1 = 1.2 and b = 0.75), negated so that higher is better; a word in a heading counts more than one in the text.
Words are compared without case, accents and, by Porter's stemmer, English endings. In a script that is written without
spaces, only a whole run of characters is found.

The index of a folder is kept and serves every later search until a file is added, removed or changed. Knows nothing of
parameters, contexts and permissions.
"""

from __future__ import annotations

import re
import threading
import unicodedata
import weakref
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from engine.tools.base import ToolError
from engine.tools.passages import Passage, cut_into_passages
from engine.tools.text_files import MARKDOWN_SUFFIXES, TextFile, find_text_files, read_text

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
