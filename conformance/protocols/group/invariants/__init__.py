"""Invariants of coordinators of classic groups, by module, in the order of verdicts."""

MODULES = ("generations", "waiting", "static", "records", "answers", "rejoins", "unlike", "draft")
