"""Conversations with each machine, by its name."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kipcheck.conformance.protocols import registry
from kipcheck.strategies.events import Conversations

CONVERSATIONS: Final[Mapping[str, Callable[[str], Conversations[Any, Any]]]] = registry.by_machine({
    name: each
    for part in registry.parts("strategies").values()
    for name, each in getattr(part, "CONVERSATIONS", {}).items()
})  # fmt: skip
"""Machine -> edition -> conversations. Errors: LookupError or ValueError where an edition has no such machine."""


def talk(machine: str, edition: str) -> Conversations[Any, Any]:
    """Errors: LookupError for an unknown machine, or one that the edition lacks."""
    if machine not in CONVERSATIONS:
        raise LookupError(f"unknown machine {machine!r}; known: {', '.join(CONVERSATIONS)}")
    try:
        return CONVERSATIONS[machine](edition)
    except ValueError as wrong:
        raise LookupError(str(wrong)) from None
