"""Separates a model's reasoning from its answer, and cleans both, while the reply arrives.

Many servers leave the reasoning in the text, between tags. A tag counts only at the start of a reply: one in the
middle, in a code fence or in quotes belongs to the answer.
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
"""Opening tags, in lower case, with the tags that close them."""

# The format of gpt-oss: <|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…
_CHANNEL: Final = "<|channel|>"
_CHANNEL_START: Final = "<|start|>assistant"
_MESSAGE: Final = "<|message|>"
_MESSAGE_ENDS: Final = ("<|end|>", "<|return|>", "<|call|>", _CHANNEL_START, _CHANNEL)

_CLOSERS: Final = tuple({closer: None for closers in _BLOCKS.values() for closer in closers})
_AT_START: Final = (*_BLOCKS, *_CLOSERS, *_MESSAGE_ENDS)
_CLOSERS_AT_START: Final = (*_CLOSERS, "<|end|>", "<|return|>")
_MAX_HEADER_LENGTH: Final = 200

_QUOTES: Final = frozenset("`\"'“”‘’«»„()[]{}")
_FENCE: Final = "```"


def _any_of(tags: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, tags)), re.IGNORECASE)


_ANY_CLOSER: Final = _any_of(_CLOSERS)
_ANY_OPENER: Final = _any_of((*_BLOCKS, _CHANNEL))


def split_reasoning(text: str) -> tuple[str, str]:
    """Return the answer and the reasoning of a whole reply."""
    splitter = ReasoningSplitter()
    answer = splitter.feed(text) + splitter.end()
    if splitter.found:
        return answer, splitter.reasoning
    return split_unopened(answer)


def split_unopened(text: str) -> tuple[str, str]:
    """Return the answer and the reasoning of a reply in which only the end of the reasoning is marked.

    The chat templates of some models open the reasoning in the prompt. Only the whole reply shows that, so a stream
    has already emitted such reasoning as text.
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
    """Join reasoning from different sources."""
    return "\n\n".join(part for part in parts if part)


class ReasoningSplitter:
    """Separates reasoning from the answer in a text that arrives in pieces, which may split a tag.

    A block that is never closed is reasoning to the end of the text.
    """

    def __init__(self) -> None:
        self._pending = ""
        self._closers: tuple[str, ...] = ()  # inside a block: the tags that close it
        self._is_final = False  # whether that block is the answer
        self._in_answer = False  # whether all that follows is the answer
        self.found = False  # whether a tag was at the start
        self._blocks: list[str] = []

    @property
    def reasoning(self) -> str:
        """The reasoning so far."""
        return join_reasoning(*(block.strip() for block in self._blocks))

    def feed(self, piece: str) -> str:
        """Add the next piece of the reply; return the text that is certainly part of the answer."""
        if self._in_answer:
            return piece
        self._pending += piece
        answer: list[str] = []
        while self._pending:
            before = (len(self._pending), self._closers)
            answer.append(self._take_block() if self._closers else self._take_start())
            if before == (len(self._pending), self._closers):
                break
        return "".join(answer)

    def end(self) -> str:
        """End the reply; return the rest of the answer."""
        rest, self._pending = self._pending, ""
        if self._closers:
            if self._is_final:
                return rest
            self._blocks[-1] += rest
            return ""
        if rest.lstrip().lower().startswith((_CHANNEL, _CHANNEL_START)):
            return ""  # an incomplete header
        return rest.lstrip() if self.found else rest

    def _take_start(self) -> str:
        """Consume a tag at the start of the reply, or start the answer; nothing if that is still undecided."""
        text = self._pending.lstrip()
        lowered = text[:_MAX_HEADER_LENGTH].lower()
        if lowered.startswith((_CHANNEL, _CHANNEL_START)) and (
            _MESSAGE in lowered or len(lowered) < _MAX_HEADER_LENGTH
        ):
            self._open_channel(text, lowered)
            return ""
        for opener, closers in _BLOCKS.items():
            if lowered.startswith(opener):
                self._open(closers, text[len(opener) :])
                return ""
        for closer in _CLOSERS_AT_START:
            if lowered.startswith(closer):
                self.found = True
                self._pending = text[len(closer) :]
                return ""
        if not text or any(tag.startswith(lowered) for tag in _AT_START):
            return ""
        answer = text if self.found else self._pending
        self._in_answer, self._pending = True, ""
        return answer

    def _open(self, closers: tuple[str, ...], rest: str, *, is_final: bool = False) -> None:
        self._closers, self._pending, self._is_final, self.found = closers, rest, is_final, True
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
        """Consume text that certainly belongs to the open block."""
        found = _any_of(self._closers).search(self._pending)
        if found is None:
            end = len(self._pending) - _possible_tag(self._closers, self._pending)
            content, self._pending = self._pending[:end], self._pending[end:]
        else:
            opens_another = found[0].lower() in {_CHANNEL, _CHANNEL_START}
            content = self._pending[: found.start()]
            self._pending, self._closers = self._pending[found.start() if opens_another else found.end() :], ()
        if self._is_final:
            return content
        self._blocks[-1] += content
        return ""


def _possible_tag(tags: tuple[str, ...], text: str) -> int:
    """The number of characters at the end of a text that may be the start of a tag."""
    tail = text[-max(map(len, tags)) :]
    ends = (length for length in range(len(tail), 0, -1) if any(_is_start(tag, tail[-length:]) for tag in tags))
    return next(ends, 0)


def _is_start(tag: str, text: str) -> bool:
    return len(text) < len(tag) and tag.startswith(text.lower())


class ReplyText:
    """The texts of one reply while it arrives: answer and reasoning, with invalid characters and keys replaced.

    Args:
        keys: The user's keys, none of which may appear in a reply.
        on_text: Receives each piece of the answer.
    """

    def __init__(self, keys: Keys | None = None, on_text: OnText | None = None) -> None:
        self._keys = keys
        self._on_text = on_text
        self._splitter = ReasoningSplitter()
        self._half = ""  # the first half of a surrogate pair; the other may be in the next piece
        self._pending = ""  # may be the start of a key
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
        """Add text, which may contain reasoning between tags."""
        piece = self._half + piece
        self._half = piece[-1:] if "\ud800" <= piece[-1:] <= "\udbff" else ""
        self._emit(self._splitter.feed(clean_text(piece.removesuffix(self._half))))

    def add_reasoning(self, piece: str) -> None:
        """Add reasoning that the server sent separately."""
        self._reasoning.append(piece)

    def add_refusal(self, piece: str) -> None:
        """Add to the reason why the model declined to answer."""
        self._refusal.append(piece)

    def finish(self) -> None:
        """End the reply."""
        half, self._half = self._half, ""
        self._emit(self._splitter.feed(clean_text(half)) + self._splitter.end(), is_last=True)
        if not self._splitter.found:
            answer, self._unopened = split_unopened(self.text)
            self._answer = [answer]

    def _emit(self, answer: str, *, is_last: bool = False) -> None:
        ready, self._pending = self._pending + answer, ""
        if self._keys is not None:
            ready = self._keys.redact_reply(ready)
            end = len(ready) - (0 if is_last else self._keys.possible_key(ready))
            ready, self._pending = ready[:end], ready[end:]
        if ready:
            self._answer.append(ready)
            if self._on_text is not None:
                self._on_text(ready)

    def _clean(self, text: str) -> str:
        text = clean_text(text)
        return text if self._keys is None else self._keys.redact_reply(text)
