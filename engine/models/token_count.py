"""Count the tokens of texts with a provider's own tokenizer, where it is known.

litellm brings the tokenizers of OpenAI and DeepSeek as files, so nothing is downloaded. The first use of one may take
seconds, so it must not happen in an event loop. Models in GGUF files count their tokens themselves.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from engine.models.price_list import litellm_folder
from engine.models.protocol import CountTokens
from engine.values import encodable_text

_OPENAI: Final = re.compile(r"(chatgpt-|gpt-|o\d)")
_ENCODING_FILES: Final = {
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
}
_OLDER: Final = re.compile(r"gpt-(3|4(?!o|\.|-?5))")
"""Models of OpenAI with the older of these encodings."""
_FEW_BYTES_PER_TOKEN: Final = 3


def counted_tokens(model: str, texts: Sequence[str]) -> int | None:
    """Count the tokens of texts before a call; None if there are no tokenizers.

    For a model with an unknown tokenizer, that is rather too many: what OpenAI's older tokenizer counts, as in litellm,
    or a token for three bytes if that is more.
    """
    count = token_counter(model)
    if count is not None:
        return sum(map(count, texts))
    usual = _openai_counter("cl100k_base")
    if usual is None:
        return None
    return sum(max(usual(text), -(-len(text.encode("utf-8", "replace")) // _FEW_BYTES_PER_TOKEN)) for text in texts)


def token_counter(model: str) -> CountTokens | None:
    """The tokenizer of a model; None if it is unknown.

    Args:
        model: The model's full name (`openai/gpt-4o-mini`, `openrouter/deepseek/deepseek-chat`).
    """
    *_, vendor, name = ("", *model.split("/"))
    if vendor == "openai" and _OPENAI.match(name):
        return _openai_counter("cl100k_base" if _OLDER.match(name) else "o200k_base")
    return _deepseek_counter() if vendor == "deepseek" and name.startswith("deepseek") else None


@cache
def _openai_counter(encoding: str) -> CountTokens | None:
    folder = _tokenizers()
    if folder is None or not (folder / _ENCODING_FILES[encoding]).is_file():  # tiktoken would download it
        return None
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    import tiktoken

    known = tiktoken.get_encoding(encoding)
    return lambda text: len(known.encode(text, disallowed_special=()))


@cache
def _deepseek_counter() -> CountTokens | None:
    folder = _tokenizers()
    file = None if folder is None else folder / "deepseek_tokenizer.json"
    if file is None or not file.is_file():
        return None
    from tokenizers import Tokenizer

    known: Any = Tokenizer.from_file(str(file))

    def count(text: str) -> int:
        return len(known.encode(encodable_text(text), add_special_tokens=False).ids)

    return count


def _tokenizers() -> Path | None:
    """The folder of litellm's tokenizers."""
    folder = litellm_folder()
    return None if folder is None else folder / "litellm_core_utils" / "tokenizers"
