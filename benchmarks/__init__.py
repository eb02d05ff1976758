"""Performance of the engine, compared with other programs that do the same work.

`python -m benchmarks` prints tables. Nothing is asserted, because figures depend on the machine and its load.
"""
