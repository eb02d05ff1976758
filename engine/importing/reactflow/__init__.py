"""Importer for React Flow canvases: JSON files of nodes and edges."""
