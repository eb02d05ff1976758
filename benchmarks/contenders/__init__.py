"""One module per contender: its function `run(iterations, stopwatch)` does the work and returns the last text.

What is done once (building and compiling a graph, planning) stays outside the stopwatch. A worker imports only the
module that it was asked for, because each belongs to an environment of its own.
"""
