"""The node types: one file each, and what they are declared with."""
