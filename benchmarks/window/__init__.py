"""Workers that measure the window and stock NodeGraphQt in separate processes."""
