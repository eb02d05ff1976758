"""Separation of reasoning and redaction of keys, however a reply is split into pieces."""

from __future__ import annotations

import pytest

from engine.models.keys import Keys
from engine.models.reply_text import ReplyText, split_reasoning

KEY = "sk-very-secret-0123456789"
HARMONY = (
    "<|channel|>analysis<|message|>They greet me.<|end|>"
    "<|start|>assistant<|channel|>commentary to=functions.look<|message|>{}<|call|>"
    "<|start|>assistant<|channel|>final<|message|>Hello!<|return|>"
)
SPLIT = [
    ("<think>They greet me.</think>\n\nHello!", "Hello!", "They greet me."),
    ("<thinking>They greet me.</thinking>Hello!", "Hello!", "They greet me."),
    ("<reasoning>\nThey greet me.\n</reasoning>\nHello!", "Hello!", "They greet me."),
    ("<thought>They greet me.</thought>Hello!", "Hello!", "They greet me."),
    (" \n<THINK>They greet me.</Think>Hello!", "Hello!", "They greet me."),
    ("[THINK]They greet me.[/THINK]Hello!", "Hello!", "They greet me."),
    ("◁think▷They greet me.◁/think▷Hello!", "Hello!", "They greet me."),
    ("<|begin_of_thought|>They greet me.<|end_of_thought|>Hello!", "Hello!", "They greet me."),
    ("<seed:think>They greet me.</seed:think>Hello!", "Hello!", "They greet me."),
    ("<think>They greet me.</thinking>Hello!", "Hello!", "They greet me."),
    ("<think>İstanbul? 1 < 2 </b></think>İyi!", "İyi!", "İstanbul? 1 < 2 </b>"),
    ("<think>They</think> <think>greet me.</think>Hello!", "Hello!", "They\n\ngreet me."),
    ("<think></think>\n\nHello!", "Hello!", ""),
    ("<think>They greet me", "", "They greet me"),
    ("<think>They greet me.</thi", "", "They greet me.</thi"),
    ("</think>\n\nHello!", "Hello!", ""),
    ("<think>Done.</think>Write </think>\n to end it.", "Write </think>\n to end it.", "Done."),
    (HARMONY, "Hello!", "They greet me.\n\n{}"),
    ("<|channel|>analysis<|message|>They greet", "", "They greet"),
    ("<|start|>assistant<|channel|>final <|constrain|>json<|message|>{}", "{}", ""),
    ("<|channel|>analy", "", ""),
]
ALL_ANSWER = [
    "",
    "   ",
    "Hello!\n",
    "  indented\n  code",
    "<b>Hello</b>",
    "<",
    "<thin",
    "<thinker>Hello</thinker>",
    "```xml\n<think>a</think>\n```",
    "`<think>` opens, `</think>` closes.",
    "The tag </think> closes it.",
    'It ends with "</think>"\nand no more.',
    "An answer with <think>a\n</think>\n inside.",
    "```\n</think>\n```\nis how it ends.",
    '{"branch": "done"}',
    "f(x) <|channel|>analysis<|message|>x<|end|>",
]


def _in_pieces(text: str, size: int, keys: Keys | None = None) -> tuple[ReplyText, str]:
    pieces: list[str] = []
    reply = ReplyText(keys, pieces.append)
    for start in range(0, len(text), size):
        reply.add(text[start : start + size])
    reply.finish()
    return reply, "".join(pieces)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
@pytest.mark.parametrize(("text", "answer", "reasoning"), SPLIT)
def test_reasoning_at_the_start_is_separated(text: str, answer: str, reasoning: str, size: int) -> None:
    reply, streamed = _in_pieces(text, size)

    assert (reply.text, streamed, reply.reasoning) == (answer, answer, reasoning)
    assert split_reasoning(text) == (answer, reasoning)


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize("text", ALL_ANSWER)
def test_tags_elsewhere_belong_to_the_answer(text: str, size: int) -> None:
    reply, streamed = _in_pieces(text, size)

    assert (reply.text, streamed, reply.reasoning) == (text, text, "")
    assert split_reasoning(text) == (text, "")


@pytest.mark.parametrize(
    "text",
    ["They greet me.\n</think>\n\nHello!", "They greet me.</think>Hello!", "They greet me.</think> Hello!"],
)
def test_reasoning_opened_by_the_prompt_ends_at_its_tag(text: str) -> None:
    reply, _ = _in_pieces(text, 3)

    assert (reply.text, reply.reasoning) == ("Hello!", "They greet me.")
    assert split_reasoning(text) == ("Hello!", "They greet me.")


def test_answer_is_emitted_as_it_arrives() -> None:
    pieces: list[str] = []
    reply = ReplyText(on_text=pieces.append)
    for piece in ("Hel", "lo ", "<thi", "nk>"):
        reply.add(piece)

    assert pieces == ["Hel", "lo ", "<thi", "nk>"]


def test_separate_reasoning_precedes_that_in_the_text() -> None:
    reply = ReplyText()
    reply.add_reasoning("Hm, ")
    reply.add_reasoning("well.")
    reply.add("<think>So.</think>Yes.")
    reply.finish()

    assert (reply.text, reply.reasoning) == ("Yes.", "Hm, well.\n\nSo.")


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a\ud83d\ude00b", "a😀b"),
        ("a\ud83db", "a\ufffdb"),
        ("x\ude00b", "x\ufffdb"),
        ("a\ud83d", "a\ufffd"),
        ("\ud83d\ud83d\ude00", "\ufffd😀"),
        ("a\0b", "a\ufffdb"),
    ],
)
def test_invalid_characters_are_replaced(text: str, clean: str, size: int) -> None:
    reply, streamed = _in_pieces(text, size)
    reply.add_reasoning(text)
    reply.add_refusal(text)

    assert (reply.text, streamed, reply.reasoning, reply.refusal) == (clean,) * 4


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_key_is_redacted_even_if_pieces_split_it(size: int) -> None:
    keys = Keys({"OPENAI_API_KEY": KEY})
    keys.get("openai")
    text = f"{KEY[:-1]} s {KEY}{KEY} sk-very sk"

    reply, streamed = _in_pieces(text, size, keys)
    reply.add_reasoning(f"The key {KEY}")
    reply.add_refusal(KEY)

    assert reply.text == streamed == f"{KEY[:-1]} s …… sk-very sk"
    assert (reply.reasoning, reply.refusal) == ("The key …", "…")


@pytest.mark.parametrize("key", ["none", "EMPTY", "ollama", "lm-studio", "not-needed"])
def test_key_that_is_a_common_word_is_not_redacted(key: str) -> None:
    keys = Keys({"OPENAI_API_KEY": key})
    keys.get("openai")

    reply, _ = _in_pieces(f"There is {key} left.", 4, keys)

    assert reply.text == f"There is {key} left."


def test_keys_are_redacted_in_reasoning() -> None:
    keys = Keys({"OPENAI_API_KEY": KEY})
    keys.get("openai")

    reply, _ = _in_pieces(f"<think>{KEY}</think>Yes.", 5, keys)

    assert (reply.text, reply.reasoning) == ("Yes.", "…")


@pytest.mark.parametrize("text", ["They greet me.</think>", "They greet me.\n</think>", "They greet me.</THINK>\n\n"])
def test_reasoning_with_only_an_end_tag_is_separated(text: str) -> None:
    assert split_reasoning(text) == ("", "They greet me.")


@pytest.mark.parametrize("text", ["The tag is </think>", "It ends with </think> and no more."])
def test_closing_tag_within_prose_belongs_to_the_answer(text: str) -> None:
    assert split_reasoning(text) == (text, "")
