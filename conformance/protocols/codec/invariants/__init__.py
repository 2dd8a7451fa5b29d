"""Invariants of codecs, by module, in the order of verdicts."""

MODULES = ("wire", "tags", "memory", "defaults", "sizes", "versions", "nodes")
