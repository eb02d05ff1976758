"""The state of a run, reduced from its events: the one reducer and the selectors of everybody who shows a run.

`reducer.apply` changes a `RunState` by one event. `selectors` and `result` answer what views, exports and stores ask of
it. `loop_starts` makes the logs of older versions readable.
"""
