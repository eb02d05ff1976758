"""How money, durations, counts, sizes, shares and JSON read, with every boundary of their units."""

from __future__ import annotations

import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.formatting import (
    format_bytes,
    format_count,
    format_duration,
    format_json,
    format_members,
    format_money,
    format_percent,
    format_retry,
    format_score,
    format_spending,
    format_tokens,
    format_value,
)
from engine.models.protocol import Usage

ANY_NUMBER = st.floats(allow_nan=True, allow_infinity=True)
AMOUNTS = st.floats(min_value=0, max_value=1e12)


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (None, "$?"),
        (math.nan, "$?"),
        (math.inf, "$?"),
        (0.0, "$0"),
        (-0.0, "$0"),
        (0.00001, "< $0.0001"),
        (0.0001, "$0.0001"),
        (0.0123, "$0.0123"),
        (0.05, "$0.05"),
        (0.1, "$0.10"),
        (0.99994, "$0.9999"),
        (0.99996, "$1.00"),
        (1, "$1.00"),
        (1234.5, "$1,234.50"),
        (1e12, "$1,000,000,000,000.00"),
        (-0.5, "-$0.50"),
        (-0.00001, "> -$0.0001"),
    ],
)
def test_money(amount: float | None, text: str) -> None:
    assert format_money(amount) == text


@given(AMOUNTS)
def test_money_is_as_exact_as_its_decimals(amount: float) -> None:
    text = format_money(amount)
    if text.startswith("<"):
        assert 0 < amount < 0.0001
        return
    assert re.fullmatch(r"\$(0|0\.\d{2,4}|[1-9][\d,]*\.\d\d)", text)
    assert float(text[1:].replace(",", "")) == pytest.approx(
        amount, rel=1e-9, abs=0.005 if amount >= 0.9999 else 5.1e-5
    )


@given(ANY_NUMBER)
def test_money_of_any_number_is_one_short_line(amount: float) -> None:
    assert "\n" not in format_money(amount)
    assert "$" in format_money(amount)


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [
        (0, "0.0 s"),
        (0.04, "0.0 s"),
        (-0.04, "0.0 s"),
        (3.21, "3.2 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 00 s"),
        (60, "1 min 00 s"),
        (245, "4 min 05 s"),
        (3599.4, "59 min 59 s"),
        (3599.6, "1 h 00 min"),
        (7500, "2 h 05 min"),
        (1_000_000, "277 h 46 min"),
        (-245, "-4 min 05 s"),
        (math.inf, "? s"),
        (math.nan, "? s"),
    ],
)
def test_duration(duration_s: float, text: str) -> None:
    assert format_duration(duration_s) == text


@given(st.floats(min_value=0, max_value=1e9))
def test_a_duration_reads_back_within_its_smallest_unit(duration_s: float) -> None:
    text = format_duration(duration_s)
    units = {"h": 3600, "min": 60, "s": 1}
    parts = re.findall(r"([\d.]+) (h|min|s)\b", text)
    assert parts
    assert all(float(number) < 60 for number, unit in parts if unit != "h")
    total = sum(float(number) * units[unit] for number, unit in parts)
    assert total == pytest.approx(duration_s, abs={"h": 60, "m": 0.5, "s": 0.0501}[text.split()[1][0]])


@pytest.mark.parametrize(
    ("count", "noun", "plural", "text"),
    [
        (0, "row", "", "0 rows"),
        (1, "row", "", "1 row"),
        (-1, "row", "", "-1 rows"),
        (2, "entry", "entries", "2 entries"),
        (1, "run was", "runs were", "1 run was"),
        (1234567, "token", "", "1,234,567 tokens"),
        (1234, "", "", "1,234"),
        (0.6, "row", "", "1 row"),
    ],
)
def test_count(count: float, noun: str, plural: str, text: str) -> None:
    assert format_count(count, noun, plural) == text


@given(st.integers(min_value=-(10**15), max_value=10**15), st.booleans())
def test_only_one_is_singular(count: int, exact: bool) -> None:
    number, noun = format_count(count, "row", exact=exact).split(" ")
    assert noun == ("row" if count == 1 else "rows")
    assert int(number.lstrip("~").replace(",", "")) == count
    assert number.startswith("~") is not exact


def test_estimated_tokens_are_marked() -> None:
    assert format_tokens(Usage(1000, 234)) == "1,234 tokens"
    assert format_tokens(Usage(1, 0)) == "1 token"
    assert format_tokens(Usage(1, 1, exact=False)) == "~2 tokens"


def test_spending() -> None:
    assert format_spending(0.017, 0.05, "usd") == "$0.017 of $0.05"
    assert format_spending(1200, 5000, "tokens") == "1,200 of 5,000 tokens"
    assert format_spending(0, 1, "tokens") == "0 of 1 token"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (14 / 3, "4.67"),
        (10.0, "10"),
        (7.5, "7.5"),
        (0, "0"),
        (0.00123, "0.0012"),
        (-2.005, "-2"),
        (123456.789, "123456.79"),
        (100, "100"),
    ],
)
def test_number(number: float, text: str) -> None:
    assert format_score(number) == text


@pytest.mark.parametrize(
    ("share", "text"), [(1.0, "100%"), (0.99999, "99.9%"), (0.95, "95%"), (0.29, "29%"), (0.0, "0%"), (0.962, "96.2%")]
)
def test_percent(share: float, text: str) -> None:
    assert format_percent(share) == text


@given(st.floats(min_value=0, max_value=1), st.floats(min_value=0, max_value=1))
def test_a_larger_share_never_reads_smaller(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert float(format_percent(low)[:-1]) <= float(format_percent(high)[:-1])
    assert float(format_percent(low)[:-1]) <= low * 100 + 1e-6


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (1_400_000, "1.4 MB"),
        (99_949, "99.9 kB"),
        (99_950, "100 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (140_000_000, "140 MB"),
        (5e15, "5,000 TB"),
    ],
)
def test_bytes(size: float, text: str) -> None:
    assert format_bytes(size) == text


@given(st.integers(min_value=0, max_value=10**15))
def test_a_size_has_at_most_four_digits(size: int) -> None:
    number, unit = format_bytes(size).split(" ")
    assert len(number.replace(".", "").replace(",", "")) <= 4
    factor = {"byte": 0, "bytes": 0, "kB": 1, "MB": 2, "GB": 3, "TB": 4}[unit]
    assert float(number.replace(",", "")) * 1000**factor == pytest.approx(size, rel=0.06)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_json_reads_back(value: object) -> None:
    assert json.loads(format_json(value)) == value
    assert json.loads(format_json(value, ascii_only=True).encode("ascii")) == value


def test_a_value_for_reading() -> None:
    assert format_value("a\nb") == "a\nb"
    assert format_value({"é": [1, None]}) == '{\n  "é": [\n    1,\n    null\n  ]\n}'


def test_texts_of_several_lines_stand_below_their_names() -> None:
    assert format_members({"path": "a.txt", "content": "one\ntwo"}) == "path: a.txt\ncontent:\n    one\n    two"
    assert format_members({"path": "a.txt"}) == '{\n  "path": "a.txt"\n}'
    assert format_members("one\ntwo") == "one\ntwo"


def test_retry() -> None:
    assert format_retry("It is busy.", 2, 1.5) == "attempt 2 in 1.5 s: It is busy."
    assert format_retry("It is busy.", 2, 1.5, "openai/x") == "It is busy. It continues with the fallback openai/x."
