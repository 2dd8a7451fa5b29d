"""Invariants of Streams groups, by module, in the order of verdicts."""

MODULES = ("versions", "leaders", "probing", "tasks", "ends")
