"""How fast the engine is, beside others that do the same work.

`python -m benchmarks` prints tables. Nothing is asserted: figures depend on the machine and on what else it is doing.
"""
