"""Members of Streams groups, and their threads, with one planted defect each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.group.model.messages import Blob
from kipcheck.conformance.protocols.member.model.state import State, Step
from kipcheck.conformance.protocols.streams.model.consumer import StreamsConsumer
from kipcheck.conformance.protocols.streams.model.group_model import Kinds, StreamsMembers
from kipcheck.conformance.protocols.streams.model.members import (
    NEVER,
    AssignmentInfo,
    AssignmentResult,
    Binary,
    Fatal,
    Memory,
    Misconfigured,
    Rejoin,
    Settings,
    Share,
    SubscriptionInfo,
)
from kipcheck.conformance.protocols.streams.mutants.bases import AlteredMember, Streaming, streams_mutant
from kipcheck.conformance.protocols.streams.ops import Deploy

PLACE = 20

PROBED = "start a own; start b future; settle"
ALONE = "start a future; start b own; settle; stop b; settle"

# The used version


class _Climbs(AlteredMember):
    def processed(self, memory: Memory, info: AssignmentInfo, processed: AssignmentResult) -> AssignmentResult:
        return replace(processed, memory=replace(processed.memory, used=self.latest + 1))


@streams_mutant("probing", "used-within-own", "start a own; settle")
class RisesAboveItsOwn(Streaming):
    """After an assignment a member uses the version after its latest."""

    member = _Climbs


class _Stays(AlteredMember):
    def processed(self, memory: Memory, info: AssignmentInfo, processed: AssignmentResult) -> AssignmentResult:
        if processed.memory.used <= memory.used:
            return processed
        return replace(processed, memory=replace(processed.memory, used=memory.used), rejoin=NEVER)


@streams_mutant("probing", "upgraded", ALONE)
class NeverRises(Streaming):
    """A member whose version fell never raises it again."""

    member = _Stays


class _Literal(AlteredMember):
    def processed(self, memory: Memory, info: AssignmentInfo, processed: AssignmentResult) -> AssignmentResult:
        return replace(processed, memory=replace(processed.memory, used=info.used), rejoin=NEVER)


@streams_mutant("probing", "follows", ALONE)
class TakesTheFirstNumber(Streaming):
    """A member uses the version of the assignment, whatever its supported version."""

    member = _Literal


class _Stubborn(AlteredMember):
    def altered_subscription(self, memory: Memory, info: SubscriptionInfo) -> SubscriptionInfo:
        return replace(info, used=self.latest)


@streams_mutant("probing", "used-within-told", PROBED)
class SaysItsNewestAgain(Streaming):
    """A member always subscribes in its latest version."""

    member = _Stubborn


class _Swaying(AlteredMember):
    def processed(self, memory: Memory, info: AssignmentInfo, processed: AssignmentResult) -> AssignmentResult:
        used = self.latest if memory.used < self.latest else self.latest - 1
        return replace(processed, memory=replace(processed.memory, used=used), rejoin=Rejoin("now"))


@streams_mutant("probing", "probing-ends", "start a own; settle")
class Alternates(Streaming):
    """A member alternates between its latest version and the one before."""

    member = _Swaying


class _Impressionable(AlteredMember):
    def processed(self, memory: Memory, info: AssignmentInfo, processed: AssignmentResult) -> AssignmentResult:
        return replace(processed, memory=replace(processed.memory, used=info.used)) if info.used < 3 else processed


@streams_mutant("mixed", "old-data-moves-nobody", "start a 3.9.2<1.1; start b 3.9.2; settle")
class FallsToOldVersions(Streaming):
    """An assignment in version 2 changes the used version to 2."""

    member = _Impressionable


class _Modest(AlteredMember):
    def initial(self) -> Memory:
        begins = super().initial()
        return replace(begins, used=max(begins.used - 1, 1))


@streams_mutant("probing", "restarts-afresh", "start a own; settle")
class BeginsBelowItsNewest(Streaming):
    """A process starts with the version before its latest."""

    member = _Modest


class _Anxious(AlteredMember):
    def processed(self, memory: Memory, info: AssignmentInfo, processed: AssignmentResult) -> AssignmentResult:
        return replace(processed, rejoin=Rejoin("again")) if memory.unique < 3 else processed


@streams_mutant("probing", "no-probing", "start a own; settle")
class ProbesItsOwnKind(Streaming):
    """A member that has just started subscribes again, although all know the same version."""

    member = _Anxious


# Requested rebalances


class _Content(AlteredMember):
    def processed(self, memory: Memory, info: AssignmentInfo, processed: AssignmentResult) -> AssignmentResult:
        return replace(processed, rejoin=NEVER) if processed.memory.used < memory.used else processed


@streams_mutant("probing", "last-rebalance", PROBED)
class StaysAfterProbing(Streaming):
    """A member whose version falls does not rejoin."""

    member = _Content


class _Idle(AlteredMember):
    def processed(self, memory: Memory, info: AssignmentInfo, processed: AssignmentResult) -> AssignmentResult:
        return replace(processed, rejoin=NEVER) if processed.memory.used >= memory.used else processed


LAST = "start b own; settle; start a future; settle; start b future; settle"


@streams_mutant("probing", "last-rebalance", LAST, "kip-268")
class TriggersNothing(Streaming):
    """The draft's leader does not trigger the last rebalance."""

    member = _Idle


class _Eager(AlteredMember):
    def processed(self, memory: Memory, info: AssignmentInfo, processed: AssignmentResult) -> AssignmentResult:
        return replace(processed, rejoin=Rejoin("again")) if info.supported > info.used else processed


@streams_mutant("probing", "last-rebalance", "start a future; start b own; settle", "kip-268")
class TriggersWithoutLeading(Streaming):
    """In the draft a member triggers a rebalance if the leader knows a later version."""

    member = _Eager


class _Restless(AlteredMember):
    def processed(self, memory: Memory, info: AssignmentInfo, processed: AssignmentResult) -> AssignmentResult:
        return replace(processed, rejoin=Rejoin("now"))


@streams_mutant("probing", "probing-ends", "start a own; settle")
class RejoinsAfterEachAssignment(Streaming):
    """A member rejoins after each assignment."""

    member = _Restless


class _IgnoresRejoin(StreamsConsumer):
    def complete(self, state: State, blob: Blob) -> Step:
        after, actions = super().complete(state, blob)
        return Transition(replace(after, rejoin=False), actions)


class _IgnoringMembers(StreamsMembers):
    def consumers(self, deployed: Deploy) -> Mapping[str, StreamsConsumer]:
        return Kinds(lambda kind: _IgnoresRejoin(self.binary(self.settings(deployed, kind)), deployed.topics))


@streams_mutant("failures", "rejoins", PROBED)
class PassesOverRejoining(Streaming):
    """A thread ignores the rejoin that its assignor requests."""

    def members(self, made: Callable[[Settings], Binary], own: str, future: str) -> StreamsMembers:
        return _IgnoringMembers(made, own, future)


class _ConstantByte(AlteredMember):
    def altered_subscription(self, memory: Memory, info: SubscriptionInfo) -> SubscriptionInfo:
        return replace(info, unique=1)


@streams_mutant("probing", "successive-differ", PROBED)
class SaysTheSameTwice(Streaming):
    """The unique byte of a subscription never changes."""

    member = _ConstantByte


# Tasks


class _Inert(AlteredMember):
    def processed(self, memory: Memory, info: AssignmentInfo, processed: AssignmentResult) -> AssignmentResult:
        return replace(processed, memory=replace(processed.memory, active=memory.active, standby=memory.standby))


@streams_mutant("ownership", "tasks-match", "start a own; settle")
class AppliesNothing(Streaming):
    """The task manager never gets its tasks."""

    member = _Inert


class _Fragile(AlteredMember):
    def assigned(self, memory: Memory, share: Share, /) -> AssignmentResult:
        if len(share.partitions) > 2:
            raise Fatal("java.lang.OutOfMemoryError", "too much")
        return super().assigned(memory, share)


@streams_mutant("probing", "lives", "start a own; settle")
class BreaksDown(Streaming):
    """A member fails with more than two tasks."""

    member = _Fragile


# Configuration


class _Heedless(AlteredMember):
    def initial(self) -> Memory:
        return replace(super().initial(), used=self.latest)


@streams_mutant("upgrade", "upgrade-from", "start a own<1.1; settle", "apache@3.9.2")
class IgnoresUpgradeFrom(Streaming):
    """upgrade.from does not lower the used version."""

    member = _Heedless


class _Lenient(AlteredMember):
    def initial(self) -> Memory:
        try:
            return super().initial()
        except Misconfigured:
            return Memory(self.latest)


@streams_mutant("upgrade", "refuses-values", "start a own<9.9; settle")
class AcceptsAnyUpgradeFrom(Streaming):
    """Every value of upgrade.from is accepted."""

    member = _Lenient


class _Old(AlteredMember):
    @property
    def supports(self) -> Sequence[str]:
        return ("eager",)


@streams_mutant("upgrade", "protocols", "start a own; settle")
class StaysEagerInStreams(Streaming):
    """Members never support cooperative rebalancing."""

    member = _Old
