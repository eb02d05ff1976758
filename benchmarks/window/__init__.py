"""The window, and stock NodeGraphQt beside it: workers that are measured in processes of their own."""
