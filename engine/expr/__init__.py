"""Expressions (the common expression language, CEL) and `{{templates}}`: the texts in which a document names values.

Knows JSON values and the scope that it is handed, and nothing of nodes, documents or runs.
"""

from __future__ import annotations

from engine.expr.expression import Expression, compile_expression
from engine.expr.scope import NAMESPACES, ExpressionError, Namespace, Record, Records, Scope, TemplateError
from engine.expr.template import Template, compile_template, escape_template

__all__ = [
    "NAMESPACES",
    "Expression",
    "ExpressionError",
    "Namespace",
    "Record",
    "Records",
    "Scope",
    "Template",
    "TemplateError",
    "compile_expression",
    "compile_template",
    "escape_template",
]
