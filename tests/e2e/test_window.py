"""The program in a real process, with a real screen, mouse and keyboard."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.document.files import load
from tests.e2e.screen import PATIENCE_S, Screen, open_screen, wait_until, what_is_missing

pytest.importorskip("PySide6", reason="This test needs the window's packages, and PySide6 is not installed.")

ROOT = Path(__file__).parents[2]


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Screen]:
    missing = what_is_missing()
    if missing:
        pytest.skip(missing)
    folder = tmp_path / "screen"
    folder.mkdir()
    with open_screen(folder) as screen:
        yield screen


@pytest.fixture
def environment(tmp_path: Path, screen: Screen) -> dict[str, str]:
    """An environment with folders of its own, and a model that plays a script."""
    script = tmp_path / "replies.json"
    script.write_text(json.dumps({"default": "A friendly note to the neighbors."}))
    home = tmp_path / "home"
    home.mkdir()
    folders = {
        name: str(home / name) for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
    }
    config = home / "XDG_CONFIG_HOME" / "loopwright"
    config.mkdir(parents=True)
    (config / "preferences.json").write_text(json.dumps({"version": 1, "learned": ["tour"]}))
    own = {"HOME": str(home), "LOOPWRIGHT_MODEL": f"scripted:{script}", **folders}
    return {**screen.environment(os.environ), **own}


def places_of(environment: dict[str, str]) -> dict[str, list[int]]:
    command = [sys.executable, "-m", "tests.e2e.widget_positions"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=PATIENCE_S, check=True)
    return json.loads(done.stdout)


@contextmanager
def started(environment: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    from app.entry import window_obstacle

    obstacle = window_obstacle(environment)
    if obstacle:
        pytest.skip(obstacle)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "app.entry"], cwd=ROOT, env=environment, stdout=output, stderr=output
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)


class Person:
    """Somebody in front of the screen; the window's upper left corner is that of the screen."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen

    def move(self, place: list[int]) -> None:
        self.screen.tool("mousemove", "--sync", *place)

    def click(self, place: list[int], times: int = 1) -> None:
        self.move(place)
        self.screen.tool("click", "--repeat", times, "--delay", 40, 1)

    def drag(self, start: list[int], end: list[int]) -> None:
        self.move(start)
        self.screen.tool("mousedown", 1)
        for part in range(1, 9):
            between = [a + (b - a) * part // 8 for a, b in zip(start, end, strict=True)]
            self.move(between)
        self.screen.tool("mousemove_relative", "--sync", 2, 2)
        self.screen.tool("mouseup", 1)

    def keys(self, *names: str) -> None:
        self.screen.tool("key", *names)

    def type(self, text: str) -> None:
        self.screen.tool("type", "--delay", 5, text)


@pytest.mark.slow
def test_template_is_edited_run_and_saved(screen: Screen, environment: dict[str, str], tmp_path: Path) -> None:
    places = places_of(environment)
    person = Person(screen)
    target = tmp_path / "mine.loop.json"
    with started(environment, tmp_path / "said.log") as process:
        window = screen.window("^Loopwright$")
        screen.tool("windowmove", window, 0, 0)
        person.click(places["card"], times=2)
        screen.window("^Self-Refine.*Loopwright")

        # The star before the name's end says that the document has changed: the node is there.
        person.drag(places["palette_row"], places["edge"])
        screen.window(r"^Self-Refine\* ")

        idle = screen.pixels(*places["run_button"])
        no_bar = screen.pixels(*places["bar"])
        nothing_said = screen.pixels(*places["status"])
        person.click(places["run"])
        person.move(places["edge"])
        wait_until(
            lambda: screen.pixels(*places["run_button"]) == idle and screen.pixels(*places["status"]) != nothing_said,
            "the run has ended",
        )
        assert screen.pixels(*places["bar"]) == no_bar, "a bar over the canvas says that the run has failed"

        person.keys("ctrl+s")
        screen.window("^Save as$")
        person.keys("ctrl+a")
        person.type(str(target))
        person.keys("Return")
        screen.wait_until_gone("^Save as$")
        screen.window("^Self-Refine – Loopwright$")
        person.keys("ctrl+q")
        assert process.wait(timeout=PATIENCE_S) == 0

    saved = load(target)
    template = load(ROOT / "templates" / "self-refine.loop.json")
    added = [node for node in saved.nodes if node.id not in template.nodes_by_id]
    assert [node.type for node in added] == ["llm"]
    new = added[0].id
    ends = {(edge.from_, edge.to) for edge in saved.edges}
    before = {(edge.from_, edge.to) for edge in template.edges}
    assert before - ends == {("exit.output", "text.value")}
    assert ends - before == {("exit.output", f"{new}.input"), (f"{new}.output", "text.value")}
    assert set(saved.layout["nodes"]) == set(saved.nodes_by_id)
    assert (tmp_path / "said.log").read_text() == ""
