"""Requests to the embedded runtime."""

from __future__ import annotations

import pytest

from engine.models.embedded import EmbeddedModel, control_token_pattern, request_body
from engine.models.protocol import Message, Request

QUESTION = Request((Message("user", "Hi"),))
DEMO = EmbeddedModel()


def test_sampling_settings_and_stop_sequences_are_passed() -> None:
    body = DEMO.body(Request(QUESTION.messages, top_p=0.5, stop=("END", "\n")))

    assert (body["top_p"], body["stop"]) == (0.5, ["END", "\n"])


def test_unused_settings_of_the_demo_model_cause_warnings() -> None:
    asked = Request(QUESTION.messages, reasoning_effort="low", extra_parameters={"top_k": 4})

    effort, extra = DEMO.warnings(asked)
    assert "Reasoning effort" in effort
    assert "Extra parameters" in extra
    assert DEMO.warnings(QUESTION) == ()


def test_demo_model_has_default_settings() -> None:
    body = DEMO.body(QUESTION)

    assert (body["top_p"], body["max_tokens"], body["seed"]) == (0.9, 512, 7)
    assert "stop" not in body


def test_settings_that_a_request_lacks_are_left_to_the_runtime() -> None:
    body = request_body(QUESTION, control_token_pattern(()))

    assert body.keys().isdisjoint({"temperature", "top_p", "seed", "max_tokens", "stop", "response_format"})


@pytest.mark.parametrize(
    ("text", "sent"),
    [("a<|end|>b", "a< |end|>b"), ("[INST] x", "[ INST] x"), ("[INST]s", "[ INST]s"), ("<s>", "< s>"), ("#x", "#x")],
)
def test_control_tokens_in_a_text_become_text(text: str, sent: str) -> None:
    pattern = control_token_pattern(("<s>", "[INST]", "<|end|>", "#"))

    assert request_body(Request((Message("user", text),)), pattern)["messages"] == [{"role": "user", "content": sent}]
