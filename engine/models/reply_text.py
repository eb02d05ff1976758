"""Separates a model's reasoning from its answer, and cleans both, while the reply arrives.

Many servers leave the reasoning in the text, between tags. It counts only at the start of a reply: a tag in the middle,
in a code fence or in quotes belongs to the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from engine.models.keys import Keys
from engine.models.protocol import OnText
from engine.values import clean_text

_NAMES: Final = (
    *("think", "thinking", "thought", "thoughts", "reasoning"),
    *("antthinking", "budget:thinking", "seed:think", "longcat_think"),
)
_BLOCKS: Final = {
    **{f"<{name}>": tuple(f"</{other}>" for other in _NAMES) for name in _NAMES},
    "[think]": ("[/think]",),
    "◁think▷": ("◁/think▷",),
    "<|begin_of_thought|>": ("<|end_of_thought|>",),
    "<|start_thinking|>": ("<|end_thinking|>",),
}
"""Opening tags, in lower case, with the tags that end what they open."""

# The format of gpt-oss: <|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…
_CHANNEL: Final = "<|channel|>"
_CHANNEL_START: Final = "<|start|>assistant"
_MESSAGE: Final = "<|message|>"
_MESSAGE_ENDS: Final = ("<|end|>", "<|return|>", "<|call|>", _CHANNEL_START, _CHANNEL)

_CLOSERS: Final = tuple({closer: None for closers in _BLOCKS.values() for closer in closers})
_AT_START: Final = (*_BLOCKS, *_CLOSERS, *_MESSAGE_ENDS)
_LONE_AT_START: Final = (*_CLOSERS, "<|end|>", "<|return|>")
_LONGEST_HEADER: Final = 200

_QUOTES: Final = frozenset("`\"'“”‘’«»„()[]{}")
_FENCE: Final = "```"


def _any_of(tags: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, tags)), re.IGNORECASE)


_ANY_CLOSER: Final = _any_of(_CLOSERS)
_ANY_OPENER: Final = _any_of((*_BLOCKS, _CHANNEL))


def split_reasoning(text: str) -> tuple[str, str]:
    """Return the answer and the reasoning of a whole reply."""
    splitter = ReasoningSplitter()
    answer = splitter.take(text) + splitter.end()
    if splitter.found:
        return answer, splitter.reasoning
    return split_unopened(answer)


def split_unopened(text: str) -> tuple[str, str]:
    """Return the answer and the reasoning of a reply in which only the end of the reasoning is marked.

    The chat templates of some models open the reasoning in the prompt. Only the whole reply shows that, so a stream
    has passed such reasoning on as text.
    """
    closer = _ANY_CLOSER.search(text)
    if closer is None:
        return text, ""
    before, after = text[: closer.start()], text[closer.end() :]
    at_line_end = before.endswith("\n") or after.startswith("\n")
    within_prose = not at_line_end and bool(re.search(r"\s\Z", before))
    quoted = before[-1:] in _QUOTES or after[:1] in _QUOTES or before.count(_FENCE) % 2 == 1
    if within_prose or quoted or _ANY_OPENER.search(before):
        return text, ""
    return after.lstrip(), before.strip()


def join_reasoning(*parts: str) -> str:
    """Join pieces of reasoning that came in different ways."""
    return "\n\n".join(part for part in parts if part)


class ReasoningSplitter:
    """Separates reasoning from answer in a text that arrives in pieces, wherever the pieces divide a tag.

    A block that is never closed is reasoning to its end.
    """

    def __init__(self) -> None:
        self._waiting = ""
        self._closers: tuple[str, ...] = ()  # inside a block: what ends it
        self._is_final = False  # that block is the answer
        self._in_answer = False  # all that follows is the answer
        self._any_block = False
        self._blocks: list[str] = []

    @property
    def found(self) -> bool:
        """Whether any tag stood at the start."""
        return self._any_block

    @property
    def reasoning(self) -> str:
        """The reasoning so far."""
        return join_reasoning(*(block.strip() for block in self._blocks))

    def take(self, piece: str) -> str:
        """Take the next piece of the reply; return what of it is certain to be answer."""
        if self._in_answer:
            return piece
        self._waiting += piece
        answer: list[str] = []
        while self._waiting:
            before = (len(self._waiting), self._closers)
            answer.append(self._take_block() if self._closers else self._take_start())
            if before == (len(self._waiting), self._closers):
                break
        return "".join(answer)

    def end(self) -> str:
        """The reply is complete; return the rest of the answer."""
        rest, self._waiting = self._waiting, ""
        if self._closers:
            if self._is_final:
                return rest
            self._blocks[-1] += rest
            return ""
        if rest.lstrip().lower().startswith((_CHANNEL, _CHANNEL_START)):
            return ""  # a header that was cut off
        return rest.lstrip() if self._any_block else rest

    def _take_start(self) -> str:
        """Consume a tag at the start of the reply, or begin the answer; nothing where more is needed to tell."""
        text = self._waiting.lstrip()
        lowered = text[:_LONGEST_HEADER].lower()
        if lowered.startswith((_CHANNEL, _CHANNEL_START)) and (_MESSAGE in lowered or len(lowered) < _LONGEST_HEADER):
            self._open_channel(text, lowered)
            return ""
        for opener, closers in _BLOCKS.items():
            if lowered.startswith(opener):
                self._open(closers, text[len(opener) :])
                return ""
        for closer in _LONE_AT_START:
            if lowered.startswith(closer):
                self._any_block = True
                self._waiting = text[len(closer) :]
                return ""
        if not text or any(tag.startswith(lowered) for tag in _AT_START):
            return ""
        answer = text if self._any_block else self._waiting
        self._in_answer, self._waiting = True, ""
        return answer

    def _open(self, closers: tuple[str, ...], rest: str, *, is_final: bool = False) -> None:
        self._closers, self._waiting, self._is_final, self._any_block = closers, rest, is_final, True
        if not is_final:
            self._blocks.append("")

    def _open_channel(self, text: str, lowered: str) -> None:
        """Open a channel once its whole header has arrived."""
        header, message, _ = lowered.partition(_MESSAGE)
        if message:
            name = header.removeprefix(_CHANNEL_START).removeprefix(_CHANNEL).strip()
            is_final = not name or name.startswith("final")
            self._open(_MESSAGE_ENDS, text[len(header) + len(message) :], is_final=is_final)

    def _take_block(self) -> str:
        """Consume what certainly belongs to the open block."""
        found = _any_of(self._closers).search(self._waiting)
        if found is None:
            end = len(self._waiting) - _possible_tag(self._closers, self._waiting)
            content, self._waiting = self._waiting[:end], self._waiting[end:]
        else:
            opens_another = found[0].lower() in {_CHANNEL, _CHANNEL_START}
            content = self._waiting[: found.start()]
            self._waiting, self._closers = self._waiting[found.start() if opens_another else found.end() :], ()
        if self._is_final:
            return content
        self._blocks[-1] += content
        return ""


def _possible_tag(tags: tuple[str, ...], text: str) -> int:
    """How many characters at the end of a text may be the beginning of a tag."""
    tail = text[-max(map(len, tags)) :]
    ends = (length for length in range(len(tail), 0, -1) if any(_begins(tag, tail[-length:]) for tag in tags))
    return next(ends, 0)


def _begins(tag: str, text: str) -> bool:
    return len(text) < len(tag) and tag.startswith(text.lower())


class ReplyText:
    """The texts of one reply as they arrive: reasoning apart from the answer, unclean characters and keys replaced.

    Args:
        keys: The user's keys, none of which may appear in a reply.
        on_text: Receives each piece of the answer.
    """

    def __init__(self, keys: Keys | None = None, on_text: OnText | None = None) -> None:
        self._keys = keys
        self._on_text = on_text
        self._splitter = ReasoningSplitter()
        self._half = ""  # the first half of a surrogate pair; the other may be in the next piece
        self._waiting = ""  # may be the beginning of a key
        self._answer: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._unopened = ""

    @property
    def text(self) -> str:
        """The answer so far."""
        return "".join(self._answer)

    @property
    def reasoning(self) -> str:
        """The reasoning so far."""
        separate = "".join(self._reasoning).strip()
        return self._clean(join_reasoning(separate, self._splitter.reasoning, self._unopened))

    @property
    def refusal(self) -> str:
        """Why the model declined to answer, so far."""
        return self._clean("".join(self._refusal))

    def add(self, piece: str) -> None:
        """Add text, in which reasoning may stand between tags."""
        piece = self._half + piece
        self._half = piece[-1:] if "\ud800" <= piece[-1:] <= "\udbff" else ""
        self._pass_on(self._splitter.take(clean_text(piece.removesuffix(self._half))))

    def add_reasoning(self, piece: str) -> None:
        """Add reasoning that the server sent separately."""
        self._reasoning.append(piece)

    def add_refusal(self, piece: str) -> None:
        """Add to the reason why the model declined to answer."""
        self._refusal.append(piece)

    def finish(self) -> None:
        """The reply is complete."""
        half, self._half = self._half, ""
        self._pass_on(self._splitter.take(clean_text(half)) + self._splitter.end(), is_last=True)
        if not self._splitter.found:
            answer, self._unopened = split_unopened(self.text)
            self._answer = [answer]

    def _pass_on(self, answer: str, *, is_last: bool = False) -> None:
        ready, self._waiting = self._waiting + answer, ""
        if self._keys is not None:
            ready = self._keys.redact_reply(ready)
            held = 0 if is_last else self._keys.possible_key(ready)
            ready, self._waiting = ready[: len(ready) - held], ready[len(ready) - held :]
        if ready:
            self._answer.append(ready)
            if self._on_text is not None:
                self._on_text(ready)

    def _clean(self, text: str) -> str:
        text = clean_text(text)
        return text if self._keys is None else self._keys.redact_reply(text)
