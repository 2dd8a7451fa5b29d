"""Invariants of consumers in classic groups, by module, in the order of verdicts."""

MODULES = ("callbacks", "requests", "duties")
