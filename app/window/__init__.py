"""The main window: tabs, menus, panels, and the start and end of a session."""
