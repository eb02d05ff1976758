"""The files of the project, for tests that read it instead of running it."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

_GENERATED = {".git", "__pycache__", "node_modules", "build", "dist"}
_TOOL_FOLDERS = (
    ".venv",
    ".pytest_cache",
    ".ruff_cache",
    ".hypothesis",
    ".import_linter_cache",
    ".benchmarks",
    ".cache",
)
_TEXT_SUFFIXES = {".py", ".md", ".json", ".toml", ".lock", ".txt", ".yml", ".yaml", ".cfg", ".sh", ".typed", ""}


def _is_source(name: str) -> bool:
    return name not in _GENERATED and not name.startswith(_TOOL_FOLDERS) and not name.endswith(".egg-info")


@cache
def text_files() -> tuple[Path, ...]:
    """Every text file of the project, without the files of tools."""
    found: list[Path] = []
    for folder, names, files in os.walk(ROOT):
        names[:] = sorted(filter(_is_source, names))
        found += [Path(folder, name) for name in sorted(files) if Path(name).suffix in _TEXT_SUFFIXES]
    # In a worktree, .git is a file.
    return tuple(file for file in found if not file.name.startswith(".coverage") and file.name != ".git")


def sources(*folders: str) -> dict[str, ast.Module]:
    """The parsed modules in folders of the project, by path."""
    return {path: module for folder in folders for path, module in _modules(folder).items()}


@cache
def _modules(folder: str) -> dict[str, ast.Module]:
    files = sorted((ROOT / folder).rglob("*.py"))
    return {file.relative_to(ROOT).as_posix(): ast.parse(file.read_text(encoding="utf-8")) for file in files}


def pages() -> tuple[Path, ...]:
    """Every Markdown page of the project."""
    return tuple(file for file in text_files() if file.suffix == ".md")


def defines_test(path: str, name: str) -> bool:
    """Whether a file of the project, by its path from the root, defines a test function."""
    file = ROOT / path
    definition = re.compile(rf"^ *(?:async )?def {name}\(", re.MULTILINE)
    return file.is_file() and definition.search(file.read_text(encoding="utf-8")) is not None


def in_a_new_process(program: str, *arguments: str, cwd: Path = ROOT) -> str:
    """Run a Python program in a new process, and return its output."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
