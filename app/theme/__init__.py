"""How the program looks: colours, type, spacing, icons, in one place, light and dark."""
