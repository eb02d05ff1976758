"""The program in a real process, with a real screen, mouse and keyboard."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.document.files import load, save
from engine.nodes.loop import LoopConfig
from tests.app.whole.workflows import chain
from tests.e2e.screen import PATIENCE_S, Screen, open_screen, wait_until, what_is_missing

pytest.importorskip("PySide6", reason="This test needs the window's packages, and PySide6 is not installed.")

ROOT = Path(__file__).parents[2]
# The key code, not the name: recent X keymaps list F5 with Alt as well, and xdotool then presses Alt too.
F5 = "71"


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
    (config / "settings.json").write_text(json.dumps({"window": {"learned": ["tour"]}}))
    own = {"HOME": str(home), "LOOPWRIGHT_MODEL": f"scripted:{script}", **folders}
    own["LOOPWRIGHT_SETTINGS"] = str(config / "settings.json")
    own["LOOPWRIGHT_STORE"] = str(home / "history.sqlite3")
    return {**screen.environment(os.environ), **own}


def positions_of(environment: dict[str, str], task: str, *arguments: str) -> dict[str, list[int]]:
    command = [sys.executable, "-m", "tests.e2e.widget_positions", task, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=PATIENCE_S, check=True)
    return json.loads(done.stdout)


@contextmanager
def started(environment: dict[str, str], log: Path, *files: str) -> Iterator[subprocess.Popen[bytes]]:
    from app.entry import window_obstacle

    obstacle = window_obstacle(environment)
    if obstacle:
        pytest.skip(obstacle)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "app.entry", *files], cwd=ROOT, env=environment, stdout=output, stderr=output
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)


class Person:
    """Somebody in front of the screen; the window's upper left corner is that of the screen.

    Attributes:
        actions: How many clicks, drags, key presses and typed texts there were.
    """

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.actions = 0

    def move(self, place: list[int]) -> None:
        self.screen.tool("mousemove", "--sync", *place)

    def click(self, place: list[int], times: int = 1) -> None:
        self.actions += 1
        self.move(place)
        self.screen.tool("click", "--repeat", times, "--delay", 40, 1)

    def drag(self, start: list[int], end: list[int]) -> None:
        self.actions += 1
        self.move(start)
        self.screen.tool("mousedown", 1)
        for part in range(1, 9):
            between = [a + (b - a) * part // 8 for a, b in zip(start, end, strict=True)]
            self.move(between)
        self.screen.tool("mousemove_relative", "--sync", 2, 2)
        self.screen.tool("mouseup", 1)

    def keys(self, *names: str) -> None:
        self.actions += len(names)
        self.screen.tool("key", *names)

    def type(self, text: str) -> None:
        self.actions += 1
        self.screen.tool("type", "--delay", 5, text)

    def save_as(self, target: Path) -> None:
        """Save the document through the file dialog."""
        self.keys("ctrl+s")
        self.screen.window("^Save as$")
        self.keys("ctrl+a")
        self.type(str(target))
        self.keys("Return")
        self.screen.wait_until_gone("^Save as$")


@pytest.mark.slow
def test_template_is_edited_run_and_saved(screen: Screen, environment: dict[str, str], tmp_path: Path) -> None:
    positions = positions_of(environment, "template")
    person = Person(screen)
    target = tmp_path / "mine.loop.json"
    with started(environment, tmp_path / "said.log") as process:
        window = screen.window("^Loopwright$")
        screen.tool("windowmove", window, 0, 0)
        person.click(positions["card"], times=2)
        screen.window(r"^Self-Refine\*?$")

        # The star before the name's end says that the document has changed: the node is there.
        person.drag(positions["palette_row"], positions["edge"])
        screen.window(r"^Self-Refine\*$")

        idle = screen.pixels(*positions["run_button"])
        no_bar = screen.pixels(*positions["bar"])
        idle_status = screen.pixels(*positions["status"])
        person.click(positions["run"])
        person.move(positions["edge"])
        wait_until(
            lambda: (
                screen.pixels(*positions["run_button"]) == idle and screen.pixels(*positions["status"]) != idle_status
            ),
            "the run has ended",
        )
        assert screen.pixels(*positions["bar"]) == no_bar, "a bar over the canvas says that the run has failed"

        person.save_as(target)
        screen.window("^Self-Refine$")
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


@pytest.mark.slow
def test_a_loop_is_built_from_nothing_in_twelve_actions_and_a_minute(
    screen: Screen, environment: dict[str, str], tmp_path: Path
) -> None:
    positions = positions_of(environment, "build")
    person = Person(screen)
    target = tmp_path / "mine.loop.json"
    with started(environment, tmp_path / "output.log") as process:
        window = screen.window("^Loopwright$")
        screen.tool("windowmove", window, 0, 0)
        screen.wait_until_still()
        begin = time.monotonic()
        person.keys("ctrl+n")
        screen.window(r"^Untitled\*?$")
        prompts = ["Write about {{input}}.", "Improve {{input}}."]
        for node_type in ("input", "llm", "llm", "output"):
            person.click(positions[node_type], times=2)
            screen.wait_until_still()
            if node_type == "llm":
                person.click(positions["prompt"])
                person.type(prompts.pop(0))
        person.drag(positions["above"], positions["below"])
        person.keys("ctrl+l")
        assert person.actions <= 12
        assert time.monotonic() - begin <= 60
        screen.wait_until_still()
        person.save_as(target)
        screen.window("^mine$")
        person.keys("ctrl+q")
        assert process.wait(timeout=PATIENCE_S) == 0
    saved = load(target)
    types = {node.id: node.type for node in saved.nodes}
    edges = [(types[edge.source[0]], types[edge.target[0]]) for edge in saved.edges]
    chain = ["input", "loop", "llm", "llm", "exit", "output"]
    assert sorted(edges) == sorted(itertools.pairwise(chain))
    written = [node.config.get("prompt") for node in saved.nodes if node.type == "llm"]
    assert written == ["Write about {{input}}.", "Improve {{input}}."]
    assert (tmp_path / "output.log").read_text() == ""


@pytest.mark.slow
def test_two_nodes_are_wrapped_in_a_loop_and_run_in_four_actions(
    screen: Screen, environment: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "chain.loop.json"
    save(chain(), file)
    positions = positions_of(environment, "wrap", str(file))
    person = Person(screen)
    with started(environment, tmp_path / "output.log", str(file)) as process:
        window = screen.window("^Chain$")
        screen.tool("windowmove", window, 0, 0)
        screen.wait_until_still()
        idle = screen.pixels(*positions["run_button"])
        before = screen.pixels(*positions["status"])
        person.drag(positions["above"], positions["below"])
        person.keys("ctrl+l")
        screen.window(r"^Chain\*$")
        person.keys(F5)
        assert person.actions <= 4
        wait_until(
            lambda: screen.pixels(*positions["run_button"]) == idle and screen.pixels(*positions["status"]) != before,
            "the run has ended",
        )
        person.keys("ctrl+s")
        screen.window("^Chain$")
        person.keys("ctrl+q")
        assert process.wait(timeout=PATIENCE_S) == 0
    command = [sys.executable, "-m", "app.entry", "runs", "--json"]
    printed = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=PATIENCE_S, check=True)
    (run,) = json.loads(printed.stdout)["runs"]
    assert (run["status"], run["iterations"]) == ("completed", LoopConfig().max_iterations)
    assert (tmp_path / "output.log").read_text() == ""


@pytest.mark.slow
def test_a_file_of_a_second_start_opens_in_the_window_on_the_screen(
    screen: Screen, environment: dict[str, str], tmp_path: Path
) -> None:
    files = [tmp_path / "one.loop.json", tmp_path / "two.loop.json"]
    for file in files:
        save(chain().model_copy(update={"name": file.name.partition(".")[0]}), file)
    with started(environment, tmp_path / "output.log", str(files[0])) as process:
        screen.window("^one$")
        with started(environment, tmp_path / "second.log", str(files[1])) as second:
            assert second.wait(timeout=PATIENCE_S) == 0
        screen.window("^two$")
        Person(screen).keys("ctrl+q")
        assert process.wait(timeout=PATIENCE_S) == 0
    assert [(tmp_path / name).read_text() for name in ("output.log", "second.log")] == ["", ""]
