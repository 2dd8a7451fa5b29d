"""Groups whose coordinator has one planted defect. Least cases in shorthand."""

from dataclasses import replace
from typing import Final

from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutants_of
from kipcheck.conformance.protocols.failover import ops
from kipcheck.conformance.protocols.failover.invariants import GROUPS
from kipcheck.conformance.protocols.failover.model import Committed, Group, State


class Failing(MachineMutant, Group):
    operations = ops.OPERATIONS


broken: Final = mutants_of(GROUPS, ops.FAILOVER)


@broken("one-owner", "join a classic; join b classic")
class GivesAPartitionTwice(Failing):
    """Every member of a group is assigned the first partition."""

    def shares(self, state: State, names: list[str]) -> dict[str, tuple[int, ...]]:
        return {name: tuple(sorted({0, *share})) for name, share in Group.shares(self, state, names).items()}


@broken("commits-kept", "join a classic; elect")
class AcknowledgesBeforeReplicas(Failing):
    """A commit is accepted before a replica has it: the next coordinator lacks the last one."""

    def loaded(self, state: State) -> State:
        return replace(state, committed=state.before)


@broken("reads-commits-at-once", "join a classic; elect")
class AnswersBelowTheEndOfTheLog(Failing):
    """A coordinator that takes over answers OffsetFetch before it knows that the end of its log is committed."""

    def first_look(self, state: State) -> Committed:
        return state.before


@broken("epochs-rise", "join a classic; elect; join b classic")
class CountsEpochsInMemory(Failing):
    """The next coordinator begins to count epochs anew."""

    def loaded(self, state: State) -> State:
        return replace(state, epoch=-1)


@broken("becomes-stable", "elect; settle")
class NeverEndsLoading(Failing):
    """A coordinator that takes over answers that it is loading, for good."""

    def answers(self, state: State) -> bool:
        return not state.moved
