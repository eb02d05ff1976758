"""Any GGUF file as a model, run by the embedded runtime like the built-in demo model.

Sampling settings that a request does not have are left to the file and the runtime. What a chat template refuses (two
messages of the same role in a row, system messages) is changed as for other servers, see `engine.models.quirks`.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from engine.errors import Fix
from engine.formatting import format_count
from engine.models.embedded import (
    WORKER,
    EmbeddedModel,
    Failure,
    capitalized,
    control_token_pattern,
    default_threads,
    find_runtime,
    request_body,
)
from engine.models.gguf_files import DEFAULT_CONTEXT_TOKENS, GgufSettings, all_parts, unusable_file
from engine.models.gguf_header import GgufError, GgufHeader, read_header
from engine.models.model_hub import find_gguf_model
from engine.models.protocol import ModelError, ModelErrorKind, OnText, Reply, Request
from engine.models.quirks import Change, Changes, apply_changes, change_warnings, next_change
from engine.models.tool_calls import describe_tools
from engine.safe_file_io import is_file
from engine.values import Value, as_object

IDLE_S: Final = 300.0
"""How long a model stays in memory without a call."""

_CHATML_END: Final = "<|im_end|>"
"""The end of a message in ChatML, which the runtime uses without a chat template."""
_ROLE_CHANGES: Final = frozenset({Change.JOINED_ROLES, Change.NO_SYSTEM_ROLE})
_TEMPLATE_ERROR: Final = "Jinja Exception: "
_UNKNOWN_ARCHITECTURE: Final = re.compile(r"unknown model architecture")
_BAD_TEMPLATE: Final = re.compile(r"chat template parsing error|failed to initialize chat template")
_LOADING: Final = re.compile(r"error loading model: (.+)|failed to initialize the context: (.+)")


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A file that was found, with its header."""

    path: Path
    modified_ns: int
    header: GgufHeader
    control_tokens: re.Pattern[str] = field(compare=False)


class GgufModel(EmbeddedModel):
    """A model in a GGUF file.

    Args:
        model: Its name (`gguf:NAME` or `gguf:PATH`); the file is looked up at the first call.
        settings: Returns the settings for the next call.
        worker: The program that the child process runs.
    """

    idle_s = IDLE_S

    def __init__(
        self, model: str, settings: Callable[[], GgufSettings] = GgufSettings, *, worker: Path = WORKER
    ) -> None:
        super().__init__(worker=worker)
        self._name = model
        self._wanted = settings
        self._loaded: _Loaded | None = None
        self._changes: Changes = ()

    @property
    def name(self) -> str:
        """Its name for documents and people."""
        return self._name

    @property
    def note(self) -> str:
        """Nothing to know before using it."""
        return ""

    @property
    def title(self) -> str:
        """Its name in sentences."""
        return f"the model {self._name[:200]}"

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Make one call; cancelling the awaiting task ends the generation. Tools are described in the prompt.

        Raises:
            ModelError: There is no such file (`NOT_FOUND`), it cannot be used (`UNAVAILABLE`), the prompt or the
                context length is too long (`CONTEXT_LENGTH`), there is too little memory (`OUT_OF_MEMORY`), it cannot
                follow the schema (`BAD_REQUEST`), or its process died (`INTERRUPTED`).
        """
        while True:
            changes = self._changes
            try:
                reply = await super().complete(request, on_text)
            except ModelError as error:
                sent, possible = describe_tools(request), _ROLE_CHANGES
                change = next_change(error, error.message, sent, changes, streams=True, among=possible)
                if change is None or error.kind is not ModelErrorKind.BAD_REQUEST:
                    raise
                self._changes = (*changes, change)
            else:
                made = change_warnings(capitalized(self.title), describe_tools(request), changes, streams=True)
                return replace(reply, warnings=(*reply.warnings, *made))

    async def child_settings(self) -> dict[str, Value]:
        """Return the settings of the child process, which is replaced if they or the file change."""
        loaded = self._loaded = await asyncio.to_thread(self._load)
        wanted = self._wanted()
        longest = loaded.header.context_tokens
        if wanted.context_tokens and longest and wanted.context_tokens > longest:
            raise ModelError(
                ModelErrorKind.CONTEXT_LENGTH,
                f"The context length is set to {format_count(wanted.context_tokens, 'token')}, "
                f"more than the {format_count(longest)} that {self.title} supports.",
                "Lower it, or choose another model.",
                fix=Fix.CHANGE_SETTING.of("gguf_context_tokens"),
            )
        return {
            "weights": str(loaded.path.absolute()),
            "modified_ns": loaded.modified_ns,
            "sha256": "",
            "runtime": str(find_runtime()),
            # With more threads than cores a token takes minutes, with hundreds the runtime crashes.
            "threads": min(wanted.threads or default_threads(), os.cpu_count() or 1),
            "context_tokens": wanted.context_tokens or min(longest or DEFAULT_CONTEXT_TOKENS, DEFAULT_CONTEXT_TOKENS),
            "gpu_layers": wanted.gpu_layers,
        }

    def body(self, request: Request) -> dict[str, Value]:
        """Return a request without tools in the runtime's format."""
        assert self._loaded is not None
        request = apply_changes(request, self._changes)
        if not self._loaded.header.has_chat_template:
            request = replace(request, stop=(*request.stop, _CHATML_END))
        body = {**(request.extra_parameters or {}), **request_body(request, self._loaded.control_tokens)}
        if request.reasoning_effort is not None:  # some chat templates use it
            arguments = as_object(body.get("chat_template_kwargs"))
            body["chat_template_kwargs"] = {**arguments, "reasoning_effort": request.reasoning_effort}
        return body

    def warnings(self, request: Request) -> tuple[str, ...]:
        """Return what a person should know about a call."""
        del request  # every setting is used
        if self._loaded is None or self._loaded.header.has_chat_template:
            return ()
        return (f"The file of {self.title} has no chat template; the usual ChatML is used, which it may not know.",)

    def start_error(self, failure: str, output: tuple[str, ...]) -> ModelError:
        """Return the error of a child that could not load the file."""
        assert self._loaded is not None
        text, file, header = "\n".join(output), self._loaded.path, self._loaded.header
        if _UNKNOWN_ARCHITECTURE.search(text):
            message = f"The model file {file} has the architecture {header.architecture!r}, which cannot be run here."
        elif _BAD_TEMPLATE.search(text):
            message = f"The model file {file} has a chat template with an error."
        else:
            reason = next((found[1] or found[2] for found in _LOADING.finditer(text)), failure)
            message = f"The model file {file} cannot be loaded: {reason[:300].rstrip('.')}."
        return ModelError(ModelErrorKind.UNAVAILABLE, message, "Choose another model.", fix=Fix.CHOOSE_MODEL)

    def runtime_error(self, failure: Failure) -> ModelError:
        """Return the error of a request that the runtime refused; an error of the chat template without its source."""
        message = failure.message.rpartition(_TEMPLATE_ERROR)[2]
        error = super().runtime_error(failure.model_copy(update={"message": message}))
        longest = self._loaded.header.context_tokens if self._loaded is not None else None
        if error.kind is ModelErrorKind.CONTEXT_LENGTH and longest and longest > (failure.n_ctx or longest):
            error.remedy = (
                f"Raise the context length (the model supports {format_count(longest)} tokens), or shorten the prompt."
            )
            error.fix = Fix.CHANGE_SETTING.of("gguf_context_tokens")
        return error

    def _load(self) -> _Loaded:
        """Find the file and read its header, unless it is known."""
        loaded = self._loaded
        path = loaded.path if loaded is not None and is_file(loaded.path) else find_gguf_model(self._name)
        try:
            modified_ns = path.stat().st_mtime_ns
            if loaded is not None and (loaded.path, loaded.modified_ns) == (path, modified_ns):
                return loaded
            header = read_header(*all_parts(path), with_vocabulary=True)
        except (OSError, GgufError) as error:
            raise unusable_file(path, error) from error
        if not header.writes_text:
            raise unusable_file(path, GgufError("it is not a language model"))
        return _Loaded(path, modified_ns, header, control_token_pattern(header.control_tokens))
