"""The node types and templates that can be dragged to the canvas."""
