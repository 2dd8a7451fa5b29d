"""Streams groups with one planted defect each: the direction of a requirement that no other mutant breaks.

Each of them does nothing, too little or too much where the others do the wrong thing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.streams.model.deviations import NOT_APPLIED
from kipcheck.conformance.protocols.streams.model.leader import instances, receive
from kipcheck.conformance.protocols.streams.model.members import (
    NEVER,
    AssignmentInfo,
    AssignmentResult,
    Binary,
    Joining,
    Memory,
    Misconfigured,
    Rejoin,
    Settings,
    Share,
    SubscriptionInfo,
    TaskId,
)
from kipcheck.conformance.protocols.streams.model.release_members import owed_binary
from kipcheck.conformance.protocols.streams.model.released import Released
from kipcheck.conformance.protocols.streams.model.rules import LINES
from kipcheck.conformance.protocols.streams.model.tasks import place, work
from kipcheck.conformance.protocols.streams.mutants.bases import (
    AlteredMember,
    Streaming,
    info_of,
    streams_mutant,
    used_by,
)

PLACE = 30

LEADER_STOPS = "start a future; start b own; start c future; settle; stop a; settle"
"""The next leader does not know the version of the third member, which has tasks by then."""

# upgrade.from


class _OneIgnored(AlteredMember):
    def initial(self) -> Memory:
        begins = super().initial()
        return replace(begins, used=self.latest) if self.settings.upgrade_from == LINES[3] else begins


@streams_mutant("upgrade", "upgrade-from", "start a own<0.11.0; settle", "kip-268")
class IgnoresOneUpgradeFrom(Streaming):
    """One value of upgrade.from does not lower the used version."""

    member = _OneIgnored


class _OneRefused(AlteredMember):
    def initial(self) -> Memory:
        if self.settings.upgrade_from == "1.0":
            raise Misconfigured("invalid upgrade.from '1.0'")
        return super().initial()


@streams_mutant("upgrade", "refuses-values", "start a own<1.0", "kip-268")
class RefusesOneUpgradeFrom(Streaming):
    """One value of upgrade.from that the release has to accept is refused."""

    member = _OneRefused


class _Both(AlteredMember):
    @property
    def supports(self) -> Sequence[str]:
        return ("eager", "cooperative")


@streams_mutant("upgrade", "protocols", "start a own<1.1; settle", "apache@3.9.2")
class CooperatesTooEarly(Streaming):
    """A member offers cooperative rebalancing although upgrade.from names an eager release."""

    member = _Both


class _Remembers(AlteredMember):
    """Uses the version again that the last process of the instance used."""

    def __init__(self, sound: Binary, last: dict[str, int]) -> None:
        super().__init__(sound)
        self.last = last

    def altered_subscription(self, memory: Memory, info: SubscriptionInfo) -> SubscriptionInfo:
        return replace(info, used=min(self.last.get(info.process, info.used), info.used))

    def processed(self, memory: Memory, info: AssignmentInfo, processed: AssignmentResult) -> AssignmentResult:
        self.last[self.settings.process] = processed.memory.used
        return processed


@streams_mutant("probing", "restarts-afresh", "start a own; start b future; settle; start b future; settle", "kip-268")
class KeepsItsVersionOnDisk(Streaming):
    """A process that starts uses the version that its last process used."""

    def configure(self, edition_name: str, /) -> str | None:
        self.case: Any = None
        self.last: dict[str, int] = {}
        return super().configure(edition_name)

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        if op["case"] != self.case:
            self.case = op["case"]
            self.last.clear()
        return super().answer(op)

    def made(self, settings: Settings, edition: Edition) -> Binary:
        return _Remembers(owed_binary(settings, edition), self.last)


# Leaders beside members that they do not know


class _ToTheFuture(AlteredMember):
    """Alters the assignments of members of an unknown version."""

    def to_stranger(self, members: tuple[Joining, ...], share: Share) -> Share:
        raise NotImplementedError

    def altered_shares(self, members: tuple[Joining, ...], shares: Mapping[str, Share]) -> Mapping[str, Share]:
        strangers = {each.id for each in members if used_by(each) > self.latest}
        return {id: self.to_stranger(members, share) if id in strangers else share for id, share in shares.items()}


class _InTheUsed(_ToTheFuture):
    def to_stranger(self, members: tuple[Joining, ...], share: Share) -> Share:
        return replace(share, data=replace(info_of(share), used=min(map(used_by, members))))


@streams_mutant("probing", "future-gets", "start b own<1.1; start c future; settle", "kip-268")
class AnswersTheFutureInTheUsedVersion(Streaming):
    """An empty assignment has the version that the others use, not the leader's latest."""

    member = _InTheUsed


class _WithAHost(_ToTheFuture):
    def to_stranger(self, members: tuple[Joining, ...], share: Share) -> Share:
        return replace(share, data=replace(info_of(share), hosts=(("a:9092", ()),)))


@streams_mutant("probing", "future-gets", "start a own; start b future; settle", "kip-268")
class ShowsHostsToTheFuture(Streaming):
    """An empty assignment has a host map."""

    member = _WithAHost


class _Generous(_ToTheFuture):
    def to_stranger(self, members: tuple[Joining, ...], share: Share) -> Share:
        return replace(share, partitions=(("t", 0),))


@streams_mutant("probing", "future-gets", "start a own; start b future; settle", "apache@2.3.1")
class GivesPartitionsToTheFuture(Streaming):
    """A member of an unknown version gets a partition, although it should get none."""

    member = _Generous


class _Excluding(_ToTheFuture):
    def to_stranger(self, members: tuple[Joining, ...], share: Share) -> Share:
        return Share((), replace(info_of(share), active=(), standby=(), hosts=(), standby_hosts=()))


@streams_mutant("probing", "future-gets", "start a own; start b future; settle")
class LeavesTheFutureOut(Streaming):
    """A member of an unknown version gets no task, although it should take part."""

    member = _Excluding


class _CountsIn(AlteredMember):
    """Reserves tasks for members of an unknown version."""

    def lead(
        self, memory: Memory, topics: tuple[Topic, ...], members: tuple[Joining, ...], /
    ) -> tuple[Memory, Mapping[str, Share]]:
        after, shares = self.sound.lead(memory, topics, members)
        group = receive(members, self.latest)
        todo = work(self.settings.topology, topics)
        placement = place(todo, instances(group, todo, owns=False, strangers=True), 0)
        reserved = {task for id in group.strangers for task in placement[id].active}
        return after, {id: _without(share, reserved) for id, share in shares.items()}


def _without(share: Share, dropped: set[Any]) -> Share:
    info = info_of(share)
    kept = [at for at, task in enumerate(info.active) if task not in dropped]
    return Share(
        tuple(share.partitions[at] for at in kept), replace(info, active=tuple(info.active[at] for at in kept))
    )


@streams_mutant("probing", "others-get", "start a own; start b future; settle", "kip-268")
class ReservesTasksForTheFuture(Streaming):
    """In the draft, the tasks that a member of an unknown version would get are assigned to no member."""

    member = _CountsIn


class _Forgets(AlteredMember):
    def altered_shares(self, members: tuple[Joining, ...], shares: Mapping[str, Share]) -> Mapping[str, Share]:
        if not any(used_by(each) > self.latest for each in members):
            return shares
        return {id: Share((), replace(info_of(share), active=(), standby=())) for id, share in shares.items()}


@streams_mutant("probing", "others-get", "start a own; settle; start b future; settle", "apache@2.3.1")
class DropsClaimsWhileProbing(Streaming):
    """During version probing no member gets a task, although the others should keep what they claim."""

    member = _Forgets


class _HidesHosts(AlteredMember):
    def altered_shares(self, members: tuple[Joining, ...], shares: Mapping[str, Share]) -> Mapping[str, Share]:
        if not any(used_by(each) > self.latest for each in members):
            return shares
        return {id: replace(share, data=replace(info_of(share), hosts=())) for id, share in shares.items()}


@streams_mutant("ownership", "hosts", ..., "kip-268")
class HidesHostsWhileProbing(Streaming):
    """In the draft, the others get no host map while a member of an unknown version probes."""

    member = _HidesHosts


# Used and supported version


class _OwnUsed(AlteredMember):
    def altered_shares(self, members: tuple[Joining, ...], shares: Mapping[str, Share]) -> Mapping[str, Share]:
        lowest = min(map(used_by, members))
        return {
            id: replace(share, data=replace(info_of(share), supported=info_of(share).used)) if lowest > 2 else share
            for id, share in shares.items()
        }


@streams_mutant("probing", "second-int", "start a future; start b own; settle", "kip-268")
class StatesTheUsedVersionTwice(Streaming):
    """An assignment has the used version as the supported one, although the leader knows a later one."""

    member = _OwnUsed


class _Modest(AlteredMember):
    def altered_subscription(self, memory: Memory, info: SubscriptionInfo) -> SubscriptionInfo:
        return replace(info, latest=info.used) if info.used > 2 else info


@streams_mutant("probing", "states-its-latest", "start a own; start b future; settle", "kip-268")
class SupportsWhatItUses(Streaming):
    """A subscription has the used version as the supported one, although the member knows a later one."""

    member = _Modest


# Requested rebalances


class _Settled(AlteredMember):
    def processed(self, memory: Memory, info: AssignmentInfo, processed: AssignmentResult) -> AssignmentResult:
        if processed.memory.used < memory.used and memory.active:
            return replace(processed, rejoin=NEVER)
        return processed


@streams_mutant("probing", "last-rebalance", LEADER_STOPS, "kip-268")
class StaysWithItsTasks(Streaming):
    """A member whose version falls does not rejoin if it has tasks."""

    member = _Settled


class _Silent(AlteredMember):
    def processed(self, memory: Memory, info: AssignmentInfo, processed: AssignmentResult) -> AssignmentResult:
        return replace(processed, rejoin=NEVER) if processed.memory.used > memory.used else processed


@streams_mutant("probing", "last-rebalance", "start a future; start b own; settle; stop b; settle")
class RisesInSilence(Streaming):
    """A member whose version rises does not rejoin."""

    member = _Silent


class _Hasty(AlteredMember):
    def processed(self, memory: Memory, info: AssignmentInfo, processed: AssignmentResult) -> AssignmentResult:
        return replace(processed, rejoin=Rejoin("again")) if processed.memory.used > memory.used else processed


@streams_mutant("probing", "last-rebalance", "start a future; start b own; settle; stop b; settle", "apache@2.1.1")
class RejoinsToRise(Streaming):
    """A member whose version rises rejoins, although it should wait for the next rebalance."""

    member = _Hasty


# Subscriptions


class _NoTasks(AlteredMember):
    def altered_subscription(self, memory: Memory, info: SubscriptionInfo) -> SubscriptionInfo:
        return replace(info, active=())


@streams_mutant("probing", "states-its-tasks", "start a own; settle; start b own; settle", "kip-268")
class ConcealsItsTasks(Streaming):
    """A subscription never has previous tasks."""

    member = _NoTasks


class _OneMore(AlteredMember):
    def altered_subscription(self, memory: Memory, info: SubscriptionInfo) -> SubscriptionInfo:
        return replace(info, active=tuple(sorted({*info.active, TaskId(0, 0)})))


@streams_mutant("probing", "states-its-tasks", "start a own; settle", "kip-268")
class ClaimsATaskOfAnother(Streaming):
    """A subscription has the first task, whichever member ran it."""

    member = _OneMore


class _NoEndPoint(AlteredMember):
    def altered_subscription(self, memory: Memory, info: SubscriptionInfo) -> SubscriptionInfo:
        return replace(info, end_point=None)


@streams_mutant("ownership", "states-its-instance", ...)
class ConcealsItsEndPoint(Streaming):
    """A subscription never has an end point."""

    member = _NoEndPoint


class _SharedId(AlteredMember):
    def altered_subscription(self, memory: Memory, info: SubscriptionInfo) -> SubscriptionInfo:
        return replace(info, process="00000000-0000-0000-0000-000000000001")


@streams_mutant("ownership", "states-its-instance", "start a own; start b own; settle")
class StatesOneIdForAll(Streaming):
    """All instances state the same id."""

    member = _SharedId


# Tasks


@streams_mutant("mixed", "tasks-match", "start a 2.0.1; start b 2.3.1; settle")
class RunsNewTasksWhileProbing(Streaming):
    """A member that lowers its version applies its assignment first, as released from 2.4.0 on."""

    def made(self, settings: Settings, edition: Edition) -> Binary:
        made = owed_binary(settings, edition)
        if not isinstance(made, Released):
            return made
        return Released(settings, replace(made.rules, departures=made.rules.departures - {NOT_APPLIED}))


class _Rotated(AlteredMember):
    def altered_shares(self, members: tuple[Joining, ...], shares: Mapping[str, Share]) -> Mapping[str, Share]:
        return {id: replace(share, data=self.rotated(info_of(share))) for id, share in shares.items()}

    def rotated(self, info: AssignmentInfo) -> AssignmentInfo:
        names, read = [name for name, _ in info.hosts], [partitions for _, partitions in info.hosts]
        return replace(info, hosts=tuple(zip(names, read[1:] + read[:1], strict=True)))


@streams_mutant("ownership", "hosts", ...)
class MapsHostsToOthers(Streaming):
    """Each host has the partitions of the next one."""

    member = _Rotated


class _LeavesOneOut(AlteredMember):
    def altered_shares(self, members: tuple[Joining, ...], shares: Mapping[str, Share]) -> Mapping[str, Share]:
        assigned = [id for id, share in shares.items() if info_of(share).active]
        if len(members) < len("abc") or not assigned:
            return shares
        share = shares[assigned[0]]
        less = replace(share, partitions=share.partitions[:-1], data=shortened(info_of(share)))
        return {**shares, assigned[0]: less}


def shortened(info: AssignmentInfo) -> AssignmentInfo:
    """Without the last active task."""
    return replace(info, active=info.active[:-1])


@streams_mutant("rolling", "all-owned", "start a own; start b own; start c own; settle")
class LeavesATaskOfThreeOut(Streaming):
    """A leader of three members assigns a task to none."""

    member = _LeavesOneOut


@streams_mutant("heartbeats", "all-owned", "start a own; start b own; start c own; settle")
class LeavesATaskOfAStreamsGroupOut(LeavesATaskOfThreeOut):
    """A task of a group of three is assigned to none."""


# Topologies


class _Quiet(AlteredMember):
    def lead(
        self, memory: Memory, topics: tuple[Topic, ...], members: tuple[Joining, ...], /
    ) -> tuple[Memory, Mapping[str, Share]]:
        if work(self.settings.topology, topics).uneven:
            used = min(map(used_by, members))
            return memory, {each.id: Share((), AssignmentInfo(used, self.latest)) for each in members}
        return super().lead(memory, topics, members)


@streams_mutant("topologies", "even-topics", ...)
class PassesOverUnevenTopics(Streaming):
    """Co-partitioned topics of different sizes are not assigned, and no error is reported."""

    member = _Quiet


# Steps


@streams_mutant("probing", "acts", "settle")
class DoesNothing(Streaming):
    """No step has an effect."""

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        return {**super().answer(op), "actions": []}


@streams_mutant("beside", "acts", "settle")
class DoesNothingBesideOthers(DoesNothing):
    """No step of an application has an effect."""
