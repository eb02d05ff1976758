"""The widgets of the form, one file a kind, each holding the value of one field."""
