"""Importer for YAML workflows of agents and steps."""
