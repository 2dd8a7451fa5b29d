"""Calls the assignors of kafka-python 3 as its coordinator does.

Each member's subscription is encoded and decoded with the library's own codec. Range, roundrobin and sticky get what
their own members write; cooperative-sticky gets the newest version that the release knows: its members write version 1,
without a generation, but as leader it also reads the subscriptions of newer members.
"""

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from kipcheck.conformance.clients.assignor_adapter import EAGER, Cluster, Member, Share, present

PLACES = {**EAGER, "cooperative-sticky": ("cooperative_sticky", "CooperativeStickyAssignor")}


class KafkaPythonAssignors:
    def __init__(self) -> None:
        records = import_module("kafka.protocol.consumer.metadata")
        self._subscription = records.ConsumerProtocolSubscription
        self._assignment = records.ConsumerProtocolAssignment
        self._joined = import_module("kafka.protocol.consumer.group").JoinGroupResponse.JoinGroupResponseMember
        self._classes = present("kafka.coordinator.assignors", PLACES)

    def names(self) -> Sequence[str]:
        return tuple(self._classes)

    def assign(self, name: str, cluster: Cluster, members: Sequence[Member]) -> Iterator[Share]:
        joined = [self._as_joined(name, each) for each in members]
        for member, share in self._classes[name]().assign(cluster, joined).items():
            received = self._assignment.decode(bytes(share.encode()))
            yield Share(member, received.partitions(), received.user_data)

    def user_data(self, name: str, member: Member) -> bytes | None:
        written = bytes(self._written(name, member).encode())
        data: bytes | None = self._subscription.decode(written).user_data
        return data

    def _as_joined(self, name: str, member: Member) -> Any:
        made = self._written(name, member)
        if made.version > 0:  # the assignor reads more than topics and user data
            made = self._subscription(
                version=self._subscription.max_version,
                topics=made.topics,
                user_data=made.user_data,
                owned_partitions=made.owned_partitions,
                generation_id=member.generation,
                rack_id=member.rack,
            )
        if member.user_data is not None:
            made.user_data = member.user_data
        read = self._subscription.decode(bytes(made.encode()))
        return self._joined(member_id=member.id, group_instance_id=member.instance, metadata=read)

    def _written(self, name: str, member: Member) -> Any:
        """The metadata of a new member, written at its next join."""
        assignor = self._classes[name]()
        if member.was_assigned:
            share = self._assignment(assignor.version, member.topics_owned, b"")
            assignor.on_assignment(self._assignment.decode(bytes(share.encode())), member.generation)
        return assignor.metadata(member.subscription)
