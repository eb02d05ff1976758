from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.nodes.json_values import ConversionError, can_ever_fit, convert
from engine.nodes.spec import PortType
from engine.values import Value
from tests.wording import mentions

ANY, TEXT, JSON = PortType.ANY, PortType.TEXT, PortType.JSON
NUMBER, BOOLEAN, LIST = PortType.NUMBER, PortType.BOOLEAN, PortType.LIST

values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=10,
)
OF_TYPE: dict[PortType, list[Value]] = {
    TEXT: ["", "x", "5", "true", "[1]", '{"a": 1}'],
    NUMBER: [0, 1, -2.5],
    BOOLEAN: [True, False],
    LIST: [[], [1, "a"]],
    JSON: [{"a": [1]}, [1], 3, True, "x"],
}


@pytest.mark.parametrize(
    ("value", "target", "fitting"),
    [
        ("5", NUMBER, 5),
        (" 2.5e1 ", NUMBER, 25.0),
        ("true", BOOLEAN, True),
        ("[1, 2]", LIST, [1, 2]),
        ('{"a": 1}', JSON, {"a": 1}),
        ('"x"', JSON, "x"),
        ("5", TEXT, "5"),
        (5, TEXT, "5"),
        (True, TEXT, "true"),
        ({"b": 1, "a": [None]}, TEXT, '{"a":[null],"b":1}'),
        (5, JSON, 5),
        (2.5, NUMBER, 2.5),
        ([1], LIST, [1]),
        ("5", ANY, "5"),
    ],
)
def test_a_value_is_converted_if_nothing_is_lost(value: Value, target: PortType, fitting: Value) -> None:
    converted = convert(value, target)

    assert (converted, type(converted)) == (fitting, type(fitting))


@pytest.mark.parametrize("target", list(PortType))
def test_null_stays_null(target: PortType) -> None:
    assert convert(None, target) is None


@pytest.mark.parametrize(
    ("value", "target", "parts"),
    [
        ("five", NUMBER, '"five" … a number'),
        ("", NUMBER, '"" … a number'),
        ("yes", BOOLEAN, '"yes" … true or false'),
        ("a, b", LIST, '"a, b" … a list'),
        ("{'a': 1}", JSON, "\"{'a': 1}\" … not JSON"),
        ("true", NUMBER, '"true" … a number'),
        (True, NUMBER, '"true" … a number'),
        (1, BOOLEAN, '"1" … true or false'),
        ({"a": 1}, LIST, '"{\\"a\\":1}" … a list'),
        ("NaN", NUMBER, '"NaN" … a number'),
        ("-Infinity", JSON, '"-Infinity" … not JSON'),
        ("1e999", NUMBER, '"1e999" … a number'),
        ("[1e999]", JSON, '"[1e999]" … not JSON'),
        ("9" * 5000, NUMBER, f'"{"9" * 57}…" … a number'),
        ("[" * 100_000, LIST, f'"{"[" * 57}…" … a list'),
        ("[" * 500 + "]" * 500, LIST, f'"{"[" * 57}…" … a list'),
    ],
)
def test_a_conversion_error_names_the_value_and_a_remedy(value: Value, target: PortType, parts: str) -> None:
    with pytest.raises(ConversionError) as caught:
        convert(value, target)

    assert mentions(caught.value.message, parts)
    assert "Transform" in caught.value.remedy


@pytest.mark.parametrize("source", list(OF_TYPE))
@pytest.mark.parametrize("target", list(OF_TYPE))
def test_an_edge_is_invalid_only_if_no_value_can_ever_fit(source: PortType, target: PortType) -> None:
    def passes(value: Value) -> bool:
        try:
            convert(value, target)
        except ConversionError:
            return False
        return True

    assert can_ever_fit(source, target) is any(passes(value) for value in OF_TYPE[source])


@pytest.mark.parametrize("other", list(PortType))
def test_any_fits_everything(other: PortType) -> None:
    assert can_ever_fit(ANY, other)
    assert can_ever_fit(other, ANY)


@given(values)
def test_json_converted_to_text_can_be_converted_back(value: Any) -> None:
    text = convert(value, TEXT) if not isinstance(value, str) else json.dumps(value)

    assert convert(text, JSON) == value


@given(values)
def test_a_value_of_the_right_type_is_unchanged(value: Any) -> None:
    assert convert(value, ANY) is value
    if not isinstance(value, str):
        assert convert(value, JSON) is value


@given(st.text())
def test_text_is_converted_to_json_without_loss_or_fails(text: str) -> None:
    try:
        value = convert(text, JSON)
    except ConversionError:
        return

    assert json.loads(text) == value


@given(values, st.sampled_from(list(PortType)))
def test_a_converted_value_has_the_target_type(value: Any, target: PortType) -> None:
    try:
        fitting = convert(value, target)
    except ConversionError:
        return

    if fitting is not None:
        kinds = {TEXT: str, NUMBER: int | float, BOOLEAN: bool, LIST: list}
        assert isinstance(fitting, kinds.get(target, object))
        assert not (isinstance(fitting, float) and not math.isfinite(fitting))
