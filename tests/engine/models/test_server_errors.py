"""Parsing of error responses of model servers, in their real wordings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.models.protocol import ModelErrorKind
from engine.models.server_errors import kind_of_error, read_error

Kind = ModelErrorKind


def fastapi(*fields: str, msg: str) -> dict[str, Any]:
    return {"type": "x", "loc": ["body", *fields], "msg": msg, "input": {"messages": "context length exceeded"}}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"error": "text here"}, "text here"),
        ({"error": {"message": "It broke", "type": "server_error", "code": None}}, "It broke"),
        ({"detail": "Not authenticated"}, "Not authenticated"),
        ({"detail": [fastapi("seed", msg="Extra inputs are not permitted")]}, "seed: Extra inputs are not permitted"),
        (
            {"detail": [fastapi("messages", "0", msg="too short"), fastapi(msg="no body")]},
            "messages.0: too short; no body",
        ),
        ({"message": "plain message"}, "plain message"),
        ({"errors": ["one", "two"]}, "one; two"),
        ({"errors": [{"message": "one"}, {"detail": "two"}]}, "one; two"),
        ({"errors": {"model": ["is unknown"], "n": ["is too large"]}}, "model: is unknown; n: is too large"),
        ([{"error": {"code": 400, "message": "Google's", "status": "INVALID_ARGUMENT"}}], "Google's"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "Overloaded"),
        ({"object": "error", "message": {"detail": [fastapi("tools", msg="Not permitted")]}}, "tools: Not permitted"),
        ({"error": "not_found", "message": "There is no such model."}, "There is no such model."),
        ({"status": 404, "error": "Not Found", "message": "No route matches this path"}, "No route matches this path"),
        ({"title": "Bad Request", "detail": "The model is gone, sorry"}, "The model is gone, sorry"),
        ({"error": {"message": '{"error": {"message": "from inside"}}'}}, "from inside"),
        (
            {"error": {"message": "Provider returned error", "metadata": {"raw": '{"error": {"message": "Too hot"}}'}}},
            "Provider returned error; Too hot",
        ),
        ({"Message": "of a cloud"}, "of a cloud"),
        ({"error": True, "reason": "because"}, "because"),
        ({"failure": 3}, '{"failure":3}'),
        ("plain words", "plain words"),
        ("  several\n lines\t", "several lines"),
        ('data: {"error": "in an event"}', "in an event"),
        ("{broken", "{broken"),
        ("", ""),
        (b"\xff\xfe bytes", "\ufffd\ufffd bytes"),
        ({}, "{}"),
        (None, ""),
        ("<html><head><title>502 Bad Gateway</title></head><body><h1>nginx</h1></body></html>", "502 Bad Gateway"),
        ("<!DOCTYPE html><html><body><h1>Log in</h1><p>please</p></body></html>", "Log in"),
        ("<html><style>p {}</style><script>x()</script><p>Gone &amp; lost</p></html>", "Gone & lost"),
        ("<h1>Service Unavailable</h1>", "Service Unavailable"),
        ('<?xml version="1.0"?><Error><Message>Denied</Message></Error>', "Denied"),
        ({"error": "<html><title>Down</title></html>"}, "Down"),
        ("<html><title></title><H1 class='x'>İs\ndown</H1>", "İs down"),
        ("<html>Down<![x", "Down"),
        ("<html>Down" + "<a " * 30_000, "Down"),
        ("2 < 3 and 4 > 1", "2 < 3 and 4 > 1"),
    ],
)
def test_sentence_is_found_in_every_shape(body: object, text: str) -> None:
    assert read_error(body).text == text
    if isinstance(body, (dict, list)):
        assert read_error(json.dumps(body)).text == text
        assert read_error(json.dumps(body).encode()).text == text


def test_body_of_any_depth_is_parsed() -> None:
    deep: Any = "x"
    for _ in range(2000):
        deep = {"error": deep}

    assert read_error(deep).text == ""
    assert read_error("[" * 200_000).text.startswith("[[")


CONTEXT_LENGTH = [
    # OpenAI
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 40000.",
    # Anthropic
    "prompt is too long: 213462 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length",
    # llama.cpp
    "the request exceeds the available context size. try increasing the context size or enable context shift",
    "request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it",
    "Context size has been exceeded.",
    "Requested tokens (2285) exceed context window of 2048",
    # vLLM
    "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens in the messages.",
    "The decoder prompt (length 21535) is longer than the maximum model length of 16384.",
    "The prompt (total length 25938) is too long to fit into the model (context length 4096).",
    # Ollama
    "the input length exceeds the context length",
    "input exceeds maximum context length",
    # LM Studio
    "Trying to keep the first 15857 tokens. However, the model is loaded with context length of only 7866 tokens.",
    "The number of tokens to keep from the initial prompt is greater than the context length.",
    "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)",
    # Gemini
    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
    # Mistral
    "Prompt contains 34567 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    # Groq
    "Please reduce the length of the messages or completion.",
    "Request too large for model `llama-3.1-8b-instant` on tokens per minute (TPM): Limit 6000, Requested 8000",
    # Text Generation Inference
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens",
    "Input validation error: `inputs` must have less than 1024 tokens. Given: 2000",
    # DeepSeek, OpenRouter, xAI, Bedrock, Kimi, MiniMax, Cohere
    "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens",
    "This endpoint's maximum context length is 1048576 tokens. However, you requested about 1293741 tokens",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "Input is too long for requested model.",
    "Your request exceeded model token limit: 262144 (requested: 300000)",
    "invalid params, context window exceeds limit",
    "too many tokens: total number of tokens in the prompt cannot exceed 4081",
]


@pytest.mark.parametrize("status", [None, 400, 413, 422, 429, 500])
@pytest.mark.parametrize("text", CONTEXT_LENGTH)
def test_too_long_request_is_recognized_in_every_wording(text: str, status: int | None) -> None:
    assert kind_of_error(read_error({"error": {"message": text}}), status) is Kind.CONTEXT_LENGTH


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"error": {"message": "Bad", "code": "context_length_exceeded"}}, Kind.CONTEXT_LENGTH),
        (400, {"error": {"code": 400, "message": "No", "type": "exceed_context_size_error"}}, Kind.CONTEXT_LENGTH),
        (413, {"error": "anything"}, Kind.CONTEXT_LENGTH),
        (413, "<html><title>413 Request Entity Too Large</title></html>", Kind.CONTEXT_LENGTH),
        (413, "", Kind.CONTEXT_LENGTH),
        # too large a setting is no text that is too long
        (400, "max_tokens is too large: 99999. This model supports at most 16384 tokens", Kind.BAD_REQUEST),
        (400, "temperature must be at most 2", Kind.BAD_REQUEST),
        (400, "", Kind.BAD_REQUEST),
        (422, "", Kind.BAD_REQUEST),
        # a limit of tokens a minute passes
        (429, "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000", Kind.RATE_LIMIT),
        (429, "Too many tokens per minute, please wait.", Kind.RATE_LIMIT),
        (400, {"error": {"status": "RESOURCE_EXHAUSTED", "message": "Resource has been exhausted"}}, Kind.RATE_LIMIT),
        (403, "Rate limit exceeded", Kind.RATE_LIMIT),
        (503, "ThrottlingException: slow down", Kind.RATE_LIMIT),
        (429, {"error": {"message": "You exceeded your current quota. Please retry in 37.5s."}}, Kind.RATE_LIMIT),
        (498, "flex tier capacity exceeded", Kind.RATE_LIMIT),
        # no money left, in whatever status
        (429, {"error": {"message": "No.", "code": "insufficient_quota"}}, Kind.UNAVAILABLE),
        (429, "You exceeded your current quota, please check your plan and billing details.", Kind.UNAVAILABLE),
        (400, "Your credit balance is too low to access the Anthropic API.", Kind.UNAVAILABLE),
        (402, {"error": {"message": "Insufficient Balance"}}, Kind.UNAVAILABLE),
        (402, "This request requires more credits, or fewer max_tokens.", Kind.UNAVAILABLE),
        (
            403,
            "Your team has used all available credits or reached its monthly spending limit",
            Kind.UNAVAILABLE,
        ),
        # keys
        (400, {"error": {"message": "API key not valid. Please pass a valid API key."}}, Kind.AUTHENTICATION),
        (400, "Incorrect API key provided: xa***cd", Kind.AUTHENTICATION),
        (500, "Unauthorized", Kind.AUTHENTICATION),
        (401, "", Kind.AUTHENTICATION),
        (403, "Your country is not supported", Kind.AUTHENTICATION),
        # models
        (404, {"error": "model 'llama9' not found, try pulling it first"}, Kind.NOT_FOUND),
        (400, {"error": {"message": "Model Not Exist"}}, Kind.NOT_FOUND),
        (400, {"error": {"message": "foo/bar is not a valid model ID", "code": 400}}, Kind.NOT_FOUND),
        (400, {"error": {"message": "Old.", "code": "model_decommissioned"}}, Kind.NOT_FOUND),
        (400, {"object": "error", "message": "Invalid model: nope", "code": "1500"}, Kind.NOT_FOUND),
        (500, "model 'x' not found", Kind.NOT_FOUND),
        (404, "404 page not found", Kind.NOT_FOUND),
        (404, {"detail": "Not Found"}, Kind.NOT_FOUND),
        (405, {"detail": "Method Not Allowed"}, Kind.NOT_FOUND),
        # filters
        (400, {"error": {"message": "Content Exists Risk"}}, Kind.CONTENT_FILTER),
        (400, {"code": "data_inspection_failed", "message": "Output may be bad"}, Kind.CONTENT_FILTER),
        (403, "Chosen model requires moderation. Your input was flagged for violence.", Kind.CONTENT_FILTER),
        # servers
        (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, Kind.SERVER),
        (400, {"error": {"message": "The engine is currently overloaded"}}, Kind.SERVER),
        (503, {"error": {"message": "Loading model", "code": 503}}, Kind.SERVER),
        (502, "<html><title>502 Bad Gateway</title></html>", Kind.SERVER),
        (408, "", Kind.TIMEOUT),
        (504, "<html><title>504 Gateway Time-out</title></html>", Kind.TIMEOUT),
        (524, "A timeout occurred", Kind.TIMEOUT),
        # in a reply with the status 200, or in a stream
        (None, {"error": {"message": "Slow", "code": 429}}, Kind.RATE_LIMIT),
        (200, {"error": {"message": "Broken", "code": 502}}, Kind.SERVER),
        (None, {"error": {"message": "something else"}}, None),
    ],
)
def test_wording_and_status_decide_the_kind(status: int | None, body: Any, kind: Kind | None) -> None:
    assert kind_of_error(read_error(body), status) is kind


def test_quoted_user_text_does_not_decide_the_kind() -> None:
    body = {"detail": [fastapi("messages", msg="Field required")]}

    assert kind_of_error(read_error(body), 422) is Kind.BAD_REQUEST


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ({"error": {"message": "Please retry in 37.5s."}}, 37.5),
        ({"error": {"message": "x", "details": [{"@type": "RetryInfo", "retryDelay": "12s"}]}}, 12.0),
        ("Rate limit reached. Please try again in 1m2.5s. Visit us.", 62.5),
        ("Please try again in 2h5m0s.", 7500.0),
        ("Please try again in 250ms.", 0.25),
        ("Try again in 6 seconds", 6.0),
        ("Try again later.", None),
        ("I waited 5 s", None),
    ],
)
def test_retry_delay_is_read_from_the_sentence(body: Any, seconds: float | None) -> None:
    assert read_error(body).seconds == seconds
