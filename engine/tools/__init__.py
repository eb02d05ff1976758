"""Tools: functions with declared parameters that a workflow or an agent may call."""
