"""A workflow that searches the web, without the package for it, and a package client that installs one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from engine.document.builder import Builder
from engine.document.model import Workflow
from tests.engine.wheels import use_stub_client

_RESULT = '[{"title": "Tides", "href": "https://tides.example", "body": "Twice a day."}]'
_FILES = {
    "__init__.py": "",
    "exceptions.py": "class DDGSException(Exception): pass",
    "ddgs.py": f"class DDGS:\n    def __init__(self, **_): pass\n    def text(self, *_, **__): return {_RESULT}",
}


def searching() -> Workflow:
    """An input that says what to search for, a node that does, and an output."""
    made = Builder("Searching")
    text = made.add("input", id="text", default="tides")
    find = made.add("tool", id="find", config={"tool": "web_search"})
    made.connect(text["value"], find["query"])
    made.connect(find["output"], made.add("output", id="out", name="out")["value"])
    return made.build()


def _loaded() -> list[str]:
    return [name for name in tuple(sys.modules) if name.partition(".")[0] == "ddgs"]


NoSearch = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def no_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NoSearch]:
    """Makes contexts in which the package cannot be imported; after them, the stub client installs another one."""
    packages = tmp_path / "packages"
    packages.mkdir()
    monkeypatch.syspath_prepend(packages)
    package = packages / "ddgs"
    code = f"package = Path({str(package)!r})\npackage.mkdir()\n"
    code += "".join(f"(package / {name!r}).write_text({text!r})\n" for name, text in _FILES.items())
    use_stub_client(monkeypatch, tmp_path / "bin", code)
    for name in _loaded():
        monkeypatch.delitem(sys.modules, name)

    @contextmanager
    def missing() -> Iterator[None]:
        with monkeypatch.context() as inside:
            inside.setitem(sys.modules, "ddgs.ddgs", None)
            yield
        for name in _loaded():
            sys.modules.pop(name)

    yield missing
    for name in _loaded():
        sys.modules.pop(name)
