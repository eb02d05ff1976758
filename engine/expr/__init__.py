"""Expressions (common expression language, CEL) and `{{templates}}` on JSON values.

Knows nothing of nodes, documents or runs.
"""

from __future__ import annotations

from engine.expr.expression import Expression, Template, compile_expression, compile_template, escape_template
from engine.expr.scope import NAMESPACES, ExpressionError, Namespace, Record, Records, Scope, TemplateError

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
