"""Screenshots of the window, drawn without a screen and a model.

The window is the real one; its replies come from a script, so that each screenshot shows the same run.
"""
