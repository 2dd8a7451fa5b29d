"""The vocabulary of checks, for those that are not part of a protocol's package."""

from kipcheck.conformance.protocols.declare.check import (
    Check,
    Completes,
    Conversation,
    Drawing,
    Exhibit,
    Family,
    Impossibilities,
    Impossible,
    Operation,
    Sample,
    Subject,
    Value,
    all_is_possible,
)

__all__ = [
    "Check", "Completes", "Conversation", "Drawing", "Exhibit", "Family", "Impossibilities", "Impossible", "Operation",
    "Sample", "Subject", "Value", "all_is_possible",
]  # fmt: skip
