"""The palette of node types and templates."""
