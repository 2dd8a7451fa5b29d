"""Invariants of controllers of feature versions in KIP-584's draft and in KRaft, one module for each machine."""
