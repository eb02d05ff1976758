"""The contract of node types, tested for each type in the registry, so that a new type needs no new test."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticUndefined

from engine.document.problems import Severity
from engine.expr import ExpressionError, TemplateError, compile_expression, compile_template
from engine.models.protocol import ModelChoice
from engine.nodes.json_values import compile_schema
from engine.nodes.node_registry import builtin_registry
from engine.nodes.router import Branch, RouterConfig
from engine.nodes.spec import (
    ERROR_PORT,
    AnySpec,
    Category,
    FieldProblem,
    NamedText,
    NodeConfig,
    Port,
    PortType,
    TextKind,
)
from tests.engine.nodes.strategies import configs
from tests.examples import examples

SPECS = list(builtin_registry())
FIELDS = [pytest.param(spec, name, id=f"{spec.type}.{name}") for spec in SPECS for name in spec.config.model_fields]
every_type = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.type)
NAME = re.compile(r"[a-z][a-z0-9_]*")


def _is_field(spec: AnySpec, place: str) -> bool:
    return place.split(".", maxsplit=1)[0] in spec.config.model_fields


@every_type
def test_the_declaration_of_a_type_is_complete(spec: AnySpec) -> None:
    assert NAME.fullmatch(spec.type)
    assert spec.title.strip()
    assert spec.help.strip().endswith(".")
    assert "\n" not in spec.help
    assert re.fullmatch(r"mdi6\.[a-z0-9-]+", spec.icon)
    assert isinstance(spec.category, Category)
    assert issubclass(spec.config, NodeConfig)
    assert len({other.title for other in SPECS}) == len(SPECS)


@pytest.mark.parametrize(("spec", "name"), FIELDS)
def test_a_setting_has_a_title_a_description_and_a_default(spec: AnySpec, name: str) -> None:
    field = spec.config.model_fields[name]

    assert field.title
    assert field.title.strip()
    assert field.description
    assert field.description.rstrip().endswith((".", "'fine'.", "else", "?"))
    assert field.default is not PydanticUndefined or field.default_factory is not None


@pytest.mark.parametrize(("spec", "name"), FIELDS)
def test_shown_when_names_an_existing_value_of_another_setting(spec: AnySpec, name: str) -> None:
    extra = spec.config.model_fields[name].json_schema_extra
    shown_when: Any = extra.get("shown_when", []) if isinstance(extra, dict) else []

    for group in [shown_when] if isinstance(shown_when, dict) else shown_when:
        for other, value in group.items():
            head, _, member = other.partition("[].")
            if member:  # what one entry of a list has
                there = getattr(spec.config.model_validate({head: [{member: value}]}), head)
                assert there[0][member] == value
            else:
                assert getattr(spec.config.model_validate({other: value}), other) == value


@every_type
def test_shown_when_of_inherited_settings_names_existing_settings_and_values(spec: AnySpec) -> None:
    extra = spec.config.model_config.get("json_schema_extra")
    shown_when: Any = extra.get("shown_when", {}) if isinstance(extra, dict) else {}

    assert set(shown_when) <= set(spec.config.model_fields)
    for group in shown_when.values():
        assert all(
            getattr(spec.config.model_validate({other: value}), other) == value for other, value in group.items()
        )


def test_shown_when_inside_an_object_names_an_existing_value_of_the_node() -> None:
    fields = {name: field for name, field in Branch.model_fields.items() if name != "name"}
    values: list[str] = []
    for field in fields.values():
        assert isinstance(field.json_schema_extra, dict)
        assert isinstance(field.json_schema_extra["shown_when"], dict)
        ((name, value),) = field.json_schema_extra["shown_when"].items()
        assert RouterConfig.model_validate({name.removeprefix("node."): value}).mode == value
        values.append(str(value))
    assert values == ["model", "rules"]


@every_type
def test_defaults_are_valid_settings_or_have_problems_with_a_field(spec: AnySpec) -> None:
    config = spec.config()

    for fault in spec.problems(config):
        assert fault.severity in Severity
        assert fault.message.endswith(".")
        assert fault.remedy.endswith((".", "else."))
        assert fault.field is None or _is_field(spec, fault.field)


@every_type
def test_defaults_follow_the_json_schema_of_the_settings(spec: AnySpec) -> None:
    schema = spec.config.model_json_schema()

    assert json.loads(json.dumps(schema)) == schema
    assert set(schema["properties"]) == set(spec.config.model_fields)
    assert all(part.get("description") and part.get("title") for part in schema["properties"].values())
    assert compile_schema(schema).errors(json.loads(spec.config().model_dump_json())) == []


@every_type
def test_ports_have_names_types_and_help(spec: AnySpec) -> None:
    config = spec.config()

    for port in (*spec.inputs(config), *spec.all_outputs(config)):
        assert NAME.fullmatch(port.name)
        assert isinstance(port.type, PortType)
        assert port.help.strip()


@every_type
def test_on_error_branch_adds_an_error_port(spec: AnySpec) -> None:
    without = [port.name for port in spec.all_outputs(spec.config())]
    with_it = spec.all_outputs(spec.config.model_validate({"on_error": "branch"}))

    assert [port.name for port in with_it] == [*without, "error"]
    assert with_it[-1] is ERROR_PORT


@every_type
@examples(40)
@given(data=st.data())
def test_no_function_of_a_type_raises_for_valid_settings(spec: AnySpec, data: st.DataObject) -> None:
    config = data.draw(configs(spec))

    inputs, outputs = spec.inputs(config), spec.all_outputs(config)
    texts = spec.texts(config)
    faults = list(spec.problems(config))
    assert all(isinstance(port, Port) for port in (*inputs, *outputs))
    assert all(isinstance(text, NamedText) and _is_field(spec, text.field) for text in texts)
    assert all(isinstance(fault, FieldProblem) and fault.code and fault.message for fault in faults)
    assert all(fault.field is None or _is_field(spec, fault.field) for fault in faults)
    assert isinstance(spec.summary(config), str)
    assert isinstance(spec.model(config), ModelChoice | None)


@every_type
@examples(40)
@given(data=st.data())
def test_settings_without_problems_can_be_prepared_and_have_unique_port_names(
    spec: AnySpec, data: st.DataObject
) -> None:
    config = data.draw(configs(spec))
    if list(spec.problems(config)):
        return

    spec.prepare(config)
    for ports in (spec.inputs(config), spec.all_outputs(config)):
        assert len({port.name for port in ports}) == len(ports)


@every_type
@examples(40)
@given(data=st.data())
def test_an_invalid_text_is_a_problem_of_its_field(spec: AnySpec, data: st.DataObject) -> None:
    config = data.draw(configs(spec))

    wrong = {fault.field for fault in spec.problems(config) if fault.code in {"bad-template", "bad-expression"}}

    bad = {text.field for text in spec.texts(config) if _is_broken(text)}
    assert wrong == bad


def _is_broken(text: NamedText) -> bool:
    try:
        if text.kind is TextKind.TEMPLATE:
            compile_template(text.text)
        else:
            compile_expression(text.text)
    except (TemplateError, ExpressionError):
        return True
    return False


@every_type
def test_recorded_accepts_any_outputs(spec: AnySpec) -> None:
    for outputs in ({}, {"error": "no"}, {"output": 1}, {"value": "x"}, {"done": "x", "reason": "y"}):
        json.dumps(spec.recorded(dict(outputs)))
