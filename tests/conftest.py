"""Settings for all tests."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator

import pytest

from tests.examples import load_examples

# A shell without job control starts background jobs with SIGINT ignored, and child processes inherit that. Tests that
# send Ctrl+C to a child need the default.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    load_examples(with_slow_tests="not slow" not in config.option.markexpr)


gc.disable()  # while tests are collected: most of what is created stays


def pytest_collection_finish() -> None:
    """Exclude modules and collected tests, over a million objects, from every later garbage collection."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def no_history_of_the_users_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test writes into the history of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOPWRIGHT_STORE", str(tmp_path_factory.mktemp("history") / "history.sqlite3"))
        yield


@pytest.fixture(scope="session", autouse=True)
def no_approvals_of_the_users_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test approves a workflow for whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOPWRIGHT_APPROVED", str(tmp_path_factory.mktemp("approved") / "approved.json"))
        yield


@pytest.fixture(scope="session", autouse=True)
def no_settings_of_the_users_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test sees or changes the settings of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOPWRIGHT_SETTINGS", str(tmp_path_factory.mktemp("settings") / "settings.json"))
        yield


@pytest.fixture(scope="session", autouse=True)
def no_extensions_of_the_users_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test sees the MCP servers and plugins of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOPWRIGHT_EXTENSIONS", str(tmp_path_factory.mktemp("extensions") / "extensions.json"))
        yield


@pytest.fixture(scope="session", autouse=True)
def no_models_of_the_users_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test sees the downloaded models of whoever runs the tests, or those of Ollama, or adds to them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOPWRIGHT_MODELS_FOLDER", str(tmp_path_factory.mktemp("models")))
        patch.setenv("OLLAMA_MODELS", str(tmp_path_factory.mktemp("ollama")))
        yield
