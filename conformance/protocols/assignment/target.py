"""Adapts kipcheck's assignors to the operations of the testee protocol."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.protocols.assignment.model import assignment
from kipcheck.conformance.protocols.assignment.model.membership import Assigned, Subscription
from kipcheck.conformance.protocols.assignment.model.mixed_group import DRAFT, draft_leader
from kipcheck.conformance.protocols.assignment.model.sticky import cooperative_sticky, sticky
from kipcheck.conformance.protocols.assignment.ops import group_of, subscriptions_of, user_data
from kipcheck.conformance.wire import layout

DRAFTED: Final = (DRAFT,)
"""What ``DraftLeader`` assigns with."""
ALL: Mapping[str, Callable[[assignment.Group], assignment.Assignment]] = {
    assignment.RANGE: assignment.range_,
    assignment.ROUNDROBIN: assignment.roundrobin,
    assignment.STICKY: sticky,
    assignment.COOPERATIVE: cooperative_sticky,
}
LEADING = ("assign", "user-data")
"""The operations of a leader."""


class Leader:
    """Keeps no state between operations."""

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        if op["assignor"] not in ALL:
            return {"status": "unsupported", "message": f"unknown assignor {op['assignor']!r}"}
        if op["op"] == "user-data":
            owned = tuple((topic, number) for topic, number in op["owned"])
            data = self.user_data(op["assignor"], owned, op["generation"])
            return {"status": "accepted", "hex": None if data is None else data.hex()}
        given = self.assign(op["assignor"], self.group(Step("leader", "assign", op)))
        return {
            "status": "accepted",
            "assignment": [
                {"id": member, "partitions": [list(each) for each in partitions], "userData": None}
                for member, partitions in given.items()
            ],
        }

    def group(self, step: Step) -> assignment.Group:
        """The group as the members of the step describe it."""
        return group_of(step)

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        return ALL[assignor](group)

    def user_data(self, assignor: str, owned: tuple[assignment.Partition, ...], generation: int) -> bytes | None:
        """The user data that a member of Kafka's writes after it was assigned ``owned`` in ``generation``."""
        if assignor == assignment.STICKY and (owned or generation != assignment.NO_GENERATION):
            return user_data(owned, generation)
        if assignor == assignment.COOPERATIVE:
            return layout("apache", "CooperativeStickyAssignorUserData", 0).encode({"generation": generation})
        return None


class DraftLeader:
    """The leader of KIP-429's draft, under an assignor name of its own. Keeps no state between operations."""

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        if op["assignor"] != DRAFT or op["op"] != "assign":
            return {"status": "unsupported", "message": f"KIP-429's draft has no {op['op']} of {op['assignor']!r}"}
        step = Step("leader", "assign", op)
        given = self.lead(group_of(step).topics, subscriptions_of(step))
        return {
            "status": "accepted",
            "assignment": [
                {"id": member, "partitions": [*map(list, each.partitions)], "userData": None, "error": each.error}
                for member, each in given.items()
            ],
        }

    def lead(
        self, topics: Iterable[assignment.Topic], subscriptions: Mapping[str, Subscription]
    ) -> Mapping[str, Assigned]:
        return draft_leader(topics, subscriptions)
