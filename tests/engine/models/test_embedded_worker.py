"""The worker program, driven through its pipes as by the parent."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.models import embedded_worker
from engine.models.demo_weights import FILE_SHA256, find_weights
from engine.models.embedded import find_runtime
from tests.wording import mentions

Message = dict[str, Any]


class Conversation:
    """A running worker."""

    def __init__(self, **settings: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-I", embedded_worker.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.say(**settings)

    def say(self, **message: object) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self) -> Message:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def hear_out(self) -> tuple[str, Message]:
        """Read a whole answer: its text, and the message that ends it."""
        text = ""
        while (message := self.hear())["tell"] == "text":
            text += message["text"]
        return text, message

    def hang_up(self) -> int:
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(20)


@pytest.fixture
def settings(tmp_path: Path) -> Message:
    return {
        "weights": str(find_weights()),
        "sha256": FILE_SHA256,
        "runtime": str(find_runtime()),
        "socket_folder": str(tmp_path),
        "threads": 1,
        "context_tokens": 512,
        "gpu_layers": None,
    }


@pytest.fixture
def conversation(settings: Message) -> Iterator[Conversation]:
    running = Conversation(**settings)
    with running.process:
        yield running
        running.process.kill()


def body(text: str, **more: object) -> Message:
    usage = {"include_usage": True}
    return {"messages": [{"role": "user", "content": text}], "stream": True, "stream_options": usage, **more}


def test_answers_requests_and_exits_with_the_parent(conversation: Conversation) -> None:
    assert conversation.hear() == {"tell": "ready"}
    conversation.say(do="complete", id=1, body=body("Hi", max_tokens=3, temperature=0))
    text, end = conversation.hear_out()
    assert text
    assert end == {"tell": "done", "id": 1, "finish": "length", "input_tokens": 31, "output_tokens": 3}
    conversation.say(do="complete", id=2, body=body("word " * 600))
    text, end = conversation.hear_out()
    assert (text, end["tell"], end["error"]["type"]) == ("", "failed", "exceed_context_size_error")
    conversation.say(do="complete", id=3, body={"messages": 5})
    text, end = conversation.hear_out()
    assert (text, end["tell"], end["error"]["type"]) == ("", "failed", "refused")
    assert conversation.hang_up() == 0


def test_counts_tokens_exactly_and_leaves_the_model_usable(conversation: Conversation) -> None:
    assert conversation.hear() == {"tell": "ready"}
    conversation.say(do="count", id=1, body={"texts": ["Hello world", "Hello world"]})
    assert conversation.hear() == {"tell": "counted", "id": 1, "tokens": 4}
    conversation.say(do="count", id=2, body={"texts": ["word " * 600]})
    assert conversation.hear() == {"tell": "counted", "id": 2, "tokens": 601}
    conversation.say(do="complete", id=3, body=body("Hi", max_tokens=3, temperature=0))
    _, end = conversation.hear_out()
    assert (end["tell"], end["input_tokens"]) == ("done", 31)


def test_canceled_request_is_followed_by_the_next(conversation: Conversation) -> None:
    assert conversation.hear() == {"tell": "ready"}
    conversation.say(do="complete", id=1, body=body("Write a long story.", max_tokens=400))
    assert conversation.hear()["tell"] == "text"
    conversation.say(do="cancel", id=1)
    conversation.say(do="complete", id=2, body=body("Hi", max_tokens=1))
    assert conversation.hear_out()[1] == {"tell": "cancelled", "id": 1}
    assert conversation.hear_out()[1]["output_tokens"] == 1
    assert conversation.hang_up() == 0


def test_exits_if_the_parent_disconnects_during_a_reply(conversation: Conversation) -> None:
    assert conversation.hear() == {"tell": "ready"}
    conversation.say(do="complete", id=1, body=body("Write a long story.", max_tokens=400))
    assert conversation.hear()["tell"] == "text"
    assert conversation.hang_up() == 0


def test_invalid_runtime_output_is_reported(conversation: Conversation) -> None:
    assert conversation.hear() == {"tell": "ready"}
    conversation.say(do="complete", id=1, body={**body("Hi", max_tokens=1), "stream": False})
    text, end = conversation.hear_out()
    assert (text, end["tell"], end["error"]["type"]) == ("", "failed", "unreadable")
    assert conversation.hang_up() == 0


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"sha256": "0" * 64}, "damaged … SHA-256 is b179c9523d0e6a0f"),
        ({"weights": "/nowhere"}, "weights cannot be read … /nowhere (No such file"),
        ({"socket_folder": "/nowhere"}, "runtime does not start (Failed to init"),
    ],
)
def test_start_failure_is_reported(settings: Message, change: Message, parts: str) -> None:
    conversation = Conversation(**{**settings, **change})
    with conversation.process:
        message = conversation.hear()
        assert message["tell"] == "fatal"
        assert mentions(message["message"], parts), message


def test_exits_without_settings() -> None:
    result = subprocess.run(
        [sys.executable, "-I", embedded_worker.__file__], input=b"", capture_output=True, check=False, timeout=60
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")
