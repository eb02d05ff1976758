"""Export of workflows as Python scripts for this library, and as LangGraph modules that run without it.

Exports consist of literals and of code from this package: text of a document never becomes code.
"""
