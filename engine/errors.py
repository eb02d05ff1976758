"""The base class of all errors that the engine raises on purpose.

Bad input, missing things and failing networks raise an `EngineError`, whose text says what is wrong, where, and what to
do. Any other exception is a bug.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Fix(StrEnum):
    """What a person can do about an error in the program that shows it.

    Neither messages nor remedies name an option, a command or a button: the command line adds the option or command of
    a fix, and the window its button. Some fixes have a subject, such as the provider whose key is missing; they are
    written as `add_key:openai`.
    """

    ADD_KEY = "add_key"
    """Add a key; the subject is its provider, or `host:NAME`."""
    ALLOW_CODE = "allow_code"
    ALLOW_PRIVATE_ADDRESSES = "allow_private_addresses"
    ALLOW_UNKNOWN_PRICE = "allow_unknown_price"
    """Set the price of a model, or run without; the subject is `budget_usd` if the run as a whole has a budget."""
    ANSWER_QUESTION = "answer_question"
    """Answer a question of the run that is the subject."""
    ASK_SERVER = "ask_server"
    """Ask the MCP server that is the subject for its tools."""
    CHANGE_SETTING = "change_setting"
    """Change the user's setting that is the subject."""
    CHOOSE_FOLDER = "choose_folder"
    CHOOSE_HISTORY = "choose_history"
    CHOOSE_MODEL = "choose_model"
    GET_MODEL = "get_model"
    """Download the model that is the subject."""
    INSTALL = "install"
    """Install the optional part of the program that is the subject."""
    LIST_NODES = "list_nodes"
    """Look at the node types, or at the settings of the one that is the subject."""
    LIST_RUNS = "list_runs"
    RAISE_BUDGET = "raise_budget"
    """Raise the budget that is the subject: `budget_usd` or `budget_tokens` of the run, or `PATH.budget_usd`."""
    REPEAT_CALLS = "repeat_calls"
    RESET_SETTINGS = "reset_settings"
    RUN_UP_TO = "run_up_to"
    SHOW_RUN = "show_run"
    """Look at the run that is the subject."""
    USE_SESSION_KEY = "use_session_key"
    """Use a key without storing it; the subject is as for `ADD_KEY`."""

    def of(self, subject: str) -> str:
        """Return the fix with its subject."""
        return f"{self}:{subject}"


class EngineError(Exception):
    """An error that a person can act on.

    Attributes:
        message: One sentence: what is wrong and where.
        remedy: One sentence: what to do; empty if the message says it.
        fix: A `Fix`, with its subject, that the program offers for it; empty without one.
        retryable: Whether the same may succeed when repeated.
    """

    def __init__(self, message: str, remedy: str = "", *, fix: str = "", retryable: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.fix = fix
        self.retryable = retryable

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".rstrip()


def reason_of(error: Exception) -> str:
    """Return why a file cannot be read or written: the system's reason, without the path, or the error's own text."""
    return getattr(error, "strerror", None) or str(error)


def did_you_mean(name: str, known: Iterable[str], *, min_similarity: float = 0.6) -> str:
    """Return a question with the most similar known name; empty if none is similar enough (from 0 to 1)."""
    import difflib  # rarely needed, and slow to import

    candidates = list(known)
    lowered = {candidate.lower(): candidate for candidate in reversed(candidates)}
    near = difflib.get_close_matches(name[:100].lower(), list(lowered), n=1, cutoff=min_similarity)
    return f'Did you mean "{lowered[near[0]]}"?' if near else ""
