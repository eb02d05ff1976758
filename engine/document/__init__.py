"""The workflow document: its model, its file, and the operations that change it."""
