"""A thread left behind, a warning of Qt's or a fault in a handler fails the test that it happens in."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).with_name("what_must_fail.py")
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def report() -> str:
    """What pytest says about tests that leave something behind."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "-rA", str(FILE)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def outcome(report: str, test: str) -> set[str]:
    """How a test ended, in pytest's words."""
    return set(re.findall(rf"^(PASSED|FAILED|ERROR) \S+::{test}\b", report, re.MULTILINE))


def test_a_thread_left_behind_fails_its_test(report: str) -> None:
    assert "ERROR" in outcome(report, "test_that_leaves_a_thread")
    assert "threads left behind: ['forgotten']" in report


@pytest.mark.parametrize("test", ["test_that_warns", "test_that_makes_qt_warn", "test_that_raises_in_a_handler"])
def test_a_warning_or_a_fault_fails_its_test(report: str, test: str) -> None:
    assert outcome(report, test) & {"FAILED", "ERROR"}


def test_a_test_that_leaves_nothing_passes(report: str) -> None:
    assert outcome(report, "test_that_leaves_nothing") == {"PASSED"}
