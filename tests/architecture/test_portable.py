"""The project contains nothing specific to a machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.project import ROOT, text_files

LOCKS = ("requirements.lock", "requirements-dev.lock")

# Written so that this file does not contain what it searches for.
_FOREIGN = re.compile(
    r"(?<![\w.])/(?:home|Users|root|work|opt|mnt|srv)/\w"
    r"|\b[A-Z]:\\\\?(?:Users|Program)"
    r"|https?://\S+/simple\b|https?://(?:packages?|registry|index|mirror|files)\d*[.]"
    r"|file:///(?!etc/passwd)"
    r"|--(?:extra-)?index-url|--find-links|--trusted-host"
)  # fmt: skip


def _foreign(text: str) -> list[str]:
    return [found[0] for found in _FOREIGN.finditer(text)]


def test_no_file_names_a_machine_or_a_package_index():
    found = {file: _foreign(file.read_text(encoding="utf-8")) for file in text_files() if file != Path(__file__)}
    assert {file.relative_to(ROOT).as_posix(): names for file, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "text",
    ["/home/someone/x", "see /opt/wheels", "C:\\Users\\x", "https://wheels.example/simple", "--extra-index-url x"],
)
def test_machine_specific_text_is_detected(text: str):
    assert _foreign(text)


@pytest.mark.parametrize("text", ["--no-emit-index-url", "src/home/x", "a/work/b", "/etc/passwd"])
def test_similar_text_is_allowed(text: str):
    assert _foreign(text) == []


@pytest.mark.parametrize("name", LOCKS)
def test_every_package_of_a_lock_file_has_hashes_and_no_address(name: str):
    lock = (ROOT / name).read_text(encoding="utf-8")
    packages = re.split(r"^(?=[a-z0-9])", lock, flags=re.MULTILINE | re.IGNORECASE)[1:]
    assert len(packages) > 50
    assert [package.split("\n")[0] for package in packages if "--hash=sha256:" not in package] == []
    assert "://" not in lock


def test_running_the_program_takes_no_developer_tools():
    run, dev = (set(re.findall(r"^[\w.-]+==\S+", (ROOT / name).read_text("utf-8"), re.MULTILINE)) for name in LOCKS)
    assert run < dev
    assert {name.partition("==")[0] for name in dev - run} >= {"cel-python", "pytest", "pyright", "ruff", "langgraph"}


def test_no_package_is_installed_that_takes_long_or_serves_for_little():
    lock = (ROOT / "requirements-dev.lock").read_text("utf-8")
    packages = {name.lower() for name in re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)}
    assert packages >= {"litellm", "nodegraphqt", "xllamacpp"}
    assert packages.isdisjoint({"llama-cpp-python", "qtawesome"})
