"""Compilation of documents to execution plans: checks, pairs of loops and exits, loop bodies. Runs no node."""
