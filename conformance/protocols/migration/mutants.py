"""Coordinators of groups with members of both protocols with one planted defect each. Least cases are in shorthand."""

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.core.values.replacing import replace
from kipcheck.conformance.protocols.consumer_group import model as consumer
from kipcheck.conformance.protocols.consumer_group.ops import Beat
from kipcheck.conformance.protocols.consumer_group.rules import Rules
from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutants_of
from kipcheck.conformance.protocols.migration.invariants import MEMBERS, RECORDS
from kipcheck.conformance.protocols.migration.model import MixedGroup
from kipcheck.conformance.protocols.migration.ops import OPERATIONS, Action, ClassicJoin, ClassicRemove, Received
from kipcheck.conformance.protocols.migration.state import Client, State
from kipcheck.conformance.protocols.reconciled import model as reconciled, terms
from kipcheck.conformance.protocols.reconciled.log_ops import Reload
from kipcheck.conformance.protocols.reconciled.terms import Rejected


class MutantCoordinator(MachineMutant, MixedGroup):
    """The reference machine as an adapter, with overridable decisions. It computes target assignments at once."""

    operations = OPERATIONS
    owed = Rules.owed(since("kip-848"))

    def __init__(self) -> None:
        MixedGroup.__init__(self, self.owed)
        MachineMutant.__init__(self)


defect = mutants_of(MEMBERS, OPERATIONS.machine)
records = mutants_of(RECORDS, OPERATIONS.machine)


@defect("upgrades", ...)
class StaysClassic(MutantCoordinator):
    """A classic group stays one."""

    def may_upgrade(self, state: State) -> bool:
        return not state.classic.members


@defect("epoch-continues", ...)
class BeginsBelowTheGeneration(MutantCoordinator):
    """An upgraded group begins with epoch 0."""

    def first_epoch(self, former: object) -> int:
        return -1


@defect("one-owner", ...)
class ForgetsClassicOwners(MutantCoordinator):
    """The partitions of classic members are free when their group is upgraded."""

    def upgraded(self, state: State) -> tuple[State, str | None]:
        after, error = super().upgraded(state)
        members = tuple(each._replace(assigned=()) for each in after.group.members)
        return after._replace(group=after.group._replace(members=members, target=())), error


@defect("one-owner", ...)
class TakesAnyJoinForConsent(MutantCoordinator):
    """A member of the classic protocol that joins again has given up what it should."""

    def reconciled(
        self, group: consumer.State, member: consumer.Member, owned: terms.Partitions, changed: bool
    ) -> consumer.Member:
        return super().reconciled(group, member, (), changed)


@defect("co-subscription", ...)
class KeepsExpressions(MutantCoordinator):
    """A client of the classic protocol that takes over an instance has the regular expression of its predecessor."""

    owed = replace(MutantCoordinator.owed, drops_expressions=False)


@defect("behind-rejoins", ...)
class TellsNobodyToJoin(MutantCoordinator):
    """A member of the classic protocol is not asked to join again."""

    def must_rejoin(self, state: State, member: consumer.Member) -> bool:
        return False


@defect("no-leader", ...)
class NamesALeader(MutantCoordinator):
    """A member of the classic protocol leads a consumer group."""

    def join_answer(self, member: consumer.Member) -> Received:
        return replace(super().join_answer(member), led=True, leads=True)


@defect("old-generation", ...)
class TakesAnyGeneration(MutantCoordinator):
    """A heartbeat of an earlier generation counts."""

    def is_stale(self, member: consumer.Member, generation: int) -> bool:
        return generation > member.epoch


@defect("generations-rise", ...)
class RestartsGenerations(MutantCoordinator):
    """A downgraded group begins with generation 1."""

    def first_generation(self, group: consumer.State) -> int:
        return 0


@defect("asks-for-ids", ...)
class AdmitsWithoutIds(MutantCoordinator):
    """A client without an id becomes a member at once, whatever the version of its request."""

    def must_ask(self, client: Client, join: ClassicJoin) -> bool:
        return False


@defect("asks-for-ids", ...)
class ForgetsGivenIds(MutantCoordinator):
    """Only the ids of members are known."""

    def join_fault(self, state: State, client: Client, join: ClassicJoin) -> str | None:
        unknown = join.instance is None and client.id and state.group.member(client.id) is None
        return "UNKNOWN_MEMBER_ID" if unknown else super().join_fault(state, client, join)


@defect("takes-over", ...)
class KeepsInstances(MutantCoordinator):
    """A client of the classic protocol gets an instance only when the former member has left for a while."""

    def may_replace(self, holder: consumer.Member) -> bool:
        return holder.epoch == terms.AWAY


@defect("takes-over", ...)
class KeepsInstancesOfClassicMembers(MutantCoordinator):
    """A consumer does not get the instance of a member of the classic protocol."""

    def released(self, state: State, beat: Beat) -> consumer.State:
        return state.group


@defect("fences-former", ...)
class KeepsFormerMembers(MutantCoordinator):
    """The former member with an instance id remains a member."""

    def is_same(self, holder: consumer.Member, client: Client) -> bool:
        return True

    def replaced(self, group: consumer.State, former: consumer.Member, beat: Beat) -> consumer.State:
        return reconciled.with_member(group, former._replace(instance=None))


@defect("one-owner-after-takeover", ...)
class AssignsUnreleased(MutantCoordinator):
    """A group that a static member makes a classic one is stable at once."""

    assigns_unreleased = True


@defect("takeover-without-rebalance", ...)
class RebalancesForClassicSuccessors(MutantCoordinator):
    """A client of the classic protocol that takes over an instance counts as a new member."""

    def replaced(self, group: consumer.State, former: consumer.Member, beat: Beat) -> consumer.State:
        after = super().replaced(group, former, beat)
        return after._replace(group_epoch=self.consumers.bumped(after))


# Operators and sizes


@defect("operator-removes", ...)
class KeepsConsumersOfOperators(MutantCoordinator):
    """An operator removes members of the classic protocol only."""

    def dismissed(self, state: State, remove: ClassicRemove, number: int) -> State:
        holder = state.group.holder(remove.instance)
        if holder is not None and state.member(holder.id) is None:
            return self.delivered(state, number, Received("", "UNKNOWN_MEMBER_ID"))
        return super().dismissed(state, remove, number)


@defect("operator-removes", ...)
class AnswersOperatorsOnly(MutantCoordinator):
    """A member that an operator removes stays a member of a consumer group."""

    def dismissed(self, state: State, remove: ClassicRemove, number: int) -> State:
        after = super().dismissed(state, remove, number)
        return after._replace(group=state.group, members=state.members, is_consumer=True)


@defect("size-limit", ...)
class AdmitsClassicMembersBeyondTheLimit(MutantCoordinator):
    """Clients of the classic protocol join a full consumer group."""

    def join_fault(self, state: State, client: Client, join: ClassicJoin) -> str | None:
        room = state._replace(group=state.group._replace(members=state.group.members[:1]))
        found = super().join_fault(state, client, join)
        return super().join_fault(room, client, join) if found == terms.GROUP_MAX_SIZE_REACHED else found


@defect("size-limit", ...)
class CountsConsumersOnly(MutantCoordinator):
    """Members of the classic protocol do not count for a consumer that joins."""

    def beat(self, state: State, beat: Beat) -> Transition[State, Action]:
        self.consumers.config = replace(self.config, max_size=self.config.max_size + len(state.members))
        return super().beat(state, beat)


@defect("successor-fits", ...)
class CountsPredecessors(MutantCoordinator):
    """A full group refuses the successor of a static member."""

    def __init__(self) -> None:
        super().__init__()
        self.consumers.counts_successors = True


# From a consumer group to a classic group


@defect("downgrades", ...)
class KeepsOldTargets(MutantCoordinator):
    """A client of the classic protocol that replaces the last consumer, with other topics, starts no rebalance."""

    owed = replace(MutantCoordinator.owed, rebalances_changed_successors=False)


@defect("downgrades", ...)
class StaysAConsumerGroup(MutantCoordinator):
    """The group stays a consumer group without members of that protocol."""

    def may_downgrade(self, state: State, leaving: str) -> bool:
        return False


@defect("admits-members", ...)
class KeepsOutClassicClients(MutantCoordinator):
    """A consumer group takes no new client of the classic protocol."""

    def join_fault(self, state: State, client: Client, join: ClassicJoin) -> str | None:
        is_new = state.group.member(client.id) is None and state.group.holder(join.instance) is None
        return "INCONSISTENT_GROUP_PROTOCOL" if is_new else super().join_fault(state, client, join)


@defect("admits-members", ...)
class KeepsOutConsumers(MutantCoordinator):
    """A consumer group with members of the classic protocol takes no new consumer."""

    def beat(self, state: State, beat: Beat) -> Transition[State, Action]:
        is_new = beat.says is terms.Says.JOIN and state.group.member(beat.client) is None
        if is_new and beat.instance is None and state.is_consumer and state.members:
            return Transition(state, (Rejected(beat.client, terms.GROUP_ID_NOT_FOUND),))
        return super().beat(state, beat)


# The log


@records("outlives-reloads", ...)
class LoadsNoClassicMembers(MutantCoordinator):
    """A coordinator that has read the log of a consumer group does not know its members of the classic protocol."""

    def reloaded(self, state: State, reload: Reload) -> State:
        after = super().reloaded(state, reload)
        ids = {each.id for each in after.members}
        members = tuple(each for each in after.group.members if each.id not in ids)
        return after._replace(members=(), group=after.group._replace(members=members))


@records("commits-kept", ...)
class LosesOffsetsInUpgrades(MutantCoordinator):
    """The offsets of a classic group are gone when it is a consumer group."""

    def upgraded(self, state: State) -> tuple[State, str | None]:
        after, error = super().upgraded(state)
        return (after if error else after._replace(offsets=())), error
