"""Requests to the runtime of the built-in model."""

from __future__ import annotations

from engine.models.embedded import _body, _unused_settings  # pyright: ignore[reportPrivateUsage] - a runtime takes seconds
from engine.models.protocol import Message, Request

QUESTION = Request((Message("user", "Hi"),))


def test_sampling_settings_and_stop_sequences_are_passed() -> None:
    body = _body(Request(QUESTION.messages, top_p=0.5, stop=("END", "\n")))

    assert (body["top_p"], body["stop"]) == (0.5, ["END", "\n"])


def test_unused_settings_cause_warnings() -> None:
    asked = Request(QUESTION.messages, reasoning_effort="low", extra_parameters={"top_k": 4})

    assert ["Reasoning effort" in _unused_settings(asked)[0], "Extra parameters" in _unused_settings(asked)[1]] == [
        True,
        True,
    ]
    assert _unused_settings(QUESTION) == ()


def test_default_settings() -> None:
    body = _body(QUESTION)

    assert body["top_p"] == 0.9
    assert "stop" not in body
