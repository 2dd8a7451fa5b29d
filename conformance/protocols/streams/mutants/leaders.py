"""Leaders of Streams groups with one planted defect each."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from kipcheck.conformance.core.files.releases_table import named
from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.streams.blobs import EncodedBinary
from kipcheck.conformance.protocols.streams.model.deviations import DEAF, ECHO, IMPROBABLE, STANDBYS_FOR_ALL, Deviation
from kipcheck.conformance.protocols.streams.model.members import (
    AssignmentInfo,
    AssignmentResult,
    Binary,
    Endless,
    Fatal,
    Joining,
    Memory,
    Settings,
    Share,
    SubscriptionInfo,
    TaskId,
    by_topic,
)
from kipcheck.conformance.protocols.streams.model.release_members import binary, owed_binary
from kipcheck.conformance.protocols.streams.model.released import Released
from kipcheck.conformance.protocols.streams.model.rules import Rules
from kipcheck.conformance.protocols.streams.mutants.bases import (
    AlteredMember,
    Streaming,
    info_of,
    streams_mutant,
    used_by,
)

PLACE = 10

# Assignments


def without(share: Share, dropped: set[TaskId]) -> Share:
    info = info_of(share)
    kept = [at for at, task in enumerate(info.active) if task not in dropped]
    return Share(
        tuple(share.partitions[at] for at in kept), replace(info, active=tuple(info.active[at] for at in kept))
    )


def first_of(shares: Mapping[str, Share]) -> set[TaskId]:
    """The first assigned task."""
    return {*sorted({task for share in shares.values() for task in info_of(share).active}, key=str)[:1]}


class _GivesTwice(AlteredMember):
    def altered_shares(self, members: tuple[Joining, ...], shares: Mapping[str, Share]) -> Mapping[str, Share]:
        first = min((pair for share in shares.values() for pair in _pairs(share)), key=str, default=None)
        if first is None:
            return shares
        return {id: share if first in [*_pairs(share)] else _with(share, *first) for id, share in shares.items()}


def _pairs(share: Share) -> Iterator[tuple[tuple[str, int], TaskId]]:
    return zip(share.partitions, info_of(share).active, strict=True)


def _with(share: Share, partition: tuple[str, int], task: TaskId) -> Share:
    pairs = {**dict(_pairs(share)), partition: task}
    partitions = by_topic(tuple(pairs))
    return Share(partitions, replace(info_of(share), active=tuple(pairs[each] for each in partitions)))


@streams_mutant("ownership", "one-owner", "start a own; start b own; settle")
class AssignsATaskTwice(Streaming):
    """The first task is assigned to every member."""

    member = _GivesTwice


class _Forgetful(AlteredMember):
    def altered_shares(self, members: tuple[Joining, ...], shares: Mapping[str, Share]) -> Mapping[str, Share]:
        return {id: without(share, first_of(shares)) for id, share in shares.items()}


@streams_mutant("ownership", "all-owned", "start a own; settle")
class AssignsATaskToNobody(Streaming):
    """The first task is not assigned."""

    member = _Forgetful


class _Shallow(AlteredMember):
    def altered_shares(self, members: tuple[Joining, ...], shares: Mapping[str, Share]) -> Mapping[str, Share]:
        behind = {task for share in shares.values() for task in info_of(share).active if task.subtopology}
        return {id: without(share, behind) for id, share in shares.items()}


@streams_mutant("topologies", "all-owned", ...)
class ForgetsRepartitionTasks(Streaming):
    """Tasks that read a repartition topic are not assigned."""

    member = _Shallow


class _Forward(AlteredMember):
    def lead(
        self, memory: Memory, topics: tuple[Topic, ...], members: tuple[Joining, ...], /
    ) -> tuple[Memory, Mapping[str, Share]]:
        known = {each.name for each in topics}
        for each in self.settings.topology.subtopologies:
            if not known.issuperset(each.sources):
                raise Fatal("java.lang.IllegalArgumentException", "the number of partitions is 0")
            known.update(each.repartition)
        return super().lead(memory, topics, members)


@streams_mutant("topologies", "lives", ...)
class SizesTopicsInOrder(Streaming):
    """The leader fails if a subtopology reads a topic whose size follows from a later one (KAFKA-9335)."""

    member = _Forward


class _Early(AlteredMember):
    def altered_shares(self, members: tuple[Joining, ...], shares: Mapping[str, Share]) -> Mapping[str, Share]:
        first = self.settings.topology.subtopologies[0].sources[0]
        sizes = [1 + pair[1] for share in shares.values() for pair in share.partitions if pair[0] == first]
        behind = {
            task
            for share in shares.values()
            for task in info_of(share).active
            if task.subtopology and sizes and task.partition >= max(sizes)
        }
        return {id: without(share, behind) for id, share in shares.items()}


@streams_mutant("topologies", "all-owned", ...)
class CountsTasksTooEarly(Streaming):
    """A repartition topic has as many tasks as its source has partitions, also if its partner has more (KAFKA-6391)."""

    member = _Early


class _Busy(AlteredMember):
    def altered_shares(self, members: tuple[Joining, ...], shares: Mapping[str, Share]) -> Mapping[str, Share]:
        fullest = max(shares.values(), key=lambda share: len(share.partitions))
        return {id: share if share.partitions else fullest for id, share in shares.items()}


@streams_mutant("ownership", "one-owner", "start a own; start b own; start c own; start d own; settle")
class KeepsNobodyIdle(Streaming):
    """A member without a task gets the tasks of another."""

    member = _Busy


class _Backwards(AlteredMember):
    def altered_shares(self, members: tuple[Joining, ...], shares: Mapping[str, Share]) -> Mapping[str, Share]:
        return {
            id: replace(share, data=replace(info_of(share), active=info_of(share).active[::-1]))
            for id, share in shares.items()
        }


@streams_mutant("ownership", "pairs", "start a own; settle")
class ListsTasksBackwards(Streaming):
    """Tasks are listed in reverse, their partitions are not."""

    member = _Backwards


class _WithRules(Streaming):
    """Members of the edition's release, with altered rules."""

    def changed(self, rules: Rules) -> Rules:
        raise NotImplementedError

    def made(self, settings: Settings, edition: Edition) -> Binary:
        made = owed_binary(settings, edition)
        return Released(settings, self.changed(made.rules)) if isinstance(made, Released) else made


def _not(rules: Rules, deviation: Deviation) -> Rules:
    return replace(rules, departures=rules.departures - {deviation})


@streams_mutant("ownership", "handed-over", "start b own; settle; start a own; settle", "apache@3.9.2")
class GivesAwayWhatIsOwned(_WithRules):
    """A partition that a cooperative member reads is assigned to another one in the same rebalance."""

    def changed(self, rules: Rules) -> Rules:
        return replace(rules, owns=False)


@streams_mutant("probing", "others-get", "start a own; start b own; settle; start a future; settle", "apache@2.3.1")
class AssignsAfreshWhileProbing(_WithRules):
    """During version probing the leader of 2.3 makes a new assignment, although members should keep their claims."""

    def changed(self, rules: Rules) -> Rules:
        return _not(rules, ECHO)


@streams_mutant("upgrade", "hard-mix", "start a own<1.1; start b future; settle", "apache@3.9.2")
class ShrugsOffAHardMix(_WithRules):
    """A member of an unknown version beside one of version 2 gets its share like any other."""

    def changed(self, rules: Rules) -> Rules:
        return _not(rules, IMPROBABLE)


@streams_mutant("probing", "old-leader-fails", "start a own; start b future; settle", "apache@1.1.1")
class SurvivesTheFuture(_WithRules):
    """A leader without version probing accepts subscriptions of unknown versions."""

    def changed(self, rules: Rules) -> Rules:
        return _not(rules, DEAF)

    def in_bytes(self, made: Binary) -> Binary:
        """Lets a leader of 1.1.1 decode at least the first two numbers of an unknown version."""
        is_before = made.settings.release == named("kip-268-base")
        return EncodedBinary(made, named("first-with-probing") if is_before else None)


class _Unsteady(AlteredMember):
    def lead(
        self, memory: Memory, topics: tuple[Topic, ...], members: tuple[Joining, ...], /
    ) -> tuple[Memory, Mapping[str, Share]]:
        if any(used_by(each) > self.latest for each in members):
            raise Fatal("java.lang.IllegalStateException", "what is that?")
        return super().lead(memory, topics, members)


@streams_mutant("probing", "leads-the-future", "start a own; start b future; settle")
class FailsOnTheFuture(Streaming):
    """The leader fails on a version above its own."""

    member = _Unsteady


class _Endless(AlteredMember):
    def lead(
        self, memory: Memory, topics: tuple[Topic, ...], members: tuple[Joining, ...], /
    ) -> tuple[Memory, Mapping[str, Share]]:
        raise Endless("java.lang.Thread", "it is given up after its time")


@streams_mutant("probing", "assigns", "start a own; settle")
class AssignsForEver(Streaming):
    """An assignment never returns."""

    member = _Endless


class _Exclusive(AlteredMember):
    def altered_shares(self, members: tuple[Joining, ...], shares: Mapping[str, Share]) -> Mapping[str, Share]:
        strangers = {each.id for each in members if used_by(each) > self.latest}
        return {
            id: replace(share, data=replace(info_of(share), used=3)) if id in strangers else share
            for id, share in shares.items()
        }


@streams_mutant("probing", "future-gets", "start a own; start b future; settle")
class AnswersTheFutureInTheOldest(Streaming):
    """A member of an unknown version gets its share in version 3 instead of the common version."""

    member = _Exclusive


@streams_mutant("ownership", "shared-while-probing", "start a own; start b own of a; settle; start c future; settle",
         "apache@2.0.1")  # fmt: skip
class EchoesByInstance(Streaming):
    """As released up to 2.2.1: during version probing each thread gets the claims of all threads of its instance."""


@streams_mutant("topologies", "even-topics", ...)
class JoinsUnevenTopics(Streaming):
    """As released from 3.2 on: co-partitioned topics of different sizes are assigned."""

    def made(self, settings: Settings, edition: Edition) -> Binary:
        return binary(settings, edition)


# Used and supported version


class _Numbers(AlteredMember):
    def number(self, members: tuple[Joining, ...], info: AssignmentInfo) -> AssignmentInfo:
        raise NotImplementedError

    def altered_shares(self, members: tuple[Joining, ...], shares: Mapping[str, Share]) -> Mapping[str, Share]:
        return {id: replace(share, data=self.number(members, info_of(share))) for id, share in shares.items()}


class _ReportsOwnVersionOnly(_Numbers):
    def number(self, members: tuple[Joining, ...], info: AssignmentInfo) -> AssignmentInfo:
        return info if info.error else replace(info, used=self.latest)


@streams_mutant("probing", "decodable", "start a future; start b own; settle")
class LeadsInItsOwnVersion(Streaming):
    """The leader writes assignments in its own version, not the lowest."""

    member = _ReportsOwnVersionOnly


class _Humble(_Numbers):
    def number(self, members: tuple[Joining, ...], info: AssignmentInfo) -> AssignmentInfo:
        return replace(info, used=max(info.used - 1, 1))


@streams_mutant("probing", "lowest-version", "start a own; settle")
class LeadsBelowTheLowest(Streaming):
    """The leader writes assignments one version below the lowest."""

    member = _Humble


class _Boastful(_Numbers):
    def number(self, members: tuple[Joining, ...], info: AssignmentInfo) -> AssignmentInfo:
        return replace(info, supported=self.latest)


@streams_mutant("probing", "second-int", "start a future; start b own; settle")
class TellsItsOwnVersion(Streaming):
    """The supported version is the leader's own, although others know less."""

    member = _Boastful


class _Visionary(_Numbers):
    def number(self, members: tuple[Joining, ...], info: AssignmentInfo) -> AssignmentInfo:
        return replace(info, supported=self.latest + 1)


@streams_mutant("probing", "adopts-blindly", "start a own; settle", "apache@2.0.1")
class TellsOldMembersOfTheFuture(Streaming):
    """The supported version is above the leader's latest, and members of 2.0 adopt it without a check."""

    member = _Visionary


@streams_mutant("topologies", "errors-decodable", "start a future; start b own; settle; shut-down b; settle")
class TellsErrorsInItsOwnVersion(Streaming):
    """As released since 2.1: an error is written in the leader's latest version, whatever the others can decode."""

    def made(self, settings: Settings, edition: Edition) -> Binary:
        return binary(settings, edition)


class _Tolerant(_Numbers):
    def number(self, members: tuple[Joining, ...], info: AssignmentInfo) -> AssignmentInfo:
        return replace(info, supported=self.latest + 1)

    def assigned(self, memory: Memory, share: Share, /) -> AssignmentResult:
        info = info_of(share)
        return super().assigned(memory, replace(share, data=replace(info, supported=min(info.supported, self.latest))))


@streams_mutant("probing", "refuses-newer", "start a own; settle")
class PromisesTooMuch(Streaming):
    """The supported version is above the leader's latest, and members accept it."""

    member = _Tolerant


# Standbys and hosts


class _Mixed(AlteredMember):
    """Alters assignments if latest versions differ."""

    def left(self, info: AssignmentInfo) -> AssignmentInfo:
        raise NotImplementedError

    def altered_shares(self, members: tuple[Joining, ...], shares: Mapping[str, Share]) -> Mapping[str, Share]:
        if len({each.data.latest for each in members if isinstance(each.data, SubscriptionInfo)}) == 1:
            return shares
        return {id: replace(share, data=self.left(info_of(share))) for id, share in shares.items()}


class _Hostless(_Mixed):
    def left(self, info: AssignmentInfo) -> AssignmentInfo:
        return replace(info, hosts=(), standby_hosts=())


@streams_mutant("ownership", "hosts", ...)
class LosesHostsInTheMix(Streaming):
    """The host map is empty if latest versions differ."""

    member = _Hostless


class _Careless(_Mixed):
    def left(self, info: AssignmentInfo) -> AssignmentInfo:
        return replace(info, standby=())


@streams_mutant("ownership", "standbys", ...)
class LosesStandbysInTheMix(Streaming):
    """No standbys are assigned if latest versions differ."""

    member = _Careless


class _Doubling(AlteredMember):
    def altered_shares(self, members: tuple[Joining, ...], shares: Mapping[str, Share]) -> Mapping[str, Share]:
        return {id: replace(share, data=_beside(share)) for id, share in shares.items()}


def _beside(share: Share) -> AssignmentInfo:
    info = info_of(share)
    own = {task: tuple(pair for pair, at in _pairs(share) if at == task) for task in info.active}
    return replace(info, standby=tuple(sorted(own.items())) if info.standby else ())


@streams_mutant("topologies", "idle-standbys", ...)
class StandsByWithoutState(_WithRules):
    """As released up to 2.5.1: tasks without state have standbys too."""

    def changed(self, rules: Rules) -> Rules:
        return replace(rules, departures=rules.departures | {STANDBYS_FOR_ALL})


@streams_mutant("ownership", "standbys", ...)
class StandsByWhereItRuns(Streaming):
    """A standby is assigned to the member that runs the task."""

    member = _Doubling
