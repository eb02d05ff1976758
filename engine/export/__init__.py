"""Workflows as Python programs: for our library, and for LangGraph without us.

What is written is made of literals and of code that stands here; no text of a document is ever code in it.
"""
