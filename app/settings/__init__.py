"""Settings of the program: models and API keys, runs, history, tools, plugins, appearance."""
