"""A leftover thread, a Qt warning or an exception in a handler fails its test."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).with_name("failing_tests.py")
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


def test_leftover_thread_fails_the_test(report: str) -> None:
    assert "ERROR" in outcome(report, "test_that_leaves_a_thread")
    assert "threads left behind: ['forgotten']" in report


@pytest.mark.parametrize("test", ["test_that_warns", "test_that_makes_qt_warn", "test_that_raises_in_a_handler"])
def test_warning_or_exception_fails_the_test(report: str, test: str) -> None:
    assert outcome(report, test) & {"FAILED", "ERROR"}


def test_clean_test_passes(report: str) -> None:
    assert outcome(report, "test_that_leaves_nothing") == {"PASSED"}
