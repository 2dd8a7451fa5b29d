"""When a group with members of both protocols is at rest: nothing is due that changes its epoch."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from kipcheck.conformance.protocols.consumer_group.trace import SETTLED

Subscription: TypeAlias = tuple[frozenset[str], tuple[str, ...]]
"""Topics, and the assignors of a client that uses the classic protocol."""


@dataclass(frozen=True, slots=True)
class Rest:
    epoch: int | None = None
    """Of a group at rest; None: it is not known to be."""
    quiet_rounds: Mapping[str, int] = field(default_factory=dict)
    """Client -> how often it has confirmed its epoch, with no other step between them."""
    waited_ms: int = 0
    """The time since the last step that may have changed the group."""
    subscriptions: Mapping[str, Subscription] = field(default_factory=dict)
    """The last one of each client, unless it has a regular expression."""

    def disturbed(self) -> "Rest":
        return Rest(subscriptions=self.subscriptions)

    def later(self, ms: int) -> "Rest":
        return replace(self, quiet_rounds={}, waited_ms=self.waited_ms + ms)

    def confirmed(self, name: str, epochs: Mapping[str, int], interval_ms: int) -> "Rest":
        """A member has confirmed its epoch; ``epochs``: those of all members."""
        known = replace(self, quiet_rounds={**self.quiet_rounds, name: self.quiet_rounds.get(name, 0) + 1})
        settled = self.waited_ms >= interval_ms and all(known.quiet_rounds.get(each, 0) >= SETTLED for each in epochs)
        found = {*epochs.values()}
        return replace(known, epoch=found.pop()) if settled and len(found) == 1 else known

    def subscribed(self, name: str, topics: Collection[str], assignors: tuple[str, ...]) -> "Rest":
        return replace(self, subscriptions={**self.subscriptions, name: (frozenset(topics), assignors)})

    def unsubscribed(self, name: str) -> "Rest":
        """The client subscribes to a regular expression."""
        return replace(self, subscriptions={each: has for each, has in self.subscriptions.items() if each != name})
