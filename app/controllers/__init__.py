"""Controllers: what the commands of the window do. They own no widgets of the layout."""
