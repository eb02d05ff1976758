"""The declaration of a node type: `NodeSpec`, and the ports, settings and texts that it names.

Palette, form, canvas card, validation, `loopwright nodes`, JSON Schema and reference page all read a `NodeSpec`.
This module knows neither how a graph is run nor which node types there are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from engine.document.problems import FieldProblem
from engine.errors import EngineError
from engine.expr import ExpressionError, TemplateError, compile_expression, compile_template
from engine.expr.correction import correct
from engine.models.protocol import ModelChoice
from engine.nodes.context import NodeContext
from engine.values import Value, immutable


class PortType(StrEnum):
    """The type of the values at a port."""

    ANY = "any"
    TEXT = "text"
    JSON = "json"
    NUMBER = "number"
    BOOLEAN = "boolean"
    LIST = "list"


class Category(StrEnum):
    """Where the palette shows a node type."""

    IO = "io"
    AI = "ai"
    LOGIC = "logic"
    TOOLS = "tools"


@immutable
class Port:
    """An input or output of a node, where edges end or start.

    Attributes:
        name: Its name in edges.
        type: The type of its values.
        help: One line on its meaning.
        required: An input that must be connected; its node is skipped if no value arrives.
        gate: An input that may be unconnected; if it is connected and no value arrives, its node is skipped.
        many: An input for several edges. A single value is passed on unchanged, several texts are joined with a blank
            line, other values become a list, in the order of the document's edges.
        branch: An output that belongs to the node's branches, of which exactly one has a value.
    """

    name: str
    type: PortType = PortType.ANY
    help: str = ""
    required: bool = False
    gate: bool = False
    many: bool = False
    branch: bool = False


class NodeConfig(BaseModel):
    """The settings that every node has. A node type adds its own fields to a subclass."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    timeout_s: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        title="Timeout (seconds)",
        description="Timeout of each attempt. Leave empty for no limit.",
        json_schema_extra={"group": "more"},
    )
    retries: int = Field(
        default=0,
        ge=0,
        le=20,
        title="Retries",
        description="Number of retries after a temporary failure.",
        json_schema_extra={"group": "more"},
    )
    retry_delay_s: float = Field(
        default=1.0,
        ge=0,
        le=3600,
        title="Retry delay (seconds)",
        description=(
            "Doubles with every retry, with some jitter. Longer delays that a provider asks for are respected."
        ),
        json_schema_extra={"group": "more"},
    )
    on_error: Literal["fail", "continue", "branch"] = Field(
        default="fail",
        title="On error",
        description=(
            "What happens when the node fails after all retries. continue: The node returns 'Value on error'. branch: "
            "The error message leaves at a port 'error'."
        ),
        json_schema_extra={
            "group": "more",
            "labels": {
                "fail": "Fail the run",
                "continue": "Continue with another value",
                "branch": "Continue at a port 'error'",
            },
        },
    )
    error_value: Any = Field(
        default=None,
        title="Value on error",
        description="The output of the node when it fails and 'On error' is 'Continue with another value'.",
        json_schema_extra={"group": "more", "shown_when": {"on_error": "continue"}},
    )


ConfigT = TypeVar("ConfigT", bound=NodeConfig)

ERROR_PORT: Final = Port("error", PortType.TEXT, "What went wrong, when the node failed.", branch=True)
RESERVED_NAMES: Final = frozenset({"loop", "state", "item", "index", "nodes"})
"""Names that cannot be input ports, because they mean something in every text."""


class TextKind(StrEnum):
    """The language of a text."""

    TEMPLATE = "template"
    EXPRESSION = "expression"


@dataclass(slots=True, unsafe_hash=True)
class NamedText:
    """A template or expression in the settings of a node, compiled at once. Immutable.

    Attributes:
        field: Dotted path of the setting.
        kind: Template or expression.
        text: The text itself.
        names: Bare names that it may use.
        ports: Whether it may use the node's input ports too.
        namespaces: Which of `loop`, `nodes`, `state` it may use.
        paths: The dotted paths that it reads; none if it does not compile.
        elements: The members of list elements that it reads (see `Expression.elements`); none if it does not compile.
        problem: Why it does not compile; None if it does.
    """

    field: str
    kind: TextKind
    text: str
    names: frozenset[str] = frozenset()
    ports: bool = True
    namespaces: frozenset[str] = frozenset({"loop"})
    paths: frozenset[tuple[str, ...]] = dataclasses.field(init=False, repr=False, compare=False)
    elements: frozenset[tuple[tuple[str, ...], tuple[str, ...]]] = dataclasses.field(
        init=False, repr=False, compare=False
    )
    problem: FieldProblem | None = dataclasses.field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        try:
            is_template = self.kind is TextKind.TEMPLATE
            compiled = compile_template(self.text) if is_template else compile_expression(self.text)
            self.paths, self.elements = compiled.paths, compiled.elements
        except (ExpressionError, TemplateError) as error:
            self.paths, self.elements = frozenset(), frozenset()
            self.problem = self._problem(error)

    def _problem(self, error: ExpressionError | TemplateError) -> FieldProblem:
        if isinstance(error, TemplateError):
            return FieldProblem("bad-template", self.field, error.message, error.remedy)
        correction = correct(self.text, {*self.names, *self.namespaces}) or ""
        remedy = f"Did you mean `{correction}`?" if correction else error.remedy
        return FieldProblem("bad-expression", self.field, error.message, remedy, correction=correction)


CACHED_TEXTS: Final = 1024
"""The number of texts whose ports a node type caches."""


def named_ports(texts: Iterable[NamedText], *, beside: Iterable[str] = ()) -> tuple[Port, ...]:
    """An input port for each bare name in the texts, in alphabetical order, except for those named `beside`."""
    taken = RESERVED_NAMES.union(beside)
    names = {path[0] for text in texts for path in text.paths} - taken
    return tuple(Port(name, help=f"Stands for {{{{{name}}}}} in the text.", required=True) for name in sorted(names))


def uses(texts: Iterable[NamedText], name: str) -> bool:
    """Whether one of the texts reads that bare name."""
    return any(path[0] == name for text in texts for path in text.paths)


class NodeError(EngineError):
    """A node failed."""


Outputs = dict[str, Value]
"""The outputs of a node by port; a port without a value is absent."""


@dataclass(frozen=True, slots=True)
class NodeSpec(Generic[ConfigT]):
    """The declaration of a node type.

    Attributes:
        type: Its name in documents.
        title: Its name in the window.
        category: Where the palette shows it.
        help: One line on what it does.
        icon: Name of its icon in Material Design Icons 6, such as `mdi6.counter`.
        config: Its settings.
        inputs: Its input ports for given settings. Must not raise for settings that the config model accepts.
        outputs: Its output ports for given settings, without the `error` port. Must not raise either.
        run: Does its work. None for types that the engine itself runs (`loop`, `exit`).
        prepare: Makes what every execution needs (compiled templates) of the settings, once per run.
        texts: The templates and expressions in its settings.
        check: Finds problems that neither the config model nor the compilation of its texts can find.
        summary: One line for the canvas that says what the node will do.
        recorded: The value for `loop.last.ID` and the history, made of the outputs.
        recorded_members: The member names of that value, if it is always the same object.
        model: The model that it calls with given settings; None without one.
        model_field: The setting that chooses that model, as a dotted path.
        exit_loop_field: The setting that lets a node end the loop around it; empty if it cannot.
        iteration_note: Whether it uses `NodeContext.iteration_note`, as the first such node of a loop body.
        synonyms: Other words that people search for.
        keeps_retry_state: Whether a retry continues after the failed attempt, with `NodeContext.retry_state`.
    """

    type: str
    title: str
    category: Category
    help: str
    icon: str
    config: type[ConfigT]
    inputs: Callable[[ConfigT], tuple[Port, ...]]
    outputs: Callable[[ConfigT], tuple[Port, ...]]
    run: Callable[[NodeContext[ConfigT]], Awaitable[Outputs]] | None
    prepare: Callable[[ConfigT], Any] = lambda _config: None
    texts: Callable[[ConfigT], tuple[NamedText, ...]] = lambda _config: ()
    check: Callable[[ConfigT], Iterable[FieldProblem]] = lambda _config: ()
    summary: Callable[[ConfigT], str] = lambda _config: ""
    recorded: Callable[[Outputs], Value] = lambda outputs: outputs.get("output")
    recorded_members: tuple[str, ...] = ()
    model: Callable[[ConfigT], ModelChoice | None] = lambda _config: None
    model_field: str = "model"
    exit_loop_field: Callable[[ConfigT], str] = lambda _config: ""
    iteration_note: bool = False
    synonyms: tuple[str, ...] = ()
    keeps_retry_state: bool = False

    def problems(self, config: ConfigT, texts: Iterable[NamedText] | None = None) -> list[FieldProblem]:
        """The problems of its texts, which may be passed where they are known, and those that `check` finds."""
        known = self.texts(config) if texts is None else texts
        return [*[text.problem for text in known if text.problem is not None], *self.check(config)]

    def all_outputs(self, config: ConfigT) -> tuple[Port, ...]:
        """Its output ports, with `error` where the settings ask for it."""
        ports = self.outputs(config)
        return (*ports, ERROR_PORT) if config.on_error == "branch" else ports


AnySpec = NodeSpec[Any]


class OutputKey(BaseModel):
    """Settings of node types whose output can have a name in the run's state."""

    output_key: str = Field(
        default="",
        max_length=64,
        pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$",
        title="State name",
        description="Makes the output available as {{state.NAME}} in the whole run. Leave empty for none.",
        json_schema_extra={"group": "more"},
    )


def choice_label(config: NodeConfig, field: str) -> str:
    """Return the label of the current choice of a setting, as the form shows it."""
    value = str(getattr(config, field))
    declared: Any = type(config).model_fields[field].json_schema_extra or {}
    labels: dict[str, str] = declared.get("labels", {})
    return labels.get(value, value)


CacheMode = Literal["off", "repeatable", "always"]
"""Whether a node reuses stored replies: never, if identical requests give the same reply (temperature 0), or always."""


@immutable
class Pair:
    """A pair of node types that enclose a part of a workflow that runs repeatedly.

    Attributes:
        start: The type that starts the part.
        end: The type that ends the part and collects the results.
        field: The setting of the end that holds the id of its start.
        body_ports: The outputs of the start that lead into the part; the others have a value only after it.
    """

    start: str
    end: str
    field: str
    body_ports: tuple[str, ...]


LOOP: Final = Pair("loop", "exit", "loop", ("body",))
ITERATOR: Final = Pair("iterator", "aggregator", "iterator", ("item", "index"))

PAIR_BY_START: Final = {pair.start: pair for pair in (LOOP, ITERATOR)}
PAIR_BY_END: Final = {pair.end: pair for pair in (LOOP, ITERATOR)}


def is_body_port(node_type: str, port: str) -> bool:
    """Whether an output leads into the part that its node starts."""
    pair = PAIR_BY_START.get(node_type)
    return pair is not None and port in pair.body_ports
