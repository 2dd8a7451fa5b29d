"""Quorums of KRaft controllers with one planted defect each. Least cases are in shorthand."""

from dataclasses import replace

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutants_of
from kipcheck.conformance.protocols.features.invariants.quorum import QUORUM
from kipcheck.conformance.protocols.features.model.kraft_rules import METADATA, Rules
from kipcheck.conformance.protocols.features.model.quorum import MAJORITY, KraftQuorum, State
from kipcheck.conformance.protocols.features.ops import quorum
from kipcheck.conformance.protocols.features.ops.kraft import KraftUpdate, Level

PLACE = 100


class Quorum(MachineMutant, KraftQuorum):
    """The reference machine of edition ``apache`` as an adapter, with overridable decisions."""

    operations = quorum.OPERATIONS

    def __init__(self) -> None:
        KraftQuorum.__init__(self, Rules.owed())
        MachineMutant.__init__(self)


_mutant = mutants_of(QUORUM, quorum.OPERATIONS.machine)


def _only_metadata(state: State) -> State:
    levels = tuple(each for each in state.cluster.levels if each[0] == METADATA)
    return replace(state, cluster=replace(state.cluster, levels=levels))


@_mutant("acknowledged-stays", "views; send group.version:1; kill leader; views")
class LosesWhatTheLeaderHad(Quorum):
    """What is finalized besides metadata.version is kept by the leader alone."""

    def killed(self, state: State, hit: tuple[int, ...]) -> State:
        return super().killed(_only_metadata(state) if hit == (state.leader,) else state, hit)


@_mutant("acknowledged-stays", "views; send group.version:1; kill all; start; views")
class ReadsNoLevelsFromDisk(Quorum):
    """A quorum of which all nodes ended reads only metadata.version from what they wrote."""

    def started(self, state: State) -> State:
        return super().started(state if state.active else _only_metadata(state))


@_mutant(
    "whole-or-not-at-all",
    "views; pause followers; send group.version:1,transaction.version:1; kill leader; resume; views",
)
class AppliesTheFirstHalf(Quorum):
    """Of an update that was cut off, the first feature is applied."""

    def killed(self, state: State, hit: tuple[int, ...]) -> State:
        found = super().killed(state, hit)
        if state.pending is None or not state.logged or state.leader not in hit:
            return found
        first = state.pending.updates[0]
        return replace(found, cluster=found.cluster.with_level(first.feature, first.level))


@_mutant("refused-changes-nothing", "views; pause followers; send group.version:1; resume; await; views")
class AnswersWithAnErrorAndApplies(Quorum):
    """A leader that was without followers answers with NOT_CONTROLLER, and applies the update when they are back."""

    def awaited(self, state: State) -> Transition[State, quorum.Action]:
        after, actions = super().awaited(state)
        if any(isinstance(each, quorum.QuorumSent) and each.outcome == quorum.APPLIED for each in actions):
            return Transition(after, (quorum.QuorumRefused("NOT_CONTROLLER"),))
        return Transition(after, actions)


@_mutant("one-view", "send group.version:1; views")
class LastNodeLags(Quorum):
    """The last node shows metadata.version alone."""

    def levels(self, state: State, node: int) -> tuple[Level, ...]:
        found = super().levels(state, node)
        return found if node != 2 else tuple(each for each in found if each.feature == METADATA)


@_mutant("epoch-never-falls", "send group.version:1; views; kill leader; views")
class CountsAgain(Quorum):
    """The epoch begins again with a new leader."""

    def epoch(self, state: State, node: int) -> int:
        return super().epoch(state, node) if 0 in state.active else 1


@_mutant("needs-a-majority", "pause followers; send group.version:1")
class AcknowledgesAlone(Quorum):
    """The leader answers as soon as it has an update in its own log."""

    def sent(self, state: State, request: KraftUpdate) -> Transition[State, quorum.Action]:
        after, actions = super().sent(state, request)
        if after.logged:
            return Transition(after, (quorum.QuorumSent(quorum.APPLIED, True),))
        return Transition(after, actions)


@_mutant("needs-a-majority", "views; pause followers; send group.version:1; views")
class ShowsWhatIsNotCommitted(Quorum):
    """The leader shows an update that no follower has."""

    def levels(self, state: State, node: int) -> tuple[Level, ...]:
        if state.pending is None or not state.logged:
            return super().levels(state, node)
        cluster = state.cluster
        for each in state.pending.updates:
            cluster = cluster.with_level(each.feature, each.level)
        return super().levels(replace(state, cluster=cluster), node)


@_mutant("applies-legal-updates", "views; send group.version:1")
class RefusesEverythingInAQuorum(Quorum):
    """Every update is refused."""

    def sent(self, state: State, request: KraftUpdate) -> Transition[State, quorum.Action]:
        return Transition(state, (quorum.QuorumRefused("INVALID_UPDATE_VERSION"),))


@_mutant("applies-legal-updates", "views; kill leader; send group.version:1")
class WantsEveryNode(Quorum):
    """An update is applied when all three nodes run."""

    def sent(self, state: State, request: KraftUpdate) -> Transition[State, quorum.Action]:
        if MAJORITY <= len(state.active) < 3:
            return Transition(
                replace(state, pending=request, outcome=quorum.LOST), (quorum.QuorumSent(quorum.LOST, False),)
            )
        return super().sent(state, request)


@_mutant("within-controllers", "quorum 30 beside 4.3.1; views; send metadata.version:31")
class AsksNoOtherController(Quorum):
    """The leader compares a level with what it supports itself."""

    def sent(self, state: State, request: KraftUpdate) -> Transition[State, quorum.Action]:
        alone = replace(state.cluster, controllers=(), brokers=(), quorum=(0,))
        after, actions = super().sent(replace(state, cluster=alone), request)
        cluster = replace(state.cluster, levels=after.cluster.levels, epoch=after.cluster.epoch)
        return Transition(replace(after, cluster=cluster), actions)


@_mutant("comes-back", "kill follower; start; views")
class StaysDown(Quorum):
    """A node that was killed runs again, and does not answer."""

    def started(self, state: State) -> State:
        found = super().started(state)
        return replace(found, outcome="silent") if state.killed else found

    def shown(self, state: State) -> tuple[int, ...]:
        return super().shown(state)[:-1] if state.outcome == "silent" else super().shown(state)


@_mutant("comes-back", "kill leader; views")
class ElectsNobody(Quorum):
    """After the leader ended, none leads."""

    def elected(self, state: State) -> State:
        found = super().elected(state)
        return found if found.leader == state.leader else replace(found, leader=-1)
