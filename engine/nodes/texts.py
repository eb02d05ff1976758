"""What node types share that hold templates or expressions: ports made from names, and problems found by compiling.

It knows the expression language through `engine.expr` only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from engine.expr import ExpressionError, TemplateError, compile_expression, compile_template
from engine.expr.correction import correct
from engine.nodes.spec import RESERVED_NAMES, FieldProblem, NamedText, Port, TextKind

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
