"""Tests of what workflows mean, written from docs/semantics.md independently of the engine."""
