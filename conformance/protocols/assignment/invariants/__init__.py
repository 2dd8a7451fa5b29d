"""Invariants of assignors, by module, in the order of verdicts."""

MODULES = ("assignments", "stickiness", "cooperation", "mixed")
