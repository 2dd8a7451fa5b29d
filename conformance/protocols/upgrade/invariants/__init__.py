"""Invariants of rolling upgrades, by module, in the order of verdicts."""

MODULES = ("ownership", "bounces")
