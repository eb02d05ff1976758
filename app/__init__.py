"""The window: a view of documents and runs over the engine's public face. The engine knows nothing of it."""
