"""The start page: templates, recent files, and the model in use."""
