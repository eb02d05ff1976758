"""Design tokens, style sheet, icons and shared widgets of the window."""
