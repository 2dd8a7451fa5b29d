"""Upgraded groups with one planted defect each, in a member, a leader or the brokers. Least cases are in shorthand."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from kipcheck.conformance.core.values.edition import APACHE, Edition, edition
from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.assignment.model.assignment import Assignment, Group, Member, Topic, frozen, range_
from kipcheck.conformance.protocols.assignment.model.membership import V0, Assigned, Subscription
from kipcheck.conformance.protocols.assignment.model.mixed_group import INCOMPATIBLE, draft_leader
from kipcheck.conformance.protocols.assignment.model.sticky import sticky
from kipcheck.conformance.protocols.cluster.kinds import COOPERATES, KINDS, OLD, READY, Kind
from kipcheck.conformance.protocols.declare.mutant import mutant
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.draft import DraftCoordinator
from kipcheck.conformance.protocols.group.model.messages import Blob, Join
from kipcheck.conformance.protocols.group.model.rules import Rules as BrokerRules
from kipcheck.conformance.protocols.group.model.state import Member as Joined, State as GroupState
from kipcheck.conformance.protocols.member.model.consumer import Consumer
from kipcheck.conformance.protocols.member.model.messages import Event
from kipcheck.conformance.protocols.member.model.rules import Assignor, Config
from kipcheck.conformance.protocols.member.model.state import State, Step
from kipcheck.conformance.protocols.member.ops import Disconnected, Lost, Metric, Revoked
from kipcheck.conformance.protocols.upgrade.model.probing import Instance, Probing, Streams
from kipcheck.conformance.protocols.upgrade.model.upgrade import LARGE_GROUP, binary, config, coordinator, upgrade_model
from kipcheck.conformance.protocols.upgrade.ops import BOUNCE, OPERATIONS
from kipcheck.conformance.targets.machine_target import MachineAdapter
from kipcheck.conformance.targets.protocol import Claims


class Upgrading:
    """The reference machine as an adapter, with overridable decisions."""

    name = "bounce"
    version = "0"
    issues = ""
    member: type[Consumer] | None = None
    """None: the reference consumer."""

    def __init__(self) -> None:
        self.configure(APACHE.name)

    def claims(self) -> Claims:
        return Claims(machines=(BOUNCE,))

    def configure(self, edition_name: str, /) -> str | None:
        here = edition(edition_name)
        members = {
            name: (self.member or binary(here, kind))(self.configured(config(here, self.started(kind))))
            for name, kind in KINDS.items()
        }
        bounce = upgrade_model(here, members, self.brokers(here), self.probing())
        self._player: MachineAdapter[Any, Any, Any]
        self._player = MachineAdapter(bounce, OPERATIONS.verbs, OPERATIONS.event_of, OPERATIONS.answer_of)
        return None

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        return self._player.answer(op)

    def started(self, kind: Kind) -> Kind:
        return kind

    def configured(self, config: Config) -> Config:
        return config

    def brokers(self, edition: Edition) -> Coordinator:
        return coordinator(edition)

    def probing(self) -> Probing:
        return Probing()


Made = TypeVar("Made", bound=type[Upgrading])


def upgrade_mutant(check: str, invariant: str, least: str) -> Callable[[Made], Made]:
    return mutant(f"bounce/{check}", f"bounce/{invariant}", BOUNCE, None, least)


# Leaders


class _Assigns(Upgrading):
    """All assignors, with altered assignments."""

    def spoiled(self, group: Group, given: Assignment) -> Assignment:
        raise NotImplementedError

    def configured(self, config: Config) -> Config:
        return replace(config, assignors=tuple(self._spoiling(each) for each in config.assignors))

    def _spoiling(self, assignor: Assignor) -> Assignor:
        return replace(assignor, assign=lambda group: self.spoiled(group, assignor.assign(group)))


@upgrade_mutant("ownership", "one-owner", "roll a old; roll b old; settle")
class GivesTwice(_Assigns):
    """The first partition is assigned to every member."""

    def spoiled(self, group: Group, given: Assignment) -> Assignment:
        first = group.wanted[:1]
        return frozen({member: {*partitions, *first} for member, partitions in given.items()})


@upgrade_mutant("ownership", "revoked-first", "roll b cooperative; settle; roll a cooperative; settle")
class GivesWhatIsStillRead(_Assigns):
    """A partition that its owner still has to revoke is assigned to another member in the same round."""

    def spoiled(self, group: Group, given: Assignment) -> Assignment:
        return sticky(group)


@upgrade_mutant("ownership", "all-owned", "roll a old; settle")
class ForgetsTheLast(_Assigns):
    """The last partition is not assigned."""

    def spoiled(self, group: Group, given: Assignment) -> Assignment:
        last = group.wanted[-1:]
        return frozen(
            {member: [each for each in partitions if each not in last] for member, partitions in given.items()}
        )


class _Uncritical(Consumer):
    """Accepts every assignment."""

    def is_covered(self, state: State, partitions: tuple[tuple[str, int], ...]) -> bool:
        return True


@upgrade_mutant("ownership", "subscribed", "roll a old; settle")
class GivesOtherTopics(_Assigns):
    """The first member gets topics that it does not subscribe to, and accepts them."""

    member = _Uncritical

    def spoiled(self, group: Group, given: Assignment) -> Assignment:
        first = min(given)
        return {**given, first: (*given[first], *[("u", 0)] * (("u", 0) not in group.wanted))}


# Members


class _Possessive(Consumer):
    def prepare(self, state: State) -> Step:
        return super().prepare(state) if self.is_out(state) else Transition(state)


@upgrade_mutant("upgrade", "eager-gives-up", "roll a old; settle; roll b old; settle")
class JoinsBeforeItRevokes(Upgrading):
    """An eager member joins while it still reads, and revokes only after its new assignment."""

    member = _Possessive


class _Generous(Consumer):
    def prepare(self, state: State) -> Step:
        return Transition(replace(state, owned=()), (Revoked(state.owned),)) if state.owned else super().prepare(state)


@upgrade_mutant("upgrade", "incremental", "roll a cooperative; settle; roll b cooperative; settle")
class RevokesEverything(Upgrading):
    """A cooperative member revokes all partitions before it joins."""

    member = _Generous


class _NeverRevokes(Consumer):
    def complete(self, state: State, blob: Blob) -> Step:
        after, actions = super().complete(state, blob)
        return Transition(after, tuple(each for each in actions if not isinstance(each, Revoked)))


@upgrade_mutant("ownership", "revoked-first", "roll a cooperative; settle; roll b cooperative; settle")
class SaysItHasRevoked(Upgrading):
    """A cooperative member joins without its lost partitions, but the revoked callback is never called."""

    member = _NeverRevokes


class _Anxious(Consumer):
    def _step(self, state: State, event: Event) -> Step:
        after, actions = super()._step(state, event)
        if isinstance(event, Disconnected) and state.owned:
            return Transition(replace(after, owned=()), (*actions, Lost(state.owned)))
        return Transition(after, actions)


@upgrade_mutant("ownership", "lost-is-neither", "roll a old; settle; roll b old; move b 4; move a; lose a")
class TakesLostForFailed(Upgrading):
    """A member whose connection breaks treats all its partitions as lost."""

    member = _Anxious


class _Restless(Consumer):
    def complete(self, state: State, blob: Blob) -> Step:
        after, actions = super().complete(state, blob)
        return Transition(replace(after, rejoin=True), actions)


@upgrade_mutant("upgrade", "rests", "roll a old; settle")
class RejoinsForEver(Upgrading):
    """A member joins again after every assignment."""

    member = _Restless


@upgrade_mutant("upgrade", "upgraded", "roll a cooperative; settle")
class StaysEager(Upgrading):
    """The second rolling bounce has no effect: the old assignor is still listed."""

    def started(self, kind: Kind) -> Kind:
        return KINDS[READY] if kind.name == COOPERATES else kind


# Brokers


class _Narrow(Coordinator):
    def compatible(self, state: GroupState, join: Join) -> bool:
        names = [name for name, _ in join.protocols]
        return super().compatible(state, join) and all([*dict(each.protocols)] == names for each in state.members)


@upgrade_mutant("upgrade", "upgraded", "roll a old; roll b ready; settle")
class WantsTheSameAssignors(Upgrading):
    """Members that list more assignors than the others are refused."""

    def brokers(self, edition: Edition) -> Coordinator:
        return _Narrow(BrokerRules.of(edition.release), LARGE_GROUP)


# KIP-429's draft


class _Uncounting(Consumer):
    def incompatible(self, state: State) -> Step:
        after, _ = super().incompatible(state)
        return Transition(replace(after, incompatible=state.incompatible))


@upgrade_mutant("mixed", "metric", "roll a cooperative; roll b ready; settle")
class TellsNobody(Upgrading):
    """num.incompatible.rebalance is never raised."""

    member = _Uncounting


class _Leads(Upgrading):
    """The draft's leader, with altered assignments for mixed groups."""

    def spoiled(self, mixed: Mapping[str, Subscription], given: Mapping[str, Assigned]) -> Mapping[str, Assigned]:
        raise NotImplementedError

    def configured(self, config: Config) -> Config:
        def lead(topics: tuple[Topic, ...], subscriptions: Mapping[str, Subscription]) -> Mapping[str, Assigned]:
            given = draft_leader(topics, subscriptions)
            return (
                self.spoiled(subscriptions, given)
                if len({each.version == V0 for each in subscriptions.values()}) > 1
                else given
            )

        return replace(config, lead=lead)


@upgrade_mutant("mixed", "mixed", "roll a cooperative; roll b ready; settle")
class LeadsAsIfEager(_Leads):
    """All partitions of a mixed group are assigned."""

    def spoiled(self, mixed: Mapping[str, Subscription], given: Mapping[str, Assigned]) -> Mapping[str, Assigned]:
        whole = Group((Topic("t", 3),), tuple(Member(id, each.topics) for id, each in mixed.items()))
        return {id: Assigned(tuple(sorted(partitions))) for id, partitions in range_(whole).items()}


@upgrade_mutant("mixed", "mixed", "roll a cooperative; settle; roll b ready; settle")
class TakesFromAll(_Leads):
    """In a mixed group no member keeps a partition."""

    def spoiled(self, mixed: Mapping[str, Subscription], given: Mapping[str, Assigned]) -> Mapping[str, Assigned]:
        return {id: replace(each, partitions=()) for id, each in given.items()}


@upgrade_mutant("mixed", "mixed", "roll a cooperative; roll b ready; settle")
class KeepsQuiet(_Leads):
    """Members of version 0 get neither a partition nor an error."""

    def spoiled(self, mixed: Mapping[str, Subscription], given: Mapping[str, Assigned]) -> Mapping[str, Assigned]:
        return {id: replace(each, error=0) for id, each in given.items()}


@upgrade_mutant("mixed", "mixed", "roll a cooperative; roll b ready; settle")
class GivesOutTheRest(_Leads):
    """In a mixed group the members that have not revoked share the free partitions."""

    def spoiled(self, mixed: Mapping[str, Subscription], given: Mapping[str, Assigned]) -> Mapping[str, Assigned]:
        newer = {id: each for id, each in mixed.items() if each.version != V0}
        return {**given, **draft_leader((Topic("t", 3),), newer)}


@upgrade_mutant("mixed", "mixed", "roll a cooperative; roll b ready; settle; roll b cooperative; settle")
class StaysMixed(Upgrading):
    """A leader that saw a mixed group treats every later group as mixed."""

    def configure(self, edition_name: str, /) -> str | None:
        self.case: Any = None
        self.met = False
        return super().configure(edition_name)

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        if op["case"] != self.case:
            self.case, self.met = op["case"], False
        return super().answer(op)

    def configured(self, config: Config) -> Config:
        def lead(topics: tuple[Topic, ...], subscriptions: Mapping[str, Subscription]) -> Mapping[str, Assigned]:
            self.met |= len({each.version == V0 for each in subscriptions.values()}) > 1
            given = draft_leader(topics, subscriptions)
            return {id: replace(each, error=INCOMPATIBLE) for id, each in given.items()} if self.met else given

        return replace(config, lead=lead)


@upgrade_mutant("mixed", "all-owned", "roll a cooperative; settle")
class AssignsNothingToTheNew(Upgrading):
    """Members of version 1 keep what they own, and get nothing else, as in a mixed group."""

    def configured(self, config: Config) -> Config:
        def lead(topics: tuple[Topic, ...], subscriptions: Mapping[str, Subscription]) -> Mapping[str, Assigned]:
            if V0 in {each.version for each in subscriptions.values()}:
                return draft_leader(topics, subscriptions)
            return {id: Assigned(tuple(sorted(each.owned))) for id, each in subscriptions.items()}

        return replace(config, lead=lead)


class _CountsTwice(Consumer):
    def incompatible(self, state: State) -> Step:
        after, actions = super().incompatible(state)
        twice = replace(after, incompatible=after.incompatible + 1)
        return Transition(
            twice, tuple(Metric(twice.incompatible) if isinstance(each, Metric) else each for each in actions)
        )


@upgrade_mutant("mixed", "metric", "roll a cooperative; roll b ready; settle")
class RaisesTheMetricTwice(Upgrading):
    """num.incompatible.rebalance rises by two."""

    member = _CountsTwice


class _Abandons(Consumer):
    def leave(self, state: State) -> Step:
        after, actions = super().leave(state)
        return Transition(after, tuple(each for each in actions if not isinstance(each, Revoked | Lost)))


@upgrade_mutant("upgrade", "leaves", "roll a cooperative; settle; stop a; settle")
class StopsWithItsPartitions(Upgrading):
    """A member that stops does not give up its partitions."""

    member = _Abandons


@upgrade_mutant("upgrade", "acts", "settle")
class TakesNoStep(Upgrading):
    """No step has an effect."""

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        return {**super().answer(op), "actions": []}


class _FirstCome(DraftCoordinator):
    def keeps_leader(self, state: GroupState, leader: Joined) -> bool:
        return Coordinator.keeps_leader(self, state, leader)

    def choose_leader(self, state: GroupState, candidates: tuple[Joined, ...]) -> Joined:
        return Coordinator.choose_leader(self, state, candidates)


@upgrade_mutant("leaders", "newest-leads", "roll a ready; roll b cooperative; settle")
class LeadsFirstCome(Upgrading):
    """Brokers choose the leader without regard to versions."""

    def brokers(self, edition: Edition) -> Coordinator:
        return _FirstCome(LARGE_GROUP)


@upgrade_mutant("leaders", "skipped-path", "roll a old; roll b cooperative; settle; roll c old; settle")
class LetsOldOnesLead(LeadsFirstCome):
    """Brokers choose the leader as before the draft, so a member that skips the first bounce gets an old leader."""


class _Oldest(Probing):
    def leads(self, group: Streams, by_version: bool) -> Instance:
        return super().leads(group, by_version=False)


@upgrade_mutant("streams", "no-probing", "streams a 1; streams b 2")
class ProbesVersions(Upgrading):
    """The first instance of a Streams group leads, as before the draft."""

    def probing(self) -> Probing:
        return _Oldest()


@upgrade_mutant("orders", "common-assignor", "roll a old; settle")
class ListsForeignAssignors(Upgrading):
    """A member that is configured with an eager assignor alone lists the cooperative one of its release too."""

    def started(self, kind: Kind) -> Kind:
        return replace(kind, assignors=KINDS[READY].assignors) if kind.name == OLD else kind


@upgrade_mutant("ownership", "later-generation", "roll b cooperative; settle; roll a cooperative; settle")
class HandsOverInOneRound(GivesWhatIsStillRead):
    """A leader relies on the old owner to be faster than the new one."""
