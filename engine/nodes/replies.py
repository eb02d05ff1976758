"""Judge a model's reply: empty and refused replies are failures, replies that were cut off can be continued."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from engine.formatting import format_count
from engine.models.protocol import Finish, Message, ModelError, ModelErrorKind, Reply, Request
from engine.text_sanitizing import one_line

if TYPE_CHECKING:
    from engine.nodes.spec import ModelCall

MAX_CONTINUATIONS: Final = 5
"""The most calls that continue one reply that was cut off."""

CONTINUE: Final = Message(
    "user",
    "Your reply was cut off. Continue it exactly where it ended, even in the middle of a word. Start with the space or "
    "line break that comes next, if there is one. Do not repeat what you wrote, and add nothing else.",
)
"""Asks for the rest of a reply that was cut off."""

_RAISE_LIMIT: Final = "Raise 'Max tokens', or choose 'continue' under 'When a reply is truncated'."
_CHANGE_PROMPT: Final = "Change the prompt, or choose another model."
_QUOTED_LENGTH: Final = 300
_LONGEST_SEAM: Final = 4000
_SURE_SEAM: Final = 8
_SURE_SEAM_OF_WORDS: Final = 4
_SURE_SEAM_WITHOUT_LETTERS: Final = 20


def failure_of(reply: Reply, request: Request, config: Any) -> ModelError | None:
    """Tell why a reply cannot be used: it refuses, or has no text.

    Args:
        reply: The reply. One that calls tools that were offered needs no text.
        request: What was asked.
        config: The settings of the node that asked; `allow_empty` accepts a reply without text.
    """
    if reply.refusal and reply.refusal.strip():
        quoted = one_line(reply.refusal, _QUOTED_LENGTH)
        return _error(ModelErrorKind.REFUSAL, f"The model refused to answer: “{quoted}”", _CHANGE_PROMPT, reply)
    if reply.text.strip() or (reply.tool_calls and request.tools):
        return None
    if reply.finish is Finish.CONTENT_FILTER:
        return _error(ModelErrorKind.REFUSAL, "The content filter withheld the reply.", _CHANGE_PROMPT, reply)
    if getattr(config, "allow_empty", False):
        return None
    return no_text(reply)


def no_text(reply: Reply) -> ModelError:
    """The error for a reply without text where a text is needed."""
    return _error(ModelErrorKind.EMPTY_REPLY, _what_is_there(reply), _remedy(reply), reply)


def cut_off_error(reply: Reply, request: Request) -> ModelError:
    """The error for a reply that was cut off, where the settings say that this is a failure."""
    message = f"The reply was cut off{_limit(request)}."
    return ModelError(ModelErrorKind.CUT_OFF, message, _RAISE_LIMIT, partial=reply.text)


def cut_off_warning(request: Request, continued: int = 0) -> str:
    """What is said of a reply that was cut off and is used as far as it goes."""
    times = f", and still is after {format_count(continued, 'continuation')}" if continued else ""
    return f"The reply was cut off{_limit(request)}{times}. {_RAISE_LIMIT}"


def can_be_continued(reply: Reply) -> bool:
    """Whether a reply is a text that was cut off; what tool calls lack cannot be asked for."""
    return reply.finish is Finish.LENGTH and not reply.tool_calls and bool(reply.text.strip())


def rest_request(request: Request, text: str) -> Request:
    """The request for the rest of a reply of which `text` has arrived.

    It asks for no schema: the rest of a JSON value is no JSON value.
    """
    return replace(request, messages=(*request.messages, Message("assistant", text), CONTINUE), schema=None)


def joined(first: Reply, rest: Reply) -> Reply:
    """Two parts of one reply as a whole."""
    costs = (first.cost_usd, rest.cost_usd)
    return replace(
        rest,
        text=join(first.text, rest.text),
        usage=first.usage + rest.usage,
        cost_usd=None if None in costs else sum(cost or 0.0 for cost in costs),
        reasoning="\n\n".join(part for part in (first.reasoning, rest.reasoning) if part),
    )


def whole_text(call: ModelCall) -> str:
    """The text of a call's reply; with what it continues, where it continues an earlier one."""
    messages = call.request.messages
    if len(messages) > 1 and messages[-1] == CONTINUE:
        return join(messages[-2].text, call.reply.text)
    return call.reply.text


def join(text: str, rest: str) -> str:
    """A text and its rest, without the last words of the text that the rest repeats."""
    if rest.startswith(text):
        return rest
    end, start = text[-_LONGEST_SEAM:].rstrip(), rest.lstrip()
    for length in range(min(len(end), len(start)), 0, -1):
        if end.endswith(start[:length]) and _is_repeated(end, start, length):
            return text.rstrip() + start[length:]
    return text + rest


def _is_repeated(end: str, start: str, length: int) -> bool:
    """Whether what both share is repeated words, and no coincidence such as the l in "hel" and "lo"."""
    shared = start[:length]
    if not any(character.isalpha() for character in shared):
        return length >= _SURE_SEAM_WITHOUT_LETTERS
    starts_word = length == len(end) or not (end[-length - 1].isalnum() and shared[0].isalnum())
    ends_word = length == len(start) or not (shared[-1].isalnum() and start[length].isalnum())
    # Languages without spaces, and with many letters, meet by coincidence less often.
    sure = _SURE_SEAM if shared.isascii() else _SURE_SEAM_OF_WORDS
    return length >= sure or (starts_word and (ends_word or length >= _SURE_SEAM_OF_WORDS))


def _limit(request: Request) -> str:
    return (
        f" at {format_count(request.max_tokens, 'token')}"
        if request.max_tokens is not None
        else " at the model's limit"
    )


def _what_is_there(reply: Reply) -> str:
    if reply.tool_calls:
        name = one_line(reply.tool_calls[0].name, 60)
        return f'The model wants the tool "{name}" called, which it does not have, and wrote no text.'
    if reply.reasoning.strip():
        return "The reply has reasoning and no answer."
    return "The model's reply is empty."


def _remedy(reply: Reply) -> str:
    if reply.finish is Finish.LENGTH:
        return "Its limit was reached before any text: raise 'Max tokens'."
    return "Change the prompt or the model, or turn on 'Allow empty replies'."


def _error(kind: ModelErrorKind, message: str, remedy: str, reply: Reply) -> ModelError:
    return ModelError(kind, message, remedy, partial=reply.text)
