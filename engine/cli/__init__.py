"""The command line: Typer and Rich on top of the engine's public API. Nothing else in the engine imports it."""
