"""Form metadata of pydantic models: kind, limits, choices, help text and visibility of each field.

Independent of Qt and of node types: everything comes from what the model declares, mostly in `json_schema_extra`:
`labels` of choices by value, `group`, `widget`, `hidden` and `shown_when`. For fields that it inherits, a model may
declare `shown_when` by field.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from functools import cache
from operator import attrgetter
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from engine.document.operations import UNSET, Unset
from engine.nodes.spec import NodeConfig
from engine.values import Value

MAX_SINGLE_LINE: Final = 1000
"""Texts that may be longer than this get a multi-line editor."""


class FieldKind(StrEnum):
    """Type of a field's value, as far as its editor depends on it."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    SWITCH = "switch"
    CHOICE = "choice"
    OBJECT = "object"
    OBJECTS = "objects"
    JSON = "json"
    VALUE = "value"


@dataclass(frozen=True)
class Choice:
    """One of the allowed values of a field.

    Attributes:
        value: The value in the document.
        label: Its name in the form.
        help: What it does, in one or two sentences; empty if the label says it all.
    """

    value: str
    label: str
    help: str = field(default="", compare=False)


@dataclass(frozen=True)
class FieldSpec:
    """One field of a model.

    Attributes:
        name: Key in the document.
        title: Label in the form.
        help: Help text, one or two sentences; without the help of its choices.
        kind: Type of the value.
        widget: Name of a special editor; empty for the default editor of its kind.
        default: Value if the key is missing.
        required: Whether the key must be present.
        nullable: Whether the value may be null, which the form shows as empty.
        minimum: Lower limit of a number, or None.
        maximum: Upper limit of a number, or None.
        max_length: Maximum number of characters or entries, or None.
        choices: The allowed values of a choice.
        item: Model of the object, or of the objects in a list.
        is_advanced: Whether the form shows it only under "More".
        is_first: Whether it comes before all others.
        shown_when: Groups of values of other fields. The field is shown if all values of one group match; with no
            groups, always. `node.NAME` is a field of the node, for a field of an object inside it.
    """

    name: str
    title: str
    help: str
    kind: FieldKind
    widget: str = ""
    default: Any = None
    required: bool = False
    nullable: bool = False
    minimum: float | None = None
    maximum: float | None = None
    max_length: int | None = None
    choices: tuple[Choice, ...] = ()
    item: type[BaseModel] | None = None
    is_advanced: bool = False
    is_first: bool = False
    shown_when: tuple[tuple[tuple[str, Value], ...], ...] = ()

    @property
    def is_long(self) -> bool:
        """Whether the text needs a multi-line editor."""
        return not self.nullable and (self.max_length is None or self.max_length > MAX_SINGLE_LINE)

    def value_in(self, values: Mapping[str, Any]) -> Any:
        """Return the value of this field in `values`, or its default."""
        return values.get(self.name, self.default)

    def stored_value(self, value: Value | Unset) -> Value | Unset:
        """Return what to store in the document for a value: UNSET if it is the default."""
        is_default = not self.required and type(value) is type(self.default) and value == self.default
        return UNSET if is_default else value


_OF_NODE: Final = "node."


def is_visible(
    field: FieldSpec,
    values: Mapping[str, Any],
    fields: Mapping[str, FieldSpec],
    node_values: Mapping[str, Any] = MappingProxyType({}),
    node_fields: Mapping[str, FieldSpec] = MappingProxyType({}),
) -> bool:
    """Return whether a field applies, given the values of the other fields of its object and those of the node."""

    def holds(group: tuple[tuple[str, Value], ...]) -> bool:
        return all(wanted in found(name) for name, wanted in group)

    def found(name: str) -> list[Any]:
        if name.startswith(_OF_NODE):
            return _values_at(name.removeprefix(_OF_NODE), node_values, node_fields)
        return _values_at(name, values, fields)

    is_set = field.kind is FieldKind.OBJECT and field.nullable and field.value_in(values) is not None
    return not field.shown_when or is_set or any(map(holds, field.shown_when))


def _values_at(name: str, values: Mapping[str, Any], fields: Mapping[str, FieldSpec]) -> list[Any]:
    """Return the values of a field; for `list[].member`, the member of each entry."""
    head, _, member = name.partition("[].")
    if head not in fields:
        return []
    value = fields[head].value_in(values)
    if not member:
        return [value]
    return [entry.get(member) for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _split_help(text: str, values: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """Split a help text of the form `On failure. fail: The run ends. …` into that of the field and of its choices."""
    if not values:
        return text, {}
    general, *parts = re.split(rf"(?:^|(?<=\s))({'|'.join(map(re.escape, values))}): ", text)
    found = zip(parts[::2], parts[1::2], strict=True)
    return general.strip(), {value: sentence.strip() for value, sentence in found}


@cache
def field_specs(model: type[BaseModel]) -> dict[str, FieldSpec]:
    """Return the fields of a model by name, in the order of a form.

    That is the model's order, with the group `first` before all others, advanced fields after them, and the fields
    common to all nodes at the end.
    """
    shown_when: Any = _extra(model.model_config.get("json_schema_extra")).get("shown_when", {})
    fields = [
        _field(name, info, shown_when.get(name, []))
        for name, info in model.model_fields.items()
        if not _is_hidden(info)
    ]
    common = NodeConfig.model_fields
    fields.sort(key=lambda field: (field.is_advanced, field.name in common, not field.is_first))
    return {field.name: field for field in fields}


def shared_fields(models: Iterable[type[BaseModel]]) -> dict[str, FieldSpec]:
    """Return the fields that several models have in common, as the first one declares them."""
    first, *others = map(field_specs, models)
    return {name: field for name, field in first.items() if all(_is_alike(field, other.get(name)) for other in others)}


def _is_alike(field: FieldSpec, other: FieldSpec | None) -> bool:
    """Return whether two fields take the same values. Their defaults and their help may differ."""
    taken = attrgetter("title", "kind", "widget", "nullable", "minimum", "maximum", "choices", "item")
    return other is not None and taken(field) == taken(other)


def _is_hidden(info: FieldInfo) -> bool:
    """Return whether the field never appears in forms."""
    return _extra(info.json_schema_extra).get("hidden") is True


def _extra(declared: Any) -> dict[str, Any]:
    return declared if isinstance(declared, dict) else {}


def _field(name: str, info: FieldInfo, shown_when: Any) -> FieldSpec:
    annotation, nullable = _without_none(info.annotation)
    extra = _extra(info.json_schema_extra)
    limits = {key: value for limit in info.metadata for key, value in _limits(limit)}
    default = info.get_default(call_default_factory=True)
    kind, values, item = _kind(annotation)
    general, help_of = _split_help(info.description or "", values)
    labels = extra.get("labels", {})
    shown: Any = extra.get("shown_when", shown_when)
    groups: list[dict[str, Value]] = [shown] if isinstance(shown, dict) else shown
    return FieldSpec(
        name=name,
        title=info.title or name,
        help=general,
        kind=kind,
        widget=str(extra.get("widget", "")),
        default=None if default is PydanticUndefined else _plain(default),
        required=info.is_required(),
        nullable=nullable,
        minimum=limits.get("minimum"),
        maximum=limits.get("maximum"),
        max_length=limits.get("max_length"),
        choices=tuple(Choice(each, labels.get(each, _label(each)), help_of.get(each, "")) for each in values),
        item=item,
        is_advanced=extra.get("group") == "more",
        is_first=extra.get("group") == "first",
        shown_when=tuple(tuple(group.items()) for group in groups),
    )


def _label(value: str) -> str:
    """Return the label of a choice that declares none, as in an older plugin."""
    return value.replace("_", " ").capitalize()


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if get_origin(annotation) not in {Union, types.UnionType}:
        return annotation, False
    others = [part for part in get_args(annotation) if part is not types.NoneType]
    return (others[0] if len(others) == 1 else Any), len(others) < len(get_args(annotation))


def _limits(limit: Any) -> list[tuple[str, Any]]:
    names = {"ge": "minimum", "gt": "minimum", "le": "maximum", "lt": "maximum", "max_length": "max_length"}
    return [(name, getattr(limit, key)) for key, name in names.items() if getattr(limit, key, None) is not None]


def _kind(annotation: Any) -> tuple[FieldKind, tuple[str, ...], type[BaseModel] | None]:
    simple = {
        str: FieldKind.TEXT,
        int: FieldKind.INTEGER,
        float: FieldKind.NUMBER,
        bool: FieldKind.SWITCH,
        Any: FieldKind.VALUE,
    }
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) is Literal and all(isinstance(choice, str) for choice in get_args(annotation)):
        return FieldKind.CHOICE, get_args(annotation), None
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return FieldKind.CHOICE, tuple(str(choice.value) for choice in annotation), None
    if _is_model(annotation):
        return FieldKind.OBJECT, (), annotation
    if get_origin(annotation) is list and _is_model(get_args(annotation)[0]):
        return FieldKind.OBJECTS, (), get_args(annotation)[0]
    return simple.get(annotation, FieldKind.JSON), (), None


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _plain(value: Any) -> Any:
    """Convert a default to plain JSON, as in a document."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.value if isinstance(value, Enum) else value
