"""What a node type is: one declaration from which everything else is made.

Palette, form, canvas card, validation, `loopwright nodes`, JSON Schema and reference page all read a `NodeSpec`.
This module knows neither how a graph is run nor which node types there are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from engine.document.problems import FieldProblem
from engine.errors import EngineError
from engine.expr import ExpressionError, TemplateError, compile_expression, compile_template
from engine.expr.correction import correct
from engine.models.protocol import Reply, Request
from engine.values import Value, immutable

if TYPE_CHECKING:
    from engine.nodes.context import NodeContext


class PortType(StrEnum):
    """What may flow through a port."""

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
    """A place where edges start or end.

    Attributes:
        name: What edges call it.
        type: What may flow through it.
        help: One line for people.
        required: An input that must be connected, and whose node is skipped when nothing live reaches it.
        gate: An input that may be left open, but whose node is skipped when edges lead there and none of them is live.
        many: An input that takes several edges. One live value is taken as it is; several live texts are joined with a
            blank line between them, several other values become a list, both in the order of the document's edges.
        branch: An output of which, among its node's branches, exactly one is live.
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
            "fail: the run fails. continue: the node returns the value below. branch: the message "
            "leaves at a port 'error'."
        ),
        json_schema_extra={"group": "more"},
    )
    error_value: Any = Field(
        default=None,
        title="Value on error",
        description="The output of the node when it fails and 'On error' is 'continue'.",
        json_schema_extra={"group": "more", "shown_when": {"on_error": "continue"}},
    )


ConfigT = TypeVar("ConfigT", bound=NodeConfig)

ERROR_PORT: Final = Port("error", PortType.TEXT, "What went wrong, when the node failed.", branch=True)
RESERVED_NAMES: Final = frozenset({"loop", "state", "item", "index", "nodes"})
"""Names that a text can never use for an input port: they mean something everywhere."""


class TextKind(StrEnum):
    """How a text of a config is read."""

    TEMPLATE = "template"
    EXPRESSION = "expression"


@immutable
class NamedText:
    """A text of a config that names values.

    Attributes:
        field: Dotted path of the config field.
        kind: Template or expression.
        text: The text itself.
        names: Bare names that it may use.
        ports: Whether it may use the node's input ports too.
        namespaces: Which of `loop`, `nodes`, `state` it may use.
    """

    field: str
    kind: TextKind
    text: str
    names: frozenset[str] = frozenset()
    ports: bool = True
    namespaces: frozenset[str] = frozenset({"loop"})


class NodeError(EngineError):
    """A node that could not do its work. `retryable` says whether another attempt may succeed."""

    def __init__(self, message: str, remedy: str = "", *, retryable: bool = False) -> None:
        super().__init__(message, remedy)
        self.retryable = retryable


@immutable
class ModelChoice:
    """Which model a node calls.

    Attributes:
        name: The model's full name; None for the workflow's default.
        api_base: Where it is served; None for the provider's own address.
        fallbacks: Models to use instead, in order, when it fails.
    """

    name: str | None = None
    api_base: str | None = None
    fallbacks: tuple[str, ...] = ()

    @property
    def chain(self) -> tuple[ModelChoice, ...]:
        """The model and its fallbacks in the order in which they are tried, each as a choice of its own."""
        if not self.fallbacks:
            return (self,)
        models = (ModelChoice(self.name, self.api_base), *(ModelChoice(name) for name in self.fallbacks))
        return tuple(dict.fromkeys(models))


@immutable
class ModelCall:
    """One finished model call, as the history keeps it."""

    model: str
    request: Request
    reply: Reply
    cost_usd: float | None
    duration_s: float


Outputs = dict[str, Value]
"""What a node gives, by output port. A port that is not in it is dead."""


def primary_output(outputs: Outputs) -> Value:
    """What most node types 'give': their port `output`."""
    return outputs.get("output")


def _nothing(_config: Any) -> tuple[Any, ...]:
    return ()


def _prepared_nothing(_config: Any) -> None:
    return None


@dataclass(frozen=True, slots=True)
class NodeSpec(Generic[ConfigT]):
    """The declaration of a node type.

    Attributes:
        type: Its name in documents.
        title: What people call it.
        category: Where the palette shows it.
        help: One line on what it does.
        icon: Name of its icon (QtAwesome's).
        config: Its settings.
        inputs: Its input ports, for given settings. Must not raise for any settings that the config model accepts.
        outputs: Its output ports, for given settings, without the `error` port. Must not raise either.
        run: Does its work. None for the types that the engine itself runs (`loop`, `exit`).
        prepare: Makes of the settings, once a run, what every execution needs (compiled templates).
        texts: The texts in the settings that name values.
        check: Finds what the config model cannot.
        summary: One line for the canvas that says what the node will do.
        recorded: What it 'gave', for `loop.last.ID` and the history, out of its outputs.
        recorded_members: The names in what it 'gave', where that is always the same object.
        model: Which model it calls with given settings; None where it calls none.
        iteration_note: Whether it takes `NodeContext.iteration_note`, as the first such node of a loop's body.
        synonyms: Other words that people search for.
        goes_on: Whether an attempt goes on from where the one before failed, by `NodeContext.kept`.
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
    prepare: Callable[[ConfigT], Any] = _prepared_nothing
    texts: Callable[[ConfigT], tuple[NamedText, ...]] = _nothing
    check: Callable[[ConfigT], Iterable[FieldProblem]] = _nothing
    summary: Callable[[ConfigT], str] = lambda _config: ""
    recorded: Callable[[Outputs], Value] = primary_output
    recorded_members: tuple[str, ...] = ()
    model: Callable[[ConfigT], ModelChoice | None] = lambda _config: None
    iteration_note: bool = False
    synonyms: tuple[str, ...] = ()
    goes_on: bool = False

    def all_outputs(self, config: ConfigT) -> tuple[Port, ...]:
        """Its output ports, with `error` where the settings ask for it."""
        ports = self.outputs(config)
        return (*ports, ERROR_PORT) if config.on_error == "branch" else ports


AnySpec = NodeSpec[Any]


class OutputKey(BaseModel):
    """Mixed into the settings of the node types whose output may have a name."""

    output_key: str = Field(
        default="",
        max_length=64,
        pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$",
        title="State name",
        description="Makes the output available as {{state.NAME}} in the whole run. Leave empty for none.",
        json_schema_extra={"group": "more"},
    )


CacheMode = Literal["off", "repeatable", "always"]
"""Never; where the same request gives the same reply (temperature 0, or no model at all); in any case."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two node types that belong together.

    Attributes:
        start: The type that opens the part.
        end: The type that closes it.
        field: The setting of the end that holds the id of its start.
        body_ports: The outputs of the start that lead into the part; all others have a value only after it.
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
    """Whether an output leads into the part that its node opens."""
    pair = PAIR_BY_START.get(node_type)
    return pair is not None and port in pair.body_ports


CACHED_TEXTS: Final = 1024
"""For how many texts a node type remembers the ports that they make."""


def paths_of(text: NamedText) -> frozenset[tuple[str, ...]]:
    """The dotted paths that a text reads; none where it does not compile."""
    try:
        if text.kind is TextKind.TEMPLATE:
            return compile_template(text.text).paths
        return compile_expression(text.text).paths
    except (ExpressionError, TemplateError):
        return frozenset()


def elements_of(text: NamedText) -> frozenset[tuple[tuple[str, ...], tuple[str, ...]]]:
    """What a text reads of elements of lists (see `Expression.elements`); nothing where it does not compile."""
    try:
        if text.kind is TextKind.TEMPLATE:
            return compile_template(text.text).elements
        return compile_expression(text.text).elements
    except (ExpressionError, TemplateError):
        return frozenset()


def named_ports(texts: Iterable[NamedText], *, beside: Iterable[str] = ()) -> tuple[Port, ...]:
    """An input port for each bare name in the texts, in alphabetical order, except for those named `beside`."""
    taken = RESERVED_NAMES.union(beside)
    names = {path[0] for text in texts for path in paths_of(text)} - taken
    return tuple(Port(name, help=f"Stands for {{{{{name}}}}} in the text.", required=True) for name in sorted(names))


def uses(texts: Iterable[NamedText], name: str) -> bool:
    """Whether one of the texts reads that bare name."""
    return any(path[0] == name for text in texts for path in paths_of(text))


def text_problems(texts: Iterable[NamedText]) -> Iterator[FieldProblem]:
    """A problem for each text that does not compile."""
    for text in texts:
        try:
            if text.kind is TextKind.TEMPLATE:
                compile_template(text.text)
            else:
                compile_expression(text.text)
        except TemplateError as error:
            yield FieldProblem("bad-template", text.field, error.message, error.remedy)
        except ExpressionError as error:
            correction = correct(text.text, {*text.names, *text.namespaces}) or ""
            remedy = f"Did you mean `{correction}`?" if correction else error.remedy
            yield FieldProblem("bad-expression", text.field, error.message, remedy, correction=correction)
