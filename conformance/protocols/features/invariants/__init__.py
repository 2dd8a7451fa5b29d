"""Invariants of controllers of feature versions in KIP-584's draft, one module for each machine."""

MODULES = ("controller", "cluster")
