"""Form metadata of pydantic models."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from app.inspector.field_spec import FieldKind, choice_help, field_specs, is_visible
from engine.document.model import Settings
from engine.document.operations import UNSET
from engine.nodes.llm import LlmConfig
from engine.nodes.loop import LoopConfig
from engine.nodes.node_registry import builtin_registry


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
    mode: Literal["a", "b"] = Field(default="a", description="a: the first. b: the second.")
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
    assert fields["colour"].choices == ("red", "blue")
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


def test_help_text_is_split_by_choice() -> None:
    fields = field_specs(Thing)
    assert choice_help(fields["mode"]) == {"a": "The first.", "b": "The second."}
    assert choice_help(fields["colour"]) == {}
    assert choice_help(fields["text"]) == {}


def test_help_explains_all_choices_or_none() -> None:
    for spec in builtin_registry():
        for field in field_specs(spec.config).values():
            if any(f"{choice}:" in field.help for choice in field.choices):
                assert set(choice_help(field)) == set(field.choices), (spec.type, field.name)


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


def test_prompts_come_first_and_then_the_model() -> None:
    assert list(field_specs(LlmConfig))[:3] == ["prompt", "system", "model"]
