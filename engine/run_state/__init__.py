"""The state of a run, reduced from its events, and the selectors that views, exports and stores use.

`reducer.apply` changes a `RunState` by one event. `state` has the selectors, and `result` the result of a run.
"""
