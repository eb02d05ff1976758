"""Form metadata of pydantic models."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from app.inspector.field_spec import Choice, FieldKind, field_specs, is_visible
from app.settings.preferences import PreferenceValues
from engine.document.model import Settings
from engine.document.operations import UNSET
from engine.exits.loop_conditions import condition_specs
from engine.nodes.llm import LlmConfig
from engine.nodes.loop import LoopConfig
from engine.nodes.node_registry import builtin_registry
from engine.nodes.router import RouterConfig
from engine.nodes.spec import AnySpec


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Part(BaseModel):
    name: str = Field(max_length=40, title="Name")


class Thing(BaseModel):
    more: int = Field(default=3, ge=1, le=9, json_schema_extra={"group": "more"})
    text: str = Field(default="", title="Text", description="Some text.")
    line: str = Field(default="", max_length=40)
    maybe: float | None = Field(default=None, gt=0)
    on: bool = True
    mode: Literal["a", "b"] = Field(
        default="a", description="Which one. b: The second.", json_schema_extra={"labels": {"a": "First"}}
    )
    colour: Colour = Colour.RED
    parts: list[Part] = Field(default_factory=lambda: [Part(name="p")])
    anything: Any = None
    table: dict[str, Any] | None = None
    note: Annotated[str, "tag"] = Field(default="", json_schema_extra={"widget": "prompt", "shown_when": {"mode": "b"}})
    needed: int


def test_annotations_map_to_field_kinds() -> None:
    kinds = {name: field.kind for name, field in field_specs(Thing).items()}
    assert kinds == {
        "text": FieldKind.TEXT,
        "line": FieldKind.TEXT,
        "maybe": FieldKind.NUMBER,
        "on": FieldKind.SWITCH,
        "mode": FieldKind.CHOICE,
        "colour": FieldKind.CHOICE,
        "parts": FieldKind.OBJECTS,
        "anything": FieldKind.VALUE,
        "table": FieldKind.JSON,
        "note": FieldKind.TEXT,
        "needed": FieldKind.INTEGER,
        "more": FieldKind.INTEGER,
    }


def test_advanced_fields_come_last() -> None:
    fields = field_specs(Thing)
    assert list(fields)[-1] == "more"
    assert [name for name, field in fields.items() if field.is_advanced] == ["more"]


def test_limits_defaults_and_help_come_from_the_model() -> None:
    fields = field_specs(Thing)
    assert (fields["more"].minimum, fields["more"].maximum, fields["more"].default) == (1, 9, 3)
    assert (fields["maybe"].minimum, fields["maybe"].nullable, fields["maybe"].default) == (0, True, None)
    assert (fields["text"].title, fields["text"].help, fields["line"].title) == ("Text", "Some text.", "line")
    assert fields["colour"].choices == (Choice("red", "Red"), Choice("blue", "Blue"))
    assert fields["colour"].default == "red"
    assert fields["parts"].default == [{"name": "p"}]
    assert (fields["needed"].required, fields["text"].required) == (True, False)
    assert (fields["text"].is_long, fields["line"].is_long) == (True, False)
    assert fields["note"].widget == "prompt"


def test_only_values_other_than_the_default_are_stored() -> None:
    fields = field_specs(Thing)
    assert fields["more"].stored_value(3) is UNSET
    assert fields["more"].stored_value(4) == 4
    assert fields["more"].stored_value("3") == "3"
    assert fields["on"].stored_value(True) is UNSET
    assert fields["on"].stored_value(1) == 1, "1 is not true in JSON"
    assert fields["needed"].stored_value(None) is None


def test_choices_have_labels_and_their_part_of_the_help_text() -> None:
    field = field_specs(Thing)["mode"]
    assert field.help == "Which one."
    assert [(choice.value, choice.label, choice.help) for choice in field.choices] == [
        ("a", "First", ""),
        ("b", "B", "The second."),
    ]


def _models() -> list[type[BaseModel]]:
    """Every model that a form is made of, with the models inside of it."""
    nodes = [spec.config for spec in builtin_registry()]
    found = [*nodes, *(spec.config for spec in condition_specs().values()), Settings, PreferenceValues]
    for model in found:
        found += {field.item for field in field_specs(model).values() if field.item} - set(found)
    return found


CHOICES = {
    f"{model.__name__}.{name}": (field, model.model_fields[name].json_schema_extra)
    for model in _models()
    for name, field in field_specs(model).items()
    if field.choices
}


def test_choices_are_found_in_nodes_and_in_preferences() -> None:
    assert {"LoopConfig.feedback_mode", "LlmConfig.cache", "InputConfig.type", "PreferenceValues.theme"} <= set(CHOICES)


@pytest.mark.parametrize("name", CHOICES)
def test_every_choice_declares_a_label_of_its_own(name: str) -> None:
    field, extra = CHOICES[name]
    assert isinstance(extra, dict)
    declared = extra["labels"]
    assert isinstance(declared, dict)
    assert {choice.value: choice.label for choice in field.choices} == declared
    assert len(set(declared.values())) == len(declared)
    for choice in field.choices:
        assert choice.label[0].isupper()
        assert "_" not in choice.label
        assert choice.help.rstrip(".").casefold() != choice.label.casefold()
        assert not choice.help or (choice.help[0].isupper() and choice.help.endswith("."))


def test_router_asks_for_a_model_only_if_a_model_decides() -> None:
    fields = field_specs(RouterConfig)
    by_rules = {name for name, field in fields.items() if not is_visible(field, {"mode": "rules"}, fields)}
    assert by_rules >= {"criteria", "model", "temperature", "max_tokens", "seed", "fallback_models", "cache"}
    assert by_rules.isdisjoint({"mode", "branches", "retries", "on_error", "timeout_s"})
    assert all(is_visible(field, {}, fields) for field in fields.values() if field.name != "error_value")


def test_field_visibility_depends_on_other_fields() -> None:
    fields = field_specs(Thing)
    assert not is_visible(fields["note"], {}, fields)
    assert is_visible(fields["note"], {"mode": "b"}, fields)
    assert is_visible(fields["text"], {}, fields)


def test_field_is_visible_if_any_group_of_conditions_holds() -> None:
    fields = field_specs(LoopConfig)
    assert not is_visible(fields["judge"], {}, fields)
    assert is_visible(fields["judge"], {"stop_when": [{"condition": "judge"}]}, fields)
    assert is_visible(fields["judge"], {"on_max_iterations": "return_best"}, fields)
    assert fields["judge"].kind is FieldKind.OBJECT


def test_loop_shows_at_most_four_basic_fields() -> None:
    fields = field_specs(LoopConfig)
    for condition in ("until", "evaluator", "judge", "stable_output"):
        values = {"stop_when": [{"condition": condition}]}
        shown = [name for name, field in fields.items() if not field.is_advanced and is_visible(field, values, fields)]
        assert len(shown) <= 4


def test_workflow_settings_have_field_specs() -> None:
    fields = field_specs(Settings)
    assert fields["model"].widget == "model"
    assert fields["prices"].kind is FieldKind.JSON


@pytest.mark.parametrize("spec", list(builtin_registry()), ids=lambda spec: spec.type)
def test_prompts_come_first_and_then_the_model(spec: AnySpec) -> None:
    basic = {name: field for name, field in field_specs(spec.config).items() if not field.is_advanced}
    order = [name for name in ("prompt", "system", "model") if name in basic]
    assert "prompt" not in basic or list(basic)[: len(order)] == order
    assert [name for name in basic if name in order] == order


def test_labels_are_the_words_of_other_tools() -> None:
    llm, loop, workflow = field_specs(LlmConfig), field_specs(LoopConfig), field_specs(Settings)
    titles = {name: llm[name].title for name in ("system", "max_tokens", "temperature", "seed", "retries", "timeout_s")}
    assert list(titles.values()) == [
        "System prompt",
        "Max tokens",
        "Temperature",
        "Seed",
        "Retries",
        "Timeout (seconds)",
    ]
    assert (loop["max_iterations"].title, workflow["budget_usd"].title) == ("Max iterations", "Budget (USD)")
