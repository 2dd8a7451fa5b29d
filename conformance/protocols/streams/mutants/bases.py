"""Base classes of Streams groups with one planted defect each, in the leader or in each member.

Least cases are in shorthand, unless they need a deployment of their own.
"""

from collections.abc import Callable, Mapping, Sequence
from types import EllipsisType
from typing import Any, TypeVar

from kipcheck.conformance.core.values.edition import APACHE, KIP_268, Edition, edition
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.declare.mutant import mutant
from kipcheck.conformance.protocols.streams.blobs import EncodedBinary, future_of
from kipcheck.conformance.protocols.streams.model.group_model import StreamsMembers
from kipcheck.conformance.protocols.streams.model.members import (
    AssignmentInfo,
    AssignmentResult,
    Binary,
    Blob,
    Joining,
    Memory,
    Settings,
    Share,
    SubscriptionInfo,
)
from kipcheck.conformance.protocols.streams.model.release_members import owed_binary
from kipcheck.conformance.protocols.streams.ops import STREAMS, STREAMS_MIXED
from kipcheck.conformance.protocols.streams.target import machine_adapter
from kipcheck.conformance.targets.machine_target import MachineAdapter
from kipcheck.conformance.targets.protocol import Claims


class AlteredMember:
    """A member of the reference machine, with overridable results."""

    def __init__(self, sound: Binary) -> None:
        self.sound = sound

    @property
    def settings(self) -> Settings:
        return self.sound.settings

    @property
    def latest(self) -> int:
        return self.sound.latest

    @property
    def supports(self) -> Sequence[str]:
        return self.sound.supports

    def initial(self) -> Memory:
        return self.sound.initial()

    def subscribe(self, memory: Memory, topics: tuple[str, ...], /) -> tuple[Memory, Blob]:
        after, subscription = self.sound.subscribe(memory, topics)
        assert isinstance(subscription, SubscriptionInfo)
        return after, self.altered_subscription(memory, subscription)

    def lead(
        self, memory: Memory, topics: tuple[Topic, ...], members: tuple[Joining, ...], /
    ) -> tuple[Memory, Mapping[str, Share]]:
        after, shares = self.sound.lead(memory, topics, members)
        return after, self.altered_shares(members, shares)

    def assigned(self, memory: Memory, share: Share, /) -> AssignmentResult:
        return self.processed(memory, info_of(share), self.sound.assigned(memory, share))

    # Results to override

    def altered_subscription(self, memory: Memory, info: SubscriptionInfo) -> SubscriptionInfo:
        return info

    def altered_shares(self, members: tuple[Joining, ...], shares: Mapping[str, Share]) -> Mapping[str, Share]:
        return shares

    def processed(self, memory: Memory, info: AssignmentInfo, processed: AssignmentResult) -> AssignmentResult:
        return processed


def info_of(share: Share) -> AssignmentInfo:
    assert isinstance(share.data, AssignmentInfo)
    return share.data


def used_by(member: Joining) -> int:
    assert isinstance(member.data, SubscriptionInfo)
    return member.data.used


class Streaming:
    """The reference machine as an adapter, with overridable decisions."""

    name = "streams"
    version = "0"
    issues = ""
    member: Callable[[Binary], Binary] = AlteredMember
    """Wraps each member."""

    def __init__(self) -> None:
        self.configure(APACHE.name)

    def claims(self) -> Claims:
        return Claims(machines=(STREAMS, STREAMS_MIXED))

    def configure(self, edition_name: str, /) -> str | None:
        here = edition(edition_name)
        own = here.name if here == KIP_268 else here.release
        members = self.members(lambda settings: self.in_bytes(self.made(settings, here)), own, future_of(here.name))
        self._player: MachineAdapter[Any, Any, Any] = machine_adapter(members)
        return None

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        return self._player.answer(op)

    def made(self, settings: Settings, edition: Edition) -> Binary:
        spoiled: Binary = type(self).member(owed_binary(settings, edition))
        return spoiled

    def in_bytes(self, made: Binary) -> Binary:
        return EncodedBinary(made)

    def members(self, made: Callable[[Settings], Binary], own: str, future: str) -> StreamsMembers:
        return StreamsMembers(made, own, future)


Made = TypeVar("Made", bound=type[Streaming])


def streams_mutant(check: str, invariant: str, least: str | EllipsisType, where: str = "") -> Callable[[Made], Made]:
    """``where``: the edition that shows the defect, if ``apache`` does not."""
    subject = STREAMS_MIXED if check in ("mixed", "rolling", "heartbeats", "beside") else STREAMS
    return mutant(f"streams/{check}", f"streams/{invariant}", subject, None, least, edition=where)
