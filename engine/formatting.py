"""Money, durations, counts, shares, sizes and JSON as text for people.

The window, the command line, reports and exports all use these functions: a value reads the same everywhere.
"""

from __future__ import annotations

import json
import math
from typing import Final, Protocol

from engine.values import Value

UNKNOWN_MONEY: Final = "$?"
_BYTE_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB")
_CONSTRAINTS: Final = (
    ("Input should be", "must be"),
    ("greater than or equal to", "at least"),
    ("less than or equal to", "at most"),
    ("a valid array", "a list"),
)


class TokenUsage(Protocol):
    """What `format_tokens` needs of a usage."""

    @property
    def total_tokens(self) -> int:
        """Tokens in and out."""
        ...

    @property
    def exact(self) -> bool:
        """Whether the number is reported, not estimated."""
        ...


def format_money(amount_usd: float | None) -> str:
    """Format US dollars: `$0`, `$0.0123`, `$0.05`, `$1,234.50`; `$?` for an unknown amount.

    An amount below a dollar has two to four decimals, any other two.
    """
    if amount_usd is None or not math.isfinite(amount_usd):
        return UNKNOWN_MONEY
    if amount_usd == 0:
        return "$0"
    sign, amount = ("-" if amount_usd < 0 else ""), abs(amount_usd)
    if amount < 0.0001:
        return f"{'>' if sign else '<'} {sign}$0.0001"
    if round(amount, 4) >= 1:
        return f"{sign}${amount:,.2f}"
    whole, _, decimals = f"{amount:.4f}".partition(".")
    return f"{sign}${whole}.{decimals.rstrip('0').ljust(2, '0')}"


def format_duration(duration_s: float) -> str:
    """Format seconds: `3.2 s`, `4 min 05 s`, `2 h 05 min`."""
    if not math.isfinite(duration_s):
        return "? s"
    sign, duration_s = ("-" if duration_s <= -0.05 else ""), abs(duration_s)
    if round(duration_s, 1) < 60:
        return f"{sign}{duration_s:.1f} s"
    minutes, seconds = divmod(round(duration_s), 60)
    if minutes < 60:
        return f"{sign}{minutes} min {seconds:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours} h {minutes:02d} min"


def format_timeout(timeout_s: float) -> str:
    """Format a timeout as it was set: `30 s`, `0.5 s`."""
    return f"{timeout_s:g} s"


def format_count(count: float, noun: str = "", plural: str = "", *, exact: bool = True) -> str:
    """Format a count: `1,234`, `1 row`, `2 rows`, `2 entries`, `~1,234 tokens`.

    Args:
        count: The count; rounded to a whole number.
        noun: The singular of what is counted; empty for the number alone.
        plural: The plural where it is not the noun with an `s`.
        exact: False puts `~` before an estimate.
    """
    text = f"{'' if exact else '~'}{count:,.0f}"
    if not noun:
        return text
    return f"{text} {noun if text.lstrip('~') == '1' else plural or noun + 's'}"


def format_tokens(usage: TokenUsage) -> str:
    """Format the tokens of a call or a run: `1 token`, `1,234 tokens`, `~1,234 tokens` for an estimate."""
    return format_count(usage.total_tokens, "token", exact=usage.exact)


def format_spending(spent: float, limit: float, unit: str) -> str:
    """Format how much of a budget is used: `$0.017 of $0.05`, `1,200 of 5,000 tokens`.

    Args:
        spent: Used so far.
        limit: The budget.
        unit: `usd` or `tokens`.
    """
    if unit == "tokens":
        return f"{format_count(spent)} of {format_count(limit, 'token')}"
    return f"{format_money(spent)} of {format_money(limit)}"


def format_score(score: float) -> str:
    """Format a score with up to two decimals, or a small one with its first two digits."""
    if score and abs(score) < 0.01:
        return f"{score:.2g}"
    return f"{score:.2f}".rstrip("0").rstrip(".")


def format_percent(share: float) -> str:
    """Format a share from 0 to 1: `95%`, `96.2%`. Rounded down, so that a value below a threshold never looks equal."""
    tenths = math.floor(share * 1000 + 1e-9) / 10
    return f"{tenths:g}%" if tenths == round(tenths) else f"{tenths:.1f}%"


def format_bytes(size: float) -> str:
    """Format a size in bytes: `312 bytes`, `1.4 MB`, `140 MB`."""
    unit = 0
    while round(size) >= 1000 and unit + 1 < len(_BYTE_UNITS):
        size, unit = size / 1000, unit + 1
    if unit == 0:
        return format_count(size, "byte")
    # 99.95 is the least that one decimal would write with four digits.
    return f"{size:,.0f} {_BYTE_UNITS[unit]}" if size >= 99.95 else f"{size:.1f} {_BYTE_UNITS[unit]}"


def format_json(value: object, *, ascii_only: bool = False) -> str:
    """Write a value as indented JSON.

    Args:
        value: Anything that JSON can hold.
        ascii_only: Escape everything outside ASCII, so that any text survives any encoding.
    """
    return json.dumps(value, ensure_ascii=ascii_only, indent=2)


def format_value(value: Value) -> str:
    """Format a value for reading: a text unchanged, anything else as indented JSON."""
    return value if isinstance(value, str) else format_json(value)


def format_members(value: Value) -> str:
    """Format a value like `format_value`, but an object's texts of several lines line by line below their names."""
    if not isinstance(value, dict) or not any(isinstance(one, str) and "\n" in one for one in value.values()):
        return format_value(value)
    return "\n".join(
        f"{name}:{indent_lines(one)}" if isinstance(one, str) and "\n" in one else f"{name}: {format_value(one)}"
        for name, one in value.items()
    )


def with_article(noun: str) -> str:
    """A noun with its indefinite article: `an exit`."""
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def indent_lines(text: str) -> str:
    """Indent a text of several lines below its heading; one of a single line stays on the heading's line."""
    return text if "\n" not in text else "".join(f"\n    {line}" for line in text.split("\n"))


def format_retry(error: str, attempt: int, delay_s: float, fallback: str = "") -> str:
    """Format what follows a failed attempt: `attempt 2 in 1.5 s: …`, or the fallback model.

    Args:
        error: The error of the failed attempt.
        attempt: The number of the next attempt, from 1.
        delay_s: Seconds until it starts.
        fallback: The model that takes over; empty for the same one.
    """
    if fallback:
        return f"{error} It continues with the fallback {fallback}."
    return f"attempt {attempt} in {format_duration(delay_s)}: {error}"


def plain_constraint(message: str) -> str:
    """Return what pydantic says about a value as the program says it: `must be at least 1`."""
    text = message.removeprefix("Value error, ").partition(", unable to parse")[0]
    for theirs, ours in _CONSTRAINTS:
        text = text.replace(theirs, ours)
    return text
