"""The command line: Typer and Rich, thin over the engine's public face. Nothing else in the engine knows of it."""
