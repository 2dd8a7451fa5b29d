"""The family of checks of machines, for those that are not part of a protocol's package."""

from kipcheck.conformance.protocols.declare.conversations import (
    Message,
    Subject,
    Value,
    Wording,
    answer,
    conversation,
    diagram,
    listed,
    machine_family,
    possible_conversation,
)

__all__ = [
    "Message", "Subject", "Value", "Wording", "answer", "conversation", "diagram", "listed", "machine_family",
    "possible_conversation",
]  # fmt: skip
